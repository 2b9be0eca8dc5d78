#if os(Linux)
import Testing
@testable import TernEngine

@Suite(.timeLimit(.minutes(1))) struct HTTP2ConnectionTests {
    private static let ok = [(":status", "200")]

    // MARK: The number of streams

    @Test func requestsBeyondTheMaximumWait() throws {
        let peer = try HTTP2Peer.connected([(3, 2)])
        #expect(peer.session.maximumStreams == 2)
        let streams = try (0..<4).map { _ in try peer.session.submit(HTTP2Peer.get()) }
        #expect(peer.flush().map(\.stream) == [1, 3])
        #expect(!peer.session.hasRoom && peer.session.activeStreams == 4)
        peer.send(.headers(streams[0], Self.ok, end: true))
        #expect(peer.flush().map(\.stream) == [5])
    }

    @Test func hundredStreamsAreAllowedBeforeSettings() throws {
        let peer = try HTTP2Peer()
        for _ in 0..<101 { _ = try peer.session.submit(HTTP2Peer.get()) }
        #expect(peer.flush().filter { $0.type == 1 }.count == 100)
        peer.send(.settings())
        #expect(peer.events == [.maximum(4_294_967_295)])
        #expect(peer.flush().filter { $0.type == 1 }.count == 1)
    }

    @Test func aLowerMaximumFailsNoStream() throws {
        let peer = try HTTP2Peer.connected()
        for _ in 0..<3 { _ = try peer.session.submit(HTTP2Peer.get()) }
        peer.flush()
        peer.send(.settings([(3, 1)]))
        #expect(peer.events == [.maximum(1)])
        let next = try peer.session.submit(HTTP2Peer.get())
        #expect(peer.flush() == [.settingsAnswer])
        for stream: Int32 in [1, 3] { peer.send(.headers(stream, Self.ok, end: true)) }
        #expect(peer.flush().isEmpty)
        peer.send(.headers(5, Self.ok, end: true))
        #expect(peer.flush().map(\.stream) == [next])
        #expect(!peer.events.contains { if case .failed = $0 { true } else { false } })
    }

    @Test func aMaximumOfZeroHoldsRequests() throws {
        let peer = try HTTP2Peer.connected([(3, 0)])
        let stream = try peer.session.submit(HTTP2Peer.get())
        #expect(peer.flush().isEmpty)
        peer.send(.settings([(3, 1)]))
        #expect(peer.flush().last?.stream == stream)
    }

    // MARK: GOAWAY

    @Test func aGracefulEndFinishesItsStreams() throws {
        let peer = try HTTP2Peer.connected([(3, 2)])
        for _ in 0..<3 { _ = try peer.session.submit(HTTP2Peer.get()) }
        peer.flush()
        peer.send(.goAway(1))
        #expect(
            peer.events == [.goAway(1, isGraceful: true), .failed(3, .notProcessed), .failed(5, .notProcessed)])
        #expect(throws: EngineError.self) { try peer.session.submit(HTTP2Peer.get()) }
        #expect(!peer.session.takesRequests && peer.session.failure == nil)
        peer.send(.headers(1, Self.ok), .data(1, "x", end: true))
        #expect(peer.events.last == .ended(1))
        #expect(peer.flush().isEmpty)
        #expect(!peer.session.wantsRead && !peer.session.wantsWrite && peer.session.streams.isEmpty)
    }

    @Test func aTwoPartEndFinishesItsStreams() throws {
        let peer = try HTTP2Peer.connected()
        for _ in 0..<2 { _ = try peer.session.submit(HTTP2Peer.get()) }
        peer.flush()
        peer.send(.goAway(.max))
        #expect(peer.events == [.goAway(.max, isGraceful: true)])
        peer.send(.headers(3, Self.ok, end: true), .goAway(3))
        peer.send(.headers(1, Self.ok, end: true))
        #expect(peer.events.last == .ended(1))
        #expect(!peer.session.wantsRead)
    }

    @Test func anUploadGoesOnAfterGoAway() throws {
        let peer = try HTTP2Peer.connected()
        let stream = try peer.session.submit(HTTP2Peer.post(length: 100_000))
        peer.parts[stream] = [.bytes(10)]
        peer.flush()
        peer.send(.goAway(stream))
        peer.parts[stream] = [.last(99_990)]
        peer.session.resumeBody(stream)
        #expect(peer.flush().map(\.payload.count).reduce(0, +) == 65_535 - 10)
        peer.send(.window(0, 100_000), .window(stream, 100_000))
        #expect(peer.flush().last?.flags == 1)
        peer.send(.headers(stream, Self.ok, end: true))
        #expect(peer.events.last == .ended(stream))
    }

    @Test func anEndWithAnErrorIsReported() throws {
        let peer = try HTTP2Peer.connected()
        for _ in 0..<2 { _ = try peer.session.submit(HTTP2Peer.get()) }
        peer.flush()
        peer.send(.goAway(1, 11))
        #expect(peer.events == [.goAway(1, isGraceful: false), .failed(3, .notProcessed)])
    }

    @Test func anEndForHTTP11HasItsOwnError() throws {
        let peer = try HTTP2Peer.connected()
        let stream = try peer.session.submit(HTTP2Peer.get())
        peer.flush()
        peer.send(.goAway(0, 13))
        #expect(peer.reasons[stream] == EngineError.requiresHTTP11.reason)
    }

    @Test func theClientCanEndTheConnection() throws {
        let peer = try HTTP2Peer.connected()
        let stream = try peer.session.submit(HTTP2Peer.get())
        peer.flush()
        peer.session.goAway()
        peer.session.goAway()
        #expect(peer.flush() == [.goAway(0)])
        #expect(!peer.session.takesRequests)
        peer.send(.headers(stream, Self.ok, end: true))
        #expect(peer.events == [.head(stream, "HTTP/2 200\r\n\r\n"), .ended(stream)])
        #expect(peer.session.failure == nil && !peer.session.wantsRead)
    }

    // MARK: The end of the socket

    @Test func theEndOfTheSocketFailsEachStreamOnce() throws {
        let peer = try HTTP2Peer.connected([(3, 3)])
        for _ in 0..<4 { _ = try peer.session.submit(HTTP2Peer.get()) }
        peer.flush()
        peer.send(
            .headers(1, Self.ok + [("content-length", "5")]), .data(1, "abc"), .headers(3, Self.ok), .data(3, "abc"))
        peer.clear()
        peer.session.connectionClosed(EngineError(.connectionLost, "gone"))
        peer.session.connectionClosed(EngineError(.connectionLost, "gone"))
        #expect(
            peer.events == [
                .failed(1, .truncatedBody), .failed(3, .connectionLost), .failed(5, .connectionLost),
                .failed(7, .notProcessed),
            ])
        #expect(peer.session.activeStreams == 0 && !peer.session.takesRequests)
        #expect(throws: EngineError.self) { try peer.session.submit(HTTP2Peer.get()) }
    }

    // MARK: Windows

    /// Sends as many bytes as the windows of the client allow, in frames of 16 KiB, and returns their number.
    private func fill(_ peer: HTTP2Peer, _ stream: Int32, window: inout Int, connection: inout Int) -> Int {
        var sent = 0
        while true {
            let size = min(16_384, window, connection)
            guard size > 0 else { return sent }
            #expect(peer.send(.data(stream, [UInt8](repeating: 1, count: size))) == nil)
            window -= size
            connection -= size
            sent += size
            for frame in peer.flush() where frame.type == 8 {
                if frame.stream == 0 { connection += Int(frame.lastNumber) }
                if frame.stream == stream { window += Int(frame.lastNumber) }
            }
        }
    }

    @Test func anUnreadStreamHoldsOneMebibyteAndItsSiblingRunsOn() throws {
        let peer = try HTTP2Peer.connected()
        var connection = 16 << 20
        for _ in 0..<2 { _ = try peer.session.submit(HTTP2Peer.get()) }
        peer.flush()
        peer.send(.headers(1, Self.ok), .headers(3, Self.ok))
        peer.consumes = false
        var windows = [1 << 20, 1 << 20]
        #expect(fill(peer, 1, window: &windows[0], connection: &connection) == 1 << 20)
        peer.onEvent = { event in
            if case .body(3, let bytes) = event { peer.session.consume(3, count: bytes.count) }
        }
        for _ in 0..<40 {
            windows[1] = max(windows[1], 1 << 20)
            #expect(peer.send(.data(3, [UInt8](repeating: 2, count: 16_384))) == nil)
            peer.clear()
            for frame in peer.flush() where frame.type == 8 && frame.stream == 0 { connection += Int(frame.lastNumber) }
        }
        peer.onEvent = nil
        #expect(connection >= 8 << 20)
        // The reader takes all but one byte: the window opens again.
        peer.session.consume(1, count: (1 << 20) - 1)
        let update = try #require(peer.flush().first { $0.type == 8 && $0.stream == 1 })
        #expect(update.lastNumber == (1 << 20) - 1)
        // More than was received is not returned.
        peer.session.consume(1, count: .max)
        peer.session.consume(1, count: .min)
        peer.session.consume(99, count: 1)
        #expect(peer.flush().isEmpty && peer.session.failure == nil)
    }

    @Test func dataBeyondTheWindowEndsTheStream() throws {
        let peer = try HTTP2Peer.connected()
        let stream = try peer.session.submit(HTTP2Peer.get())
        peer.flush()
        peer.consumes = false
        peer.send(.headers(stream, Self.ok))
        var window = 1 << 20
        var connection = 16 << 20
        _ = fill(peer, stream, window: &window, connection: &connection)
        peer.clear()
        peer.send(.data(stream, "x"))
        peer.flush()
        #expect(peer.events.last == .failed(stream, .malformedResponse))
        #expect(peer.frames == [.reset(stream, 3)])
        peer.send(.data(stream, "y"))
        #expect(peer.body(of: stream).count <= 1)
    }

    @Test func outputIsBounded() throws {
        let peer = try HTTP2Peer.connected([(4, 1 << 30)])
        peer.send(.window(0, 1 << 30))
        let stream = try peer.session.submit(HTTP2Peer.post())
        peer.parts[stream] = [.bytes(1 << 20)]
        var output: [UInt8] = []
        #expect(peer.session.takeOutput(into: &output, upTo: 100_000) == nil)
        #expect(100_000...(100_000 + 16_384 + 9) ~= output.count)
        let before = output.count
        #expect(peer.session.takeOutput(into: &output, upTo: 100_000) == nil)
        #expect(output.count == before)
        #expect(peer.session.wantsWrite)
    }

    // MARK: Floods

    static let floods: [(String, [UInt8])] = [
        ("PING", TestFrame(type: 6, payload: [0, 0, 0, 0, 0, 0, 0, 0]).bytes),
        ("PING with ACK", TestFrame(type: 6, flags: 1, payload: [0, 0, 0, 0, 0, 0, 0, 0]).bytes),
        ("SETTINGS", TestFrame.settings([(1, 0)]).bytes),
        ("an unknown frame", TestFrame(type: 0xEE).bytes),
        ("PRIORITY", TestFrame(type: 2, stream: 1, payload: [0, 0, 0, 0, 0]).bytes),
        ("empty DATA", TestFrame.data(1, "").bytes),
        ("padding in DATA", TestFrame(type: 0, flags: 8, stream: 1, payload: [3, 0, 0, 0]).bytes),
        ("WINDOW_UPDATE", TestFrame.window(0, 1).bytes),
        ("RST_STREAM", TestFrame.reset(3, 8).bytes),
        ("HEADERS of an ended stream", TestFrame.headers(3, ok).bytes),
        ("interim heads", TestFrame.headers(1, [(":status", "103")]).bytes),
        ("GOAWAY", TestFrame.goAway(.max).bytes),
    ]

    @Test(arguments: floods.indices, [false, true])
    func aFloodEndsTheConnection(_ index: Int, isRead: Bool) throws {
        let (name, frame) = Self.floods[index]
        let peer = try HTTP2Peer.connected()
        for _ in 0..<2 { _ = try peer.session.submit(HTTP2Peer.get()) }
        peer.flush()
        peer.send(.headers(3, Self.ok, end: true))
        if name.hasSuffix("DATA") { peer.send(.headers(1, Self.ok)) }
        var count = 0
        while count < 3_000, peer.send(frame) == nil {
            if isRead { peer.flush() }
            count += 1
        }
        #expect(count < 1_500, "\(name)")
        #expect(peer.session.failure?.kind == .malformedResponse, "\(name)")
        let last = peer.flush().last { $0.type == 7 }
        #expect(last?.lastNumber == 11, "\(name)")
    }

    @Test func aFloodOfContinuationsEndsTheConnection() throws {
        let peer = try HTTP2Peer.connected()
        let stream = try peer.session.submit(HTTP2Peer.get())
        peer.flush()
        peer.send(TestFrame(type: 1, stream: stream, payload: TestFrame.block(Self.ok)))
        var count = 0
        while count < 100, peer.send(TestFrame(type: 9, stream: stream)) == nil { count += 1 }
        #expect(count <= 64)
        #expect(peer.flush().last?.type == 7)
    }

    @Test func aHeadOfTheLargestSizeIsAccepted() throws {
        let peer = try HTTP2Peer.connected()
        let stream = try peer.session.submit(HTTP2Peer.get())
        peer.flush()
        // 16 frames of 16 KiB, or 9 where the library has a limit that cannot be changed.
        let field = ("x-a", String(repeating: "b", count: 16_000))
        peer.send(TestFrame(type: 1, stream: stream, payload: TestFrame.block(Self.ok)))
        for _ in 0..<15 { peer.send(TestFrame(type: 9, stream: stream, payload: TestFrame.block([field]))) }
        peer.send(TestFrame(type: 9, flags: 4, stream: stream))
        #expect(peer.session.failure == nil)
        #expect(peer.heads[stream]?.bytes.count == 14 + 15 * 16_007)
    }

    @Test func aHeaderBombIsRefused() throws {
        let peer = try HTTP2Peer.connected()
        let stream = try peer.session.submit(HTTP2Peer.get())
        peer.flush()
        // One entry of 4,000 bytes in the table, and 10,000 references to it: 40 MB of fields.
        let name = TestFrame.block([("x", String(repeating: "b", count: 4_000))])
        let block = TestFrame.block(Self.ok) + [0x40] + name.dropFirst() + [UInt8](repeating: 0xBE, count: 10_000)
        #expect(peer.send(TestFrame(type: 1, flags: 4, stream: stream, payload: block)) == nil)
        #expect(peer.events == [.failed(stream, .tooLarge)])
        #expect(peer.flush() == [.reset(stream, 8)])
    }
}
#endif
