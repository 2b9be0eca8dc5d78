#if !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// Responses to the request for the rest that are not the rest: Documentation/Reference/ResumedDownloads.md.

extension ResumeTests {
    /// Responses with status 200 to the request for the rest of a file of known length and version.
    enum Whole: CaseIterable {
        case rest, restWithoutRange, otherTotal, otherOffset, restWithoutLength, few, fewWithoutLength, encoded

        /// Sends the response to a request with `Range`.
        func send(_ exchange: LoopbackServer.Exchange) throws {
            let (half, count) = (ResumeTests.half, ResumeTests.pattern.count)
            let rest = ResumeTests.pattern.bytes()[half...]
            let tag = ("ETag", ResumeTests.pattern.etag)
            func range(_ start: Int, _ total: Int) -> (String, String) {
                ("Content-Range", "bytes \(start)-\(total - 1)/\(total)")
            }
            switch self {
            case .rest: try exchange.respond(headers: [tag, range(half, count)], body: rest)
            case .restWithoutRange: try exchange.respond(headers: [tag], body: rest)
            case .otherTotal: try exchange.respond(headers: [tag, range(half, count + 1)], body: rest)
            case .otherOffset: try exchange.respond(headers: [tag, range(half + 1, count)], body: rest.dropFirst())
            case .restWithoutLength:
                try exchange.writeChunked(headers: [tag, range(half, count)], chunks: [Array(rest)])
            case .few: try exchange.respond(headers: [tag], body: rest.prefix(5_000))
            case .fewWithoutLength: try exchange.writeChunked(headers: [tag], chunks: [Array(rest.prefix(5_000))])
            case .encoded:
                try exchange.respond(headers: [tag, ("Content-Encoding", "gzip")], body: Compressed.gzip)
            }
        }
    }

    @Test(arguments: Whole.allCases)
    func aWholeThatIsNotTheWholeIsNeverTheFile(_ answer: Whole) async throws {
        let asked = Log<RangeFields>()
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer { exchange in
                asked.add(RangeFields(exchange.request))
                if exchange.request["Range"] == nil { return try exchange.serveFile(Self.pattern) }
                try answer.send(exchange)
            } test: { server, client in
                let task = client.download(resuming: moved(token, to: server), to: folder.url("file"))
                _ = try await task.value
                #expect(Self.pattern.matches(try folder.bytes("file")))
                #expect(try folder.bytes("file").count == Self.pattern.count)
                #expect(try folder.names == ["file"])
                // The rest that states everything is appended, and anything else is followed by one request for the whole.
                #expect(asked.all.map(\.range) == ["bytes=\(Self.half)-"] + (answer == .rest ? [] : [nil]))
            }
        }
    }

    /// A server that sends the same to the request for the whole. The next download knows nothing of the part.
    @Test(arguments: [Whole.restWithoutRange, .otherOffset, .few, .fewWithoutLength])
    func aServerThatContradictsItselfFailsAndThePartIsDiscarded(_ answer: Whole) async throws {
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer { exchange in
                try answer.send(exchange)
            } test: { server, client in
                let task = client.download(resuming: moved(token, to: server), to: folder.url("file"))
                let error = try await task.failure()
                #expect(error.kind == .malformedResponse && error.reason.contains("1000000 bytes"), "\(error)")
                #expect(error.resumeData == nil && task.resumeData == nil)
                #expect(try folder.names == [])
                #expect(server.counts.requestsReceived == 2)
            }
        }
    }
}
#endif
