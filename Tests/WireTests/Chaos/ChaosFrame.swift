#if os(Linux) && !TERN_URLSESSION
import CTernTestHTTP2

/// A frame of HTTP/2 (RFC 9113 §4.1).
struct ChaosFrame {
    enum Kind: UInt8 {
        case data, headers, priority, reset, settings, push, ping, goAway, window, continuation
    }

    enum Setting: UInt16 {
        case maximumStreams = 3
        case initialWindow = 4
        case frameSize = 5
    }

    var type: UInt8
    var flags: UInt8 = 0
    var stream: Int32 = 0
    var payload: [UInt8] = []

    init(_ kind: Kind, flags: UInt8 = 0, stream: Int32 = 0, _ payload: [UInt8] = []) {
        self.init(type: kind.rawValue, flags: flags, stream: stream, payload)
    }

    init(type: UInt8, flags: UInt8 = 0, stream: Int32 = 0, _ payload: [UInt8] = []) {
        (self.type, self.flags, self.stream, self.payload) = (type, flags, stream, payload)
    }

    var kind: Kind? { Kind(rawValue: type) }
    var endsStream: Bool { flags & 1 != 0 }
    var isAnswer: Bool { flags & 1 != 0 }
    var endsHeaders: Bool { flags & 4 != 0 }

    var bytes: [UInt8] {
        let length = payload.count
        return [UInt8(length >> 16 & 0xFF), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF), type, flags]
            + Self.number(UInt32(bitPattern: stream)) + payload
    }

    /// Takes the first frame from bytes that arrived; nil if there is no whole one.
    init?(from input: inout [UInt8]) {
        guard input.count >= 9 else { return nil }
        let length = Int(input[0]) << 16 | Int(input[1]) << 8 | Int(input[2])
        guard input.count >= 9 + length else { return nil }
        type = input[3]
        flags = input[4]
        stream = Int32(bitPattern: Self.number(input[5..<9]) & 0x7FFF_FFFF)
        payload = Array(input[9..<9 + length])
        input.removeFirst(9 + length)
    }

    /// The payload of DATA or HEADERS without padding and priority.
    var content: ArraySlice<UInt8> {
        var content = payload[...]
        if flags & 8 != 0, let padding = content.popFirst() { content = content.dropLast(Int(padding)) }
        return kind == .headers && flags & 0x20 != 0 ? content.dropFirst(5) : content
    }

    /// The entries of SETTINGS.
    var entries: [(Setting, Int)] {
        stride(from: 0, to: payload.count - 5, by: 6).compactMap { start in
            let name = UInt16(payload[start]) << 8 | UInt16(payload[start + 1])
            return Setting(rawValue: name).map { ($0, Int(Self.number(payload[start + 2..<start + 6]))) }
        }
    }

    /// The last number of RST_STREAM, GOAWAY or WINDOW_UPDATE.
    var lastNumber: Int { Int(Self.number(payload.suffix(4))) }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 { bytes.reduce(0) { $0 << 8 | UInt32($1) } }
    private static func number(_ value: UInt32) -> [UInt8] { [24, 16, 8, 0].map { UInt8(value >> $0 & 0xFF) } }

    // MARK: Frames of the server

    static func headers(_ stream: Int32, _ fields: [(String, String)], isLast: Bool) -> ChaosFrame {
        ChaosFrame(.headers, flags: isLast ? 5 : 4, stream: stream, block(fields))
    }

    /// The fields as literals without Huffman codes and without an entry in the table (RFC 7541 §6.2.2).
    static func block(_ fields: [(String, String)]) -> [UInt8] {
        fields.flatMap { [0] + text($0.0) + text($0.1) }
    }

    private static func text(_ text: String) -> [UInt8] {
        precondition(text.utf8.count < 127, "a longer text has a longer prefix")
        return [UInt8(text.utf8.count)] + Array(text.utf8)
    }

    static func data(_ stream: Int32, _ bytes: some Collection<UInt8>, padding: Int? = nil, isLast: Bool) -> ChaosFrame
    {
        let end: UInt8 = isLast ? 1 : 0
        guard let padding else { return ChaosFrame(.data, flags: end, stream: stream, Array(bytes)) }
        let payload = [UInt8(padding)] + bytes + [UInt8](repeating: 0, count: padding)
        return ChaosFrame(.data, flags: end | 8, stream: stream, payload)
    }

    static func reset(_ stream: Int32, _ code: UInt32) -> ChaosFrame {
        ChaosFrame(.reset, stream: stream, number(code))
    }

    static func settings(_ entries: [(Setting, Int)]) -> ChaosFrame {
        ChaosFrame(
            .settings,
            entries.flatMap { [UInt8($0.0.rawValue >> 8), UInt8($0.0.rawValue & 0xFF)] + number(UInt32($0.1)) })
    }

    static let settingsAnswer = ChaosFrame(.settings, flags: 1)

    static func goAway(last: Int32, _ code: UInt32) -> ChaosFrame {
        ChaosFrame(.goAway, number(UInt32(bitPattern: last)) + number(code))
    }

    static func window(_ stream: Int32, _ count: Int) -> ChaosFrame {
        ChaosFrame(.window, stream: stream, number(UInt32(count)))
    }

    /// The codes of RST_STREAM and GOAWAY (RFC 9113 §7).
    static let noError: UInt32 = 0
    static let internalError: UInt32 = 2
    static let refusedStream: UInt32 = 7
    static let cancel: UInt32 = 8
}

/// Decodes the header blocks of a connection.
@safe
final class ChaosFieldDecoder {
    private let inflater = unsafe tern_test_inflater_new()

    deinit { unsafe tern_test_inflater_free(inflater) }

    /// Returns the fields of a block by name; nil for a block that is not valid.
    func fields(of block: [UInt8]) -> [String: String]? {
        var text = [UInt8](repeating: 0, count: 1 << 16)
        let count = unsafe tern_test_inflate(inflater, block, block.count, &text, text.count)
        guard count >= 0 else { return nil }
        var fields: [String: String] = [:]
        for line in String(decoding: text[..<count], as: UTF8.self).split(separator: "\n") {
            // Names of pseudo-fields begin with a colon.
            guard let colon = line.dropFirst().firstIndex(of: ":") else { return nil }
            fields[String(line[..<colon])] = String(line[colon...].dropFirst(2))
        }
        return fields
    }
}
#endif
