/// A demand for credentials by a server or a proxy: a response with status 401 or 407 (RFC 9110 §11).
public struct AuthenticationChallenge: Sendable {
    /// The sender of a challenge.
    public enum Source: Sendable, Hashable {
        /// The server: status 401 with `WWW-Authenticate`. The answer is an `Authorization` field.
        case server
        /// A proxy that received a plain http request: status 407 with `Proxy-Authenticate`. The answer is a
        /// `Proxy-Authorization` field.
        case proxy
    }

    /// One authentication scheme that the server accepts.
    public struct Offer: Sendable, Hashable {
        /// The scheme as the server wrote it, such as `Basic`. Schemes are compared without regard to case.
        public let scheme: String
        /// The `token68` value that follows the scheme in place of parameters (RFC 9110 §11.2).
        public internal(set) var token: String?
        /// The parameters by their lower-case names, without quotes.
        public internal(set) var parameters: [String: String] = [:]

        init(scheme: String) { self.scheme = scheme }

        /// The protection space that the credential is for, as the server names it.
        public var realm: String? { parameters["realm"] }
    }

    /// The sender of the challenge.
    public let source: Source
    /// The origin of the server that was asked, in the form `scheme://host:port`.
    public let origin: String
    /// The accepted schemes that Tern can answer, strongest first: Digest with SHA-512/256, SHA-256 and MD5, Bearer,
    /// Basic. Never empty.
    public let offers: [Offer]
    /// The number of credentials that were refused for this request so far.
    public let previousFailures: Int
    /// The head of the response that contains the challenge.
    public let response: ResponseHead

    /// The realm of the strongest offer.
    public var realm: String? { offers.first?.realm }
}

extension AuthenticationChallenge.Source {
    /// The name of the field that contains the challenges.
    var challengeField: String { self == .server ? "WWW-Authenticate" : "Proxy-Authenticate" }

    /// The name of the field that answers a challenge.
    package var authorizationField: String { self == .server ? "Authorization" : "Proxy-Authorization" }

    /// The name of the field that a server adds to the response of an accepted request.
    package var informationField: String {
        self == .server ? "Authentication-Info" : "Proxy-Authentication-Info"
    }

    /// The status code of a challenge.
    package var status: Int { self == .server ? 401 : 407 }

    /// Creates a source from the status of a response; nil for a status other than 401 and 407.
    init?(status: Int) {
        switch status {
        case 401: self = .server
        case 407: self = .proxy
        default: return nil
        }
    }
}

/// Parses `WWW-Authenticate` and `Proxy-Authenticate`: several challenges in one field, and several fields (RFC 9110
/// §11.6.1).
///
/// A comma separates both challenges and parameters. A word is the name of a parameter if `=` follows, else a scheme.
struct ChallengeParser {
    private let bytes: [UInt8]
    private var position = 0
    private var offers: [AuthenticationChallenge.Offer] = []

    private init(_ text: String) { bytes = Array(text.utf8) }

    /// Returns the challenges of all fields in order. Text that is not a challenge is skipped.
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
                // No token begins with this byte. Parsing continues after the next comma.
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
        // A name must not be repeated (§11.2). The first value counts.
        if offers[last].parameters[name] == nil { offers[last].parameters[name] = value }
    }

    private mutating func value() -> String {
        guard next == UInt8(ascii: "\"") else {
            // Some servers leave out the quotes around a value that is not a token, such as base64.
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

    /// Parses the value that follows a scheme without a name, such as `Negotiate YII=`.
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
