#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernTesting
import Testing

/// Measures the memory that slow readers hold. Each test runs in a process of its own, apart from the other tests.
@Suite(
    "nginx: memory of slow readers", .serialized, .enabled(if: Nginx.isExpected, Nginx.absence),
    .disabled(if: ProcessFacts.isSanitized, ProcessFacts.sanitized), .timeLimit(.minutes(2)))
struct NginxMemoryTests {
    private static let gibibyte = 1 << 30

    /// Waits for the time of a number of small requests.
    private static func pass(_ count: Int, _ client: Client) async throws {
        try await withThrowingTaskGroup { group in
            for _ in 0..<4 {
                group.addTask { for _ in 0..<count / 4 { try await client.get("hello") } }
            }
            try await group.waitForAll()
        }
    }

    /// Reads 1 GiB, and stops repeatedly while other requests run, in the same session or in another.
    private static func readSlowly(http2: Bool, withSiblings: Bool) async throws {
        let nginx = try await Nginx()
        defer { nginx.stop() }
        try nginx.makeSparseFile("big", size: gibibyte)
        let client = try nginx.secureClient { $0.allowsHTTP2 = http2 }
        let others = withSiblings ? client : try nginx.secureClient { $0.allowsHTTP2 = http2 }
        try await pass(100, client)
        try await pass(100, others)
        let before = try ProcessFacts.residentSize()
        var (received, peak, stops) = (0, 0, 0)
        let stream = client.stream("files/big")
        for try await chunk in stream.chunks {
            received += chunk.count
            guard received >= stops << 24 else { continue }
            // The first stops are long enough for every buffer to fill.
            try await pass(stops < 3 ? 1_000 : 20, others)
            peak = max(peak, try ProcessFacts.residentSize() - before)
            stops += 1
        }
        let version = try await stream.response.version
        guard received == gibibyte, version == (http2 ? .http2 : .http11) else {
            throw CheckFailure(description: "\(received) bytes over \(version)")
        }
        guard peak < 32 << 20 else { throw CheckFailure(description: "a slow reader held \(peak >> 10) KiB") }
    }

    @Test func slowReaderOverHTTP2HoldsLittle() async {
        await #expect(processExitsWith: .success) {
            await CheckFailure.report { try await NginxMemoryTests.readSlowly(http2: true, withSiblings: false) }
        }
    }

    @Test func slowReaderOverHTTP2HoldsLittleAmongBusySiblings() async {
        await #expect(processExitsWith: .success) {
            await CheckFailure.report { try await NginxMemoryTests.readSlowly(http2: true, withSiblings: true) }
        }
    }

    @Test func slowReaderOverHTTP1HoldsLittleAmongBusySiblings() async {
        await #expect(processExitsWith: .success) {
            await CheckFailure.report { try await NginxMemoryTests.readSlowly(http2: false, withSiblings: true) }
        }
    }

    @Test func twentyPausedStreamsHoldLittleAndContinue() async {
        await #expect(processExitsWith: .success) {
            await CheckFailure.report { try await NginxMemoryTests.pauseTwenty() }
        }
    }

    private static func pauseTwenty() async throws {
        let nginx = try await Nginx()
        defer { nginx.stop() }
        let pattern = LoopbackServer.Pattern(count: 48 << 20, seed: 7)
        try nginx.makeFile("big", pattern.bytes())
        let client = try nginx.secureClient()
        try await pass(100, client)
        let before = try ProcessFacts.residentSize()

        let streams = (0..<20).map { _ in client.stream("files/big") }
        var readers = streams.map { $0.chunks.makeAsyncIterator() }
        var offsets = Array(repeating: 0, count: streams.count)
        for index in streams.indices {
            offsets[index] += try await readers[index].next()?.count ?? 0
            if index.isMultiple(of: 2) { streams[index].task.pause() }
            let version = try await streams[index].response.version
            guard version == .http2 else { throw CheckFailure(description: "the stream came over \(version)") }
        }
        // Half of them are paused, and half are not read.
        try await pass(1_000, client)
        let growth = try ProcessFacts.residentSize() - before
        guard growth < 64 << 20 else {
            throw CheckFailure(description: "20 streams that stand still held \(growth >> 10) KiB")
        }

        for index in streams.indices {
            streams[index].task.resume()
            while offsets[index] < 8 << 20, let chunk = try await readers[index].next() {
                guard pattern.matches(chunk, at: offsets[index]) else {
                    throw CheckFailure(description: "stream \(index) has other bytes at \(offsets[index])")
                }
                offsets[index] += chunk.count
            }
            guard offsets[index] >= 8 << 20 else { throw CheckFailure(description: "stream \(index) ended early") }
            streams[index].task.cancel()
        }
    }
}
#endif
