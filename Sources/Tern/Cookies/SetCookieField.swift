/// Parses one `Set-Cookie` field by RFC 6265bis §5.6. ``CookieJar`` decides whether its cookie is stored.
struct SetCookieField: Sendable {
    /// The text before the first `=`; empty without one.
    var name = ""
    var value = ""
    /// The last `Domain`, in lower case and without its leading dot; empty without one.
    var domain = ""
    /// The last `Path`; nil without one, or if it does not begin with `/`. The default path then applies.
    var path: String?
    var isSecure = false
    var isHTTPOnly = false
    var sameSite: Cookie.SameSite?
    /// The lifetime in seconds. Zero or less expires the cookie at once.
    var maxAge: Int64?
    /// The expiry date in seconds since 1970.
    var expires: Int64?
    /// The encoding in which the bytes of the texts were read; nil for UTF-8.
    private(set) var encoding: Cookie.ByteEncoding?

    /// The maximum size of name and value together, in bytes (RFC 6265bis §5.6, step 5).
    static let maximumSize = 4_096
    /// The maximum size of an attribute's value, in bytes. A longer attribute is ignored (step 6 of the attributes).
    static let maximumAttributeSize = 1_024

    /// Parses a field from the bytes of the wire. Bytes that are not UTF-8 are read one by one.
    init(bytes: [UInt8]) throws(Cookie.Refusal) {
        if let text = String(validating: bytes, as: UTF8.self) {
            try self.init(text)
        } else {
            try self.init(TextDecoding.latin1(bytes.span), encoding: .latin1)
        }
    }

    /// Parses a field, or throws the reason why the cookie is ignored.
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

/// Parses the dates of `Set-Cookie` with the lenient algorithm of RFC 6265bis §5.1.1, which accepts the dates that
/// servers really send.
enum CookieDate {
    /// Returns seconds since 1970-01-01 00:00:00 UTC; nil if the text is not a date.
    static func seconds(_ text: String) -> Int64? {
        var fields = Fields()
        for token in text.utf8.split(whereSeparator: isDelimiter) { fields.take(token) }
        return fields.seconds
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    private typealias Token = Substring.UTF8View

    /// The parts of a date. Each is taken from the first token of its form; later tokens of that form are ignored.
    private struct Fields {
        private var time: (hour: Int64, minute: Int64, second: Int64)?
        private var day: Int64?
        private var month: Int64?
        private var year: Int64?

        mutating func take(_ token: Token) {
            if time == nil, let found = CookieDate.time(token) {
                time = found
            } else if day == nil, let found = CookieDate.number(token, digits: 1...2) {
                day = found
            } else if month == nil, let found = CookieDate.month(token) {
                month = found
            } else if year == nil, let found = CookieDate.number(token, digits: 2...4) {
                year = found
            }
        }

        var seconds: Int64? {
            guard let time, let day, let month, var year else { return nil }
            if year <= 69 { year += 2000 } else if year <= 99 { year += 1900 }
            guard year >= 1601, time.hour <= 23, time.minute <= 59, time.second <= 59, day >= 1,
                day <= HTTPDate.length(of: month, in: year)
            else { return nil }
            let days = HTTPDate.daysSinceEpoch(year: year, month: month, day: day)
            return days * 86_400 + time.hour * 3_600 + time.minute * 60 + time.second
        }
    }

    /// Parses `hh:mm:ss` with one or two digits each. Text that follows the digits after a non-digit is ignored.
    private static func time(_ token: Token) -> (hour: Int64, minute: Int64, second: Int64)? {
        let parts = token.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].allSatisfy(\.isASCIIDigit), parts[1].allSatisfy(\.isASCIIDigit),
            let hour = number(parts[0], digits: 1...2), let minute = number(parts[1], digits: 1...2),
            let second = number(parts[2], digits: 1...2)
        else { return nil }
        return (hour, minute, second)
    }

    /// Returns the number that a token begins with, if it has the required number of digits.
    private static func number(_ token: Token, digits: ClosedRange<Int>) -> Int64? {
        let prefix = token.prefix(while: \.isASCIIDigit)
        guard digits.contains(prefix.count) else { return nil }
        return prefix.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
    }

    private static let months: [[UInt8]] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ].map { Array($0.utf8) }

    private static func month(_ token: Token) -> Int64? {
        let start = token.prefix(3).map(\.asciiLowercased)
        return months.firstIndex(of: start).map { Int64($0) + 1 }
    }
}
