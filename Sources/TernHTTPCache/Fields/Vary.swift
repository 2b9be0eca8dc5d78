import Tern

/// The `Vary` field of a response (RFC 9111 §4.1, RFC 9110 §12.5.5).
enum Vary: Sendable, Hashable {
    /// `*`, or a field that exceeds the limits: no other request matches.
    case everything
    /// The names in lower case, sorted, without duplicates; empty if each request matches.
    case names([String])

    /// The greatest number of names.
    static let limit = 64

    init(_ headers: Headers) {
        let members = FieldText.members(of: "Vary", in: headers).map { FieldText.lowercased($0) }
        let names = Set(members)
        // A member that is no token is a name that no request has, and is compared like any other.
        self = names.contains("*") || members.count > Self.limit ? .everything : .names(names.sorted())
    }
}

/// The fields of a request that selected a stored response, in a normalized form.
struct VarySelection: Sendable, Hashable {
    /// A field that the response's `Vary` names.
    struct Field: Sendable, Hashable {
        /// The name in lower case.
        let name: String
        /// The normalized value, or a digest if it is long or a secret; nil if the request had no such field.
        let value: String?

        /// Compares the bytes of the values: for a server, texts that are only canonically equivalent are different.
        static func == (left: Self, right: Self) -> Bool {
            guard left.name == right.name, let value = left.value, let other = right.value else {
                return left.name == right.name && left.value == nil && right.value == nil
            }
            return value.hasSameBytes(as: other)
        }
    }

    let fields: [Field]

    /// The greatest length of a value in bytes that is kept as it is.
    private static let longestValue = 256

    init(fields: [Field]) { self.fields = fields }

    /// Takes the fields that a `Vary` names from a request; nil if it names everything.
    init?(_ vary: Vary, of request: Headers) {
        guard case .names(let names) = vary else { return nil }
        fields = names.map { Field(name: $0, value: Self.value(of: $0, in: request)) }
    }

    /// Returns whether a request has the same fields.
    func matches(_ request: Headers) -> Bool {
        fields.allSatisfy { Field(name: $0.name, value: Self.value(of: $0.name, in: request)) == $0 }
    }

    /// Returns the value of a field in the form that is compared: its lines combined, without optional whitespace and
    /// empty members; in lower case where case has no meaning, and sorted where the order has none.
    static func value(of name: String, in request: Headers) -> String? {
        let values = request.values(for: name)
        if values.isEmpty { return nil }
        var members = values.flatMap { FieldText.members($0) }
        let rule = rules[name]
        if let rule { members = members.map { rule.normalize($0) } }
        if rule?.isSorted == true { members.sort { $0.lexicographicallyPrecedes($1) } }
        let text = String(decoding: Array(members.joined(separator: CollectionOfOne(.comma))), as: UTF8.self)
        guard text.utf8.count > longestValue || Headers.isSecret(name) else { return text }
        return "sha256:" + DigestFunction.hash(Array(text.utf8), .sha256).prefix(16).hexadecimal
    }

    private struct Rule {
        var isSorted: Bool
        var isLowercased: Bool

        /// Removes whitespace around the semicolons of a weight, and changes the case.
        func normalize(_ member: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
            if member.contains(.quote) { return member }
            let parts = member.split(separator: .semicolon).map { FieldText.trimmed($0) }
            let text = Array(parts.joined(separator: CollectionOfOne(.semicolon)))
            return isLowercased ? text.map(\.asciiLowercased)[...] : text[...]
        }
    }

    /// The fields whose members have an order or a case without meaning (RFC 9110 §12.5). The order of languages stays,
    /// because some servers prefer the first of equal weight (§12.5.4).
    private static let rules: [String: Rule] = [
        "accept": Rule(isSorted: true, isLowercased: false),
        "accept-charset": Rule(isSorted: true, isLowercased: true),
        "accept-encoding": Rule(isSorted: true, isLowercased: true),
        "accept-language": Rule(isSorted: false, isLowercased: true),
    ]
}
