#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The header fields of a request or a response in order. Names are compared without regard to case.
///
/// A name can have several values (`Set-Cookie`). Setting by subscript replaces them all; ``append(name:value:)`` adds
/// one. Two `Headers` are equal if each name has the same values in the same order; the order of different names does
/// not count (RFC 9110 §5.3). A look-up takes linear time and allocates nothing for the comparison.
///
/// ```swift
/// var headers: Headers = ["Accept": "application/json"]
/// headers["accept"] = "text/plain"
/// headers.append(name: "Link", value: "</a>; rel=next")
/// ```
public struct Headers: Sendable {
    /// One header field: a name and a value.
    public struct Field: Sendable {
        /// The name as it was written. Names are compared without regard to ASCII case.
        public var name: String
        /// The value, without the whitespace around it.
        public var value: String

        /// Creates a field from a name and a value. Both are validated when a request is sent, not here.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    private var fields: [Field]

    /// Creates an empty collection.
    public init() { fields = [] }

    /// Creates a collection with these fields in order. A name that occurs again has a further value.
    public init(_ fields: some Sequence<Field>) { self.fields = Array(fields) }

    /// Creates a collection from a dictionary, ordered by name so that the result is the same in every run.
    public init(_ dictionary: [String: String]) {
        fields = dictionary.sorted { ($0.key, $0.value) < ($1.key, $1.value) }.map {
            Field(name: $0.key, value: $0.value)
        }
    }

    /// The first value of a name, or nil.
    ///
    /// Setting replaces all values, in the place of the first; setting nil removes them.
    public subscript(_ name: String) -> String? {
        get { fields.first { Self.namesMatch($0.name, name) }?.value }
        set {
            if let newValue { replace(name, with: Field(name: name, value: newValue)) } else { remove(name) }
        }
    }

    /// Returns all values of a name in order; empty if there is none.
    public func values(for name: String) -> [String] {
        var result: [String] = []
        for field in fields where Self.namesMatch(field.name, name) { result.append(field.value) }
        return result
    }

    /// Returns whether a name has this value, byte for byte, and no other.
    package func hasOnly(_ value: String, for name: String) -> Bool {
        let values = values(for: name)
        return values.count == 1 && values[0].hasSameBytes(as: value)
    }

    /// Returns whether both values share their storage, in constant time. False for equal values that were created
    /// separately.
    package func isSameStorage(as other: Headers) -> Bool {
        unsafe fields.withUnsafeBufferPointer { mine in
            unsafe other.fields.withUnsafeBufferPointer { theirs in
                unsafe mine.baseAddress == theirs.baseAddress && mine.count == theirs.count
            }
        }
    }

    /// Returns whether both have the same fields in the same order and spelling, byte for byte.
    package func isWritten(like other: Headers) -> Bool {
        fields.count == other.fields.count
            && zip(fields, other.fields).allSatisfy { mine, their in
                mine.value.hasSameBytes(as: their.value) && mine.name.hasSameBytes(as: their.name)
            }
    }

    /// Returns whether the names and the values have at most so many bytes.
    package func areLimited(toBytes limit: Int) -> Bool {
        fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count } <= limit
    }

    /// Returns the first fields whose names and values have at most so many bytes.
    package func limited(toBytes limit: Int) -> Headers {
        var left = limit
        return Headers(
            fields.prefix { field in
                left -= field.name.utf8.count + field.value.utf8.count
                return left >= 0
            })
    }

    /// Returns whether the name has at least one value.
    public func contains(_ name: String) -> Bool {
        fields.contains { Self.namesMatch($0.name, name) }
    }

    /// Adds a value after the existing values of the name.
    public mutating func append(name: String, value: String) {
        fields.append(Field(name: name, value: value))
    }

    /// Adds a field at the end.
    public mutating func append(_ field: Field) { fields.append(field) }

    /// Reserves space for this number of fields, so that appending them allocates once.
    package mutating func reserveCapacity(_ count: Int) { fields.reserveCapacity(count) }

    /// Removes all values of a name.
    public mutating func remove(_ name: String) {
        fields.removeAll { Self.namesMatch($0.name, name) }
    }

    /// Replaces the values of each name in `other` by the values of `other`. Other names keep theirs.
    public mutating func override(with other: Headers) {
        if fields.isEmpty {
            self = other
            return
        }
        for (index, field) in other.fields.enumerated() {
            if other.isFirst(index) {
                replace(field.name, with: field)
            } else {
                let last = fields.lastIndex { Self.namesMatch($0.name, field.name) }
                fields.insert(field, at: last.map { $0 + 1 } ?? fields.endIndex)
            }
        }
    }

    /// Returns a copy in which each name in `other` has the values of `other`.
    public func overriding(with other: Headers) -> Headers {
        var result = self
        result.override(with: other)
        return result
    }

    /// Returns whether no earlier field has the name of the field at `index`.
    private func isFirst(_ index: Int) -> Bool {
        !fields[..<index].contains { Self.namesMatch($0.name, fields[index].name) }
    }

    /// Replaces the first field of a name and removes the others.
    private mutating func replace(_ name: String, with replacement: Field) {
        guard let place = fields.firstIndex(where: { Self.namesMatch($0.name, name) }) else {
            fields.append(replacement)
            return
        }
        fields[place] = replacement
        var index = fields.count - 1
        while index > place {
            if Self.namesMatch(fields[index].name, name) { fields.remove(at: index) }
            index -= 1
        }
    }
}

extension Headers: RandomAccessCollection {
    /// Always 0.
    public var startIndex: Int { 0 }
    /// The number of fields.
    public var endIndex: Int { fields.count }
    /// The field at a position, which must be within the bounds.
    public subscript(position: Int) -> Field { fields[position] }
}

extension Headers: ExpressibleByDictionaryLiteral {
    /// Creates a collection in the literal's order. A name that occurs twice has two values.
    public init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { Field(name: $0.0, value: $0.1) }
    }
}

extension Headers.Field: Hashable {
    /// Compares names without regard to ASCII case, and values exactly.
    public static func == (left: Self, right: Self) -> Bool {
        left.value.hasSameBytes(as: right.value) && Headers.namesMatch(left.name, right.name)
    }

    /// Hashes the name in lower case, and the value.
    public func hash(into hasher: inout Hasher) {
        for byte in name.utf8 { hasher.combine(byte.asciiLowercased) }
        hasher.combine(value)
    }
}

extension Headers: Hashable {
    /// Returns whether each name has the same values in the same order in both.
    public static func == (left: Headers, right: Headers) -> Bool {
        guard left.count == right.count else { return false }
        if left.fields == right.fields { return true }
        return left.indices.allSatisfy { index in
            guard left.isFirst(index) else { return true }
            let name = left.fields[index].name
            return left.values(for: name).elementsEqual(right.values(for: name)) { $0.hasSameBytes(as: $1) }
        }
    }

    /// Hashes the fields so that the order of different names does not count.
    public func hash(into hasher: inout Hasher) {
        // A sum does not depend on the order. Values of one name in a different order collide, which is allowed.
        var sum = 0
        for field in fields { sum &+= field.hashValue }
        hasher.combine(sum)
    }
}

extension Headers {
    /// Returns whether two names are equal without regard to ASCII case. Allocates nothing.
    package static func namesMatch(_ left: String, _ right: String) -> Bool {
        // Most names already differ in length.
        guard left.utf8.count == right.utf8.count else { return false }
        return left.withUTF8Span { left in
            right.withUTF8Span { right in
                for index in left.indices where left[index].asciiLowercased != right[index].asciiLowercased {
                    return false
                }
                return true
            }
        }
    }

    /// The first reason why these headers cannot be sent, or nil. The text names the header and never quotes its value.
    ///
    /// A name must be a token (RFC 9110 §5.1). A value must not contain CR, LF, NUL or other control characters except
    /// the tab (RFC 9110 §5.5), because a line break would let a value add further headers.
    package func firstProblem() -> String? {
        for field in self {
            if let problem = field.problem { return problem }
        }
        return nil
    }
}

extension Headers.Field {
    /// The reason why the field cannot be sent, or nil.
    var problem: String? {
        if name.isEmpty { return "a header name is empty (RFC 9110 §5.1)" }
        if !name.consists(of: .token) {
            return "the header name \"\(name.printable(limit: 80))\" contains a character that RFC 9110 §5.1 forbids"
        }
        let firstControl: (offset: Int, byte: UInt8)? = value.withUTF8Span { bytes in
            for index in bytes.indices where bytes[index].isASCIIControl && bytes[index] != 0x09 {
                return (index, bytes[index])
            }
            return nil
        }
        guard let (offset, byte) = firstControl else { return nil }
        let what =
            switch byte {
            case 0x0D: "a carriage return"
            case 0x0A: "a line feed"
            case 0x00: "a NUL"
            default: "a control character"
            }
        return "the value of the header \(name) contains \(what) at byte \(offset), which RFC 9110 §5.5 forbids"
    }
}

extension Headers.Field: CustomStringConvertible, CustomReflectable {
    /// The field as `name: value`. The value of a secret header is hidden, and so are the secret parts of URLs in other
    /// values.
    public var description: String { "\(name.printable()): \(printableValue)" }

    /// An empty mirror. Without it, `dump` would show secret values.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension Headers: CustomStringConvertible {
    /// One line for each field. The values of secret headers are hidden.
    public var description: String { map(\.description).joined(separator: "\n") }
}

extension Headers {
    /// Returns the date of a field such as `Last-Modified`, in any of the three forms that a recipient must read (RFC
    /// 9110 §5.6.7); nil without one.
    public func date(_ name: String) -> Date? {
        self[name].flatMap { HTTPDate.date(from: $0) }
    }

    /// Sets a field to a date in whole seconds, in the one form that a sender may write (RFC 9110 §5.6.7). nil removes
    /// the field. A date outside the years 1 to 9999 becomes the first or the last date in them.
    public mutating func setDate(_ date: Date?, for name: String) {
        self[name] = date.map { HTTPDate.text(from: $0) }
    }
}
