import Synchronization

/// Decodes one ``JSONValue`` with a decoder that is not ours, and limits the time that this takes.
///
/// The only way to learn of the kind of a value is to ask for one, and a decoder makes an error for each wrong one.
/// Foundation's takes time in proportion to the square of the depth for that: 1 ms at 500 levels. Arrays need no error.
final class JSONValueWork: Sendable {
    /// The work of the value that contains the one that is being decoded.
    @TaskLocal static var current: JSONValueWork?

    private struct State {
        var depth: Int
        var values = 0
        /// The squares of the depths of all values that needed errors.
        var spent = 0
    }

    private static let maximumDepth = 512
    /// Free squares, for few values that are deep, and those of each value, which allow a depth of 64 for all.
    private static let free = 100_000
    private static let eachValue = 4_096

    private let state: Mutex<State>

    init(depth: Int) { state = Mutex(State(depth: depth)) }

    func value(of decoder: any Decoder) throws -> JSONValue {
        let (depth, values) = state.withLock { state in
            state.depth += 1
            state.values += 1
            return (state.depth, state.values)
        }
        defer { state.withLock { $0.depth -= 1 } }
        if depth > Self.maximumDepth { throw Self.tooDeep(decoder) }
        if values.isMultiple(of: 256) { try DecodingCheckpoint.pass() }
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
        if (try? decoder.container(keyedBy: JSONKey.self)) != nil {
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
}
