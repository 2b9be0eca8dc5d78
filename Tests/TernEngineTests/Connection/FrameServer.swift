#if os(Linux)
import CTernTestHTTP2
import Glibc
import Testing
@testable import TernEngine

// Inside the types below, these names are those of their own methods.
private func acceptNext(_ descriptor: Int32) -> Int32 { accept(descriptor, nil, nil) }

/// A listener on 127.0.0.1 whose connections a test answers frame by frame.
final class FrameServer {
    private let descriptor: Int32
    let address: SocketAddress

    init() throws {
        let any = try #require(SocketAddress(numeric: "127.0.0.1", port: 0))
        descriptor = try Socket.open(for: any)
        let listener = descriptor
        try #require(unsafe any.withSystemAddress { unsafe bind(listener, $0, $1) } == 0)
        try #require(listen(listener, 8) == 0)
        address = try #require(Socket.local(of: listener))
    }

    deinit { Socket.close(descriptor) }

    /// Accepts a connection that waits or comes, and reads the preface of the client.
    func accept() throws -> FrameConnection {
        try FrameConnection.wait(on: descriptor)
        let accepted = acceptNext(descriptor)
        try #require(accepted >= 0)
        return try FrameConnection(accepted)
    }

    /// Accepts a connection, and exchanges SETTINGS.
    func connect(_ settings: [(UInt16, UInt32)] = []) throws -> FrameConnection {
        let connection = try accept()
        try connection.send(.settings(settings), .settingsAnswer)
        return connection
    }

    /// Whether a connection waits to be accepted.
    var hasConnection: Bool { FrameConnection.isReady(descriptor) }
}

/// The server's end of a connection. Each wait ends after ten seconds.
@safe
final class FrameConnection {
    private let descriptor: Int32
    private var isOpen = true
    private var input: [UInt8] = []
    /// The number of answers to SETTINGS that `next()` has passed over.
    private var settingsAnswers = 0
    /// The number of bytes that the client has returned to the windows of its streams, and of the connection at 0.
    private(set) var updates: [Int32: Int] = [:]
    private let inflater = unsafe tern_test_inflater_new()

    fileprivate init(_ descriptor: Int32) throws {
        self.descriptor = descriptor
        try #require(try fill(24))
        #expect(input.prefix(24) == Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)[...])
        input.removeFirst(24)
    }

    deinit {
        close()
        unsafe tern_test_inflater_free(inflater)
    }

    fileprivate static func wait(on descriptor: Int32) throws {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        try #require(unsafe poll(&entry, 1, 10_000) == 1)
    }

    fileprivate static func isReady(_ descriptor: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&entry, 1, 0) == 1
    }

    /// Ends the connection with a reset.
    func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        let size = socklen_t(MemoryLayout.size(ofValue: option))
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, size)
        close()
    }

    private func close() {
        guard isOpen else { return }
        isOpen = false
        Socket.close(descriptor)
    }

    func send(_ frames: TestFrame...) throws { try send(frames.flatMap(\.bytes)) }

    func send(_ bytes: [UInt8]) throws {
        let sent = unsafe bytes.withUnsafeBytes { unsafe Socket.send(descriptor, from: $0) }
        try #require(sent == .bytes(bytes.count))
    }

    /// Reads until there are this many bytes. Returns false at the end of the connection.
    private func fill(_ count: Int) throws -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while input.count < count {
            try Self.wait(on: descriptor)
            switch unsafe buffer.withUnsafeMutableBytes({ unsafe Socket.receive(descriptor, into: $0) }) {
            case .bytes(let received): input += buffer[..<received]
            case .wouldBlock: continue
            case .end, .failed: return false
            }
        }
        return true
    }

    /// Returns the next frame; nil at the end of the connection.
    private func nextOfAll() throws -> TestFrame? {
        guard try fill(9) else { return nil }
        let length = Int(input[0]) << 16 | Int(input[1]) << 8 | Int(input[2])
        guard try fill(9 + length) else { return nil }
        let stream = input[5...8].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        let frame = TestFrame(
            type: input[3], flags: input[4], stream: Int32(bitPattern: stream), payload: Array(input[9..<9 + length]))
        input.removeFirst(9 + length)
        if frame.type == 4, frame.flags == 1 { settingsAnswers += 1 }
        if frame.type == 8 { updates[frame.stream, default: 0] += Int(frame.lastNumber) }
        return frame
    }

    /// Reads the frames that have arrived.
    func dropInput() throws {
        while hasInput { _ = try nextOfAll() }
    }

    /// Returns the next frame that is not SETTINGS or WINDOW_UPDATE; nil at the end of the connection.
    func next() throws -> TestFrame? {
        while let frame = try nextOfAll() {
            if frame.type != 4, frame.type != 8 { return frame }
        }
        return nil
    }

    /// Reads until the client has returned bytes to the window of a stream. Returns their number.
    func waitForUpdate(of stream: Int32) throws -> Int {
        while updates[stream] == nil {
            let frame = try #require(try nextOfAll())
            try #require(frame.type == 4 || frame.type == 8, "\(frame)")
        }
        let count = updates.removeValue(forKey: stream)
        return try #require(count)
    }

    /// Waits until the client has read all that was sent.
    func waitUntilRead() throws {
        let ping = TestFrame(type: 6, payload: [1, 2, 3, 4, 5, 6, 7, 8])
        try send(ping)
        let answer = try next(6)
        #expect(answer.flags == 1 && answer.payload == ping.payload)
    }

    /// Returns the next frame, which has a type.
    func next(_ type: UInt8, _ location: SourceLocation = #_sourceLocation) throws -> TestFrame {
        let frame = try #require(try next(), sourceLocation: location)
        try #require(frame.type == type, "\(frame)", sourceLocation: location)
        return frame
    }

    /// Reads a PING, and answers it.
    func answerPing() throws {
        let ping = try next(6)
        #expect(ping.flags == 0)
        try send(TestFrame(type: 6, flags: 1, payload: ping.payload))
    }

    /// Sends a response of HEADERS alone.
    func respond(_ status: String = "200", to stream: Int32) throws {
        try send(.headers(stream, [(":status", status)], end: true))
    }

    /// Whether a byte waits.
    var hasInput: Bool { !input.isEmpty || Self.isReady(descriptor) }

    /// Reads the client's answer to SETTINGS, and the SETTINGS and WINDOW_UPDATE frames before it, unless `next()` did.
    func readSettingsAnswer() throws {
        if settingsAnswers > 0 {
            settingsAnswers -= 1
            return
        }
        // SETTINGS, WINDOW_UPDATE and the answer to the server's SETTINGS.
        while try fill(9) {
            let length = Int(input[0]) << 16 | Int(input[1]) << 8 | Int(input[2])
            try #require(try fill(9 + length))
            let (type, flags) = (input[3], input[4])
            try #require(type == 4 || type == 8)
            input.removeFirst(9 + length)
            if type == 4, flags == 1 { return }
        }
    }

    /// The fields of a header block of the client.
    func fields(_ frame: TestFrame) -> [String] {
        var text = [UInt8](repeating: 0, count: 1 << 16)
        let block = frame.payload
        let count = unsafe tern_test_inflate(inflater, block, block.count, &text, text.count)
        guard count >= 0 else { return ["an invalid block"] }
        return String(decoding: text[..<count], as: UTF8.self).split(separator: "\n").map(String.init)
    }
}
#endif
