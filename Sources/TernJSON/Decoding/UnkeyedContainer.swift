/// An array as a container without keys.
///
/// It has 20 bytes, so that the existential of the protocol needs no memory of its own. It can outlive the decoding,
/// and holds the state for that.
struct UnkeyedContainer: UnkeyedDecodingContainer {
    private let owner: DecodingOwner
    private let array: UInt32
    private var place: UInt32
    private var ordinal: UInt32 = 0

    init(owner: DecodingOwner, array index: Int) throws {
        guard owner.core.token(index).kind == .array else { throw owner.core.mismatch([Any].self, at: index) }
        self.owner = owner
        array = UInt32(truncatingIfNeeded: index)
        place = array &+ 1
    }

    @inline(__always) private var core: DecodingCore { owner.core }
    var codingPath: [any CodingKey] { core.codingPath(of: Int(array)) }
    var count: Int? { core.token(Int(array)).count }
    var currentIndex: Int { Int(ordinal) }
    var isAtEnd: Bool { Int(place) >= core.token(Int(array)).end }

    /// Counts 64 values at each 64th, because a type can read any number of scalars in a loop.
    @inline(__always)
    private func countElement() throws {
        if ordinal & 63 == 0 { try core.countValues(64) }
    }

    /// Returns the index of the next value.
    @inline(__always)
    private func next(_ type: Any.Type) throws -> Int {
        if isAtEnd { throw end(type) }
        try countElement()
        return Int(place)
    }

    /// Returns the index of the next value; nil at the end, or if it is null.
    @inline(__always)
    private func present() throws -> Int? {
        try countElement()
        return isAtEnd || core.isNull(Int(place)) ? nil : Int(place)
    }

    @inline(__always)
    private mutating func advance() {
        if isAtEnd { return }
        place = UInt32(truncatingIfNeeded: core.skip(Int(place)))
        ordinal &+= 1
    }

    private func end(_ type: Any.Type) -> DecodingError {
        let context = DecodingError.Context(
            codingPath: codingPath + [JSONKey(index: currentIndex)],
            debugDescription: "expected \(type), found the end of the array",
            underlyingError: DecodingCore.Mark(token: Int(array)))
        return .valueNotFound(type, context)
    }

    mutating func decodeNil() throws -> Bool {
        guard core.isNull(try next(Never.self)) else { return false }
        advance()
        return true
    }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        let value = try core.value(type, at: next(type))
        advance()
        return value
    }

    mutating func decodeIfPresent<Value: Decodable>(_ type: Value.Type) throws -> Value? {
        let value = try present().map { try core.value(type, at: $0) }
        advance()
        return value
    }

    mutating func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        let container = try core.container(at: next(KeyedDecodingContainer<Key>.self), keyedBy: type)
        advance()
        return container
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        let container = try UnkeyedContainer(owner: owner, array: next((any UnkeyedDecodingContainer).self))
        advance()
        return container
    }

    mutating func superDecoder() throws -> any Decoder {
        let decoder = ValueDecoder(owner: owner, index: try next((any Decoder).self))
        advance()
        return decoder
    }

    // MARK: Scalars

    @inline(__always)
    private mutating func scalar<Value>(
        _ type: Value.Type, _ decode: (DecodingCore, Int) throws -> Value
    ) throws -> Value {
        let value = try decode(core, next(type))
        advance()
        return value
    }

    @inline(__always)
    private mutating func optional<Value>(_ decode: (DecodingCore, Int) throws -> Value) throws -> Value? {
        let value = try present().map { try decode(core, $0) }
        advance()
        return value
    }

    mutating func decode(_ type: Bool.Type) throws -> Bool { try scalar(type) { try $0.boolean(at: $1) } }
    mutating func decode(_ type: String.Type) throws -> String { try scalar(type) { try $0.string(at: $1) } }
    mutating func decode(_ type: Double.Type) throws -> Double { try scalar(type) { try $0.double(at: $1) } }
    mutating func decode(_ type: Float.Type) throws -> Float { try scalar(type) { try $0.float(at: $1) } }
    mutating func decode(_ type: Int.Type) throws -> Int { try scalar(type) { try $0.integer(at: $1) } }
    mutating func decode(_ type: Int8.Type) throws -> Int8 { try scalar(type) { try $0.integer(at: $1) } }
    mutating func decode(_ type: Int16.Type) throws -> Int16 { try scalar(type) { try $0.integer(at: $1) } }
    mutating func decode(_ type: Int32.Type) throws -> Int32 { try scalar(type) { try $0.integer(at: $1) } }
    mutating func decode(_ type: Int64.Type) throws -> Int64 { try scalar(type) { try $0.integer(at: $1) } }
    mutating func decode(_ type: Int128.Type) throws -> Int128 { try scalar(type) { try $0.integer(at: $1) } }
    mutating func decode(_ type: UInt.Type) throws -> UInt { try scalar(type) { try $0.integer(at: $1) } }
    mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try scalar(type) { try $0.integer(at: $1) } }
    mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try scalar(type) { try $0.integer(at: $1) } }
    mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try scalar(type) { try $0.integer(at: $1) } }
    mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try scalar(type) { try $0.integer(at: $1) } }
    mutating func decode(_ type: UInt128.Type) throws -> UInt128 { try scalar(type) { try $0.integer(at: $1) } }

    // MARK: Scalars that can be missing

    mutating func decodeIfPresent(_ type: Bool.Type) throws -> Bool? { try optional { try $0.boolean(at: $1) } }
    mutating func decodeIfPresent(_ type: String.Type) throws -> String? { try optional { try $0.string(at: $1) } }
    mutating func decodeIfPresent(_ type: Double.Type) throws -> Double? { try optional { try $0.double(at: $1) } }
    mutating func decodeIfPresent(_ type: Float.Type) throws -> Float? { try optional { try $0.float(at: $1) } }
    mutating func decodeIfPresent(_ type: Int.Type) throws -> Int? { try optional { try $0.integer(at: $1) } }
    mutating func decodeIfPresent(_ type: Int8.Type) throws -> Int8? { try optional { try $0.integer(at: $1) } }
    mutating func decodeIfPresent(_ type: Int16.Type) throws -> Int16? { try optional { try $0.integer(at: $1) } }
    mutating func decodeIfPresent(_ type: Int32.Type) throws -> Int32? { try optional { try $0.integer(at: $1) } }
    mutating func decodeIfPresent(_ type: Int64.Type) throws -> Int64? { try optional { try $0.integer(at: $1) } }
    mutating func decodeIfPresent(_ type: Int128.Type) throws -> Int128? { try optional { try $0.integer(at: $1) } }
    mutating func decodeIfPresent(_ type: UInt.Type) throws -> UInt? { try optional { try $0.integer(at: $1) } }
    mutating func decodeIfPresent(_ type: UInt8.Type) throws -> UInt8? { try optional { try $0.integer(at: $1) } }
    mutating func decodeIfPresent(_ type: UInt16.Type) throws -> UInt16? { try optional { try $0.integer(at: $1) } }
    mutating func decodeIfPresent(_ type: UInt32.Type) throws -> UInt32? { try optional { try $0.integer(at: $1) } }
    mutating func decodeIfPresent(_ type: UInt64.Type) throws -> UInt64? { try optional { try $0.integer(at: $1) } }
    mutating func decodeIfPresent(_ type: UInt128.Type) throws -> UInt128? { try optional { try $0.integer(at: $1) } }
}
