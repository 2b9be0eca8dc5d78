/// One `Set-Cookie` field, taken apart by RFC 6265bis §5.6 and not yet judged.
struct SetCookieField: Sendable {
    /// The text before the first `=`; empty without one.
    var name = ""
    var value = ""
    /// The last `Domain`, in lower case and without its leading dot; empty without one.
    var domain = ""
    /// The last `Path`; nil without one, and where it does not begin with `/`: the default path then holds.
    var path: String?
    var isSecure = false
    var isHTTPOnly = false
    var sameSite: Cookie.SameSite?
    /// Seconds from now; nothing and less means at once.
    var maxAge: Int64?
    /// Seconds since 1970.
    var expires: Int64?
    /// The encoding in which the bytes of the texts were read; nil for UTF-8.
    private(set) var encoding: Cookie.ByteEncoding?

    /// Longest name and value together, in bytes (RFC 6265bis §5.6, step 5).
    static let maximumSize = 4_096
    /// Longest value of an attribute, in bytes; a longer one is passed over (step 6 of the attributes).
    static let maximumAttributeSize = 1_024

    /// Parses a field from the bytes of the wire. Bytes that are not UTF-8 are read one by one.
    init(bytes: [UInt8]) throws(Cookie.Refusal) {
        if let text = String(validating: bytes, as: UTF8.self) {
            try self.init(text)
        } else {
            try self.init(TextDecoding.latin1(bytes.span), encoding: .latin1)
        }
    }

    /// Takes a field apart, or says why the cookie is ignored.
    init(_ field: String, encoding: Cookie.ByteEncoding? = nil) throws(Cookie.Refusal) {
        self.encoding = encoding
        if field.utf8.contains(where: { $0.isASCIIControl && $0 != 0x09 }) { throw .controlCharacter }
        var parts = field.utf8.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)[...]
        let pair = parts.popFirst() ?? Substring(field).utf8
        if let equals = pair.firstIndex(of: UInt8(ascii: "=")) {
            name = Self.trimmed(pair[..<equals])
            value = Self.trimmed(pair[pair.index(after: equals)...])
        } else {
            value = Self.trimmed(pair)
        }
        if Cookie.byteCount(name, encoding) + Cookie.byteCount(value, encoding) > Self.maximumSize { throw .tooLarge }
        if name.isEmpty, value.isEmpty { throw .empty }
        for part in parts { takeAttribute(part) }
    }

    private mutating func takeAttribute(_ part: Substring.UTF8View) {
        let equals = part.firstIndex(of: UInt8(ascii: "="))
        let name = Self.trimmed(part[..<(equals ?? part.endIndex)])
        let value = equals.map { Self.trimmed(part[part.index(after: $0)...]) } ?? ""
        if Cookie.byteCount(value, encoding) > Self.maximumAttributeSize { return }
        switch name.lowercased() {
        case "expires": if let seconds = CookieDate.seconds(value) { expires = seconds }
        case "max-age": if let seconds = Self.age(value) { maxAge = seconds }
        case "domain": domain = (value.hasPrefix(".") ? String(value.dropFirst()) : value).lowercased()
        case "path": path = value.utf8.first == Reference.slash ? value : nil
        case "secure": isSecure = true
        case "httponly": isHTTPOnly = true
        case "samesite": sameSite = Cookie.SameSite(rawValue: value.lowercased())
        default: break
        }
    }

    /// Parses a number with an optional minus sign. Values beyond 64 bits become the largest value.
    private static func age(_ text: String) -> Int64? {
        let digits = text.hasPrefix("-") ? text.utf8.dropFirst() : Substring(text).utf8
        guard !digits.isEmpty, digits.allSatisfy(\.isASCIIDigit) else { return nil }
        if text.hasPrefix("-") { return 0 }
        return Int64(text) ?? .max
    }

    private static func trimmed(_ bytes: Substring.UTF8View) -> String {
        let start = bytes.drop(while: \.isHTTPWhitespace)
        let length = start.reversed().drop(while: \.isHTTPWhitespace).count
        return String(decoding: start.prefix(length), as: UTF8.self)
    }
}
