#if !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// Requests for the rest without an answer, and answers whose head is right and whose body is not the rest:
// Documentation/Reference/ResumedDownloads.md.

extension ResumeTests {
    /// Bodies of a response that is the rest by its head.
    enum WrongBody: CaseIterable {
        case tooLong, muchTooLong, damagedFraming, withoutBytes

        /// The kind of the error that the body leads to.
        var kind: NetworkError.Kind { self == .withoutBytes ? .truncatedBody : .malformedResponse }

        /// Sends the response to a request for the rest.
        func send(_ exchange: LoopbackServer.Exchange) throws {
            let (half, count) = (ResumeTests.half, ResumeTests.pattern.count)
            let fields = [
                ("ETag", ResumeTests.pattern.etag), ("Content-Range", "bytes \(half)-\(count - 1)/\(count)"),
            ]
            let rest = Array(ResumeTests.pattern.bytes()[half...])
            switch self {
            case .tooLong:
                try exchange.writeChunked(status: 206, headers: fields, chunks: [rest + Array("EXTRA".utf8)])
            case .muchTooLong:
                // The bytes after the right ones come alone, so that all others are on the disk by then.
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
            }
        }
    }

    /// The bytes of a body with too many are not kept, and the fourth download asks for the whole file.
    @Test(arguments: WrongBody.allCases, [true, false])
    func noWrongBodyStandsInTheWayForEver(_ body: WrongBody, knowsLength: Bool) async throws {
        let asked = Log<String?>()
        try await inTestFolder { folder in
            let first = try #require(try await token(folder: folder))
            try await withServer { exchange in
                asked.add(exchange.request["Range"])
                if exchange.request["Range"] == nil { return try exchange.serveFile(Self.pattern) }
                try body.send(exchange)
            } test: { server, client in
                var token = ResumeData(
                    url: server.url("file").absoluteString, validator: first.validator, offset: first.offset,
                    partialFile: first.partialPath, totalBytes: knowsLength ? first.totalBytes : nil)
                for _ in 0..<3 {
                    let error = try await client.download(resuming: token, to: folder.url("file")).failure()
                    #expect(error.kind == body.kind, "\(error)")
                    let next = try #require(error.resumeData)
                    #expect(next.offset == Int64(Self.half))
                    #expect(try folder.bytes(first.partialFile).count == Self.half)
                    token = try JSONDecoder().decode(ResumeData.self, from: JSONEncoder().encode(next))
                }
                _ = try await client.download(resuming: token, to: folder.url("file")).value
                #expect(Self.pattern.matches(try folder.bytes("file")))
                #expect(try folder.names == ["file"])
                #expect(asked.all == ["bytes=500000-", "bytes=500000-", "bytes=500000-", nil])
            }
        }
    }

    /// The parts before the wrong one are kept.
    @Test func aWrongBodyKeepsThePartsBeforeIt() async throws {
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer { exchange in
                let isFirst = exchange.request["Range"] == "bytes=500000-"
                let (start, end) = isFirst ? (500_000, 600_000) : (600_000, 700_000)
                let fields = [
                    ("ETag", Self.pattern.etag), ("Content-Range", "bytes \(start)-\(end - 1)/\(Self.pattern.count)"),
                ]
                let extra: [UInt8] = isFirst ? [] : [1]
                try exchange.writeChunked(
                    status: 206, headers: fields, chunks: [Array(Self.pattern.bytes()[start..<end]) + extra])
            } test: { server, client in
                let error = try await client.download(resuming: moved(token, to: server), to: folder.url("file"))
                    .failure()
                #expect(error.kind == .malformedResponse && error.resumeData?.offset == 600_000, "\(error)")
                #expect(try folder.bytes(token.partialFile).count == 600_000)
            }
        }
    }

    /// The bytes before a damage of the framing are those of the file, and each attempt gains some.
    @Test func bytesBeforeADamageOfTheFramingAreKept() async throws {
        let asked = Log<String?>()
        try await inTestFolder { folder in
            var token = try #require(try await token(folder: folder))
            try await withServer { exchange in
                asked.add(exchange.request["Range"])
                let start = Int(exchange.request["Range"]?.dropFirst("bytes=".count).dropLast() ?? "") ?? 0
                let count = Self.pattern.count
                let fields = [("ETag", Self.pattern.etag), ("Content-Range", "bytes \(start)-\(count - 1)/\(count)")]
                try exchange.writeChunkedHead(status: 206, headers: fields)
                try exchange.writeChunk(Self.pattern.bytes()[start..<min(start + 100_000, count)])
                try exchange.waitUntilReceived()
                try exchange.write(start + 100_000 < count ? "no length\r\n" : "0\r\n\r\n")
                exchange.close()
            } test: { server, client in
                token = moved(token, to: server)
                for part in 1..<5 {
                    let error = try await client.download(resuming: token, to: folder.url("file")).failure()
                    token = try #require(error.resumeData)
                    #expect(token.offset == Int64(Self.half + part * 100_000), "\(error)")
                }
                _ = try await client.download(resuming: token, to: folder.url("file")).value
                #expect(Self.pattern.matches(try folder.bytes("file")))
                #expect(asked.all.count == 5 && asked.all.allSatisfy { $0 != nil })
            }
        }
    }

    // MARK: No answer

    /// The limits of requests that a server resets or leaves without an answer.
    private static func configuration(isReset: Bool) -> Session.Configuration {
        .test { if !isReset { $0.timeouts.idle = .milliseconds(200) } }
    }

    /// A server that answers no request with a range: it resets the connection, or stays silent.
    @Test(arguments: [true, false]) func noSilenceStandsInTheWayForEver(isReset: Bool) async throws {
        let asked = Log<String?>()
        try await inTestFolder { folder in
            var token = try #require(try await token(folder: folder))
            try await withServer(configuration: Self.configuration(isReset: isReset)) { exchange in
                asked.add(exchange.request["Range"])
                if exchange.request["Range"] == nil { return try exchange.serveFile(Self.pattern) }
                if isReset { exchange.reset() } else { try exchange.waitForClientToClose() }
            } test: { server, client in
                token = moved(token, to: server)
                for _ in 0..<3 {
                    let error = try await client.download(resuming: token, to: folder.url("file")).failure()
                    #expect(error.kind == (isReset ? .connectionLost : .idleTimedOut), "\(error)")
                    token = try #require(error.resumeData)
                    #expect(token.offset == Int64(Self.half))
                    #expect(try folder.names == [token.partialFile])
                }
                _ = try await client.download(resuming: token, to: folder.url("file")).value
                #expect(Self.pattern.matches(try folder.bytes("file")))
                #expect(try folder.names == ["file"])
                #expect(asked.all == Array(repeating: "bytes=500000-", count: 4) + [nil])
            }
        }
    }

    /// A network that answers nothing costs no part: without an answer to the request for the whole file, the rest is
    /// asked for again.
    @Test func aNetworkThatAnswersNothingCostsNoPart() async throws {
        let asked = Log<String?>()
        let isBack = Counter()
        try await inTestFolder { folder in
            var token = try #require(try await token(folder: folder))
            let part = token.partialFile
            try await withServer { exchange in
                asked.add(exchange.request["Range"])
                if isBack.value > 0 { return try exchange.serveFile(Self.pattern) }
                exchange.reset()
            } test: { server, client in
                token = moved(token, to: server)
                for _ in 0..<9 {
                    let error = try await client.download(resuming: token, to: folder.url("file")).failure()
                    token = try #require(error.resumeData)
                    #expect(token.offset == Int64(Self.half))
                    #expect(try folder.bytes(part).count == Self.half)
                }
                isBack.add()
                _ = try await client.download(resuming: token, to: folder.url("file")).value
                let range = "bytes=500000-"
                let cycle = [range, range, range, range, nil]
                #expect(asked.all == cycle + cycle + [range, range])
                #expect(Self.pattern.matches(try folder.bytes("file")))
            }
        }
    }
}
#endif
