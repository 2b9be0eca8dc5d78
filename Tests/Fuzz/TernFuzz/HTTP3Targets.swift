#if os(Linux)
import CTernFuzz
import Foundation
import HTTP3TestSupport
import TernEngine

/// A server over HTTP/3, after a real handshake.
extension FuzzTarget {
    static let http3 = [
        FuzzTarget(
            name: "http3", seeds: { _ in HTTP3Streams.seeds }, tokens: HTTP3Streams.tokens,
            repair: HTTP3Record.repair, run: { input, choice in try HTTP3Streams.check(Array(input), choice) }),
        FuzzTarget(
            name: "http3-packets", seeds: { _ in HTTP3Packets.seeds }, repair: HTTP3Record.repair,
            run: { input, choice in try HTTP3Packets.check(Array(input), choice) }),
    ]
}

/// A part of an input: a byte that selects what is done with the payload, and two bytes with its length.
private struct HTTP3Record {
    let kind: UInt8
    let payload: [UInt8]

    /// Reads the records of an input. A length can go beyond the end.
    static func all(_ input: [UInt8]) -> [HTTP3Record] {
        var records: [HTTP3Record] = []
        var position = 0
        // More of them take too long for one input.
        while position + 3 <= input.count, records.count < 40 {
            let length = Int(input[position + 1] & 0x07) << 8 | Int(input[position + 2])
            let end = min(input.count, position + 3 + length)
            records.append(HTTP3Record(kind: input[position], payload: Array(input[(position + 3)..<end])))
            position = end
        }
        return records
    }

    static func bytes(_ kind: UInt8, _ payload: [UInt8]) -> [UInt8] {
        [kind, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)] + payload
    }

    /// Gives the records lengths that fit the input.
    @Sendable static func repair(_ bytes: inout [UInt8]) {
        var position = 0
        while position + 3 <= bytes.count {
            let rest = bytes.count - position - 3
            let length = min(Int(bytes[position + 1] & 0x07) << 8 | Int(bytes[position + 2]), rest)
            bytes[position + 1] = UInt8(length >> 8)
            bytes[position + 2] = UInt8(length & 0xFF)
            position += 3 + length
        }
    }
}

/// A pair with three requests, the last of which has a body. It cancels a stream, and takes the bodies or not, as a
/// choice says.
private struct HTTP3Client {
    static let streams: [Int64] = [0, 4, 8]
    /// The bytes that a session may hold for one input of 8 KiB: windows of 3 streams, heads, tables and answers.
    private static let memoryLimit = 3 << 20

    let pair: HTTP3Pair
    private let before: Int

    init(_ choice: UInt64) throws {
        pair = try HTTP3Pair.connected { if choice >> 1 & 1 == 1 { $0.headLimit = 1_000 } }
        before = tern_fuzz_allocated()
        let pair = pair
        var parts: [HTTP2BodyPart] =
            choice & 1 == 0
            ? [.bytes(20), .wait, .bytes(20), .last(5)] : [.wait, .bytes(45), .trailers(Array("a: b\r\n".utf8))]
        pair.onRead = { _, _ in parts.isEmpty ? .wait : parts.removeFirst() }
        var isCancelled = choice >> 12 & 7 != 0
        pair.onHead = { [unowned pair] stream in
            if !isCancelled { pair.session?.cancel(stream) }
            isCancelled = true
        }
        if choice >> 15 & 1 == 0 {
            pair.onBody = { [unowned pair] stream, count in pair.session?.consume(stream, count: count) }
        }
        for number in 0..<3 {
            let hasBody = number == 2
            let method = hasBody ? "POST" : choice >> (2 + UInt64(number)) & 3 == 0 ? "HEAD" : "GET"
            let length: Int64? = hasBody && choice >> 5 & 1 == 0 ? 45 : nil
            guard pair.submit(method, length: length, hasBody: hasBody, headLimit: 4_000) == Self.streams[number]
            else { throw Failure("a request is not taken") }
        }
    }

    /// Ends the connection, and checks that each stream has one end.
    func end(inputCount: Int) throws {
        let held = tern_fuzz_allocated() - before - inputCount
        try require(held <= Self.memoryLimit, "the session holds \(held) bytes")
        let session = pair.session
        pair.end()
        try require(session?.activeStreams == 0, "\(session?.activeStreams ?? 0) streams have no end")
        for stream in Self.streams { try checkOrder(of: stream) }
    }

    private func checkOrder(of stream: Int64) throws {
        var state = 0
        var length: Int64?
        var count: Int64 = 0
        for event in pair.events(of: stream) {
            var next = state
            switch event {
            case .interim(_, let head):
                try HeadCheck.check(head)
                try require(head.status < 200, "an interim response of \(head.status)")
            case .head(_, let head):
                try HeadCheck.check(head)
                try require(state == 0 && head.status >= 200, "a second head")
                length = head.contentLength
                next = 1
            case .body(_, let bytes):
                try require(state == 1 && bytes > 0, "a body in state \(state)")
                count += Int64(bytes)
            case .trailers(_, let lines):
                try HeadCheck.check(lines: lines)
                next = 2
            case .ended:
                try require(state > 0, "an end without a head")
                if count > 0 { try require(length == nil || length == count, "\(count) bytes of \(length ?? 0)") }
                next = 3
            case .failed: next = 3
            case .endedReceiving, .goAway: throw Failure("\(event)")
            }
            try require(state < 3 && next >= state, "\(event) after an end")
            state = next
        }
    }

    /// The events without the bodies of streams that failed, which can arrive in pieces before their error.
    var comparable: [HTTP3Event] {
        var failed: Set<Int64> = []
        for case .failed(let stream, _) in pair.events { failed.insert(stream) }
        return pair.events.filter { event in
            if case .body(let stream, _) = event { !failed.contains(stream) } else { true }
        }
    }

    var outcome: String {
        var words: [String] = []
        for event in pair.events.prefix(12) {
            switch event {
            case .interim(let stream, _): words.append("interim \(stream)")
            case .head(let stream, let head): words.append("head \(stream) \(head.status / 100) \(head.setsCookies)")
            case .body(let stream, _): words.append("body \(stream)")
            case .trailers(let stream, _): words.append("trailers \(stream)")
            case .ended(let stream): words.append("ended \(stream)")
            case .endedReceiving(let stream): words.append("half \(stream)")
            case .failed(let stream, let error):
                words.append("failed \(stream) \(error.reason.filter { !$0.isNumber })")
            case .goAway: words.append("goaway")
            }
        }
        let hasAnswer = pair.events.contains { if case .head = $0 { true } else { false } }
        let end = pair.failure?.reason.filter { !$0.isNumber } ?? "open"
        return (hasAnswer ? "" : "rejected ") + words.joined(separator: ", ") + "; " + end
    }
}

// MARK: - Streams

/// Writes the input into the streams of a server: frames of HTTP/3, and the tables of QPACK.
private enum HTTP3Streams {
    /// The low bits of a record's kind. 0 to 2 are the requests, 4 and 5 two more streams of the server, which it opens
    /// when it first writes to them.
    private enum Place {
        static let control: UInt8 = 3
        static let other: UInt8 = 6
        static let event: UInt8 = 7
        static let last: UInt8 = 8
    }

    static let tokens = [
        "\u{0}\u{3}\u{0}\u{0}", "\u{1}\u{4}\u{0}\u{0}", "\u{4}\u{0}", "\u{7}\u{1}\u{0}", "\u{7}\u{1}\u{4}",
    ]

    static let seeds: [[UInt8]] = [
        head(0, [0xD9]) + data(0, "hello", isLast: true),
        // The length and the body agree.
        head(0, literal("content-length", "5", status: 0xD9)) + data(0, "he") + data(0, "llo", isLast: true)
            + head(4, [0xDB], isLast: true) + head(8, [0xD9]) + data(8, "x", isLast: true),
        // An interim response, and trailers.
        head(0, literal(":status", "103")) + head(0, literal("x", "y", status: 0xD9)) + data(0, "a")
            + head(0, literal("checksum", "1"), isLast: true),
        // Instructions for the dynamic table: its capacity, an insertion with a static name, one with a name, and a
        // duplicate. A head refers to it.
        record(4, [2, 0x3F, 0xE1, 0x1F, 0xC2, 1, 0x61, 0x41, 0x62, 1, 0x63, 0x00])
            + record(0, frame(1, [2, 0, 0xD9, 0x80])) + record(1, frame(1, [3, 0x80, 0xD9, 0x10]))
            + data(0, "x", isLast: true),
        // A head that waits for the table, and streams that are cancelled.
        record(0, frame(1, [2, 0, 0x80, 0xD9])) + record(4, [2, 0x3F, 0xE1, 0x1F, 0x41, 0x62, 1, 0x63])
            + record(5, [3, 0x40, 0x80]) + record(Place.event, [0, 4, 0x0B]) + record(Place.event, [1, 8, 0]),
        // GOAWAY, SETTINGS twice, a push promise, MAX_PUSH_ID, reserved frames and streams.
        record(Place.control, frame(7, [4])) + head(0, [0xD9], isLast: true),
        record(Place.control, frame(4, [6, 0x40, 100, 1, 0x50, 0])),
        head(0, [0xD9]) + record(0, frame(5, [0, 0, 0, 0xD9])) + record(Place.other, [1, 0]),
        record(Place.control, frame(0x0D, [1])) + record(0, frame(0x21, [1, 2, 3]))
            + record(Place.other, [0x21, 1, 2]),
        record(Place.control | Place.last, frame(3, [0])) + record(0, [1, 0x40]),
        head(0, literal("connection", "close", status: 0xD9), isLast: true)
            + head(4, literal("Upper", "1", status: 0xD9), isLast: true)
            + head(8, literal("content-length", "9", status: 0xD9), isLast: true),
        data(0, "before its head") + record(1 | Place.last, []) + head(8, literal("te", "x")),
    ]

    private static func record(_ kind: UInt8, _ payload: [UInt8]) -> [UInt8] { HTTP3Record.bytes(kind, payload) }

    private static func frame(_ type: UInt8, _ payload: [UInt8]) -> [UInt8] { [type, UInt8(payload.count)] + payload }

    /// Returns HEADERS, in whose block the required insert count and the base are 0.
    private static func head(_ stream: UInt8, _ block: [UInt8], isLast: Bool = false) -> [UInt8] {
        record(stream / 4 | (isLast ? Place.last : 0), frame(1, [0, 0] + block))
    }

    private static func data(_ stream: UInt8, _ text: String, isLast: Bool = false) -> [UInt8] {
        record(stream / 4 | (isLast ? Place.last : 0), frame(0, Array(text.utf8)))
    }

    /// Returns a field line, after an indexed status.
    private static func literal(_ name: String, _ value: String, status: UInt8? = nil) -> [UInt8] {
        (status.map { [$0] } ?? []) + HTTP3Bytes.literal(name, value)
    }

    static func check(_ input: [UInt8], _ choice: UInt64) throws -> String {
        guard HTTP3Session.obstacle == nil else { return "rejected: no library" }
        let whole = try run(input, choice, piece: .max)
        // The same in other packets.
        if choice >> 20 & 3 == 0 {
            let other = try run(input, choice, piece: 1 + Int(choice >> 22 & 31))
            try require(
                other.comparable == whole.comparable,
                "in pieces: \(other.pair.events), whole: \(whole.pair.events)")
        }
        return whole.outcome
    }

    private static func run(_ input: [UInt8], _ choice: UInt64, piece: Int) throws -> HTTP3Client {
        let client = try HTTP3Client(choice)
        let pair = client.pair
        pair.run()
        var own: [UInt8: Int64] = [:]
        own[Place.control] = pair.controlStream
        let before = pair.sentBytes
        for record in HTTP3Record.all(input) {
            let place = record.kind & 7
            if place == Place.event {
                perform(record.payload, on: pair)
            } else {
                var id = Int64(place) * 4
                if place >= Place.control {
                    guard let stream = own[place] ?? pair.server?.openStream() else { continue }
                    id = stream
                    own[place] = stream
                }
                let isLast = record.kind & Place.last != 0
                var rest = record.payload[...]
                repeat {
                    // Few enough parts for one input.
                    let part = rest.prefix(max(piece, record.payload.count / 20))
                    rest = rest.dropFirst(part.count)
                    pair.server?.write(Array(part), to: id, isLast: isLast && rest.isEmpty)
                    if piece != .max { pair.run() }
                } while !rest.isEmpty
            }
            pair.run()
            pair.session?.resumeBody(8)
        }
        pair.run()
        let sent = pair.sentBytes - before
        try require(sent <= 64 << 10 + 40 * input.count, "\(sent) bytes were sent for \(input.count)")
        try client.end(inputCount: input.count)
        return client
    }

    private static func perform(_ payload: [UInt8], on pair: HTTP3Pair) {
        guard payload.count >= 3 else { return pair.run(for: 30_000_000) }
        let (stream, code) = (Int64(payload[1] % 3) * 4, 0x100 + UInt64(payload[2]))
        if payload[0] & 1 == 0 { pair.server?.reset(stream, code: code) } else { pair.server?.stop(stream, code: code) }
    }
}

// MARK: - Packets

/// Gives a client packets with valid protection and any frames, datagrams without protection, and time.
private enum HTTP3Packets {
    static let seeds: [[UInt8]] = [
        // PING, PADDING, ACK, and the end of the handshake.
        record(0, [1, 0, 0, 0]) + record(0, [2, 0, 0, 0, 0]) + record(0, [0x1E]),
        // STREAM: a response with an offset, a length and an end.
        record(0, stream(0, [1, 3, 0, 0, 0xD9, 0, 5] + Array("hello".utf8), isLast: true)),
        record(0, stream(0, [1, 3, 0, 0, 0xD9])) + record(0, [0x0E, 0, 5, 3, 0, 1, 97])
            + record(0, [4, 0, 0x41, 0x0C, 8]),
        // Streams that the server opens: another control stream, and one of a kind that is not known.
        record(0, [0x0A, 3, 3, 0, 4, 0]) + record(0, [0x0B, 7, 2, 0x21, 1]) + record(0, [0x0A, 15, 1, 1]),
        // RESET_STREAM, STOP_SENDING, and the limits.
        record(0, [4, 0, 0x41, 0x0B, 0]) + record(0, [5, 8, 0x41, 0x0C]) + record(0, [0x10, 0x44, 0])
            + record(0, [0x11, 8, 0x44, 0]) + record(0, [0x12, 0x40, 200, 0x13, 100]),
        record(0, [0x14, 1, 0x15, 0, 1, 0x16, 9, 0x17, 9]) + record(0, [0x1A, 1, 2, 3, 4, 5, 6, 7, 8])
            + record(0, [0x1B, 1, 2, 3, 4, 5, 6, 7, 8]),
        // NEW_CONNECTION_ID, RETIRE_CONNECTION_ID and NEW_TOKEN.
        record(0, [0x18, 1, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8] + [UInt8](repeating: 9, count: 16))
            + record(0, [0x18, 2, 2, 4, 1, 2, 3, 4] + [UInt8](repeating: 8, count: 16)) + record(0, [0x19, 1])
            + record(0, [7, 4, 1, 2, 3, 4]),
        // CONNECTION_CLOSE of QUIC and of HTTP/3.
        record(0, [1]) + record(0, [0x1C, 0x0A, 0, 2, 104, 105]), record(0, [0x1D, 0x41, 0x07, 0]),
        // CRYPTO after the handshake, as of a ticket, and DATAGRAM.
        record(0, [6, 0, 8, 4, 0, 0, 4, 1, 2, 3, 4]) + record(0, [0x31, 2, 1, 2]),
        // Datagrams without protection, of all kinds, and time.
        record(2, [UInt8](repeating: 7, count: 40)) + record(3, [0xC0, 0, 0, 0, 1, 8]) + record(1, [200])
            + record(3, [0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]) + record(1, [255]),
    ]

    private static func record(_ kind: UInt8, _ payload: [UInt8]) -> [UInt8] { HTTP3Record.bytes(kind, payload) }

    private static func stream(_ id: UInt8, _ bytes: [UInt8], isLast: Bool = false) -> [UInt8] {
        [isLast ? 0x0B : 0x0A, id, UInt8(bytes.count)] + bytes
    }

    static func check(_ input: [UInt8], _ choice: UInt64) throws -> String {
        guard HTTP3Session.obstacle == nil else { return "rejected: no library" }
        let client = try HTTP3Client(choice)
        let pair = client.pair
        pair.run()
        let records = HTTP3Record.all(input)
        let before = pair.sentBytes
        for record in records {
            switch record.kind & 3 {
            case 1:
                // The server knows nothing of these packets, and is not asked any more.
                pair.passTime(UInt64(record.payload.first ?? 1) * 4_000_000)
            case 2: pair.deliver(pair.server?.forged(record.payload) ?? [])
            case 3: pair.deliver(record.payload)
            default: pair.deliver(pair.server?.sealed(Array(record.payload.prefix(1_400))) ?? [])
            }
            _ = pair.discardOutput()
            pair.session?.resumeBody(8)
        }
        let sent = pair.sentBytes - before
        // Two datagrams for each at most, and those that are sent again.
        try require(sent <= 64 << 10 + records.count * 3_000, "\(sent) bytes were sent for \(records.count) packets")
        try client.end(inputCount: input.count)
        return client.outcome
    }
}
#endif
