#if os(Linux)
import TernEngine
import Testing

/// Streams that carry another protocol: each side ends by itself (RFC 9113 §8.5).
struct HTTP2TunnelTests {
    /// Returns a peer with a tunnel that is open, and the number of its stream.
    private func open() throws -> (HTTP2Peer, Int32) {
        let peer = try HTTP2Peer.connected([(8, 1)])
        var request = HTTP2Peer.get(method: "CONNECT")
        request.connectProtocol = "websocket"
        request.hasBody = true
        let stream = try peer.session.submit(request)
        peer.flush()
        peer.send(.headers(stream, [(":status", "200")]))
        peer.clear()
        return (peer, stream)
    }

    @Test func thisSideGoesOnAfterTheEndOfTheOther() throws {
        let (peer, stream) = try open()
        peer.send(.data(stream, "last", end: true))
        #expect(peer.events == [.body(stream, Array("last".utf8)), .endedReceiving(stream)])
        #expect(peer.flush().allSatisfy { $0.type != 3 } && peer.session.activeStreams == 1)
        peer.parts[stream] = [.bytes(3), .end]
        peer.session.resumeBody(stream)
        #expect(peer.flush().filter { $0.type == 0 }.map(\.payload.count).reduce(0, +) == 3)
        #expect(peer.frames.last?.flags == 1)
        #expect(peer.events.last == .ended(stream) && peer.session.activeStreams == 0)
    }

    @Test func theEndOfBothSidesEndsTheStreamInEitherOrder() throws {
        let (peer, stream) = try open()
        peer.parts[stream] = [.last(3)]
        peer.session.resumeBody(stream)
        peer.flush()
        #expect(peer.events.isEmpty && peer.session.activeStreams == 1)
        peer.send(.data(stream, "", end: true))
        #expect(peer.events == [.ended(stream)] && peer.session.activeStreams == 0)
    }

    /// A server that has ended its side takes no more with NO_ERROR (RFC 9113 §8.1).
    @Test(arguments: [
        (UInt32(0), TestEvent.ended(1)), (8, .failed(1, .connectionLost)), (2, .failed(1, .connectionLost)),
    ])
    func aResetAfterTheEndOfTheOtherSide(code: UInt32, event: TestEvent) throws {
        let (peer, stream) = try open()
        peer.send(.data(stream, "", end: true), .reset(stream, code))
        #expect(peer.events == [.endedReceiving(stream), event] && peer.session.activeStreams == 0)
    }

    @Test func theEndOfTheConnectionFailsTheSideThatIsOpen() throws {
        let (peer, stream) = try open()
        peer.send(.data(stream, "", end: true))
        peer.session.connectionClosed(EngineError(.connectionLost, "gone"))
        #expect(peer.events == [.endedReceiving(stream), .failed(stream, .connectionLost)])
    }

    @Test func aRefusedTunnelIsAResponseAsAnyOther() throws {
        let peer = try HTTP2Peer.connected([(8, 1)])
        var request = HTTP2Peer.get(method: "CONNECT")
        request.connectProtocol = "websocket"
        request.hasBody = true
        let stream = try peer.session.submit(request)
        peer.flush()
        peer.send(.headers(stream, [(":status", "403")], end: true))
        #expect(peer.events.last == .ended(stream))
        #expect(peer.flush().contains { $0.type == 3 && $0.stream == stream && $0.lastNumber == 0 })
    }
}
#endif
