/// Reads `WWW-Authenticate` and `Proxy-Authenticate`: several challenges in one field, and several fields
/// (RFC 9110 §11.6.1).
///
/// A comma separates challenges and parameters alike: a word is a parameter's name if a `=` follows, else a scheme.
struct ChallengeParser {
    private let bytes: [UInt8]
    private var position = 0
    private var offers: [AuthenticationChallenge.Offer] = []

    private init(_ text: String) { bytes = Array(text.utf8) }

    /// The challenges of all fields, in their order. What has no form of a challenge is passed over.
    static func offers(in fields: [String]) -> [AuthenticationChallenge.Offer] {
        fields.flatMap { field in
            var parser = ChallengeParser(field)
            parser.parse()
            return parser.offers
        }
    }

    private mutating func parse() {
        while true {
            skip { $0 == UInt8(ascii: ",") || $0.isHTTPWhitespace }
            if position >= bytes.count { return }
            let word = take { ByteSet.token.contains($0) }
            if word.isEmpty {
                // No token begins like this: what follows the next comma may be good again.
                skipElement()
                continue
            }
            let end = position
            skip { $0.isHTTPWhitespace }
            if next == UInt8(ascii: "="), !offers.isEmpty {
                position += 1
                skip { $0.isHTTPWhitespace }
                add(name: word.lowercased(), value: value())
            } else {
                offers.append(AuthenticationChallenge.Offer(scheme: word))
                if position > end { takeToken68() }
            }
        }
    }

    private mutating func add(name: String, value: String) {
        let last = offers.count - 1
        // A name must not be repeated (§11.2); the first one counts.
        if offers[last].parameters[name] == nil { offers[last].parameters[name] = value }
    }

    private mutating func value() -> String {
        guard next == UInt8(ascii: "\"") else {
            // Some servers leave out the quotes around what is no token, as base64.
            return take { $0 != UInt8(ascii: ",") && !$0.isHTTPWhitespace }
        }
        position += 1
        var content: [UInt8] = []
        while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
            if bytes[position] == UInt8(ascii: "\\"), position + 1 < bytes.count { position += 1 }
            content.append(bytes[position])
            position += 1
        }
        if position < bytes.count { position += 1 }
        return String(decoding: content, as: UTF8.self)
    }

    /// What stands alone behind a scheme, such as `Negotiate YII=`.
    private mutating func takeToken68() {
        let start = position
        var token = take { ByteSet.unreserved.contains($0) || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "/") }
        let hasText = !token.isEmpty
        token += take { $0 == UInt8(ascii: "=") }
        skip { $0.isHTTPWhitespace }
        if hasText, next == nil || next == UInt8(ascii: ",") {
            offers[offers.count - 1].token = token
        } else {
            position = start
        }
    }

    private mutating func skipElement() {
        while position < bytes.count, bytes[position] != UInt8(ascii: ",") {
            if bytes[position] == UInt8(ascii: "\"") { _ = value() } else { position += 1 }
        }
    }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skip(while condition: (UInt8) -> Bool) {
        while position < bytes.count, condition(bytes[position]) { position += 1 }
    }

    private mutating func take(while condition: (UInt8) -> Bool) -> String {
        let start = position
        skip(while: condition)
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }
}
