#if os(Linux)
import CTernFuzz
import Foundation
import Tern
import TernEngine

/// The frames of a server over HTTP/2.
extension FuzzTarget {
    static let http2 = [
        FuzzTarget(
            name: "http2", seeds: { _ in HTTP2Fuzzing.seeds }, repair: HTTP2Fuzzing.repair,
            run: { input, choice in try HTTP2Fuzzing.check(Array(input), choice) })
    ]
}

/// Checks that a session gives each stream one end, the same in every split of the input, within bounded memory.
private enum HTTP2Fuzzing {
    /// The bytes that a session may hold for one input of 8 KiB: windows of 3 streams, heads, tables and answers.
    private static let memoryLimit = 3 << 20

    static let seeds: [[UInt8]] = [
        headers(1, [0x88, 0x5F, 1, 0x61], isLast: false) + data(1, "hello", isLast: true),
        headers(1, literal("content-length", "5", status: 0x88), isLast: false) + data(1, "he")
            + data(1, "llo", isLast: true),
        headers(1, literal(":status", "100")) + headers(1, literal("x", "y", status: 0x88)) + data(1, "a")
            + headers(1, literal("checksum", "1"), isLast: true),
        headers(3, [0x8D], isLast: true) + reset(1, 7) + headers(5, [0x88]) + goAway(3, 0),
        frame(4, payload: [0, 3, 0, 0, 0, 1, 0, 4, 0, 0, 0, 100, 0, 1, 0, 0, 0, 0, 0, 5, 0, 0, 0x50, 0])
            + frame(6, payload: [1, 2, 3, 4, 5, 6, 7, 8]) + frame(6, flags: 1, payload: [1, 0, 0, 0, 0, 0, 0, 0])
            + window(0, 1_000) + window(5, 0x7FFF_FFFF) + headers(5, [0x88], isLast: true) + reset(5, 0),
        frame(1, stream: 1, payload: [0x88]) + frame(9, stream: 1, payload: literal("a", "b"))
            + frame(9, flags: 4, stream: 1, payload: literal("set-cookie", "c=d"))
            + frame(0, flags: 9, stream: 1, payload: [1, 65, 0]),
        // Indexed fields of the dynamic table, its size update, and a Huffman code.
        headers(1, [0x3F, 0xE1, 0x1F, 0x88, 0x40, 1, 0x61, 0x82, 0x1C, 0x64, 0xBE, 0xBE, 0xBE]) + data(1, "x")
            + headers(3, [0x88, 0xBE, 0xBF], isLast: true) + goAway(1, 0xD),
        frame(5, flags: 4, stream: 1, payload: [0, 0, 0, 2, 0x82, 0x84, 0x87]),
        frame(2, stream: 1, payload: [0, 0, 0, 0, 1]) + frame(0x10, payload: [0, 0, 0, 1, 0x75]) + frame(0xFA)
            + frame(1, flags: 0x2D, stream: 1, payload: [1, 0, 0, 0, 0, 1, 0x88, 0]),
        headers(1, literal(":status", "204")) + headers(3, literal("connection", "close", status: 0x88))
            + headers(5, literal("content-length", "1", status: 0x88), isLast: true),
        data(1, "before its head") + headers(2, [0x88]) + frame(8, stream: 1, payload: [0, 0, 0, 0]),
    ]

    // MARK: Frames

    private static func frame(_ type: UInt8, flags: UInt8 = 0, stream: UInt8 = 0, payload: [UInt8] = []) -> [UInt8] {
        [0, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF), type, flags, 0, 0, 0, stream] + payload
    }

    private static func headers(_ stream: UInt8, _ block: [UInt8], isLast: Bool = false) -> [UInt8] {
        frame(1, flags: isLast ? 5 : 4, stream: stream, payload: block)
    }

    /// Returns a field as a literal without an entry in the table (RFC 7541 §6.2.2), after an indexed status.
    private static func literal(_ name: String, _ value: String, status: UInt8? = nil) -> [UInt8] {
        (status.map { [$0] } ?? []) + [0, UInt8(name.utf8.count)] + Array(name.utf8) + [UInt8(value.utf8.count)]
            + Array(value.utf8)
    }

    private static func data(_ stream: UInt8, _ text: String, isLast: Bool = false) -> [UInt8] {
        frame(0, flags: isLast ? 1 : 0, stream: stream, payload: Array(text.utf8))
    }

    private static func reset(_ stream: UInt8, _ code: UInt8) -> [UInt8] {
        frame(3, stream: stream, payload: [0, 0, 0, code])
    }

    private static func goAway(_ last: UInt8, _ code: UInt8) -> [UInt8] {
        frame(7, payload: [0, 0, 0, last, 0, 0, 0, code])
    }

    private static func window(_ stream: UInt8, _ count: UInt32) -> [UInt8] {
        frame(8, stream: stream, payload: [24, 16, 8, 0].map { UInt8(count >> $0 & 0xFF) })
    }

    /// Gives the frames lengths that fit the input, and streams that exist.
    @Sendable static func repair(_ bytes: inout [UInt8]) {
        var position = 0
        while position + 9 <= bytes.count {
            let rest = bytes.count - position - 9
            let length = min(Int(bytes[position + 1] & 0x3F) << 8 | Int(bytes[position + 2]), rest)
            bytes[position] = 0
            bytes[position + 1] = UInt8(length >> 8)
            bytes[position + 2] = UInt8(length & 0xFF)
            for index in 5...7 { bytes[position + index] = 0 }
            bytes[position + 8] &= 7
            position += 9 + length
        }
    }

    // MARK: Checks

    /// Returns the ends of the frames, as far as their headers say.
    private static func frameEnds(_ input: [UInt8]) -> [Int] {
        var ends: [Int] = []
        var position = 0
        while input.count - position >= 9 {
            let length = Int(input[position]) << 16 | Int(input[position + 1]) << 8 | Int(input[position + 2])
            position += 9 + length
            if position >= input.count { break }
            ends.append(position)
        }
        return ends + [input.count]
    }

    /// nghttp2 notices some violations when it sends, such as an answer to a stream that is gone. Output is therefore
    /// taken after each frame, whatever the pieces of the input. One more run takes it at the end only: it may notice a
    /// violation later, but never accept another response.
    static func check(_ input: [UInt8], _ choice: UInt64) throws -> String {
        let ends = frameEnds(input)
        let whole = try HTTP2Client.run(input, pieces: ends, ends, choice)
        for split in Pieces.splits(of: input.count, choice) {
            let pieces = Set(ends + split).sorted()
            let other = try HTTP2Client.run(input, pieces: pieces, ends, choice)
            try require(
                other.comparable == whole.comparable,
                "in pieces to \(pieces): \(other.events), whole: \(whole.events)")
            // After GOAWAY and the last stream, further bytes are an error or ignored: the connection is at its end.
            let isOver = whole.events.contains { if case .goAway = $0 { true } else { false } }
            try require(
                isOver || other.failure == whole.failure,
                "in pieces to \(pieces): \(String(describing: other.failure)), whole: \(String(describing: whole.failure))"
            )
        }
        let late = try HTTP2Client.run(input, pieces: [input.count], [input.count], choice)
        try late.checkOrder()
        for stream: Int32 in [1, 3, 5] {
            guard let response = whole.accepted(stream), let other = late.accepted(stream) else { continue }
            try require(response == other, "the response to stream \(stream): \(other), frame by frame: \(response)")
        }
        try require(whole.held <= memoryLimit, "the session holds \(whole.held) bytes")
        // Answers to PING, SETTINGS and broken streams are at most as long as their causes, with some room.
        try require(whole.sent <= 4_096 + 4 * input.count, "\(whole.sent) bytes were sent for \(input.count)")
        try whole.checkOrder()
        return whole.outcome
    }
}

/// A call of the delegate. Adjoining parts of a body are one event.
private enum HTTP2Event: Equatable {
    case interim(Int32, ReceivedHead)
    case head(Int32, ReceivedHead)
    case body(Int32, [UInt8])
    case trailers(Int32, [UInt8])
    case ended(Int32)
    case failed(Int32, EngineError)
    case maximum(Int)
    case goAway(Int32, EngineError?)
    case pong
}

/// A session with three requests, the last of which has a body.
private final class HTTP2Client: HTTP2SessionDelegate {
    private(set) var events: [HTTP2Event] = []
    private(set) var failure: EngineError?
    /// The bytes that the session and its events hold after the input.
    private(set) var held = 0
    /// The bytes that the session sent after the input.
    private(set) var sent = 0
    private let choice: UInt64
    private var session: HTTP2Session?
    private var cancelled: Int32 = 0
    private var problem: String?
    private var parts: [HTTP2BodyPart]

    private init(_ choice: UInt64) {
        self.choice = choice
        parts =
            choice & 1 == 0
            ? [.bytes(20), .wait, .bytes(20), .last(5)] : [.wait, .bytes(45), .trailers(Array("a: b\r\n".utf8))]
    }

    /// Hands over the input in pieces, takes the output at the ends of frames, and ends the connection.
    static func run(_ input: [UInt8], pieces: [Int], _ ends: [Int], _ choice: UInt64) throws -> HTTP2Client {
        let client = HTTP2Client(choice)
        try client.run(input, pieces: pieces, ends: Set(ends))
        // Breaks the cycle.
        client.session = nil
        return client
    }

    private func run(_ input: [UInt8], pieces: [Int], ends: Set<Int>) throws {
        let before = tern_fuzz_allocated()
        var settings = HTTP2Session.Settings()
        if choice >> 1 & 1 == 1 { settings.headLimit = 1_000 }
        let session = try HTTP2Session(settings: settings, delegate: self)
        self.session = session
        let limits = HeadLimits(bytes: settings.headLimit)
        for number in 0..<3 {
            let hasBody = number == 2
            let method = hasBody ? "POST" : choice >> (2 + UInt64(number)) & 3 == 0 ? "HEAD" : "GET"
            _ = try session.submit(
                HTTP2Request(
                    method: method, scheme: "https", authority: "a.example", path: "/",
                    contentLength: hasBody && choice >> 5 & 1 == 0 ? 45 : nil, hasBody: hasBody, headLimits: limits))
        }
        var output: [UInt8] = []
        // Without SETTINGS of the server, and before them, the requests are sent too.
        failure = session.takeOutput(into: &output, upTo: .max)
        if choice >> 6 & 7 != 0 { receive([0, 0, 0, 4, 0, 0, 0, 0, 0]) }
        if choice >> 9 & 7 == 0 { session.ping() }
        output.removeAll()
        var start = 0
        for end in pieces where end > start {
            receive(Array(input[start..<end]))
            start = end
            if ends.contains(end) { failure = session.takeOutput(into: &output, upTo: .max) ?? failure }
        }
        held = max(0, tern_fuzz_allocated() - before - input.count)
        session.resumeBody(5)
        failure = session.takeOutput(into: &output, upTo: .max) ?? failure
        sent = output.count
        session.connectionClosed(EngineError(.connectionLost, "closed"))
        try require(session.activeStreams == 0, "\(session.activeStreams) streams have no end")
        if let problem { throw Failure(problem) }
    }

    private func receive(_ bytes: [UInt8]) {
        unsafe bytes.withUnsafeBytes { failure = unsafe session?.receive($0, at: 1_000_000_000) ?? failure }
    }

    /// The head, the body and the trailers of a response that was accepted as whole; nil for any other.
    func accepted(_ stream: Int32) -> [HTTP2Event]? {
        var response: [HTTP2Event] = []
        for event in events {
            switch event {
            case .head(stream, _), .trailers(stream, _): response.append(event)
            case .body(stream, let bytes):
                if case .body(_, let before) = response.last {
                    response[response.count - 1] = .body(stream, before + bytes)
                } else {
                    response.append(event)
                }
            case .ended(stream): return response
            default: break
            }
        }
        return nil
    }

    /// The events without the bodies of streams that failed: a frame that exceeds the stated length can arrive in
    /// pieces, of which the first are still within it.
    var comparable: [HTTP2Event] {
        var failed: Set<Int32> = []
        for case .failed(let stream, _) in events { failed.insert(stream) }
        return events.filter { event in
            if case .body(let stream, _) = event { !failed.contains(stream) } else { true }
        }
    }

    /// Checks the order of the calls for each stream, and what Tern reads in the heads.
    func checkOrder() throws {
        for stream: Int32 in [1, 3, 5] {
            var state = 0
            var length: Int64?
            var count: Int64 = 0
            for event in events {
                var next = state
                switch event {
                case .interim(stream, let head):
                    try HeadCheck.check(head)
                    try require(head.status < 200, "an interim response of \(head.status)")
                    next = 0
                case .head(stream, let head):
                    try HeadCheck.check(head)
                    try require(state == 0 && head.status >= 200, "a second head")
                    length = head.contentLength
                    next = 1
                case .body(stream, let bytes):
                    try require(state == 1 && !bytes.isEmpty, "a body in state \(state)")
                    count += Int64(bytes.count)
                case .trailers(stream, let lines):
                    try HeadCheck.check(lines: lines)
                    next = 2
                case .ended(stream):
                    try require(state > 0, "an end without a head")
                    if count > 0 { try require(length == nil || length == count, "\(count) bytes of \(length ?? 0)") }
                    next = 3
                case .failed(stream, _): next = 3
                default: continue
                }
                try require(state < 3 && next >= state, "\(event) after an end")
                state = next
            }
            try require(state == 3 || stream == cancelled, "the stream \(stream) has no end")
        }
    }

    var outcome: String {
        var words: [String] = []
        for event in events.prefix(12) {
            switch event {
            case .interim(let stream, _): words.append("interim \(stream)")
            case .head(let stream, let head): words.append("head \(stream) \(head.status / 100) \(head.setsCookies)")
            case .body(let stream, _): words.append("body \(stream)")
            case .trailers(let stream, _): words.append("trailers \(stream)")
            case .ended(let stream): words.append("ended \(stream)")
            case .failed(let stream, let error):
                words.append("failed \(stream) \(error.reason.filter { !$0.isNumber })")
            case .maximum: words.append("maximum")
            case .goAway(_, let error): words.append("goaway \(error == nil)")
            case .pong: words.append("pong")
            }
        }
        let hasAnswer = events.contains { if case .head = $0 { true } else { false } }
        let end = failure?.reason.filter { !$0.isNumber } ?? "open"
        return (hasAnswer ? "" : "rejected ") + words.joined(separator: ", ") + "; " + end
    }

    private func record(_ event: HTTP2Event) {
        if case .body(let stream, let bytes) = event, case .body(stream, let before) = events.last {
            events[events.count - 1] = .body(stream, before + bytes)
        } else {
            events.append(event)
        }
    }

    // MARK: HTTP2SessionDelegate

    func streamReceivedInterim(_ stream: Int32, head: ReceivedHead) { record(.interim(stream, head)) }

    func streamReceivedHead(_ stream: Int32, head: ReceivedHead) {
        record(.head(stream, head))
        guard choice >> 12 & 7 == 0, cancelled == 0 else { return }
        cancelled = stream
        session?.cancel(stream)
    }

    func streamReceivedBody(_ stream: Int32, bytes: UnsafeRawBufferPointer) {
        unsafe record(.body(stream, Array(bytes)))
        if choice >> 15 & 1 == 0 { session?.consume(stream, count: bytes.count) }
    }

    func streamReceivedTrailers(_ stream: Int32, lines: [UInt8]) { record(.trailers(stream, lines)) }
    func streamEnded(_ stream: Int32) { record(.ended(stream)) }
    func streamFailed(_ stream: Int32, error: EngineError) { record(.failed(stream, error)) }

    func readBody(_ stream: Int32, into buffer: UnsafeMutableRawBufferPointer) -> HTTP2BodyPart {
        guard stream == 5, !parts.isEmpty else {
            if stream != 5 { problem = "the body of the stream \(stream) is asked for" }
            return .wait
        }
        let part = parts.removeFirst()
        guard case .bytes(let count) = part else {
            if case .last(let count) = part, buffer.count < count { return .last(0) }
            return part
        }
        return buffer.count < count ? .wait : .bytes(count)
    }

    func maximumStreamsChanged(_ maximum: Int) { record(.maximum(maximum)) }
    func goAwayReceived(lastStream: Int32, error: EngineError?) { record(.goAway(lastStream, error)) }
    func pongReceived() { record(.pong) }
}
#endif
