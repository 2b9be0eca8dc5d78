/// The header fields of a request or a response, in order, with names compared without regard to case.
///
/// A name may have several values (`Set-Cookie`). Setting by subscript replaces them all; ``append(name:value:)`` adds.
/// Two `Headers` are equal if each name has the same values in the same order; the order of different names does
/// not count (RFC 9110 §5.3). Looking up a name takes linear time, without an allocation for the comparison.
///
/// ```swift
/// var headers: Headers = ["Accept": "application/json"]
/// headers["accept"] = "text/plain"
/// headers.append(name: "Link", value: "</a>; rel=next")
/// ```
public struct Headers: Sendable {
    /// One header field: a name and a value.
    public struct Field: Sendable {
        /// The name as it was written; compared without regard to ASCII case.
        public var name: String
        /// The value, without the whitespace around it.
        public var value: String

        /// Makes a field from a name and a value. Both are validated when a request is sent, not here.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    private var fields: [Field]

    /// Makes an empty collection.
    public init() { fields = [] }

    /// Takes over the fields in their order; a name that occurs again gets a further value.
    public init(_ fields: some Sequence<Field>) { self.fields = Array(fields) }

    /// Takes over a dictionary, ordered by name so that the result does not vary from run to run.
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

    /// All values of a name, in their order; empty if there is none.
    public func values(for name: String) -> [String] {
        var result: [String] = []
        for field in fields where Self.namesMatch(field.name, name) { result.append(field.value) }
        return result
    }

    /// Whether both are copies of one value that nobody has changed since: in constant time, and false for equal values
    /// that were made apart.
    package func isSameStorage(as other: Headers) -> Bool {
        unsafe fields.withUnsafeBufferPointer { mine in
            unsafe other.fields.withUnsafeBufferPointer { theirs in
                unsafe mine.baseAddress == theirs.baseAddress && mine.count == theirs.count
            }
        }
    }

    /// Whether the name has at least one value.
    public func contains(_ name: String) -> Bool {
        fields.contains { Self.namesMatch($0.name, name) }
    }

    /// Adds a value behind those that the name may have already.
    public mutating func append(name: String, value: String) {
        fields.append(Field(name: name, value: value))
    }

    /// Adds a field at the end.
    public mutating func append(_ field: Field) { fields.append(field) }

    /// Makes room for that many fields, so that appending them allocates once.
    package mutating func reserveCapacity(_ count: Int) { fields.reserveCapacity(count) }

    /// Removes all values of a name.
    public mutating func remove(_ name: String) {
        fields.removeAll { Self.namesMatch($0.name, name) }
    }

    /// Replaces each name that occurs in `other` by the values it has there; other names stay.
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

    /// A copy in which each name that occurs in `other` has the values it has there.
    public func overriding(with other: Headers) -> Headers {
        var result = self
        result.override(with: other)
        return result
    }

    /// Whether no earlier field has the name of the field at `index`.
    private func isFirst(_ index: Int) -> Bool {
        !fields[..<index].contains { Self.namesMatch($0.name, fields[index].name) }
    }

    /// Puts one field in the place of the first of that name, and removes the others.
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
    /// The field at a place. The place must be within the bounds.
    public subscript(position: Int) -> Field { fields[position] }
}

extension Headers: ExpressibleByDictionaryLiteral {
    /// Keeps the literal's order; a name that occurs twice gets two values.
    public init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { Field(name: $0.0, value: $0.1) }
    }
}

extension Headers.Field: Hashable {
    /// Compares names without regard to ASCII case, and values exactly.
    public static func == (left: Self, right: Self) -> Bool {
        left.value == right.value && Headers.namesMatch(left.name, right.name)
    }

    /// Hashes the name in lower case, and the value.
    public func hash(into hasher: inout Hasher) {
        for byte in name.utf8 { hasher.combine(byte.asciiLowercased) }
        hasher.combine(value)
    }
}

extension Headers: Hashable {
    /// Whether each name has the same values in the same order on both sides.
    public static func == (left: Headers, right: Headers) -> Bool {
        guard left.count == right.count else { return false }
        if left.fields == right.fields { return true }
        return left.indices.allSatisfy { index in
            guard left.isFirst(index) else { return true }
            let name = left.fields[index].name
            return left.values(for: name) == right.values(for: name)
        }
    }

    /// Hashes the fields so that the order of different names does not count.
    public func hash(into hasher: inout Hasher) {
        // A sum does not depend on the order. Values of one name in another order collide, which is allowed.
        var sum = 0
        for field in fields { sum &+= field.hashValue }
        hasher.combine(sum)
    }
}
