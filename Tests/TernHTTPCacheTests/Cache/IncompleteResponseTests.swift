import Foundation
import Tern
import TernConcurrency
import TernHTTPCache
import TernTesting
import Testing

/// Bodies that do not arrive whole, and the requests that complete them.
@Suite("HTTP cache: incomplete responses", .timeLimit(.minutes(1)))
struct IncompleteResponseTests {
    private static let digits = Array("0123456789".utf8)

    enum Cut: CaseIterable, Sendable { case contentLength, chunked, reset }

    /// Sends the first 5 of 10 bytes and ends the connection.
    private static func cut(
        _ exchange: LoopbackServer.Exchange, _ cut: Cut, _ headers: LoopbackServer.Fields
    ) throws {
        if cut == .chunked {
            try exchange.writeChunkedHead(headers: headers)
            try exchange.writeChunk(digits.prefix(5))
        } else {
            try exchange.writeHead(headers: headers + [("Content-Length", "10")])
            try exchange.write(digits.prefix(5))
        }
        try exchange.waitUntilReceived()
        if cut == .reset { exchange.reset() } else { exchange.close() }
    }

    /// Reads a stream, and returns the bytes before the error or the end.
    private static func read(_ cached: CachedServer) async -> (body: Data, kind: NetworkError.Kind?) {
        var body = Data()
        do {
            for try await chunk in cached.client.stream("a").chunks { body += chunk }
            return (body, nil)
        } catch {
            return (body, error.kind)
        }
    }

    @Test(arguments: Cut.allCases, ["\"v\"", "W/\"v\"", ""])
    func aCutBodyIsCompletedOnlyWithAStrongValidator(_ cut: Cut, tag: String) async throws {
        let (count, ranges) = (Counter(), Locked<[String?]>([]))
        let fields = [("Cache-Control", "max-age=60")] + (tag.isEmpty ? [] : [("ETag", tag)])
        try await withCache(
            handler: { exchange in
                ranges.change { $0.append(exchange.request["Range"]) }
                if count.next() == 1 { return try Self.cut(exchange, cut, fields) }
                guard exchange.request["If-Range"] == tag else {
                    return try exchange.respond(headers: fields, body: Self.digits)
                }
                try exchange.respond(
                    status: 206, headers: fields + [("Content-Range", "bytes 5-9/10")], body: Self.digits[5...])
            },
            test: { cached in
                let first = await Self.read(cached)
                #expect(first.kind != nil)
                #expect(await cached.failure(cache: .onlyStored) == .notStored, "a part is never served as the whole")
                let second = try await cached.get()
                #expect(second.status == 200)
                #expect(second.value == Data(Self.digits))
                #expect(try await cached.get().cacheTrace?.source == .stored)
                #expect(ranges.value == [nil, tag == "\"v\"" ? "bytes=5-" : nil])
                await cached.finish()
            })
    }

    enum Answer: CaseIterable, Sendable {
        case otherTag, otherOffset, otherTotal, noTag, shorter, longer, truncated, whole, notSatisfiable, notModified
    }

    @Test(arguments: Answer.allCases)
    func anAnswerThatDoesNotFitIsNeverCombined(_ answer: Answer) async throws {
        let count = Counter()
        let fields = [("Cache-Control", "max-age=60"), ("ETag", "\"v\"")]
        try await withCache(
            handler: { exchange in
                func part(_ range: String, _ body: String, tag: String? = "\"v\"", length: Int? = nil) throws {
                    var headers = [("Cache-Control", "max-age=60"), ("Content-Range", "bytes \(range)")]
                    if let tag { headers.append(("ETag", tag)) }
                    if let length { headers.append(("Content-Length", "\(length)")) }
                    if length != nil { exchange.closeAfterResponse() }
                    try exchange.respond(status: 206, headers: headers, body: Array(body.utf8))
                }
                let number = count.next()
                if number == 1 { return try Self.cut(exchange, .contentLength, fields) }
                guard exchange.request["Range"] != nil else {
                    return try exchange.respond(headers: fields, text: "complete")
                }
                switch answer {
                case .otherTag: try part("5-9/10", "56789", tag: "\"w\"")
                case .noTag: try part("5-9/10", "56789", tag: nil)
                case .otherOffset: try part("6-9/10", "6789")
                case .otherTotal: try part("5-9/12", "56789")
                case .shorter: try part("5-9/10", "567")
                case .longer: try part("5-9/10", "56789abc")
                case .truncated: try part("5-9/10", "567", length: 5)
                case .whole: try exchange.respond(headers: fields, text: "complete")
                case .notSatisfiable: try exchange.respond(status: 416, headers: [("Content-Range", "bytes */10")])
                case .notModified: try exchange.respond(status: 304, headers: fields)
                }
            },
            test: { cached in
                _ = await Self.read(cached)
                if answer == .truncated {
                    #expect(await cached.failure() == .truncatedBody)
                    #expect(await cached.failure(cache: .onlyStored) == .notStored)
                } else {
                    #expect(try await cached.get().text == "complete")
                    let stored = try await cached.get()
                    #expect(stored.text == "complete")
                    #expect(stored.cacheTrace?.source == .stored)
                }
                await cached.finish()
            })
    }

    @Test(arguments: [true, false])
    func bodiesBeyondTheLimitPassThroughAndAreNotStored(hasLength: Bool) async throws {
        let body = [UInt8](repeating: 7, count: 5_000)
        try await withCache(
            cache: { $0.entryByteLimit = 4_000 },
            handler: { exchange in
                let fields = [("Cache-Control", "max-age=60")]
                if hasLength { return try exchange.respond(headers: fields, body: body) }
                try exchange.writeChunked(headers: fields, chunks: [Array(body[..<2_500]), Array(body[2_500...])])
            },
            test: { cached in
                for _ in 0..<2 {
                    let response = try await cached.get()
                    #expect(response.value == Data(body))
                    #expect(response.cacheTrace?.storing == "body-too-large")
                    #expect(await Self.read(cached).body == Data(body))
                }
                #expect(cached.requestCount == 4)
                await cached.finish()
            })
    }

    @Test func aBodyBeyondTheLimitRemovesTheResponseThatItReplaces() async throws {
        let count = Counter()
        try await withCache(
            cache: { $0.entryByteLimit = 100 },
            handler: { exchange in
                let length = count.next() == 1 ? 10 : 200
                try exchange.respond(
                    headers: [("Cache-Control", "max-age=1, stale-if-error=600")],
                    body: [UInt8](repeating: 1, count: length))
            },
            test: { (cached) async throws in
                #expect(try await cached.get().value.count == 10)
                cached.clock.advance(5)
                #expect(try await cached.get().value.count == 200)
                #expect(await cached.failure(cache: .onlyStored) == .notStored)
                await cached.finish()
            })
    }

    @Test func theLimitOfTheReaderHoldsForStoredBodies() async throws {
        try await withCache(
            handler: {
                try $0.respond(headers: [("Cache-Control", "max-age=60")], body: [UInt8](repeating: 1, count: 1_000))
            },
            test: { cached in
                #expect(try await cached.get().value.count == 1_000)
                var request = try cached.client.request(.get, "a")
                request.maximumBodySize = 999
                let small = Task { [request] in try await cached.client.session.response(for: request) }
                #expect(await small.kind == .tooLarge)
                request.maximumBodySize = 1_000
                #expect(try await cached.client.session.response(for: request).cacheTrace?.source == .stored)
                #expect(cached.requestCount == 1)
                await cached.finish()
            })
    }

    /// Bytes that cannot be compressed, so that the compressed body has many chunks.
    private static var randomBytes: Data {
        var random = SeededGenerator(1)
        return Data((0..<300_000).map { _ in UInt8(truncatingIfNeeded: random.next()) })
    }

    @Test func aStreamThatIsLeftKeepsWhatWasRead() async throws {
        let (gate, ranges) = (LoopbackServer.Gate(), Locked<[String?]>([]))
        try await withCache(
            handler: { exchange in
                ranges.change { $0.append(exchange.request["Range"]) }
                let fields = [("Cache-Control", "max-age=60"), ("ETag", "\"v\"")]
                guard exchange.number == 1 else {
                    return try exchange.respond(
                        status: 206, headers: fields + [("Content-Range", "bytes 4-7/8")], text: "4567")
                }
                try exchange.writeHead(headers: fields + [("Content-Length", "8")])
                try exchange.write("0123")
                try exchange.wait(for: gate)
            },
            test: { cached in
                do {
                    var iterator = cached.client.stream("a").chunks.makeAsyncIterator()
                    #expect(try await iterator.next() == Data("0123".utf8))
                }
                gate.open()
                while await cached.cache.entries().isEmpty { await Task.yield() }
                let response = try await cached.get()
                #expect(response.text == "01234567")
                #expect(response.metrics.transactions == 1)
                #expect(ranges.value == [nil, "bytes=4-"])
                await cached.finish()
            })
    }

    enum Damage: CaseIterable, Sendable { case flipped, truncated, garbage, cutAtTheEnd }

    @Test(arguments: Damage.allCases, [true, false])
    func aDamagedBodyIsNotStored(_ damage: Damage, isStreamed: Bool) async throws {
        let text = Self.randomBytes
        let whole = Array(try gzipped(text))
        var damaged = whole
        switch damage {
        case .flipped: for index in 10..<60 { damaged[index] ^= 0xFF }
        case .truncated: damaged.removeLast(100)
        case .garbage: damaged = Array("this is not gzip, and it says so at once".utf8)
        case .cutAtTheEnd: damaged.removeLast(4)
        }
        let (count, hasRange) = (Counter(), Locked(false))
        try await withCache(
            handler: { [damaged] exchange in
                let fields = [("Cache-Control", "max-age=60"), ("Content-Encoding", "gzip"), ("ETag", "\"v\"")]
                let isFirst = count.next() == 1
                if exchange.request["Range"] != nil { hasRange.change { $0 = true } }
                guard isFirst, damage == .flipped else {
                    return try exchange.respond(headers: fields, body: isFirst ? damaged : whole)
                }
                // The damage is found while the body still arrives.
                try exchange.writeHead(headers: fields + [("Content-Length", "\(whole.count)")])
                try exchange.write(damaged[..<50_000])
                try exchange.waitForClientToClose()
            },
            test: { cached in
                if isStreamed {
                    #expect(await Self.read(cached).kind != nil)
                } else {
                    #expect(await cached.failure() != nil)
                }
                #expect(await cached.failure(cache: .onlyStored) == .notStored)
                let second = try await cached.get()
                #expect(second.value == text)
                #expect(try await cached.get().value == text)
                #expect(cached.requestCount == 2)
                #expect(!hasRange.value, "no part of a damaged body is stored")
                await cached.finish()
            })
    }

    private struct RefusesParts: SessionPolicy {
        func storing(of response: ResponseHead, for task: AnySessionTask) async throws -> ResponseStoring? {
            response.status == 206 ? .forbid : nil
        }
    }

    @Test(arguments: StoreKind.allCases, ["no-store", "policy"])
    func aRestThatMustNotBeStoredLeavesNothingInTheStore(_ kind: StoreKind, reason: String) async throws {
        let fields = [("Cache-Control", "max-age=60"), ("ETag", "\"v\"")]
        try await withCache(
            kind, session: { if reason == "policy" { $0.policy = RefusesParts() } },
            handler: { exchange in
                if exchange.number == 1 { return try Self.cut(exchange, .contentLength, fields) }
                guard exchange.request["Range"] == "bytes=5-" else {
                    return try exchange.respond(headers: fields, text: "complete")
                }
                let control = reason == "no-store" ? reason : "max-age=60"
                try exchange.respond(
                    status: 206,
                    headers: [("Cache-Control", control), ("ETag", "\"v\""), ("Content-Range", "bytes 5-9/10")],
                    body: Self.digits[5...])
            },
            test: { cached in
                _ = await Self.read(cached)
                while await cached.cache.entries().isEmpty { await Task.yield() }
                let response = try await cached.get()
                #expect(response.status == 200)
                #expect(response.value == Data(Self.digits))
                #expect(response.cacheTrace?.storing == reason)
                #expect(response.cacheTrace?.isStored == false)
                #expect(await cached.cache.entries().isEmpty)
                #expect(try await cached.get().text == "complete")
                #expect(cached.requestCount == 3)
                await cached.finish()
            })
    }
}
