/// The part of a representation that a response contains: the field `Content-Range` (RFC 9110 §14.4).
package struct ContentRange: Sendable, Hashable {
    /// The unit, in lower case; `bytes` in practice.
    package let unit: String
    /// The first and last position, both included; nil in the response to a range that cannot be served (`bytes
    /// */1234`).
    package let range: ClosedRange<Int64>?
    /// The length of the whole representation; nil if the server does not state it (`bytes 0-9/*`).
    package let completeLength: Int64?

    /// Parses a field value; nil if it is malformed or contradicts itself.
    package init?(_ value: String) {
        let value = value.utf8.drop { $0.isHTTPWhitespace }
        guard let space = value.firstIndex(where: { $0.isHTTPWhitespace }) else { return nil }
        unit = String(decoding: value[..<space].map(\.asciiLowercased), as: UTF8.self)
        guard unit.consists(of: .token), !unit.isEmpty else { return nil }
        let rest = value[space...].filter { !$0.isHTTPWhitespace }
        let halves = rest.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard halves.count == 2 else { return nil }

        let star = "*".utf8
        if halves[1].elementsEqual(star) {
            completeLength = nil
        } else {
            guard let length = Self.number(halves[1]) else { return nil }
            completeLength = length
        }
        if halves[0].elementsEqual(star) {
            guard completeLength != nil else { return nil }
            range = nil
            return
        }
        let ends = halves[0].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last,
            completeLength.map({ last < $0 }) ?? true
        else { return nil }
        range = first...last
    }

    /// Parses digits only, because `Int64("+1")` is also valid.
    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        guard digits.allSatisfy(\.isASCIIDigit) else { return nil }
        return Int64(String(decoding: digits, as: UTF8.self))
    }
}
