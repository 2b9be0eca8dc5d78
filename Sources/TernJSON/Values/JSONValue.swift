/// A JSON value of unknown structure (RFC 8259), for responses without a `Decodable` type.
///
/// ```swift
/// let value = try TernJSONDecoder().decode(JSONValue.self, from: data)
/// let names = value["users"]?.array?.compactMap { $0["name"]?.string }
/// ```
public enum JSONValue: Sendable, Hashable {
    /// null.
    case null
    /// true or false.
    case bool(Bool)
    /// A whole number that fits into 64 bits, also if it is written as `1.0` or `1e2`.
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
    /// The integer; nil for other values.
    public var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
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

extension JSONValue: Codable {
    /// Decodes any JSON value.
    ///
    /// With ``TernJSONDecoder``, it takes time in proportion to the size of the text, and can nest 512 levels deep,
    /// also as a part of another type. With another decoder, its values can be 64 levels deep on average, because these
    /// only tell the kind of a value by an error for each wrong one, which takes long for a deep value.
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
        case .number(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
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
