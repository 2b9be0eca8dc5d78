#if os(Linux)
import HTTP3TestSupport
import Testing

@testable import TernEngine

/// Responses to a session in memory, frame by frame.
@Suite(.enabled(if: HTTP3Session.obstacle == nil, "a library of HTTP/3 is missing"))
struct HTTP3ResponseTests {
    /// Sends a GET, answers it with bytes, and returns the pair after all of them have arrived.
    private func answer(
        _ bytes: [UInt8], isLast: Bool = true, headLimit: Int = 256 << 10
    ) throws -> (pair: HTTP3Pair, stream: Int64) {
        let pair = try HTTP3Pair.connected()
        let stream = try #require(pair.submit(headLimit: headLimit))
        pair.run()
        try #require(pair.server?.takeRequest()?.stream == stream)
        pair.server?.write(bytes, to: stream, isLast: isLast)
        pair.run()
        return (pair, stream)
    }

    /// Whether the connection carries a further request after the first.
    private func goesOn(_ pair: HTTP3Pair) -> Bool {
        guard let next = pair.submit() else { return false }
        pair.run()
        pair.server?.write(HTTP3Bytes.head(204), to: next, isLast: true)
        pair.run()
        return pair.hasEnded(next)
    }

    @Test func aResponseHasInterimHeadsABodyAndTrailers() throws {
        let bytes =
            HTTP3Bytes.head(103, [("link", "</a>")]) + HTTP3Bytes.head(200, [("content-length", "5")])
            + HTTP3Bytes.data("he") + HTTP3Bytes.frame(0x21, [1, 2]) + HTTP3Bytes.data("llo")
            + HTTP3Bytes.head(nil, [("checksum", "1")])
        let (pair, stream) = try answer(bytes)
        defer { pair.end() }
        let events = pair.events(of: stream)
        try #require(events.count == 5, "\(events)")
        guard case .interim(_, let interim) = events[0], case .head(_, let head) = events[1] else {
            Issue.record("\(events)")
            return
        }
        #expect(interim.status == 103 && head.status == 200 && head.contentLength == 5)
        #expect(pair.bodies[stream] == Array("hello".utf8))
        #expect(events[3] == .trailers(stream, Array("checksum: 1\r\n".utf8)) && events[4] == .ended(stream))
        #expect(goesOn(pair))
    }

    /// Bytes of a stream, and the kind of the error that they lead to.
    struct Bytes: CustomStringConvertible {
        let description: String
        let kind: EngineError.Kind
        let bytes: [UInt8]

        init(_ description: String, _ kind: EngineError.Kind = .malformedResponse, _ parts: [UInt8]...) {
            self.description = description
            self.kind = kind
            bytes = Array(parts.joined())
        }

        /// A response with one field.
        init(_ description: String, _ kind: EngineError.Kind, _ name: String, _ value: String) {
            self.init(description, kind, HTTP3Bytes.head(200, [(name, value)]), HTTP3Bytes.data("hello"))
        }
    }

    /// Responses that end before they are whole, or violate a rule. Each ends its stream with an error, and leaves the
    /// connection alone.
    private static let broken = [
        Bytes("an interim response alone", .malformedResponse, HTTP3Bytes.head(103)),
        Bytes("a shorter body", .truncatedBody, "content-length", "9"),
        Bytes("no body", .truncatedBody, HTTP3Bytes.head(200, [("content-length", "9")])),
        // nghttp3 refuses the whole frame, before its bytes are counted.
        Bytes("a longer body", .truncatedBody, "content-length", "2"),
        Bytes("a length that is no number", .malformedResponse, "content-length", "x"),
        Bytes("a name in capitals", .malformedResponse, "Name", "1"),
        Bytes("a field of the connection", .malformedResponse, "connection", "close"),
        Bytes("no status", .malformedResponse, HTTP3Bytes.head(nil, [("name", "1")])),
        Bytes("the status 101", .malformedResponse, HTTP3Bytes.head(101)),
        Bytes("an unknown pseudo-header field", .malformedResponse, ":path", "/"),
        Bytes("trailers with a status", .malformedResponse, HTTP3Bytes.head(200), HTTP3Bytes.head(200)),
        Bytes(
            "DATA after trailers", .malformedResponse, HTTP3Bytes.head(200), HTTP3Bytes.head(nil, [("a", "b")]),
            HTTP3Bytes.data("x")),
    ]

    @Test(arguments: broken)
    func aBrokenResponseFailsAlone(response: Bytes) throws {
        let (pair, stream) = try answer(response.bytes)
        defer { pair.end() }
        let error = try #require(pair.error(of: stream), "\(response): \(pair.events)")
        #expect(error.kind == response.kind, "\(response): \(error)")
        #expect(!pair.hasEnded(stream) && goesOn(pair), "\(response): \(pair.failure as Any)")
    }

    @Test func aHeadThatIsTooLargeFailsAlone() throws {
        let large = HTTP3Bytes.head(200, [("a", String(repeating: "x", count: 5_000))])
        let (pair, stream) = try answer(large + HTTP3Bytes.data("hello"), headLimit: 4_000)
        defer { pair.end() }
        #expect(pair.error(of: stream)?.kind == .tooLarge && goesOn(pair), "\(pair.events)")
        let many = HTTP3Bytes.head(200, (0..<2_000).map { _ in ("a", "") })
        let (other, second) = try answer(many)
        defer { other.end() }
        #expect(other.error(of: second)?.kind == .tooLarge && goesOn(other), "\(other.events)")
    }

    /// Frames that end the connection (RFC 9114 §7.2, §8.1).
    private static let violations = [
        Bytes("DATA before HEADERS", .malformedResponse, HTTP3Bytes.data("x")),
        // nghttp3 ends the connection, and not the stream alone.
        Bytes("no HEADERS", .malformedResponse, HTTP3Bytes.frame(0x21, [1])),
        Bytes("a push", .malformedResponse, HTTP3Bytes.frame(5, [0, 0, 0, 0xD9])),
        Bytes("SETTINGS in a response", .malformedResponse, HTTP3Bytes.frame(4, [])),
        Bytes("GOAWAY in a response", .malformedResponse, HTTP3Bytes.goAway(0)),
        Bytes("a frame of HTTP/2", .malformedResponse, HTTP3Bytes.frame(8, [0, 0, 0, 1])),
        Bytes("a frame that is cut off", .malformedResponse, [1, 40, 0]),
        Bytes("a reference outside of the tables", .malformedResponse, HTTP3Bytes.frame(1, [0, 0, 0xFF, 0x7F])),
    ]

    @Test(arguments: violations)
    func aFrameInTheWrongPlaceEndsTheConnection(frames: Bytes) throws {
        let (pair, stream) = try answer(frames.bytes)
        defer { pair.end() }
        let failure = try #require(pair.failure, "\(frames): \(pair.events)")
        #expect(failure.kind == .malformedResponse, "\(frames): \(failure)")
        pair.end(failure)
        #expect(pair.error(of: stream) != nil && !pair.hasEnded(stream), "\(frames): \(pair.events)")
    }

    /// Bytes of streams that the server opens, which end the connection.
    private static let openings = [
        Bytes("a push stream", .malformedResponse, [1, 0]),
        Bytes("a second control stream", .malformedResponse, [0, 4, 0]),
        Bytes("an instruction that is not valid", .malformedResponse, [2, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]),
        Bytes("an acknowledgement of no head", .malformedResponse, [3, 0xFF, 0x00]),
    ]

    @Test(arguments: openings, [false, true])
    func aStreamThatIsNotAllowedEndsTheConnection(opening: Bytes, isLast: Bool) throws {
        let pair = try HTTP3Pair.connected()
        defer { pair.end() }
        let stream = try #require(pair.server?.openStream())
        pair.server?.write(opening.bytes, to: stream, isLast: isLast)
        pair.run()
        #expect(pair.failure?.kind == .malformedResponse, "\(opening): \(pair.failure as Any)")
    }

    @Test func theEndOfAStreamThatMustStayEndsTheConnection() throws {
        let pair = try HTTP3Pair.connected()
        defer { pair.end() }
        pair.server?.write([], to: try #require(pair.controlStream), isLast: true)
        pair.run()
        #expect(pair.failure?.kind == .malformedResponse, "\(pair.failure as Any)")
    }

    @Test func streamsOfUnknownKindsAreIgnored() throws {
        let pair = try HTTP3Pair.connected()
        defer { pair.end() }
        for _ in 0..<50 {
            let stream = try #require(pair.server?.openStream())
            pair.server?.write(HTTP3Bytes.integer(0x21) + [1, 2, 3], to: stream, isLast: true)
            pair.run()
        }
        #expect(goesOn(pair))
    }

    // MARK: Ends of streams

    /// Codes with which the server resets a stream, and the kinds of their errors.
    private static let resets: [(code: UInt64, kind: EngineError.Kind)] = [
        (0x10B, .notProcessed), (0x110, .notProcessed), (0x100, .connectionLost), (0x102, .connectionLost),
        (0x10C, .connectionLost), (0x3FFF_FFFF_FFFF, .connectionLost),
    ]

    @Test(arguments: resets)
    func aResetFailsItsStream(code: UInt64, kind: EngineError.Kind) throws {
        let pair = try HTTP3Pair.connected()
        defer { pair.end() }
        let first = try #require(pair.submit())
        pair.run()
        pair.server?.reset(first, code: code)
        pair.run()
        #expect(pair.error(of: first)?.kind == kind)
        // A request with a response was processed, whatever the server states.
        let second = try #require(pair.submit())
        pair.run()
        pair.server?.write(HTTP3Bytes.head(200) + HTTP3Bytes.data("hel"), to: second)
        pair.run()
        pair.server?.reset(second, code: code)
        pair.run()
        #expect(pair.bodies[second] == Array("hel".utf8))
        #expect(pair.error(of: second)?.kind == .connectionLost && !pair.hasEnded(second))
        #expect(goesOn(pair))
    }

    @Test func streamsFromGoAwayOnWereNotProcessed() throws {
        let pair = try HTTP3Pair.connected()
        defer { pair.end() }
        let streams = try (0..<4).map { _ in try #require(pair.submit()) }
        pair.run()
        let control = try #require(pair.controlStream)
        pair.server?.write(HTTP3Bytes.goAway(UInt64(streams[2])), to: control)
        pair.run()
        #expect(pair.events.contains(.goAway) && pair.submit() == nil)
        #expect(streams.map { pair.error(of: $0)?.kind } == [nil, nil, .notProcessed, .notProcessed])
        for stream in streams[..<2] { pair.server?.write(HTTP3Bytes.head(204), to: stream, isLast: true) }
        pair.run()
        #expect(pair.hasEnded(streams[0]) && pair.hasEnded(streams[1]) && pair.failure == nil)
        // A later one with a greater number is a violation (RFC 9114 §5.2).
        pair.server?.write(HTTP3Bytes.goAway(400), to: control)
        pair.run()
        #expect(pair.failure?.kind == .malformedResponse)
    }

    @Test func anEarlyResponseEndsTheUpload() throws {
        let pair = try HTTP3Pair.connected()
        defer { pair.end() }
        var asked = 0
        pair.onRead = { _, room in
            asked += 1
            return .bytes(min(room, 1_000))
        }
        let stream = try #require(pair.submit("POST", hasBody: true))
        pair.run(for: 20_000_000)
        #expect(asked > 0)
        pair.server?.write(HTTP3Bytes.head(413) + HTTP3Bytes.data("no"), to: stream, isLast: true)
        pair.server?.stop(stream, code: 0x100)
        pair.run(for: 20_000_000)
        #expect(pair.hasEnded(stream) && pair.session?.activeStreams == 0)
        let before = asked
        pair.run(for: 20_000_000)
        #expect(asked == before && goesOn(pair))
    }
}
#endif
