#if os(Linux)
import Testing
@testable import TernEngine

@Suite(.timeLimit(.minutes(1))) struct HTTP2RefusalTests {
    typealias Fields = [(String, String)]

    private static let ok: Fields = [(":status", "200")]

    static let heads: [(String, Fields)] = [
        ("no status", [("a", "b")]),
        ("no field", []),
        ("two statuses", [(":status", "200"), (":status", "200")]),
        ("a late status", [("a", "b"), (":status", "200")]),
        ("two digits", [(":status", "20")]),
        ("four digits", [(":status", "2000")]),
        ("a status below 100", [(":status", "099")]),
        ("a status of letters", [(":status", "2OO")]),
        ("a status of a sign", [(":status", "+20")]),
        ("an empty status", [(":status", "")]),
        ("status 101", [(":status", "101")]),
        ("an unknown pseudo-header field", ok + [(":other", "a")]),
        ("a pseudo-header field of requests", ok + [(":path", "/")]),
        ("a name in upper case", ok + [("Server", "a")]),
        ("an empty name", ok + [("", "a")]),
        ("a name with a blank", ok + [("a b", "c")]),
        ("a name with a colon", ok + [("a:b", "c")]),
        ("a name with a line end", ok + [("a\n", "c")]),
        ("a value with a line end", ok + [("a", "b\r\nc: d")]),
        ("a value with a line feed", ok + [("a", "b\n")]),
        ("a value with a null", ok + [("a", "b\u{0}c")]),
        ("a value with a control", ok + [("a", "b\u{1}c")]),
        ("a value with delete", ok + [("a", "b\u{7F}")]),
        ("a value with a leading blank", ok + [("a", " b")]),
        ("a value with a trailing tab", ok + [("a", "b\t")]),
        ("Connection", ok + [("connection", "close")]),
        ("Keep-Alive", ok + [("keep-alive", "5")]),
        ("Proxy-Connection", ok + [("proxy-connection", "close")]),
        ("Transfer-Encoding", ok + [("transfer-encoding", "chunked")]),
        ("Upgrade", ok + [("upgrade", "h2c")]),
        ("TE", ok + [("te", "gzip")]),
        ("two lengths", ok + [("content-length", "5"), ("content-length", "5")]),
        ("different lengths", ok + [("content-length", "5"), ("content-length", "6")]),
        ("a list of lengths", ok + [("content-length", "5, 5")]),
        ("a negative length", ok + [("content-length", "-5")]),
        ("a signed length", ok + [("content-length", "+5")]),
        ("an empty length", ok + [("content-length", "")]),
        ("a length of 19 digits", ok + [("content-length", "1000000000000000000")]),
        ("a length of 30 digits", ok + [("content-length", String(repeating: "9", count: 30))]),
        ("a 204 response with a length", [(":status", "204"), ("content-length", "5")]),
    ]

    @Test(arguments: heads.indices)
    func aMalformedHeadFailsItsStreamOnly(_ index: Int) throws {
        let (name, fields) = Self.heads[index]
        let peer = try HTTP2Peer.connected()
        let (first, second) = (try peer.session.submit(HTTP2Peer.get()), try peer.session.submit(HTTP2Peer.get()))
        peer.flush()
        #expect(peer.send(.headers(first, fields)) == nil, "\(name)")
        #expect(peer.events == [.failed(first, .malformedResponse)], "\(name)")
        peer.send(.data(first, "late", end: true), .headers(second, Self.ok, end: true))
        #expect(peer.flush().contains { $0.type == 3 && $0.stream == first }, "\(name)")
        #expect(peer.events.last == .ended(second), "\(name)")
        #expect(peer.events.count == 3 && peer.session.streams.isEmpty, "\(name)")
    }

    static let lateFrames: [(String, EngineError.Kind, [TestFrame])] = [
        ("data after an interim head", .malformedResponse, [.headers(1, [(":status", "100")]), .data(1, "x")]),
        ("an interim head that ends", .malformedResponse, [.headers(1, [(":status", "100")], end: true)]),
        (
            "a body that is too long", .malformedResponse,
            [.headers(1, ok + [("content-length", "3")]), .data(1, "four")]
        ),
        (
            "a body that is too short", .truncatedBody,
            [.headers(1, ok + [("content-length", "3")]), .data(1, "ab", end: true)]
        ),
        ("no body in place of one", .malformedResponse, [.headers(1, ok + [("content-length", "3")], end: true)]),
        ("a body of a 204 response", .malformedResponse, [.headers(1, [(":status", "204")]), .data(1, "x")]),
        ("a body of a 304 response", .malformedResponse, [.headers(1, [(":status", "304")]), .data(1, "x")]),
        ("trailers without an end", .malformedResponse, [.headers(1, ok), .headers(1, [("a", "b")])]),
        ("trailers with a status", .malformedResponse, [.headers(1, ok), .headers(1, ok, end: true)]),
        (
            "trailers in upper case", .malformedResponse,
            [.headers(1, ok), .headers(1, [("A", "b")], end: true)]
        ),
        (
            "trailers with Connection", .malformedResponse,
            [.headers(1, ok), .headers(1, [("connection", "b")], end: true)]
        ),
        (
            "short body before trailers", .truncatedBody,
            [.headers(1, ok + [("content-length", "3")]), .data(1, "ab"), .headers(1, [("a", "b")], end: true)]
        ),
        ("a reset", .connectionLost, [.headers(1, ok), .reset(1, 2)]),
        ("a reset without an error", .connectionLost, [.headers(1, ok), .reset(1, 0)]),
        ("an unknown reset", .connectionLost, [.reset(1, 0xFFFF_FFFF)]),
        ("a refused stream", .notProcessed, [.reset(1, 7)]),
        ("a reset for security", .tls, [.reset(1, 12)]),
    ]

    @Test(arguments: lateFrames.indices)
    func aWrongResponseFailsItsStreamOnly(_ index: Int) throws {
        let (name, kind, frames) = Self.lateFrames[index]
        let input = frames.flatMap(\.bytes)
        for split in 0..<input.count {
            let peer = try HTTP2Peer.connected()
            _ = try peer.session.submit(HTTP2Peer.get())
            let second = try peer.session.submit(HTTP2Peer.get())
            peer.flush()
            #expect(peer.send(Array(input[..<split])) == nil, "\(name)")
            #expect(peer.send(Array(input[split...])) == nil, "\(name)")
            // nghttp2 notices some violations when it sends RST_STREAM.
            peer.flush()
            #expect(peer.events.last == .failed(1, kind), "\(name) \(peer.reasons)")
            peer.send(.headers(second, Self.ok, end: true))
            #expect(peer.events.last == .ended(second), "\(name)")
            #expect(peer.session.streams.isEmpty, "\(name)")
        }
    }

    @Test func aBodyOfAResponseToHeadIsRefused() throws {
        let peer = try HTTP2Peer.connected()
        let stream = try peer.session.submit(HTTP2Peer.get(method: "HEAD"))
        peer.flush()
        peer.send(.headers(stream, Self.ok), .data(stream, "x", end: true))
        peer.flush()
        #expect(peer.events.last == .failed(stream, .malformedResponse))
    }

    @Test func aServerThatRequiresHTTP11HasItsOwnError() throws {
        let peer = try HTTP2Peer.connected()
        let stream = try peer.session.submit(HTTP2Peer.get())
        peer.flush()
        peer.send(.reset(stream, 13))
        #expect(peer.reasons[stream] == EngineError.requiresHTTP11.reason)
        #expect(peer.events.last == .failed(stream, .notProcessed))
    }

    @Test(arguments: [TestFrame.reset(1, 7), .reset(1, 13), .goAway(0), .goAway(0, 13)])
    func aRequestWithAResponseWasProcessed(end: TestFrame) throws {
        let peer = try HTTP2Peer.connected()
        let stream = try peer.session.submit(HTTP2Peer.get())
        peer.flush()
        peer.send(.headers(stream, Self.ok), end)
        #expect(peer.events.contains(.failed(stream, .connectionLost)))
    }

    static let connectionErrors: [(String, [UInt8])] = [
        ("HTTP/1.1 in place of HTTP/2", Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)),
        ("another frame before SETTINGS", TestFrame(type: 6, payload: [0, 0, 0, 0, 0, 0, 0, 0]).bytes),
        ("a long frame", settings + [0, 0x40, 1, 0, 0, 0, 0, 0, 1]),
        ("DATA of the connection", settings + TestFrame.data(0, "x").bytes),
        ("HEADERS of the connection", settings + TestFrame.headers(0, ok).bytes),
        ("HEADERS of an idle stream", settings + TestFrame.headers(9, ok).bytes),
        ("HEADERS of an even stream", settings + TestFrame.headers(2, ok).bytes),
        ("DATA of an idle stream", settings + TestFrame.data(9, "x").bytes),
        ("RST_STREAM of an idle stream", settings + TestFrame.reset(9, 0).bytes),
        ("WINDOW_UPDATE of an idle stream", settings + TestFrame.window(9, 1).bytes),
        ("WINDOW_UPDATE of nothing", settings + TestFrame.window(0, 0).bytes),
        ("WINDOW_UPDATE beyond the maximum", settings + TestFrame.window(0, 0x7FFF_FFFF).bytes),
        ("PING of 7 bytes", settings + TestFrame(type: 6, payload: [0, 0, 0, 0, 0, 0, 0]).bytes),
        ("PING of a stream", settings + TestFrame(type: 6, stream: 1, payload: [0, 0, 0, 0, 0, 0, 0, 0]).bytes),
        ("SETTINGS of 5 bytes", settings + TestFrame(type: 4, payload: [0, 1, 0, 0, 0]).bytes),
        ("SETTINGS of a stream", settings + TestFrame(type: 4, stream: 1).bytes),
        ("an answer to SETTINGS with payload", settings + TestFrame(type: 4, flags: 1, payload: [0]).bytes),
        ("SETTINGS that enable push", TestFrame.settings([(2, 1)]).bytes),
        ("SETTINGS with a wide window", TestFrame.settings([(4, 0x8000_0000)]).bytes),
        ("SETTINGS with small frames", TestFrame.settings([(5, 100)]).bytes),
        ("SETTINGS of 40 entries", settings + TestFrame.settings(Array(repeating: (0xF0F0, 1), count: 40)).bytes),
        ("a push", settings + TestFrame(type: 5, flags: 4, stream: 1, payload: [0, 0, 0, 2]).bytes),
        ("CONTINUATION alone", settings + TestFrame(type: 9, flags: 4, stream: 1).bytes),
        (
            "DATA within a header block",
            settings + TestFrame(type: 1, stream: 1, payload: TestFrame.block(ok)).bytes + TestFrame.data(1, "x").bytes
        ),
        ("DATA before HEADERS", settings + TestFrame.data(1, "x").bytes),
        ("an end before HEADERS", settings + TestFrame.data(1, "", end: true).bytes),
        ("an invalid header block", settings + TestFrame(type: 1, flags: 4, stream: 1, payload: [0xFF, 0xFF]).bytes),
        ("more padding than payload", settings + TestFrame(type: 0, flags: 8, stream: 1, payload: [9, 0]).bytes),
        ("GOAWAY of 7 bytes", settings + TestFrame(type: 7, payload: [0, 0, 0, 0, 0, 0, 0]).bytes),
        ("GOAWAY that goes back", settings + TestFrame.goAway(1).bytes + TestFrame.goAway(3).bytes),
        ("an error after GOAWAY", settings + TestFrame.goAway(1).bytes + TestFrame.data(0, "x").bytes),
    ]

    private static let settings = TestFrame.settings().bytes

    @Test(arguments: connectionErrors.indices)
    func aConnectionErrorEndsTheConnection(_ index: Int) throws {
        let (name, input) = Self.connectionErrors[index]
        for split in 0..<input.count {
            let peer = try HTTP2Peer()
            let stream = try peer.session.submit(HTTP2Peer.get())
            peer.flush()
            let error = peer.send(Array(input[..<split])) ?? peer.send(Array(input[split...]))
            #expect(error?.kind == .malformedResponse, "\(name)")
            #expect(peer.send(.headers(stream, Self.ok, end: true)) == error, "\(name)")
            #expect(!peer.session.wantsRead && !peer.session.takesRequests, "\(name)")
            let frames = peer.flush()
            #expect(frames.last.map { $0.type == 7 && $0.payload[4...7] != [0, 0, 0, 0] } ?? false, "\(name)")
            if let error { peer.session.connectionClosed(error) }
            let failures = peer.events.filter { if case .failed(stream, _) = $0 { true } else { false } }
            #expect(failures.count == 1, "\(name)")
        }
    }

    private func limited(_ limits: HeadLimits, _ frames: TestFrame...) throws -> [TestEvent] {
        let peer = try HTTP2Peer.connected()
        var request = HTTP2Peer.get()
        request.headLimits = limits
        _ = try peer.session.submit(request)
        let second = try peer.session.submit(HTTP2Peer.get())
        peer.flush()
        #expect(peer.send(frames.flatMap(\.bytes)) == nil)
        let events = peer.events
        peer.send(.headers(second, Self.ok, end: true))
        #expect(peer.events.last == .ended(second))
        return events
    }

    @Test func theHeadLimitIsExact() throws {
        // "HTTP/2 200", "a: b" and their line ends, and the empty line: 12 + 6 + 2 bytes.
        let head = TestFrame.headers(1, Self.ok + [("a", "b")])
        #expect(try limited(HeadLimits(bytes: 20), head) == [.head(1, "HTTP/2 200\r\na: b\r\n\r\n")])
        #expect(try limited(HeadLimits(bytes: 19), head) == [.failed(1, .tooLarge)])
        #expect(try limited(HeadLimits(bytes: 13), .headers(1, Self.ok)) == [.failed(1, .tooLarge)])
        #expect(try limited(HeadLimits(bytes: 0), .headers(1, Self.ok)) == [.failed(1, .tooLarge)])
        #expect(try limited(HeadLimits(bytes: .min), head) == [.failed(1, .tooLarge)])
    }

    @Test func interimHeadsCountTowardsTheLimit() throws {
        let interim = TestFrame.headers(1, [(":status", "103"), ("a", "b")])
        let head = TestFrame.headers(1, Self.ok)
        #expect(try limited(HeadLimits(bytes: 34), interim, head).last == .head(1, "HTTP/2 200\r\n\r\n"))
        #expect(try limited(HeadLimits(bytes: 33), interim, head).last == .failed(1, .tooLarge))
        var limits = HeadLimits(bytes: 10_000)
        limits.interimResponses = 1
        #expect(try limited(limits, interim, head).last == .head(1, "HTTP/2 200\r\n\r\n"))
        #expect(try limited(limits, interim, interim) == [.interim(1, 103), .failed(1, .tooLarge)])
    }

    @Test func fieldsAreCounted() throws {
        var limits = HeadLimits(bytes: 10_000)
        limits.fields = 2
        let two = [("a", "b"), ("c", "d")]
        #expect(try limited(limits, .headers(1, Self.ok + two)).last == .head(1, "HTTP/2 200\r\na: b\r\nc: d\r\n\r\n"))
        #expect(try limited(limits, .headers(1, Self.ok + two + two)) == [.failed(1, .tooLarge)])
        let head = TestFrame.headers(1, Self.ok)
        #expect(try limited(limits, head, .headers(1, two, end: true)).last == .ended(1))
        #expect(try limited(limits, head, .headers(1, two + two, end: true)).last == .failed(1, .tooLarge))
    }

    /// RFC 9110 §6.5.1. nghttp2 refuses the fields of the connection, and a length that the body does not have.
    @Test func trailersThatFrameOrRouteAreDropped() throws {
        let dropped = [
            ("host", "a"), ("trailer", "b"), ("content-type", "a/b"), ("content-encoding", "br"),
            ("content-range", "x"), ("set-cookie", "a=b"), ("te", "trailers"),
        ]
        let kept = dropped.flatMap { [("x-kept", "1"), $0, ("x-sum", "2")] }
        let head = TestFrame.headers(1, Self.ok)
        let limits = HeadLimits(bytes: 10_000)
        let events = try limited(limits, head, .headers(1, kept, end: true))
        let lines = String(repeating: "x-kept: 1\r\nx-sum: 2\r\n", count: dropped.count)
        #expect(events == [.head(1, "HTTP/2 200\r\n\r\n"), .trailers(1, lines), .ended(1)])
        #expect(try limited(limits, head, .headers(1, dropped, end: true)) == [events[0], .ended(1)])
    }

    @Test func trailersAreLimited() throws {
        let head = TestFrame.headers(1, Self.ok)
        let trailers = TestFrame.headers(1, [("abc", "defghi")], end: true)
        #expect(try limited(HeadLimits(bytes: 15), head, trailers).contains(.trailers(1, "abc: defghi\r\n")))
        #expect(try limited(HeadLimits(bytes: 14), head, trailers).last == .failed(1, .tooLarge))
    }
}
#endif
