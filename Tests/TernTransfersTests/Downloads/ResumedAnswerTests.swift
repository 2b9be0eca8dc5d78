import Tern
import TernTesting
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Responses to the request for the rest of a durable download, alone and in a queue, that are not the rest:
/// Documentation/Reference/ResumedDownloads.md.
@Suite("Durable downloads: answers to a part", .timeLimit(.minutes(1)))
struct ResumedAnswerTests {
    static let pattern = LoopbackServer.Pattern(count: 300_000)
    static let offset = 120_000

    /// The users of a part.
    enum User: CaseIterable { case durable, queue }

    /// Responses with status 200.
    enum Whole: CaseIterable {
        case rest, restWithoutRange, few, fewWithoutLength

        func send(_ exchange: LoopbackServer.Exchange) throws {
            let rest = ResumedAnswerTests.pattern.bytes()[ResumedAnswerTests.offset...]
            let tag = ("ETag", ResumedAnswerTests.pattern.etag)
            let range = ("Content-Range", "bytes \(ResumedAnswerTests.offset)-299999/300000")
            switch self {
            case .rest: try exchange.respond(headers: [tag, range], body: rest)
            case .restWithoutRange: try exchange.respond(headers: [tag], body: rest)
            case .few: try exchange.respond(headers: [tag], body: rest.prefix(5_000))
            case .fewWithoutLength: try exchange.writeChunked(headers: [tag], chunks: [Array(rest.prefix(5_000))])
            }
        }
    }

    /// Downloads a file whose first response breaks off. `answer` makes the responses to requests for the rest, and
    /// `whole` those to later requests for the whole. Calls `test` with the error, if the download failed.
    private func download(
        by user: User, whole: @escaping LoopbackServer.Handler = { try $0.serveFile(Self.pattern) },
        answer: @escaping LoopbackServer.Handler,
        test: (LoopbackServer, TestFolder, _ failure: (kind: NetworkError.Kind, reason: String)?) async throws -> Void
    ) async throws {
        let handler: LoopbackServer.Handler = { exchange in
            if exchange.number == 1 { return try exchange.cut(Self.pattern, after: Self.offset) }
            if exchange.request["Range"] != nil { try answer(exchange) } else { try whole(exchange) }
        }
        switch user {
        case .durable:
            try await withServer(handler) { server, client, folder in
                let task = client.download(
                    "file", to: folder.url("file"), resuming: .automatically, options: .test())
                let failure = await Self.error(of: task)
                try await test(server, folder, failure.map { ($0.kind, $0.reason) })
            }
        case .queue:
            try await withQueue(configuration: .test { $0.retry.policy.limit = 9 }, handler) { queued in
                let id = try await queued.queue.enqueue(queued.download("file"))
                await queued.queue.drained()
                let failure = try await queued.queue.item(id)?.failure
                try await test(queued.server, queued.folder, failure.map { ($0.kind, $0.reason) })
            }
        }
    }

    private static func error(of task: DurableDownloadTask) async -> NetworkError? {
        do throws(NetworkError) {
            _ = try await task.value
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: User.allCases, Whole.allCases)
    func wholeThatIsNotTheWholeIsNeverTheFile(user: User, answer: Whole) async throws {
        try await download(
            by: user, answer: { try answer.send($0) },
            test: { server, folder, failure in
                #expect(failure == nil)
                let bytes = try folder.bytes("file")
                #expect(Self.pattern.matches(bytes) && bytes.count == 300_000)
                #expect(server.counts.requestsReceived == (answer == .rest ? 2 : 3))
            })
    }

    @Test(arguments: User.allCases, [Whole.restWithoutRange, .few, .fewWithoutLength])
    func serverThatContradictsItselfFailsAndThePartIsDiscarded(user: User, answer: Whole) async throws {
        try await download(
            by: user, whole: { try answer.send($0) }, answer: { try answer.send($0) },
            test: { server, folder, failure in
                let failure = try #require(failure)
                #expect(failure.kind == .malformedResponse && failure.reason.contains("300000 bytes"), "\(failure)")
                #expect(server.counts.requestsReceived == 3)
                #expect(try folder.names.allSatisfy { !$0.contains("file") })
            })
    }

    // MARK: Refusals

    /// Temporary statuses are tried again by the download itself, which asks for the whole file after the fourth
    /// refusal.
    @Test(
        arguments: User.allCases,
        [
            (202, 6), (204, 6), (207, 6), (304, 3), (400, 3), (412, 3), (417, 3), (429, 6), (431, 3), (500, 6),
            (501, 3),
            (502, 6), (503, 6), (504, 6),
        ])
    func noRefusalStandsInTheWayForEver(user: User, row: (status: Int, requests: Int)) async throws {
        let body: [UInt8] = [204, 304].contains(row.status) ? [] : [1, 2, 3]
        try await download(
            by: user, answer: { try $0.respond(status: row.status, body: body) },
            test: { server, folder, failure in
                #expect(failure == nil)
                let bytes = try folder.bytes("file")
                #expect(Self.pattern.matches(bytes) && bytes.count == 300_000)
                #expect(server.counts.requestsReceived == row.requests)
            })
    }

    /// Other statuses end a download. The fourth one in a row asks for the whole file.
    @Test(arguments: [401, 403, 404, 410, 451])
    func refusalsAreCountedOverSeveralDownloads(status: Int) async throws {
        try await withServer { exchange in
            if exchange.number == 1 { return try exchange.cut(Self.pattern, after: Self.offset) }
            if exchange.request["Range"] != nil { return try exchange.respond(status: status) }
            try exchange.serveFile(Self.pattern)
        } test: { server, client, folder in
            for count in 1...3 {
                let error = try await failure {
                    try await client.download(
                        "file", to: folder.url("file"), resuming: .automatically, options: .test()
                    ).value
                }
                #expect(error.status == status)
                #expect(try folder.bytes(".file.tern").count == Self.offset)
                let names = ControlNames(destination: "file")
                #expect(try ControlFile(folder.bytes(names.control), names: names).counts.refusals == count)
            }
            let task = client.download("file", to: folder.url("file"), resuming: .automatically, options: .test())
            let result = try await task.value
            #expect(result.trace.contains(.startedOver(.rangeRefused, discarded: Int64(Self.offset))))
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(try folder.names == ["file"])
        }
    }

    @Test func queueCountsTheRefusalsOfItsItem() async throws {
        try await withQueue { exchange in
            if exchange.number == 1 { return try exchange.cut(Self.pattern, after: Self.offset) }
            if exchange.request["Range"] != nil { return try exchange.respond(status: 404) }
            try exchange.serveFile(Self.pattern)
        } test: { test in
            let id = try await test.queue.enqueue(test.download("file"))
            for _ in 1...3 {
                await test.queue.drained()
                #expect(try await test.state(id) == .failed(retryable: false))
                try await test.queue.retry(.item(id))
            }
            await test.queue.drained()
            #expect(try await test.state(id) == .finished)
            #expect(Self.pattern.matches(try test.folder.bytes("file")))
        }
    }

    /// A server that answers the whole with another 2xx, too, has no file.
    @Test(arguments: User.allCases) func acceptedStatusIsNeverTheFile(user: User) async throws {
        try await download(
            by: user, whole: { try $0.respond(status: 202) }, answer: { try $0.respond(status: 202) },
            test: { server, folder, failure in
                let failure = try #require(failure)
                #expect(failure.kind == .malformedResponse && failure.reason.contains("(202)"), "\(failure)")
                #expect(server.counts.requestsReceived == 6)
                #expect(try folder.names.allSatisfy { !$0.contains("file") })
            })
    }

    // MARK: Several parts

    /// Sends at most `size` bytes of what is asked for.
    private static func sendPart(of size: Int, _ exchange: LoopbackServer.Exchange) throws {
        let ends = (exchange.request["Range"] ?? "").dropFirst("bytes=".count).split(separator: "-").compactMap {
            Int($0)
        }
        let start = ends.first ?? 0
        let end = min(start + size, (ends.count > 1 ? ends[1] + 1 : pattern.count))
        let place = ("Content-Range", "bytes \(start)-\(end - 1)/\(pattern.count)")
        try exchange.respond(
            status: 206, headers: [("ETag", pattern.etag), place], body: pattern.bytes()[start..<end])
    }

    @Test(arguments: User.allCases) func serverCanSendTheRestInSeveralParts(user: User) async throws {
        try await download(
            by: user, answer: { try Self.sendPart(of: 50_000, $0) },
            test: { server, folder, failure in
                #expect(failure == nil)
                let bytes = try folder.bytes("file")
                #expect(Self.pattern.matches(bytes) && bytes.count == 300_000)
                #expect(server.counts.requestsReceived == 5)
            })
    }

    @Test func severalPartsAreOneAttemptAndTheirDigestIsRight() async throws {
        try await withServer { exchange in
            if exchange.number == 1 { return try exchange.cut(Self.pattern, after: Self.offset) }
            try Self.sendPart(of: 50_000, exchange)
        } test: { _, client, folder in
            let options = DurableDownloadOptions.test { $0.digest = .sha256(sha256(Self.pattern.bytes())) }
            let task = client.download("file", to: folder.url("file"), resuming: .automatically, options: options)
            let result = try await task.value
            #expect(result.attempts == 2 && result.receivedBytes == 300_000)
            #expect(Self.pattern.matches(try folder.bytes("file")))
        }
    }

    @Test func segmentsComeInSeveralParts() async throws {
        try await withServer { exchange in
            guard exchange.request["Range"] != nil else { return try exchange.serveFile(Self.pattern) }
            try Self.sendPart(of: 30_000, exchange)
        } test: { server, client, folder in
            let options = DurableDownloadOptions.test {
                $0.segments = 3
                $0.shortestSegment = 1_000
            }
            let task = client.download("file", to: folder.url("file"), resuming: .automatically, options: options)
            let result = try await task.value
            let bytes = try folder.bytes("file")
            #expect(Self.pattern.matches(bytes) && bytes.count == 300_000)
            #expect(result.attempts == 4 && server.counts.requestsReceived == 13)
        }
    }

    /// Segments that a server refuses are followed by the file in one stream: at once if they have no bytes, and
    /// otherwise after the refusals of several downloads.
    @Test(arguments: [(404, 0, 0), (412, 0, 0), (404, 10_000, 4), (412, 10_000, 0)])
    func refusedSegmentsStandInTheWayOfNothing(status: Int, count: Int, failedDownloads: Int) async throws {
        try await withServer { exchange in
            guard exchange.request["Range"] != nil else { return try exchange.serveFile(Self.pattern) }
            if count == 0 || exchange.number > 4 { return try exchange.respond(status: status) }
            let range = (exchange.request["Range"] ?? "").dropFirst("bytes=".count)
            let ends = range.split(separator: "-").compactMap { Int($0) }
            let place = ("Content-Range", "bytes \(ends[0])-\(ends[1])/\(Self.pattern.count)")
            let length = ("Content-Length", "\(ends[1] - ends[0] + 1)")
            try exchange.writeHead(status: 206, headers: [("ETag", Self.pattern.etag), place, length])
            try exchange.streamPattern(Self.pattern, in: ends[0]..<(ends[0] + count))
            exchange.close()
        } test: { server, client, folder in
            var failures = 0
            while failures < 9 {
                let options = DurableDownloadOptions.test {
                    $0.segments = 3
                    $0.shortestSegment = 1_000
                }
                let task = client.download("file", to: folder.url("file"), resuming: .automatically, options: options)
                if await Self.error(of: task) == nil { break }
                failures += 1
            }
            #expect(failures == failedDownloads)
            let bytes = try folder.bytes("file")
            #expect(Self.pattern.matches(bytes) && bytes.count == 300_000)
        }
    }

    @Test func partWithoutItsBytesIsDiscarded() async throws {
        let empty: LoopbackServer.Handler = { exchange in
            let fields = [("ETag", Self.pattern.etag), ("Content-Range", "bytes 120000-299999/300000")]
            try exchange.writeChunked(status: 206, headers: fields, chunks: [])
        }
        try await download(
            by: .durable, answer: empty,
            test: { _, folder, failure in
                let names = try folder.names
                #expect(failure?.kind == .malformedResponse && names == [])
            })
    }
}
