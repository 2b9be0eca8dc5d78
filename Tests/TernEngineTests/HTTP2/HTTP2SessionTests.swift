#if os(Linux)
import Testing
@testable import TernEngine

@Suite(.timeLimit(.minutes(1))) struct HTTP2SessionTests {
    @Test func thePrefaceStatesTheSettings() throws {
        let peer = try HTTP2Peer()
        var output: [UInt8] = []
        #expect(peer.session.wantsWrite)
        #expect(peer.session.takeOutput(into: &output, upTo: .max) == nil)
        #expect(Array(output.prefix(24)) == Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8))
        let settings = TestFrame.settings([(2, 0), (4, 1 << 20), (6, 256 << 10), (9, 1)])
        let window = TestFrame.window(0, 16 << 20 - 65_535)
        #expect(Array(output.dropFirst(24)) == settings.bytes + window.bytes)
        #expect(!peer.session.wantsWrite)
        #expect(peer.session.wantsRead)
    }

    @Test func aRequestIsOneFrame() throws {
        let peer = try HTTP2Peer.connected()
        var request = HTTP2Peer.get("/path?q")
        request.fields = Array("Accept: */*\r\nAuthorization: Basic eDp5\r\nConnection: close\r\n".utf8)
        let stream = try peer.session.submit(request)
        #expect(stream == 1)
        let frames = peer.flush()
        #expect(frames.count == 1)
        #expect(frames[0].type == 1 && frames[0].flags == 5 && frames[0].stream == 1)
        #expect(
            peer.fields(frames[0].payload) == [
                ":method: GET", ":scheme: https", ":authority: example.com", ":path: /path?q", "accept: */*",
                "!authorization: Basic eDp5",
            ])
    }

    @Test func aResponseBecomesEvents() throws {
        let peer = try HTTP2Peer.connected()
        let stream = try peer.session.submit(HTTP2Peer.get())
        peer.flush()
        peer.send(
            .headers(1, [(":status", "103"), ("link", "</a>")]),
            .headers(
                1, [(":status", "200"), ("content-length", "5"), ("set-cookie", "a=b"), ("content-encoding", "br")]),
            .data(1, "he"), .data(1, "llo", end: true))
        #expect(
            peer.events == [
                .interim(stream, 103),
                .head(
                    stream,
                    "HTTP/2 200\r\ncontent-length: 5\r\nset-cookie: a=b\r\ncontent-encoding: br\r\n\r\n"),
                .body(stream, Array("hello".utf8)), .ended(stream),
            ])
        let head = try #require(peer.heads[1])
        #expect(head.status == 200 && head.version == .http2 && head.setsCookies && head.isEncoded)
        #expect(head.contentLength == 5)
        #expect(peer.session.activeStreams == 0)
        #expect(peer.session.streams.isEmpty)
    }

    private static let sample: [TestFrame] = [
        .settings([(3, 50)]), .settingsAnswer,
        .headers(1, [(":status", "103"), ("link", "</a>")]),
        .headers(3, [(":status", "204")], end: true),
        TestFrame(type: 1, flags: 0, stream: 1, payload: TestFrame.block([(":status", "200")])),
        TestFrame(type: 9, flags: 4, stream: 1, payload: TestFrame.block([("x-a", "b")])),
        .data(1, "he"), TestFrame(type: 0, flags: 8, stream: 1, payload: [3, 0x6C, 0x6C, 0, 0, 0]),
        TestFrame(type: 6, payload: [1, 2, 3, 4, 5, 6, 7, 8]), TestFrame(type: 0xEE, payload: [9, 9]),
        .reset(5, 7), .data(1, "o"),
        .headers(1, [("x-sum", "1")], end: true), .goAway(5),
    ]

    private func events(of pieces: [ArraySlice<UInt8>]) throws -> [TestEvent] {
        let peer = try HTTP2Peer()
        for _ in 0..<3 { _ = try peer.session.submit(HTTP2Peer.get()) }
        peer.flush()
        for piece in pieces { #expect(peer.send(Array(piece)) == nil) }
        #expect(peer.flush().contains(TestFrame(type: 6, flags: 1, payload: [1, 2, 3, 4, 5, 6, 7, 8])))
        return peer.events
    }

    @Test func everySplitGivesTheSameEvents() throws {
        let input = Self.sample.flatMap(\.bytes)
        let whole = try events(of: [input[...]])
        #expect(
            whole == [
                .maximum(50), .interim(1, 103), .head(3, "HTTP/2 204\r\n\r\n"), .ended(3),
                .head(1, "HTTP/2 200\r\nx-a: b\r\n\r\n"), .body(1, Array("hell".utf8)), .failed(5, .notProcessed),
                .body(1, Array("o".utf8)), .trailers(1, "x-sum: 1\r\n"), .ended(1), .goAway(5, isGraceful: true),
            ])
        for split in 1..<input.count {
            #expect(try events(of: [input[..<split], input[split...]]) == whole, "split at \(split)")
        }
        #expect(try events(of: input.indices.map { input[$0...$0] }) == whole)
    }

    @Test func aBodyIsSentInParts() throws {
        let peer = try HTTP2Peer.connected()
        let stream = try peer.session.submit(HTTP2Peer.post(length: 30))
        peer.parts[stream] = [.bytes(10), .wait, .last(20)]
        var frames = peer.flush()
        #expect(frames.map(\.type) == [1, 0])
        #expect(peer.fields(frames[0].payload).contains("content-length: 30"))
        #expect(frames[1].payload.count == 10 && frames[1].flags == 0)
        #expect(!peer.session.wantsWrite)
        peer.session.resumeBody(stream)
        frames = peer.flush()
        #expect(frames.map(\.payload.count) == [20])
        #expect(frames[0].flags == 1)
        peer.send(.headers(1, [(":status", "200")], end: true))
        #expect(peer.events == [.head(1, "HTTP/2 200\r\n\r\n"), .ended(1)])
        #expect(peer.flush().isEmpty)
    }

    @Test func trailersFollowABody() throws {
        let peer = try HTTP2Peer.connected()
        let stream = try peer.session.submit(HTTP2Peer.post())
        peer.parts[stream] = [.bytes(3), .trailers(Array("X-Sum: 7\r\nTransfer-Encoding: x\r\n".utf8))]
        let frames = peer.flush()
        let last = try #require(frames.last)
        _ = peer.fields(frames[0].payload)
        #expect(frames.filter { $0.type == 0 && $0.flags & 1 != 0 }.isEmpty)
        #expect(last.type == 1 && last.flags == 5)
        #expect(peer.fields(last.payload) == ["x-sum: 7"])
    }

    static let wrongBodies: [([HTTP2BodyPart], Int64?)] = [
        ([.bytes(5), .end], 9), ([.last(10)], 9), ([.bytes(10)], 9), ([.end], 1),
        ([.trailers(Array("bad".utf8))], 0), ([.bytes(1), .failed(EngineError(.invalidRequest, "gone"))], nil),
    ]

    @Test(arguments: wrongBodies)
    func aWrongBodyFailsItsStream(_ parts: [HTTP2BodyPart], length: Int64?) throws {
        let peer = try HTTP2Peer.connected()
        let stream = try peer.session.submit(HTTP2Peer.post(length: length))
        peer.parts[stream] = parts
        let frames = peer.flush()
        #expect(peer.events == [.failed(stream, .invalidRequest)])
        #expect(frames.last == .reset(stream, 8))
        #expect(!frames.contains { $0.type == 0 && $0.flags & 1 != 0 })
        #expect(peer.session.streams.isEmpty && peer.session.activeStreams == 0)
        #expect(peer.session.failure == nil)
    }

    @Test func anEarlyResponseStopsTheBody() throws {
        let peer = try HTTP2Peer.connected()
        let stream = try peer.session.submit(HTTP2Peer.post())
        peer.parts[stream] = [.bytes(10)]
        peer.flush()
        peer.send(.headers(stream, [(":status", "413")]), .data(stream, "no", end: true))
        #expect(peer.events.last == .ended(stream))
        #expect(peer.flush() == [.reset(stream, 0)])
        #expect(peer.session.streams.isEmpty)
    }

    @Test func bothDirectionsRunAtOnce() throws {
        let peer = try HTTP2Peer.connected()
        let stream = try peer.session.submit(HTTP2Peer.post())
        peer.parts[stream] = [.bytes(1)]
        peer.flush()
        peer.send(.headers(stream, [(":status", "200")]))
        for _ in 0..<3 {
            peer.send(.data(stream, "answer"))
            peer.parts[stream] = [.bytes(2)]
            peer.session.resumeBody(stream)
            #expect(peer.flush().map(\.payload.count) == [2])
        }
        peer.parts[stream] = [.end]
        peer.session.resumeBody(stream)
        #expect(peer.flush() == [.data(stream, "", end: true)])
        peer.send(.data(stream, "", end: true))
        #expect(peer.events.last == .ended(stream))
        #expect(peer.flush().isEmpty)
    }

    @Test func cancellingResetsTheStreamInSilence() throws {
        let peer = try HTTP2Peer.connected()
        let stream = try peer.session.submit(HTTP2Peer.get())
        peer.flush()
        peer.session.cancel(stream)
        peer.session.cancel(stream)
        #expect(peer.session.activeStreams == 0)
        peer.send(.headers(stream, [(":status", "200")]), .data(stream, "x"))
        #expect(peer.flush() == [.reset(stream, 8)])
        peer.send(.data(stream, "x", end: true))
        #expect(peer.events.isEmpty && peer.session.failure == nil)
    }

    @Test func aRequestThatWasNotSentCanBeCancelled() throws {
        let peer = try HTTP2Peer.connected()
        let stream = try peer.session.submit(HTTP2Peer.get())
        peer.session.cancel(stream)
        #expect(!peer.flush().contains { $0.type == 1 })
        #expect(peer.events.isEmpty && peer.session.streams.isEmpty)
        let next = try peer.session.submit(HTTP2Peer.get())
        #expect(peer.flush().map(\.stream) == [next])
    }

    @Test func cancellingWithinAnEventIsAllowed() throws {
        let peer = try HTTP2Peer.connected()
        let stream = try peer.session.submit(HTTP2Peer.get())
        peer.flush()
        peer.onEvent = { event in
            if case .head = event { peer.session.cancel(stream) }
        }
        peer.send(.headers(stream, [(":status", "200")]), .data(stream, "x", end: true))
        peer.onEvent = nil
        #expect(peer.events == [.head(stream, "HTTP/2 200\r\n\r\n")])
        #expect(peer.flush() == [.reset(stream, 8)])
    }

    @Test(arguments: ["HEAD", "GET"], ["200", "204", "304"])
    func aResponseWithoutBodyEnds(_ method: String, status: String) throws {
        guard method == "HEAD" || status != "200" else { return }
        let peer = try HTTP2Peer.connected()
        let stream = try peer.session.submit(HTTP2Peer.get(method: method))
        peer.flush()
        let length = status == "204" ? [] : [("content-length", "10")]
        peer.send(.headers(stream, [(":status", status)] + length, end: true))
        #expect(peer.events.last == .ended(stream))
    }

    @Test func aPingIsAnswered() throws {
        let peer = try HTTP2Peer.connected()
        peer.session.ping()
        peer.session.ping()
        let frames = peer.flush()
        #expect(frames.count == 1 && frames[0].type == 6 && frames[0].flags == 0)
        peer.send(TestFrame(type: 6, flags: 1, payload: [0, 0, 0, 0, 0, 0, 0, 0]))
        #expect(peer.events.isEmpty)
        peer.send(TestFrame(type: 6, flags: 1, payload: frames[0].payload))
        peer.send(TestFrame(type: 6, flags: 1, payload: frames[0].payload))
        #expect(peer.events == [.pong])
    }

    @Test func aPriorityIsUpdated() throws {
        let peer = try HTTP2Peer.connected([(9, 1)])
        let stream = try peer.session.submit(HTTP2Peer.get())
        peer.flush()
        peer.session.setPriority(HTTP2Priority(urgency: 0, isIncremental: true), of: stream)
        #expect(peer.flush() == [TestFrame(type: 16, payload: TestFrame.number(1) + Array("u=0, i".utf8))])
    }
}
#endif
