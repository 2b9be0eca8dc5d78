/// A JSON value of unknown structure (RFC 8259), for responses without a `Decodable` type.
///
/// ```swift
/// let value = try TernJSONDecoder().decode(JSONValue.self, from: data)
/// let names = value["users"]?.array?.compactMap { $0["name"]?.string }
/// ```
///
/// The names in a `JSONValue` are as in the text; key strategies do not apply to them.
///
/// The two kinds of number are equal if their values are exactly: `.integer(1) == .number(1.0)`. A text does not tell
/// them apart, so that `.number(1.0)`, which is written as `1`, comes back as `.integer(1)`.
public enum JSONValue: Sendable, Hashable {
    /// null.
    case null
    /// true or false.
    case bool(Bool)
    /// A whole number that an `Int64` can hold, even if it is written as `1.0` or `1e2`.
    case integer(Int64)
    /// Any other number, with the precision of a `Double`.
    case number(Double)
    /// A string.
    case string(String)
    /// An array.
    case array([JSONValue])
    /// An object. The order of its names is not kept. If a name occurs twice in a text, the last value counts.
    case object([String: JSONValue])

    /// The value of a name; nil for a value that is not an object, or an object without the name.
    public subscript(name: String) -> JSONValue? { object?[name] }

    /// An element of an array; nil for a value that is not an array, or an index beyond its end.
    public subscript(index: Int) -> JSONValue? {
        guard let array, array.indices.contains(index) else { return nil }
        return array[index]
    }

    /// A Boolean value that indicates whether this is null.
    public var isNull: Bool { self == .null }
    /// The Boolean; nil for other values.
    public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    /// The number as an integer; nil for one that an `Int64` cannot hold exactly, and for other values.
    public var integer: Int64? {
        switch self {
        case .integer(let value): value
        case .number(let value): Int64(exactly: value)
        default: nil
        }
    }
    /// The number, integer or not; nil for other values.
    public var number: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        default: nil
        }
    }
    /// The string; nil for other values.
    public var string: String? { if case .string(let value) = self { value } else { nil } }
    /// The elements; nil for other values.
    public var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }
    /// The object; nil for other values.
    public var object: [String: JSONValue]? { if case .object(let value) = self { value } else { nil } }

    /// The same value without names whose value is null and without nulls in arrays, at every depth. A null at the top
    /// level stays.
    public var removingNulls: JSONValue {
        switch self {
        case .array(let elements):
            .array(elements.filter { !$0.isNull }.map(\.removingNulls))
        case .object(let members):
            .object(members.filter { !$0.value.isNull }.mapValues(\.removingNulls))
        default:
            self
        }
    }
}

// A deep value is compared and hashed by recursion. The functions for values without others keep the frames of that
// small: 512 levels fit into the stack of a task in a debug build, too.
extension JSONValue {
    /// Returns a Boolean value that indicates whether two values are equal. Numbers are compared by their exact values.
    public static func == (left: JSONValue, right: JSONValue) -> Bool {
        if case .array(let left) = left, case .array(let right) = right { return left == right }
        if case .object(let left) = left, case .object(let right) = right { return left == right }
        return leavesAreEqual(left, right)
    }

    @inline(never)
    private static func leavesAreEqual(_ left: JSONValue, _ right: JSONValue) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.integer(let left), .integer(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.integer(let integer), .number(let number)), (.number(let number), .integer(let integer)):
            Int64(exactly: number) == integer
        case (.string(let left), .string(let right)): left == right
        default: false
        }
    }

    /// Hashes the value: equal numbers have the same hash, whatever their kind.
    public func hash(into hasher: inout Hasher) {
        if case .array(let elements) = self {
            hasher.combine(elements)
        } else if case .object(let members) = self {
            hasher.combine(members)
        } else {
            hashLeaf(into: &hasher)
        }
    }

    @inline(never)
    private func hashLeaf(into hasher: inout Hasher) {
        switch self {
        case .bool(let value): hasher.combine(value)
        case .integer(let value): hasher.combine(value)
        case .number(let value):
            if let integer = Int64(exactly: value) { hasher.combine(integer) } else { hasher.combine(value) }
        case .string(let value): hasher.combine(value)
        case .null, .array, .object: hasher.combine(0)
        }
    }
}

extension JSONValue: Codable {
    /// Decodes any JSON value.
    ///
    /// With ``TernJSONDecoder``, it takes time in proportion to the size of the text, and can nest 512 levels deep,
    /// also as a part of another type. With another decoder, a value can nest 512 levels, but its values may be only 64
    /// levels deep on average. Such a decoder reveals the kind of a value only through errors, which are slow for deep
    /// values.
    ///
    /// - Throws: `DecodingError`; `CancellationError` if the current task is cancelled.
    public init(from decoder: any Decoder) throws {
        if let decoder = decoder as? ValueDecoder {
            self = try decoder.core.jsonValue(at: decoder.index)
        } else if let work = JSONValueWork.current {
            self = try work.value(of: decoder)
        } else {
            let work = JSONValueWork(depth: decoder.codingPath.count)
            self = try JSONValueWork.$current.withValue(work) { try work.value(of: decoder) }
        }
    }

    /// Encodes the value.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .number(let value):
            if let integer = Self.largeInteger(value) {
                try container.encode(integer)
            } else {
                try container.encode(value)
            }
        case .string(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }
}

extension JSONValue {
    /// Returns a whole number of more than 53 bits as an integer, which is written in its place.
    ///
    /// The shortest digits of such a `Double` are those of another whole number: 2^60 is 1.152921504606847e+18.
    static func largeInteger(_ number: Double) -> Int64? {
        number.magnitude > 0x1p53 ? Int64(exactly: number) : nil
    }
}

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// Creates null.
    public init(nilLiteral: ()) { self = .null }
    /// Creates a Boolean.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Creates an integer.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// Creates a number.
    public init(floatLiteral value: Double) { self = .number(value) }
    /// Creates a string.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Creates an array.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// Creates an object. If a name occurs twice, the last value counts.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements) { _, last in last })
    }
}
