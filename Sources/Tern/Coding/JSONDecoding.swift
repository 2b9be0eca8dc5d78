import TernConcurrency

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// Decodes JSON from a server. Everything that decodes a body, an event or a line uses it.
package enum JSONDecoding {
    /// Decodes a text. A `JSONValue`, and an array or object of them, is read by ``JSONReader``, unless the decoder is one with
    /// other rules of syntax.
    package static func decode<Value: Decodable>(
        _ type: Value.Type, from text: Data, with decoder: JSONDecoder
    ) throws -> Value {
        let isAnyValue = type == JSONValue.self || type == [JSONValue].self || type == [String: JSONValue].self
        guard isAnyValue, Swift.type(of: decoder) == JSONDecoder.self, !decoder.allowsJSON5,
            !decoder.assumesTopLevelDictionary
        else { return try decoder.decode(type, from: text) }
        let value = try JSONReader.value(of: text)
        if let value = value as? Value ?? value.array as? Value ?? value.object as? Value { return value }
        let problem = "the JSON text is of another kind"
        throw DecodingError.typeMismatch(type, DecodingError.Context(codingPath: [], debugDescription: problem))
    }
}

/// The time at which decoding has to end, for code that can look at it.
enum DecodingLimit {
    /// In nanoseconds of `MonotonicClock`; nil for no limit.
    @TaskLocal static var deadline: UInt64?

    /// The error of a value that was not decoded in time.
    struct Passed: Error {}

    /// Throws if the current task is cancelled, or the deadline has passed.
    static func check() throws {
        try Task.checkCancellation()
        if hasPassed { throw Passed() }
    }

    static var hasPassed: Bool { deadline.map { MonotonicClock.nanoseconds() > $0 } ?? false }
}

/// Decodes one ``JSONValue`` that is a part of another type, or of a decoder that is not ours, and limits the time that this takes.
///
/// The only way to learn of the kind of a value is to ask for one, and a decoder makes an error for each wrong one. Foundation's
/// takes time in proportion to the square of the depth for that: 1 ms at 500 levels. Arrays need no error.
final class JSONValueWork: Sendable {
    /// The work of the value that contains the one that is being decoded.
    @TaskLocal static var current: JSONValueWork?

    private struct State {
        var depth: Int
        var values = 0
        /// The squares of the depths of all values that needed errors.
        var spent = 0
    }

    /// Free squares, for few values that are deep, and those of each value, which allow a depth of 64 for all.
    private static let free = 100_000
    private static let eachValue = 4_096

    private let state: Lock<State>

    init(depth: Int) { state = Lock(State(depth: depth)) }

    func value(of decoder: any Decoder) throws -> JSONValue {
        let (depth, values) = state.withLock { state in
            state.depth += 1
            state.values += 1
            return (state.depth, state.values)
        }
        defer { state.withLock { $0.depth -= 1 } }
        if depth > JSONReader.maximumDepth { throw Self.tooDeep(decoder) }
        if values.isMultiple(of: 256) { try DecodingLimit.check() }
        // `try?`: asks which of the kinds it is.
        if var list = try? decoder.unkeyedContainer() {
            var elements: [JSONValue] = []
            while !list.isAtEnd { elements.append(try list.decode(JSONValue.self)) }
            return .array(elements)
        }
        let isAllowed = state.withLock { state in
            state.spent += depth * depth
            return state.spent <= Self.free + Self.eachValue * state.values
        }
        guard isAllowed else { throw Self.tooDeep(decoder) }
        let container = try decoder.singleValueContainer()
        if container.decodeNil() { return .null }
        // The keys of a container can be converted, and those of a dictionary are not.
        if (try? decoder.container(keyedBy: AnyKey.self)) != nil {
            return .object(try container.decode([String: JSONValue].self))
        }
        // `try?`: asks which of the kinds it is.
        if let value = try? container.decode(String.self) { return .string(value) }
        if let value = try? container.decode(Int64.self) { return .integer(value) }
        if let value = try? container.decode(Bool.self) { return .bool(value) }
        return .number(try container.decode(Double.self))
    }

    private static func tooDeep(_ decoder: any Decoder) -> DecodingError {
        let text = "arrays and objects nest too deep for the number of their values"
        return .dataCorrupted(DecodingError.Context(codingPath: decoder.codingPath, debugDescription: text))
    }

    private struct AnyKey: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}
