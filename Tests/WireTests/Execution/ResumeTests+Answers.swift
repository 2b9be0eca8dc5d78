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
                // The rest that states everything is appended, and anything else is followed by one request for the
                // whole.
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

    // MARK: Refusals

    /// Responses that can be due to the fields of the request are followed by a request for the whole file; the others
    /// four times in a row.
    @Test(arguments: [
        (101, 4), (201, 4), (202, 4), (203, 4), (204, 4), (205, 4), (207, 4), (208, 4), (226, 4), (300, 4), (304, 1),
        (400, 1), (401, 4), (403, 4), (404, 4), (406, 1), (409, 4), (410, 4), (412, 1), (416, 1), (417, 1), (425, 4),
        (428, 1), (429, 4), (431, 1), (451, 4), (500, 4), (501, 1), (502, 4), (503, 4), (504, 4), (507, 4), (599, 4),
    ])
    func noRefusalStandsInTheWayForEver(status: Int, attempts: Int) async throws {
        try await inTestFolder { folder in
            var token = try #require(try await token(folder: folder))
            let name = token.partialFile
            try await withServer { exchange in
                if exchange.request["Range"] == nil { return try exchange.serveFile(Self.pattern) }
                try exchange.respond(status: status, body: [204, 205, 304, 101].contains(status) ? [] : [1, 2, 3])
            } test: { server, client in
                token = moved(token, to: server)
                for count in 1..<4 where attempts > 1 {
                    let error = try await client.download(resuming: token, to: folder.url("file")).failure()
                    let next = try #require(error.resumeData)
                    #expect(next.offset == token.offset && next.counts.refusals == count, "\(error)")
                    #expect(error.status == (status == 101 ? nil : status), "\(error)")
                    #expect(try folder.names == [name])
                    token = next
                }
                let task = client.download(resuming: token, to: folder.url("file"))
                _ = try await task.value
                #expect(Self.pattern.matches(try folder.bytes("file")))
                #expect(try folder.names == ["file"] && task.resumeData == nil)
                // With the last refused request, and the one for the whole.
                #expect(server.counts.requestsReceived == attempts + 1)
            }
        }
    }

    /// A server that refuses the whole, too, costs no part: without one, the download would fail as well.
    @Test func aServerThatRefusesEverythingCostsNoPart() async throws {
        try await inTestFolder { folder in
            var token = try #require(try await token(folder: folder))
            let isBack = Counter()
            let asked = Log<RangeFields>()
            try await withServer { exchange in
                asked.add(RangeFields(exchange.request))
                if isBack.value > 0 { return try exchange.serveFile(Self.pattern) }
                try exchange.respond(status: 503)
            } test: { server, client in
                token = moved(token, to: server)
                for _ in 0..<6 {
                    let error = try await client.download(resuming: token, to: folder.url("file")).failure()
                    #expect(error.status == 503)
                    token = try #require(error.resumeData)
                    #expect(token.offset == Int64(Self.half))
                }
                isBack.add()
                _ = try await client.download(resuming: token, to: folder.url("file")).value
                #expect(asked.all.last?.range == "bytes=500000-")
                #expect(Self.pattern.matches(try folder.bytes("file")))
            }
        }
    }

    /// A whole with another 2xx is not the file. The next download knows nothing of the part.
    @Test(arguments: [202, 204]) func anAcceptedStatusIsNeverTheFile(status: Int) async throws {
        try await inTestFolder { folder in
            var token = try #require(try await token(folder: folder))
            try await withServer { exchange in
                try exchange.respond(status: status, body: status == 204 ? [] : [1, 2, 3])
            } test: { server, client in
                token = moved(token, to: server)
                for _ in 0..<3 {
                    let error = try await client.download(resuming: token, to: folder.url("file")).failure()
                    #expect(error.kind == .malformedResponse && error.reason.contains("status \(status)"), "\(error)")
                    token = try #require(error.resumeData)
                }
                let error = try await client.download(resuming: token, to: folder.url("file")).failure()
                #expect(error.kind == .malformedResponse && error.resumeData == nil, "\(error)")
                #expect(try folder.names == [])
            }
        }
    }

    /// A validation that accepts every status makes no file of an error page, and a redirect that is not followed is
    /// none.
    @Test(arguments: [404, 302]) func aResponseThatTheCallerAcceptsIsNotTheRest(status: Int) async throws {
        var configuration = Session.Configuration.test()
        configuration.validation = .any
        configuration.maximumRedirects = 0
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer(configuration: configuration) { exchange in
                try exchange.respond(status: status, body: [1, 2, 3])
            } test: { server, client in
                let error = try await client.download(resuming: moved(token, to: server), to: folder.url("file"))
                    .failure()
                #expect(error.kind == .malformedResponse && error.resumeData?.counts.refusals == 1, "\(error)")
                #expect(try folder.names == [token.partialFile])
            }
        }
    }

    // MARK: Several parts

    @Test(arguments: [100_000, 499_999]) func aServerCanSendTheRestInSeveralParts(size: Int) async throws {
        let asked = Log<RangeFields>()
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer { exchange in
                asked.add(RangeFields(exchange.request))
                let range = try #require(exchange.request["Range"])
                let start = try #require(Int(range.dropFirst("bytes=".count).dropLast()))
                let end = min(start + size, Self.pattern.count)
                let fields = [
                    ("ETag", Self.pattern.etag), ("Content-Range", "bytes \(start)-\(end - 1)/\(Self.pattern.count)"),
                ]
                try exchange.respond(status: 206, headers: fields, body: Self.pattern.bytes()[start..<end])
            } test: { server, client in
                let task = client.download(resuming: moved(token, to: server), to: folder.url("file"))
                _ = try await task.value
                #expect(Self.pattern.matches(try folder.bytes("file")))
                #expect(try folder.bytes("file").count == Self.pattern.count)
                #expect(try folder.names == ["file"])
                let starts = stride(from: Self.half, to: Self.pattern.count, by: size)
                #expect(asked.all == starts.map { RangeFields("bytes=\($0)-", token.validator) })
                #expect(task.progressNow.completedBytes == Int64(Self.pattern.count))
            }
        }
    }

    @Test func thePartsHaveTheTotalLimitTogether() async throws {
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            let configuration = Session.Configuration.test { $0.timeouts.total = .seconds(1) }
            try await withServer(configuration: configuration) { exchange in
                let range = try #require(exchange.request["Range"])
                let start = try #require(Int(range.dropFirst("bytes=".count).dropLast()))
                let fields = [
                    ("ETag", Self.pattern.etag), ("Content-Range", "bytes \(start)-\(start + 99_999)/1000000"),
                ]
                exchange.throttle(bytesPerSecond: 250_000)
                try exchange.respond(
                    status: 206, headers: fields, body: Self.pattern.bytes()[start..<start + 100_000])
            } test: { server, client in
                let error = try await client.download(resuming: moved(token, to: server), to: folder.url("file"))
                    .failure()
                #expect(error.kind == .totalTimedOut)
                let next = try #require(error.resumeData)
                #expect(next.offset > token.offset && next.offset < 1_000_000)
            }
        }
    }

    /// The parts that have come are kept when a later one fails.
    @Test func aPartThatIsRefusedKeepsThoseBeforeIt() async throws {
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer { exchange in
                guard exchange.request["Range"] == "bytes=500000-" else { return try exchange.respond(status: 503) }
                let fields = [("ETag", Self.pattern.etag), ("Content-Range", "bytes 500000-599999/1000000")]
                try exchange.respond(status: 206, headers: fields, body: Self.pattern.bytes()[500_000..<600_000])
            } test: { server, client in
                let error = try await client.download(resuming: moved(token, to: server), to: folder.url("file"))
                    .failure()
                #expect(error.status == 503)
                let next = try #require(error.resumeData)
                #expect(next.offset == 600_000 && next.totalBytes == 1_000_000 && next.counts.refusals == 1)
                #expect(try folder.bytes(next.partialFile).count == 600_000)
            }
        }
    }

    @Test func aPartWithoutItsBytesIsDiscarded() async throws {
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer { exchange in
                let fields = [("ETag", Self.pattern.etag), ("Content-Range", "bytes 500000-999999/1000000")]
                try exchange.writeChunked(status: 206, headers: fields, chunks: [])
            } test: { server, client in
                let error = try await client.download(resuming: moved(token, to: server), to: folder.url("file"))
                    .failure()
                #expect(error.kind == .truncatedBody && error.resumeData == nil, "\(error)")
                #expect(try folder.names == [])
            }
        }
    }
}
#endif
