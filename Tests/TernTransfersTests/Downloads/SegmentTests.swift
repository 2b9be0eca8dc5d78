import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Downloads in several segments, over real connections.
@Suite("Durable downloads: segments", .timeLimit(.minutes(1)))
struct SegmentTests {
    static let pattern = LoopbackServer.Pattern(count: 1_000_003)

    private func download(
        _ client: Client, _ folder: TestFolder, _ change: (inout DurableDownloadOptions) -> Void = { _ in }
    ) -> DurableDownloadTask {
        let options = DurableDownloadOptions.test { options in
            options.segments = 4
            options.shortestSegment = 1_000
            options.digest = .sha256(sha256(Self.pattern.bytes()))
            change(&options)
        }
        return client.download("file", to: folder.url("file"), resuming: .automatically, options: options)
    }

    /// Sends the head of a segment and the first of its bytes.
    private func beginSegment(_ exchange: LoopbackServer.Exchange, count: Int) throws {
        let range = exchange.request["Range"] ?? ""
        let ends = range.dropFirst("bytes=".count).split(separator: "-").compactMap { Int($0) }
        let place = ("Content-Range", "bytes \(ends[0])-\(ends[1])/1000003")
        let length = ("Content-Length", "\(ends[1] - ends[0] + 1)")
        try exchange.writeHead(status: 206, headers: [("ETag", Self.pattern.etag), place, length])
        try exchange.streamPattern(Self.pattern, in: ends[0]..<(ends[0] + count))
    }

    @Test func segmentsMakeOneFile() async throws {
        let asked = Log<RangeFields>()
        try await withServer { exchange in
            asked.add(RangeFields(exchange.request))
            try exchange.serveFile(Self.pattern)
        } test: { _, client, folder in
            let task = download(client, folder)
            let result = try await task.value
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(try folder.bytes("file").count == 1_000_003)
            #expect(result.trace.contains(.segmented(4)))
            #expect(result.receivedBytes == 1_000_003)
            #expect(Set(asked.all.dropFirst().compactMap(\.range)).count == 4)
            #expect(asked.all.dropFirst().allSatisfy { $0.condition == Self.pattern.etag })
            #expect(try folder.names == ["file"])
            #expect(task.progressNow.completedBytes == 1_000_003)
        }
    }

    @Test func segmentThatBreaksOffIsTakenUpAgain() async throws {
        let rest = Lock(6)
        try await withServer { exchange in
            guard exchange.request["Range"] != nil else { return try exchange.serveFile(Self.pattern) }
            let isBroken = rest.withLock { rest in
                rest -= 1
                return rest >= 0
            }
            guard isBroken else { return try exchange.serveFile(Self.pattern) }
            try beginSegment(exchange, count: 10_000)
            exchange.close()
        } test: { _, client, folder in
            let result = try await download(client, folder).value
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(result.receivedBytes == 1_000_003)
            #expect(result.attempts == 11)
        }
    }

    /// After a loss of power, the table of the segments can count bytes that never reached the disk.
    @Test(arguments: [true, false]) func laterDownloadContinuesEachSegmentOfTheSameRun(isSameRun: Bool) async throws {
        let (hasBytes, isBroken) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        try await withServer { exchange in
            guard let range = exchange.request["Range"], !isBroken.isOpen else {
                return try exchange.serveFile(Self.pattern)
            }
            if range.hasPrefix("bytes=0-") {
                try beginSegment(exchange, count: 500)
                return try exchange.waitForClientToClose()
            }
            try exchange.wait(for: hasBytes)
            try exchange.respond(status: 404)
        } test: { _, client, folder in
            // The other segments are refused, and leave a part of the whole length.
            let first = download(client, folder)
            for await progress in first.progress where progress.completedBytes == 500 { break }
            hasBytes.open()
            let error = try await failure { try await first.value }
            #expect(error.status == 404)
            #expect(try folder.bytes(".file.tern").count == 1_000_003 + 4 * 8)
            // A process that was killed has written some of each.
            let plan = SegmentPlan(size: 1_000_003, segments: 4)
            var part = try folder.bytes(".file.tern")
            for (index, range) in plan.ranges.enumerated() {
                let count = 1_000 * (index + 1)
                let start = Int(range.lowerBound)
                part.replaceSubrange(start..<(start + count), with: Self.pattern.bytes(in: start..<(start + count)))
                let entry = Int(plan.position(ofEntry: index))
                part.replaceSubrange(entry..<(entry + 8), with: SegmentPlan.entry(Int64(count)))
            }
            try folder.write(part, to: ".file.tern")
            if !isSameRun {
                var control = try ControlFile(
                    folder.bytes(".file.tern.json"), names: ControlNames(destination: "file"))
                #expect(control.bootID == DiskCall.bootID)
                control.bootID = "another run"
                try folder.write(control.encoded(), to: ".file.tern.json")
            }
            isBroken.open()
            let result = try await download(client, folder).value
            #expect((result.trace.first == .continued(at: 10_000)) == isSameRun, "\(result.trace)")
            #expect(result.receivedBytes == (isSameRun ? 990_003 : 1_000_003))
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(try folder.names == ["file"])
        }
    }

    @Test func serverWithoutRangesIsReadInOneStream() async throws {
        try await withServer {
            try $0.serveFile(Self.pattern, supportsRanges: false)
        } test: { _, client, folder in
            let result = try await download(client, folder).value
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(result.trace.contains(.startedOver(.rangeIgnored, discarded: 0)))
        }
    }

    @Test func fileThatChangesBetweenSegmentsIsReadInOneStream() async throws {
        let changed = LoopbackServer.Pattern(count: 1_000_003, seed: 3)
        try await withServer { exchange in
            try exchange.serveFile(exchange.number == 1 ? Self.pattern : changed)
        } test: { _, client, folder in
            let result = try await download(client, folder) { $0.digest = nil }.value
            #expect(changed.matches(try folder.bytes("file")))
            #expect(result.trace.contains { if case .startedOver(.fileChanged, _) = $0 { true } else { false } })
        }
    }

    @Test func fileWithoutStrongValidatorHasOneSegment() async throws {
        try await withServer {
            try $0.serveFile(Self.pattern, etag: "")
        } test: { server, client, folder in
            let result = try await download(client, folder).value
            #expect(result.trace.first == .started && result.attempts == 1)
            #expect(server.counts.requestsReceived == 1)
        }
    }

    /// A server that speaks HTTP/2 alone refuses all segments before the first of them is asked for again.
    @Test func serverThatRefusesHTTP1ForAllSegmentsIsAskedAgain() async throws {
        let refused = Lock<[Waiter<Void>]>([])
        let bytes = Data(Self.pattern.bytes())
        let stub = StubTransport { call in
            let tag = ("ETag", Self.pattern.etag)
            guard let range = call.headers["Range"] else {
                return .data(bytes, headers: ["ETag": tag.1])
            }
            let waiter = Waiter<Void>()
            let known = refused.withLock { refused in
                refused.append(waiter)
                return refused
            }
            if known.count <= 4 {
                if known.count == 4 { for waiter in known { waiter.resume() } }
                await waiter.wait()
                throw StubTransport.Failure(.tls)
            }
            let ends = range.dropFirst("bytes=".count).split(separator: "-").compactMap { Int($0) }
            let place = "bytes \(ends[0])-\(ends[1])/1000003"
            return .data(bytes[ends[0]...ends[1]], status: 206, headers: ["ETag": tag.1, "Content-Range": place])
        }
        try await inTestFolder { folder in
            let client = try Client(baseURL: "https://a.test", session: Session(stub: stub))
            let result = try await download(client, folder).value
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(result.receivedBytes == 1_000_003 && stub.calls.count == 9)
        }
    }

    @Test func segmentsDoNotContinueTheHashOfOneStream() async throws {
        let earlier = LoopbackServer.Pattern(count: 1_000_003, seed: 3)
        try await withServer { exchange in
            // A weak entity tag allows no segments.
            if exchange.number == 1 { return try exchange.cut(earlier, after: 300_000, headers: [("ETag", "W/\"1\"")]) }
            try exchange.serveFile(Self.pattern)
        } test: { _, client, folder in
            let result = try await download(client, folder).value
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(result.trace.contains(.segmented(4)))
        }
    }

    @Test func cancelKeepsTheSegments() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            guard exchange.request["Range"] != nil else { return try exchange.serveFile(Self.pattern) }
            try beginSegment(exchange, count: 1_000)
            try exchange.wait(for: gate)
        } test: { _, client, folder in
            let task = download(client, folder)
            for await progress in task.progress where progress.completedBytes == 4_000 { break }
            task.cancel()
            let error = try await failure { try await task.value }
            #expect(error.isCancelled)
            #expect(try folder.names == [".file.tern", ".file.tern.json"])
            try await task.discard()
            #expect(try folder.names == [])
        }
    }

    /// The space is reserved with the first byte. Until then, there is no table to continue.
    @Test func cancelBeforeTheFirstByteLeavesNothing() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            guard exchange.request["Range"] != nil else { return try exchange.serveFile(Self.pattern) }
            try exchange.wait(for: gate)
        } test: { server, client, folder in
            let task = download(client, folder)
            try await server.wait { $0.requestsReceived == 5 }
            task.cancel()
            let error = try await failure { try await task.value }
            #expect(error.isCancelled && error.reason.contains("nothing is kept"), "\(error)")
            #expect(try folder.names == [])
        }
    }
}
