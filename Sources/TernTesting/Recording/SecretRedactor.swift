import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Hides secrets in the URLs, header fields and bodies of a recording. Pure.
///
/// The name of a value decides: the name of a header, of an item of a query, a fragment or a form, of a part of a
/// multipart form, or of a JSON key at any depth. All other bytes stay unchanged, so that a recording can still be
/// replayed.
struct SecretRedactor: Sendable {
    /// The additional names, normalized.
    private let names: Set<String>
    private let revealed: RevealedValues
    private let coversBodies: Bool

    static let hidden = "<redacted>"

    init(names: Set<String> = [], revealed: RevealedValues = .none, coversBodies: Bool = true) {
        self.revealed = revealed
        self.names = Set(names.map { Self.normalized($0.utf8) })
        self.coversBodies = coversBodies
    }

    func change(_ exchange: inout Recording.Exchange) {
        exchange.request.url = url(exchange.request.url)
        exchange.request.body = body(exchange.request.body, exchange.request.headers)
        exchange.request.headers = exchange.request.headers.map(line)
        guard var response = exchange.response else { return }
        let body = body(response.body, response.headers)
        if body != response.body, response.cut == nil {
            // The length must be that of the changed body.
            response.headers = response.headers.map { line in
                guard let field = Headers(recorded: [line]).first, Headers.namesMatch(field.name, "Content-Length")
                else { return line }
                return "\(field.name): \(body?.data.count ?? 0)"
            }
        }
        response.body = body
        response.headers = response.headers.map(line)
        exchange.response = response
    }

    // MARK: Names

    /// The parts of names that indicate a secret.
    private static let secretParts = [
        "password", "passwd", "passphrase", "passcode", "secret", "token", "apikey", "accesskey", "privatekey",
        "subscriptionkey", "credential", "signature", "cookie", "jwt", "assertion", "authorization", "sessionid",
        "csrf", "xsrf", "bearer", "codeverifier", "saml",
    ]
    /// The complete names that indicate a secret.
    private static let secretNames: Set<String> = ["auth", "sig", "sid", "pwd", "pin", "otp", "totp", "session"]
    /// The complete names that indicate a secret, except in JSON, where they usually mean something else.
    private static let secretItemNames: Set<String> = ["key", "code"]
    /// The names that contain a secret part but whose values are not secret: kinds and counts.
    private static let publicNames: Set<String> = [
        "tokentype", "tokentypehint", "tokenendpoint", "maxtokens", "prompttokens", "completiontokens", "totaltokens",
        "inputtokens", "outputtokens",
    ]

    /// Returns a name as lower-case letters and digits only, so that `access_token`, `accessToken` and `Access-Token`
    /// are equal.
    private static func normalized(_ name: some Sequence<UInt8>) -> String {
        let bytes = name.filter { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: false
            }
        }
        return String(decoding: bytes, as: UTF8.self).lowercased()
    }

    private func isSecret(_ name: some Sequence<UInt8>, inJSON: Bool = false) -> Bool {
        if revealed.contains(String(decoding: Array(name), as: UTF8.self)) { return false }
        let name = Self.normalized(name)
        if names.contains(name) || Self.secretNames.contains(name) { return true }
        if !inJSON, Self.secretItemNames.contains(name) { return true }
        return !Self.publicNames.contains(name) && Self.secretParts.contains { name.contains($0) }
    }

    // MARK: Header fields and URLs

    private func line(_ line: String) -> String {
        guard let field = Headers(recorded: [line]).first else { return line }
        if revealed.contains(field.name) { return line }
        let isNamed = names.contains(Self.normalized(field.name.utf8))
        if isNamed || Headers.isSecret(field.name) {
            let scalars = field.value.unicodeScalars
            guard Headers.namesMatch(field.name, "Set-Cookie"), let equals = scalars.firstIndex(of: "=") else {
                return "\(field.name): \(Self.hidden)"
            }
            // The name and the attributes show what the server does; only the value is secret.
            let attributes = scalars[equals...].firstIndex(of: ";").map { String(scalars[$0...]) } ?? ""
            return "\(field.name): \(String(scalars[...equals]))\(Self.hidden)\(attributes)"
        }
        switch field.name.lowercased() {
        case "location", "content-location", "referer": return "\(field.name): \(url(field.value))"
        case "refresh":
            let scalars = field.value.unicodeScalars
            guard let equals = scalars.firstIndex(of: "=") else { return line }
            let start = scalars.index(after: equals)
            return "\(field.name): \(String(scalars[..<start]))\(url(String(scalars[start...])))"
        case "link":
            let parts = field.value.unicodeScalars.split(separator: "<", omittingEmptySubsequences: false)
            let safe = parts.map { part -> String in
                guard let end = part.firstIndex(of: ">") else { return String(part) }
                return url(String(part[..<end])) + String(part[end...])
            }
            return "\(field.name): \(safe.joined(separator: "<"))"
        default: return line
        }
    }

    /// Hides secrets in the user information, the query and the fragment of a URL.
    ///
    /// Like the functions above and below, it works on scalars: `=` followed by a combining mark is one character,
    /// which is no `=`.
    private func url(_ text: String) -> String {
        var text = text.unicodeScalars
        if let slashes = text.firstRange(of: "//".unicodeScalars) {
            let authority = text[slashes.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
            if let at = authority.lastIndex(of: "@") {
                text.replaceSubrange(authority.startIndex..<at, with: "redacted".unicodeScalars)
            }
        }
        guard let mark = text.firstIndex(where: { $0 == "?" || $0 == "#" }) else { return String(text) }
        let parts = text[mark...].split(separator: "#", omittingEmptySubsequences: false)
        return String(text[..<mark]) + parts.map { items(String($0)) }.joined(separator: "#")
    }

    /// Hides secrets in items such as `a=1&password=x`, with or without a leading `?`.
    private func items(_ text: String) -> String {
        let isQuery = text.unicodeScalars.first == "?"
        let items = text.unicodeScalars.dropFirst(isQuery ? 1 : 0)
            .split(separator: "&", omittingEmptySubsequences: false)
        let safe = items.map { item -> String in
            guard let equals = item.firstIndex(of: "="), isSecret(Self.decoded(Substring(item[..<equals]).utf8)) else {
                return String(item)
            }
            return String(item[...equals]) + "redacted"
        }
        return (isQuery ? "?" : "") + safe.joined(separator: "&")
    }

    /// Returns the bytes of a text in a URL, percent-decoded.
    static func decoded(_ text: some Sequence<UInt8>) -> [UInt8] {
        let bytes = Array(text)
        var result: [UInt8] = []
        var index = 0
        while index < bytes.count {
            let digits = String(
                decoding: bytes[min(index + 1, bytes.count)..<min(index + 3, bytes.count)], as: UTF8.self)
            if bytes[index] == UInt8(ascii: "%"), digits.utf8.count == 2, let byte = UInt8(digits, radix: 16) {
                result.append(byte)
                index += 3
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return result
    }

    // MARK: Bodies

    private func body(_ content: Recording.Content?, _ headers: [String]) -> Recording.Content? {
        guard coversBodies, let content else { return content }
        let bytes = Array(content.data)
        let type = Headers(recorded: headers)["Content-Type"]?.lowercased() ?? ""
        let safe: [UInt8]
        if type.hasPrefix("application/x-www-form-urlencoded") {
            safe = Array(items(String(decoding: bytes, as: UTF8.self)).utf8)
        } else if type.hasPrefix("multipart/") {
            safe = multipart(bytes)
        } else {
            // The content type does not matter: JSON often comes as text, and events or scripts can contain JSON.
            var scanner = JSONSecrets(bytes) { isSecret($0, inJSON: true) }
            safe = scanner.redacted()
        }
        return safe == bytes ? content : Recording.Content(Data(safe))
    }

    /// Hides the bodies of parts with a secret name, and secrets in the JSON of all other parts.
    private func multipart(_ bytes: [UInt8]) -> [UInt8] {
        // The first line is the delimiter (RFC 2046 §5.1.1).
        guard let end = bytes.firstRange(of: [0x0D, 0x0A])?.lowerBound, bytes.starts(with: "--".utf8) else {
            return bytes
        }
        let delimiter = [0x0D, 0x0A] + bytes[..<end]
        var result: [UInt8] = []
        var rest = bytes[...]
        while let head = rest.firstRange(of: Array("\r\n\r\n".utf8)) {
            let fields = String(decoding: rest[..<head.lowerBound], as: UTF8.self)
            let after = rest[head.upperBound...]
            let next = after.firstRange(of: delimiter)?.lowerBound ?? after.endIndex
            result += rest[..<head.upperBound]
            if let name = Self.partName(fields), isSecret(name.utf8) {
                result += Self.hidden.utf8
            } else {
                var scanner = JSONSecrets(Array(after[..<next])) { isSecret($0, inJSON: true) }
                result += scanner.redacted()
            }
            rest = after[next...]
        }
        return result + rest
    }

    /// Returns the `name` of a `Content-Disposition`.
    private static func partName(_ fields: String) -> Substring? {
        guard let start = fields.firstRange(of: " name=\"")?.upperBound else { return nil }
        return fields[start...].prefix { $0 != "\"" }
    }
}
