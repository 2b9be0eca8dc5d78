#if os(Linux)
import CTernTestHTTP2
import TernEngine

/// A frame, as the peer sends and receives it.
struct TestFrame: Equatable {
    var type: UInt8
    var flags: UInt8 = 0
    var stream: Int32 = 0
    var payload: [UInt8] = []

    var bytes: [UInt8] {
        let length = payload.count
        return [
            UInt8(length >> 16 & 0xFF), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF), type, flags,
        ] + Self.number(UInt32(bitPattern: stream)) + payload
    }

    /// The number in the last 4 bytes of the payload of RST_STREAM, WINDOW_UPDATE and GOAWAY without data.
    var lastNumber: UInt32 { payload.suffix(4).reduce(0) { $0 << 8 | UInt32($1) } }

    static func number(_ value: UInt32) -> [UInt8] { [24, 16, 8, 0].map { UInt8(value >> $0 & 0xFF) } }

    /// The fields as literals without Huffman codes and without an entry in the table (RFC 7541 §6.2.2).
    static func block(_ fields: [(String, String)]) -> [UInt8] {
        fields.flatMap { [0] + string($0.0) + string($0.1) }
    }

    private static func string(_ text: String) -> [UInt8] {
        // A byte of the text that is not ASCII stands for itself.
        let bytes = text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
        var prefix: [UInt8] = []
        if bytes.count < 127 {
            prefix = [UInt8(bytes.count)]
        } else {
            prefix = [127]
            var rest = bytes.count - 127
            while rest >= 128 {
                prefix.append(UInt8(rest & 127 | 128))
                rest >>= 7
            }
            prefix.append(UInt8(rest))
        }
        return prefix + bytes
    }

    static func headers(_ stream: Int32, _ fields: [(String, String)], end: Bool = false) -> TestFrame {
        TestFrame(type: 1, flags: end ? 5 : 4, stream: stream, payload: block(fields))
    }

    /// A header block in a HEADERS frame and as many CONTINUATION frames as it needs.
    static func headers(_ stream: Int32, block: [UInt8], end: Bool) -> [TestFrame] {
        let starts = stride(from: 0, to: block.count, by: 16_384)
        return starts.map { start in
            let isLast = start + 16_384 >= block.count
            return TestFrame(
                type: start == 0 ? 1 : 9, flags: (isLast ? 4 : 0) | (start == 0 && end ? 1 : 0), stream: stream,
                payload: Array(block[start..<min(start + 16_384, block.count)]))
        }
    }

    static func data(_ stream: Int32, _ bytes: [UInt8], end: Bool = false) -> TestFrame {
        TestFrame(type: 0, flags: end ? 1 : 0, stream: stream, payload: bytes)
    }

    static func data(_ stream: Int32, _ text: String, end: Bool = false) -> TestFrame {
        data(stream, Array(text.utf8), end: end)
    }

    static func reset(_ stream: Int32, _ code: UInt32) -> TestFrame {
        TestFrame(type: 3, stream: stream, payload: number(code))
    }

    static func settings(_ entries: [(UInt16, UInt32)] = []) -> TestFrame {
        TestFrame(type: 4, payload: entries.flatMap { [UInt8($0.0 >> 8), UInt8($0.0 & 0xFF)] + number($0.1) })
    }

    static let settingsAnswer = TestFrame(type: 4, flags: 1)

    static func goAway(_ last: Int32, _ code: UInt32 = 0) -> TestFrame {
        TestFrame(type: 7, payload: number(UInt32(bitPattern: last)) + number(code))
    }

    static func window(_ stream: Int32, _ count: UInt32) -> TestFrame {
        TestFrame(type: 8, stream: stream, payload: number(count))
    }
}

/// A call of the delegate. Adjoining parts of a body are one event, so that events do not depend on the split of the
/// input.
enum TestEvent: Equatable {
    case interim(Int32, Int)
    case head(Int32, String)
    case body(Int32, [UInt8])
    case trailers(Int32, String)
    case endedReceiving(Int32)
    case ended(Int32)
    case failed(Int32, EngineError.Kind)
    case maximum(Int)
    case goAway(Int32, isGraceful: Bool)
    case pong
}

/// A server of the test's making, and the session that is its client.
@safe
final class HTTP2Peer: HTTP2SessionDelegate {
    private(set) var events: [TestEvent] = []
    private(set) var reasons: [Int32: String] = [:]
    private(set) var heads: [Int32: ReceivedHead] = [:]
    /// The frames of the client that `flush` found.
    private(set) var frames: [TestFrame] = []
    /// The parts of each request's body, in order. `wait` follows the last.
    var parts: [Int32: [HTTP2BodyPart]] = [:]
    var consumes = true
    var onEvent: ((TestEvent) -> Void)?
    private var output: [UInt8] = []
    private var hasPreface = false
    private let inflater = unsafe tern_test_inflater_new()
    private var created: HTTP2Session?
    var now: UInt64 = 1_000_000_000

    init(settings: HTTP2Session.Settings = .init()) throws {
        created = try HTTP2Session(settings: settings, delegate: self)
    }

    deinit { unsafe tern_test_inflater_free(inflater) }

    var session: HTTP2Session {
        guard let created else { preconditionFailure("the session exists from init to the end") }
        return created
    }

    /// Creates a peer whose SETTINGS were exchanged.
    static func connected(_ entries: [(UInt16, UInt32)] = []) throws -> HTTP2Peer {
        let peer = try HTTP2Peer()
        peer.send(.settings(entries), .settingsAnswer)
        peer.flush()
        peer.clear()
        return peer
    }

    static func get(_ path: String = "/", method: String = "GET") -> HTTP2Request {
        HTTP2Request(method: method, scheme: "https", authority: "example.com", path: path)
    }

    static func post(length: Int64? = nil) -> HTTP2Request {
        HTTP2Request(
            method: "POST", scheme: "https", authority: "example.com", path: "/", contentLength: length, hasBody: true)
    }

    @discardableResult
    func send(_ frames: TestFrame...) -> EngineError? { send(frames.flatMap(\.bytes)) }

    @discardableResult
    func send(_ bytes: [UInt8]) -> EngineError? {
        unsafe bytes.withUnsafeBytes { unsafe session.receive($0, at: now) }
    }

    /// Takes all output of the client, and returns its new frames.
    @discardableResult
    func flush(limit: Int = .max) -> [TestFrame] {
        _ = session.takeOutput(into: &output, upTo: limit)
        var found: [TestFrame] = []
        if !hasPreface, output.count >= 24 {
            output.removeFirst(24)
            hasPreface = true
        }
        var position = 0
        while output.count - position >= 9 {
            let header = Array(output[position..<position + 9])
            let length = Int(header[0]) << 16 | Int(header[1]) << 8 | Int(header[2])
            guard output.count - position >= 9 + length else { break }
            let stream = header[5...8].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            found.append(
                TestFrame(
                    type: header[3], flags: header[4], stream: Int32(bitPattern: stream),
                    payload: Array(output[(position + 9)..<(position + 9 + length)])))
            position += 9 + length
        }
        output.removeFirst(position)
        frames += found
        return found
    }

    func clear() {
        events = []
        frames = []
    }

    /// The fields of a header block of the client.
    func fields(_ block: [UInt8]) -> [String] {
        var text = [UInt8](repeating: 0, count: 1 << 20)
        let count = unsafe tern_test_inflate(inflater, block, block.count, &text, text.count)
        guard count >= 0 else { return ["an invalid block"] }
        return String(decoding: text[..<count], as: UTF8.self).split(separator: "\n").map(String.init)
    }

    func body(of stream: Int32) -> [UInt8] {
        events.flatMap { event -> [UInt8] in
            if case .body(stream, let bytes) = event { bytes } else { [] }
        }
    }

    private func record(_ event: TestEvent) {
        if case .body(let stream, let bytes) = event, case .body(stream, let before) = events.last {
            events[events.count - 1] = .body(stream, before + bytes)
        } else {
            events.append(event)
        }
        onEvent?(event)
    }

    func streamReceivedInterim(_ stream: Int32, head: ReceivedHead) { record(.interim(stream, head.status)) }

    func streamReceivedHead(_ stream: Int32, head: ReceivedHead) {
        heads[stream] = head
        record(.head(stream, String(decoding: head.bytes, as: UTF8.self)))
    }

    func streamReceivedBody(_ stream: Int32, bytes: UnsafeRawBufferPointer) {
        unsafe record(.body(stream, Array(bytes)))
        if consumes { session.consume(stream, count: bytes.count) }
    }

    func streamReceivedTrailers(_ stream: Int32, lines: [UInt8]) {
        record(.trailers(stream, String(decoding: lines, as: UTF8.self)))
    }

    func streamEnded(_ stream: Int32) { record(.ended(stream)) }

    func streamEndedReceiving(_ stream: Int32) { record(.endedReceiving(stream)) }

    func streamFailed(_ stream: Int32, error: EngineError) {
        reasons[stream] = error.reason
        record(.failed(stream, error.kind))
    }

    func readBody(_ stream: Int32, into buffer: UnsafeMutableRawBufferPointer) -> HTTP2BodyPart {
        guard let part = parts[stream]?.first else { return .wait }
        switch part {
        case .bytes(let count), .last(let count):
            let written = min(count, buffer.count)
            for index in 0..<written { unsafe buffer[index] = 0x78 }
            if written < count {
                // The rest of the part comes with the next call.
                if case .last = part { parts[stream]?[0] = .last(count - written) }
                if case .bytes = part { parts[stream]?[0] = .bytes(count - written) }
                return .bytes(written)
            }
        default: break
        }
        parts[stream]?.removeFirst()
        return part
    }

    func maximumStreamsChanged(_ maximum: Int) { record(.maximum(maximum)) }

    func goAwayReceived(lastStream: Int32, error: EngineError?) {
        record(.goAway(lastStream, isGraceful: error == nil))
    }

    func pongReceived() { record(.pong) }
}
#endif
