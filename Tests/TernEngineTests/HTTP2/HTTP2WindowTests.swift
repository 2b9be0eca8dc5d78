#if os(Linux)
import Testing
@testable import TernEngine

/// Returns every received byte to the windows of its stream and of the connection exactly once, whatever becomes of the
/// stream.
@Suite(.timeLimit(.minutes(1))) struct HTTP2WindowTests {
    @Test(arguments: UInt64(1)...40) func everyByteReturnsToBothWindowsOnce(seed: UInt64) throws {
        let server = try WindowServer(seed: seed)
        for _ in 0..<400 { try server.step() }
        server.resumeAll()
        for stream in server.settled.prefix(3) { server.expectFullWindow(of: stream) }
        try server.expectFullConnection()
        #expect(server.peer.session.failure == nil)
        // Each path was taken.
        #expect(server.steps.count == WindowServer.Step.allCases.count)
    }
}

/// A server that counts the windows of its client (RFC 9113 §6.9), and a reader that pauses, goes on, cancels and fails
/// at random.
private final class WindowServer {
    enum Step: CaseIterable { case open, data, lateData, pause, take, cancel, end, reset }

    private struct Stream {
        /// The number of bytes that the server may send.
        var window = WindowServer.streamWindow
        /// The number of bytes that the reader has not taken.
        var unread = 0
        var isPaused = false
        /// Whether the reader cancels with the next bytes.
        var cancelsNext = false
        /// Whether the reader hears no more.
        var isOver = false
        /// Whether the response violates a rule with its bytes.
        var isWrong = false
    }

    private static let streamWindow = 40_000
    private static let connectionWindow = 120_000

    let peer: HTTP2Peer
    private var random: SeededGenerator
    private var connection = 65_535
    private var streams: [Int32: Stream] = [:]
    private(set) var steps: Set<Step> = []

    init(seed: UInt64) throws {
        random = SeededGenerator(state: seed)
        var settings = HTTP2Session.Settings()
        settings.streamWindow = Self.streamWindow
        settings.connectionWindow = Self.connectionWindow
        peer = try HTTP2Peer(settings: settings)
        peer.consumes = false
        peer.onEvent = { [unowned self] event in note(event) }
        peer.send(.settings(), .settingsAnswer)
        flush()
        #expect(connection == Self.connectionWindow)
    }

    /// The streams whose response can go on.
    var settled: [Int32] { streams.filter { !$0.value.isOver && !$0.value.isWrong }.keys.sorted() }

    // MARK: The reader

    private func note(_ event: TestEvent) {
        switch event {
        case .body(let id, let bytes): took(bytes.count, from: id)
        case .ended(let id), .failed(let id, _): streams[id]?.isOver = true
        default: break
        }
    }

    private func took(_ count: Int, from id: Int32) {
        guard let stream = streams[id] else { return }
        if stream.cancelsNext {
            cancel(id)
        } else if stream.isPaused {
            streams[id]?.unread += count
        } else {
            peer.session.consume(id, count: count)
        }
    }

    private func cancel(_ id: Int32) {
        peer.session.cancel(id)
        streams[id]?.isOver = true
    }

    // MARK: The server

    /// Does one thing at random.
    func step() throws {
        guard let step = Step.allCases.randomElement(using: &random) else { return }
        let running = streams.filter { !$0.value.isOver }.keys.sorted().randomElement(using: &random)
        switch (step, running) {
        case (.open, _): if streams.count < 12 { try open() }
        case (.lateData, _):
            // The server has not seen yet that the client reset the stream.
            guard let id = reset.randomElement(using: &random) else { return }
            sendData(id)
            if Bool.random(using: &random) { streams[id] = nil }
        case (.data, let id?): sendData(id)
        case (.pause, let id?):
            streams[id]?.isPaused = true
            streams[id]?.cancelsNext = Int.random(in: 0..<8, using: &random) == 0
        case (.take, let id?): take(id)
        case (.cancel, let id?): if Bool.random(using: &random) { cancel(id) }
        case (.end, let id?): end(id)
        case (.reset, let id?): if Bool.random(using: &random) { close(id, with: .reset(id, 8)) }
        default: return
        }
        steps.insert(step)
        if Bool.random(using: &random) { flush() }
    }

    /// The streams that the client ended while the server was sending.
    private var reset: [Int32] { streams.filter(\.value.isOver).keys.sorted() }

    private func open() throws {
        let isUpload = Bool.random(using: &random)
        let id = try peer.session.submit(isUpload ? HTTP2Peer.post() : HTTP2Peer.get())
        flush()
        streams[id] = Stream()
        let isWrong = Int.random(in: 0..<8, using: &random) == 0
        streams[id]?.isWrong = isWrong
        // The body of a wrong response exceeds its length.
        peer.send(.headers(id, [(":status", "200")] + (isWrong ? [("content-length", "100")] : [])))
    }

    /// Sends a frame of a random size, with padding or without, in two pieces.
    private func sendData(_ id: Int32) {
        guard let window = streams[id]?.window else { return }
        let room = min(window, connection, 16_384)
        guard room > 0 else { return flush() }
        let size = Int.random(in: 1...room, using: &random)
        var frame = TestFrame.data(id, [UInt8](repeating: 1, count: size))
        let padding = Int.random(in: 0...300, using: &random)
        if padding < min(size, 256) {
            frame.flags = 8
            frame.payload[0] = UInt8(padding)
            for index in (size - padding)..<size { frame.payload[index] = 0 }
        }
        send(frame)
    }

    private func send(_ frame: TestFrame) {
        connection -= frame.payload.count
        streams[frame.stream]?.window -= frame.payload.count
        let bytes = frame.bytes
        let split = Int.random(in: 0...bytes.count, using: &random)
        #expect(peer.send(Array(bytes[..<split])) == nil)
        #expect(peer.send(Array(bytes[split...])) == nil)
    }

    private func end(_ id: Int32) {
        guard streams[id]?.isWrong == false else { return }
        if Bool.random(using: &random) { return close(id, with: .headers(id, [("x", "y")], end: true)) }
        let room = min(streams[id]?.window ?? 0, connection, 5_000)
        let frame = TestFrame.data(id, [UInt8](repeating: 2, count: room), end: true)
        connection -= room
        close(id, with: frame)
    }

    /// Sends the last frame of a stream. Its reader can still take bytes.
    private func close(_ id: Int32, with frame: TestFrame) {
        #expect(peer.send(frame) == nil)
        let unread = streams[id]?.unread ?? 0
        streams[id] = nil
        peer.session.consume(id, count: unread)
    }

    /// Lets the reader take some of the bytes that wait for it, and perhaps go on.
    private func take(_ id: Int32) {
        guard let unread = streams[id]?.unread else { return }
        let count = Int.random(in: 0...unread, using: &random)
        streams[id]?.unread -= count
        peer.session.consume(id, count: count)
        if Bool.random(using: &random) { resume(id) }
    }

    private func resume(_ id: Int32) {
        peer.session.consume(id, count: streams[id]?.unread ?? 0)
        streams[id]?.unread = 0
        streams[id]?.isPaused = false
        streams[id]?.cancelsNext = false
    }

    func resumeAll() {
        for id in streams.keys.sorted() { resume(id) }
        flush()
    }

    /// Reads the frames of the client.
    private func flush() {
        for frame in peer.flush() where frame.type == 8 {
            let count = Int(frame.lastNumber)
            if frame.stream == 0 { connection += count } else { streams[frame.stream]?.window += count }
        }
        #expect(connection <= Self.connectionWindow)
        for (id, stream) in streams {
            #expect(stream.window + stream.unread <= Self.streamWindow, "\(id)")
        }
        peer.clear()
    }

    // MARK: The windows at the end

    /// Sends bytes up to half a window. With the last of them, and not before, the client returns this half: it has
    /// kept none back, and returned none twice.
    func expectFullWindow(of id: Int32) {
        flush()
        guard let window = streams[id]?.window else { return }
        let half = Self.streamWindow / 2
        let missing = half - (Self.streamWindow - window)
        #expect(missing > 0, "\(id)")
        sendAll(missing - 1, of: id)
        #expect(streams[id]?.window == half + 1, "\(id)")
        sendAll(1, of: id)
        #expect(streams[id]?.window == Self.streamWindow, "\(id)")
    }

    func expectFullConnection() throws {
        let id = try peer.session.submit(HTTP2Peer.get())
        flush()
        streams[id] = Stream()
        peer.send(.headers(id, [(":status", "200")]))
        let half = Self.connectionWindow / 2
        let missing = half - (Self.connectionWindow - connection)
        #expect(missing > 0)
        sendAll(missing - 1, of: id)
        #expect(connection == half + 1)
        sendAll(1, of: id)
        #expect(connection == Self.connectionWindow)
    }

    private func sendAll(_ count: Int, of id: Int32) {
        var left = max(0, count)
        while left > 0 {
            let size = min(left, 16_384)
            send(.data(id, [UInt8](repeating: 3, count: size)))
            flush()
            left -= size
        }
    }
}
#endif
