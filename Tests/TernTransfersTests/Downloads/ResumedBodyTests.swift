import Tern
import TernTesting
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Requests for the rest of a durable download without an answer, and answers whose head is right and whose body is
/// not the rest: Documentation/Reference/ResumedDownloads.md.
@Suite("Durable downloads: bodies of a part", .timeLimit(.minutes(1)))
struct ResumedBodyTests {
    static let pattern = LoopbackServer.Pattern(count: 300_000)
    static let offset = 120_000

    /// The behaviours of a server that sends no rest.
    enum Behaviour: CaseIterable {
        case tooLong, muchTooLong, damagedFraming, withoutBytes, reset

        /// Answers a request for the rest, or for a part of it.
        func answer(_ exchange: LoopbackServer.Exchange) throws {
            let ends = (exchange.request["Range"] ?? "").dropFirst("bytes=".count).split(separator: "-")
                .compactMap { Int($0) }
            let (start, end) = (ends.first ?? 0, ends.count > 1 ? ends[1] + 1 : ResumedBodyTests.pattern.count)
            let fields = [
                ("ETag", ResumedBodyTests.pattern.etag),
                ("Content-Range", "bytes \(start)-\(end - 1)/\(ResumedBodyTests.pattern.count)"),
            ]
            let rest = Array(ResumedBodyTests.pattern.bytes()[start..<end])
            switch self {
            case .tooLong:
                try exchange.writeChunked(status: 206, headers: fields, chunks: [rest + Array("EXTRA".utf8)])
            case .muchTooLong:
                try exchange.writeChunkedHead(status: 206, headers: fields)
                try exchange.writeChunk(rest)
                try exchange.waitUntilReceived()
                try exchange.writeChunk(rest)
                try exchange.write("0\r\n\r\n")
            case .damagedFraming:
                try exchange.writeChunkedHead(status: 206, headers: fields)
                try exchange.waitUntilReceived()
                try exchange.write("no length\r\n")
                exchange.close()
            case .withoutBytes:
                try exchange.writeHead(status: 206, headers: fields + [("Content-Length", "\(rest.count)")])
                try exchange.waitUntilReceived()
                exchange.close()
            case .reset:
                exchange.reset()
            }
        }
    }

    /// Returns the error of a download; nil if it succeeds.
    private func error(of task: DurableDownloadTask) async -> NetworkError? {
        do throws(NetworkError) {
            _ = try await task.value
            return nil
        } catch {
            return error
        }
    }

    /// One download asks for the rest three times, and then for the whole file.
    @Test(arguments: Behaviour.allCases, [true, false])
    func noWrongBodyStandsInTheWayForEver(_ behaviour: Behaviour, isQueued: Bool) async throws {
        let asked = Log<String?>()
        let handler: LoopbackServer.Handler = { exchange in
            asked.add(exchange.request["Range"])
            if exchange.number == 1 { return try exchange.cut(Self.pattern, after: Self.offset) }
            if exchange.request["Range"] == nil { return try exchange.serveFile(Self.pattern) }
            try behaviour.answer(exchange)
        }
        let range = "bytes=120000-"
        func check(_ folder: TestFolder) throws {
            let last: [String?] = behaviour == .reset ? [range, nil] : [nil]
            #expect(asked.all == [nil, range, range, range] + last)
            let bytes = try folder.bytes("file")
            #expect(Self.pattern.matches(bytes) && bytes.count == 300_000)
        }
        if isQueued {
            try await withQueue(configuration: .test { $0.retry.policy.limit = 9 }, handler) { queued in
                let id = try await queued.queue.enqueue(queued.download("file"))
                await queued.queue.drained()
                #expect(try await queued.state(id) == .finished)
                try check(queued.folder)
            }
        } else {
            try await withServer(handler) { _, client, folder in
                let task = client.download(
                    "file", to: folder.url("file"), resuming: .automatically, options: .test())
                let failure = await error(of: task)
                #expect(failure == nil)
                try check(folder)
            }
        }
    }

    /// The bytes of a wrong body are neither kept nor shown at the end, and the failures of several downloads are
    /// counted.
    @Test(arguments: Behaviour.allCases) func failuresAreCountedOverSeveralDownloads(
        _ behaviour: Behaviour
    ) async throws {
        let asked = Log<String?>()
        try await withServer { exchange in
            asked.add(exchange.request["Range"])
            if exchange.number == 1 { return try exchange.cut(Self.pattern, after: Self.offset) }
            if exchange.request["Range"] == nil { return try exchange.serveFile(Self.pattern) }
            try behaviour.answer(exchange)
        } test: { _, client, folder in
            let options = DurableDownloadOptions.test { $0.retry.maximumAttempts = 1 }
            for _ in 0..<4 {
                let task = client.download("file", to: folder.url("file"), resuming: .automatically, options: options)
                let failure = await error(of: task)
                #expect(failure != nil)
                let part = try folder.bytes(".file.tern")
                #expect(part.count == Self.offset)
                let last = task.progressNow
                #expect(last.completedBytes == Int64(Self.offset) && last.totalBytes == 300_000, "\(last)")
            }
            let task = client.download("file", to: folder.url("file"), resuming: .automatically, options: options)
            let failure = await error(of: task)
            #expect(failure == nil)
            let bytes = try folder.bytes("file")
            #expect(Self.pattern.matches(bytes))
            let range = "bytes=120000-"
            let last: [String?] = behaviour == .reset ? [range, nil] : [nil]
            #expect(asked.all == [nil, range, range, range] + last)
        }
    }

    /// Segments that a server refuses for some time are taken up again when it is back: no byte is lost.
    @Test(arguments: [404, 503]) func segmentsContinueWhenTheServerIsBack(status: Int) async throws {
        let isBack = LoopbackServer.Gate()
        let asked = Log<String?>()
        try await withServer { exchange in
            let range = exchange.request["Range"]
            if isBack.isOpen {
                asked.add(range)
                return try exchange.serveFile(Self.pattern)
            }
            if exchange.number == 1 { return try exchange.serveFile(Self.pattern) }
            guard let range, exchange.number <= 4 else { return try exchange.respond(status: status) }
            let ends = range.dropFirst("bytes=".count).split(separator: "-").compactMap { Int($0) }
            let place = ("Content-Range", "bytes \(ends[0])-\(ends[1])/\(Self.pattern.count)")
            let length = ("Content-Length", "\(ends[1] - ends[0] + 1)")
            try exchange.writeHead(status: 206, headers: [("ETag", Self.pattern.etag), place, length])
            try exchange.streamPattern(Self.pattern, in: ends[0]..<(ends[0] + 10_000))
            try exchange.waitUntilReceived()
            exchange.close()
        } test: { _, client, folder in
            let options = DurableDownloadOptions.test {
                $0.segments = 3
                $0.shortestSegment = 1_000
                $0.retry.maximumAttempts = 1
            }
            for _ in 0..<6 {
                let task = client.download("file", to: folder.url("file"), resuming: .automatically, options: options)
                let failure = await error(of: task)
                #expect(failure != nil)
            }
            isBack.open()
            let task = client.download("file", to: folder.url("file"), resuming: .automatically, options: options)
            _ = try await task.value
            let bytes = try folder.bytes("file")
            #expect(Self.pattern.matches(bytes) && bytes.count == 300_000)
            #expect(!asked.all.isEmpty && asked.all.allSatisfy { $0 != nil }, "\(asked.all)")
        }
    }

    /// A network that answers nothing costs no part: after a request for the whole file, the rest is asked for again.
    @Test func networkThatAnswersNothingCostsNoPart() async throws {
        let asked = Log<String?>()
        let isBack = LoopbackServer.Gate()
        try await withServer { exchange in
            asked.add(exchange.request["Range"])
            if exchange.number == 1 { return try exchange.cut(Self.pattern, after: Self.offset) }
            if isBack.isOpen { return try exchange.serveFile(Self.pattern) }
            exchange.reset()
        } test: { _, client, folder in
            let options = DurableDownloadOptions.test { $0.retry.maximumAttempts = 7 }
            let task = client.download("file", to: folder.url("file"), resuming: .automatically, options: options)
            let failure = await error(of: task)
            #expect(failure?.kind == .connectionLost)
            let part = try folder.bytes(".file.tern")
            #expect(part.count == Self.offset)
            isBack.open()
            let next = client.download("file", to: folder.url("file"), resuming: .automatically, options: options)
            _ = try await next.value
            let bytes = try folder.bytes("file")
            #expect(Self.pattern.matches(bytes))
            let range = "bytes=120000-"
            #expect(asked.all == [nil, range, range, range, range, nil, range, range, range])
        }
    }

    /// Segments of which no rest comes are followed by the file in one stream after some downloads. The bytes of a
    /// wrong body are never part of the file.
    @Test(arguments: Behaviour.allCases, [0, 10_000])
    func segmentsWithWrongBodiesStandInTheWayOfNothing(_ behaviour: Behaviour, count: Int) async throws {
        try await withServer { exchange in
            guard let range = exchange.request["Range"] else { return try exchange.serveFile(Self.pattern) }
            if count == 0 || exchange.number > 4 { return try behaviour.answer(exchange) }
            let ends = range.dropFirst("bytes=".count).split(separator: "-").compactMap { Int($0) }
            let place = ("Content-Range", "bytes \(ends[0])-\(ends[1])/\(Self.pattern.count)")
            let length = ("Content-Length", "\(ends[1] - ends[0] + 1)")
            try exchange.writeHead(status: 206, headers: [("ETag", Self.pattern.etag), place, length])
            try exchange.streamPattern(Self.pattern, in: ends[0]..<(ends[0] + count))
            exchange.close()
        } test: { _, client, folder in
            let options = DurableDownloadOptions.test {
                $0.segments = 3
                $0.shortestSegment = 1_000
                $0.retry.policy.limit = 3
            }
            var failures = 0
            while failures < 9 {
                let task = client.download("file", to: folder.url("file"), resuming: .automatically, options: options)
                if await error(of: task) == nil { break }
                failures += 1
            }
            #expect(failures <= 4)
            let bytes = try folder.bytes("file")
            #expect(Self.pattern.matches(bytes) && bytes.count == 300_000)
        }
    }
}
