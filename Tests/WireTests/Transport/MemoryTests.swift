#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernTesting
import Testing

/// Measures the memory that bodies use. Each test that measures runs in a process of its own, apart from the other
/// tests.
@Suite(.disabled(if: ProcessFacts.isSanitized, ProcessFacts.sanitized), .serialized, .timeLimit(.minutes(2)))
struct MemoryTests {
    private static let gibibyte = 1 << 30
    private static let body = 64 << 20

    /// Returns the largest size of the process since `forgetPeak`.
    static func peakSize() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") }),
            let number = line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Int($0) })
        else { throw CheckFailure(description: "the kernel tells no peak") }
        return number << 10
    }

    /// Starts a new measurement of the peak (proc(5), clear_refs).
    static func forgetPeak() throws {
        let file = try FileHandle(forWritingTo: URL(filePath: "/proc/self/clear_refs"))
        try file.write(contentsOf: Data("5".utf8))
        try file.close()
    }

    private static func serveZeros(_ exchange: LoopbackServer.Exchange) throws {
        let count = Int(exchange.request.path.dropFirst()) ?? 0
        if exchange.request.query.isEmpty {
            try exchange.writeHead(headers: [("Content-Length", String(count))])
        } else {
            // The length is unknown: the end of the connection ends the body.
            try exchange.writeHead(headers: [("Connection", "close")])
        }
        try exchange.streamZeros(count: count)
        if !exchange.request.query.isEmpty { exchange.close() }
    }

    /// Runs a piece of work after a smaller one of its kind, and fails if its peak is too high.
    private static func measure(
        limit: Int, _ handler: @escaping LoopbackServer.Handler, _ work: (Client, Int) async throws -> Void
    ) async throws {
        try await withServer(handler) { _, client in
            try await work(client, 1 << 20)
            try forgetPeak()
            let before = try ProcessFacts.residentSize()
            try await work(client, body)
            let peak = try peakSize() - before
            guard peak < limit else { throw CheckFailure(description: "\(peak >> 10) KiB above the start") }
        }
    }

    @Test func collectedBodyIsNotCopied() async {
        await #expect(processExitsWith: .success) {
            try await MemoryTests.measure(limit: 80 << 20, MemoryTests.serveZeros) { client, count in
                let data = try await client.get("\(count)")
                guard data.count == count, data.last == 0 else {
                    throw CheckFailure(description: "\(data.count) bytes")
                }
            }
        }
    }

    @Test func aCollectedBodyOfUnknownLengthIsNotCopiedAtItsEnd() async {
        await #expect(processExitsWith: .success) {
            try await MemoryTests.measure(limit: 80 << 20, MemoryTests.serveZeros) { client, count in
                let data = try await client.get("\(count)", query: ["close": 1])
                guard data.count == count, data.last == 0 else {
                    throw CheckFailure(description: "\(data.count) bytes")
                }
            }
        }
    }

    @Test func aDownloadHoldsLittle() async {
        await #expect(processExitsWith: .success) {
            try await inTestFolder { folder in
                try await MemoryTests.measure(limit: 16 << 20, MemoryTests.serveZeros) { client, count in
                    _ = try await client.download("\(count)", to: folder.url("zeros")).value
                }
            }
        }
    }

    @Test func anUploadedStreamHoldsLittle() async {
        await #expect(processExitsWith: .success) {
            let drain: LoopbackServer.Handler = { exchange in
                try exchange.respond(text: "\(try exchange.drainBody())")
            }
            try await MemoryTests.measure(limit: 16 << 20, drain) { client, count in
                let rest = Counter()
                let chunks = AsyncStream<Data> {
                    guard rest.value < count else { return nil }
                    rest.add(64 << 10)
                    return Data(count: 64 << 10)
                }
                let text = try await client.upload("a", body: .stream(chunks), as: String.self).value
                guard text == "\(count)" else { throw CheckFailure(description: "\(text) bytes arrived") }
            }
        }
    }

    @Test func aFormWithAFileOfTwoGibibytesHoldsLittle() async {
        await #expect(processExitsWith: .success) {
            try await inTestFolder { folder in
                try folder.write("", to: "large")
                let drain: LoopbackServer.Handler = { exchange in
                    try exchange.respond(text: "\(try exchange.drainBody())")
                }
                try await MemoryTests.measure(limit: 32 << 20, drain) { client, count in
                    // A sparse file takes no space on the disk. The smaller run warms up.
                    let size = count == MemoryTests.body ? 2 * MemoryTests.gibibyte : count
                    let handle = try FileHandle(forWritingTo: folder.url("large"))
                    try handle.truncate(atOffset: UInt64(size))
                    try handle.close()
                    var form = MultipartForm()
                    form.append("first", named: "name")
                    try form.append(file: folder.url("large"), named: "large")
                    let text = try await client.upload("a", multipart: form, as: String.self).value
                    guard let arrived = Int(text), arrived > size, arrived < size + 1_000 else {
                        throw CheckFailure(description: "\(text) bytes arrived")
                    }
                }
            }
        }
    }

    @Test func aSlowReaderOfAGibibyteHoldsLittle() async {
        await #expect(processExitsWith: .success) { try await MemoryTests.readSlowly() }
    }

    private static func readSlowly() async throws {
        try await withServer(serveZeros) { server, client in
            try await fence(server)
            let before = try ProcessFacts.residentSize()
            var (received, peak, stops) = (0, 0, 0)
            for try await chunk in client.stream("\(gibibyte)").chunks {
                received += chunk.count
                guard received >= stops << 25 else { continue }
                // The first stops are long enough for every buffer to fill.
                try await fence(server, roundTrips: stops < 3 ? 1_000 : 20)
                peak = max(peak, try ProcessFacts.residentSize() - before)
                stops += 1
            }
            guard received == gibibyte else { throw CheckFailure(description: "\(received) bytes") }
            guard peak < 32 << 20 else { throw CheckFailure(description: "a slow reader held \(peak >> 10) KiB") }
        }
    }

    @Test(arguments: ["done", "refused", "cancelled"])
    func engineReleasesEndedTransfers(how: String) async throws {
        let isGone = LoopbackServer.Gate()
        try await withServer { exchange in
            _ = try exchange.readBody()
            switch how {
            case "done": try exchange.respond(status: 204)
            case "refused": try exchange.respond(status: 400)
            default: try exchange.waitForClientToClose()
            }
        } test: { server, client in
            // Only the transfer and its task hold these bytes.
            func start() -> SessionTask<Data> {
                let count = 100_000
                let block = UnsafeMutableRawPointer.allocate(byteCount: count, alignment: 16)
                unsafe block.initializeMemory(as: UInt8.self, repeating: 1, count: count)
                let body = unsafe Data(
                    bytesNoCopy: block, count: count,
                    deallocator: .custom { block, _ in
                        unsafe block.deallocate()
                        isGone.open()
                    })
                return client.upload("a", body: .data(body))
            }
            var task: SessionTask<Data>? = start()
            if how == "cancelled" {
                try await server.wait { $0.bytesIn >= 100_000 }
                task?.cancel()
            }
            do throws(NetworkError) {
                _ = try await task?.value
            } catch {
                #expect(error.kind == (how == "refused" ? .status : .cancelled))
            }
            task = nil
            try await isGone.wait()
        }
    }
}
#endif
