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

    /// Downloads a file whose first response breaks off. `answer` makes the responses to requests for the rest, and `whole` those to
    /// later requests for the whole. Calls `test` with the error, if the download failed.
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
                let failure = await Self.failure(of: task)
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

    private static func failure(of task: DurableDownloadTask) async -> NetworkError? {
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
}
