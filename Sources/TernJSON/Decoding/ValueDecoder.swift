/// A value of a text as a `Decoder`, and as a container of this single value.
///
/// It can outlive the decoding, and holds the state for that.
struct ValueDecoder: Decoder {
    let owner: DecodingOwner
    private let place: UInt32

    @inline(__always)
    init(owner: DecodingOwner, index: Int) {
        self.owner = owner
        place = UInt32(truncatingIfNeeded: index)
    }

    var index: Int { Int(place) }
    var core: DecodingCore { owner.core }
    var codingPath: [any CodingKey] { core.codingPath(of: index) }
    var userInfo: [CodingUserInfoKey: Any] { unsafe core.storage.pointee.settings.values.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        try core.container(at: index, keyedBy: type)
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { try UnkeyedContainer(owner: owner, array: index) }

    func singleValueContainer() throws -> any SingleValueDecodingContainer { self }
}

extension ValueDecoder: SingleValueDecodingContainer {
    func decodeNil() -> Bool { core.isNull(index) }
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try core.value(type, at: index) }
    func decode(_ type: Bool.Type) throws -> Bool { try core.boolean(at: index) }
    func decode(_ type: String.Type) throws -> String { try core.string(at: index) }
    func decode(_ type: Double.Type) throws -> Double { try core.double(at: index) }
    func decode(_ type: Float.Type) throws -> Float { try core.float(at: index) }
    func decode(_ type: Int.Type) throws -> Int { try core.integer(at: index) }
    func decode(_ type: Int8.Type) throws -> Int8 { try core.integer(at: index) }
    func decode(_ type: Int16.Type) throws -> Int16 { try core.integer(at: index) }
    func decode(_ type: Int32.Type) throws -> Int32 { try core.integer(at: index) }
    func decode(_ type: Int64.Type) throws -> Int64 { try core.integer(at: index) }
    func decode(_ type: Int128.Type) throws -> Int128 { try core.integer(at: index) }
    func decode(_ type: UInt.Type) throws -> UInt { try core.integer(at: index) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try core.integer(at: index) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try core.integer(at: index) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try core.integer(at: index) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try core.integer(at: index) }
    func decode(_ type: UInt128.Type) throws -> UInt128 { try core.integer(at: index) }
}

/// The value of a key that an object does not have, for `superDecoder`: it is as null.
struct MissingValueDecoder: Decoder, SingleValueDecodingContainer {
    let codingPath: [any CodingKey]
    let userInfo: [CodingUserInfoKey: Any]
    /// The object without the key.
    let object: DecodingCore.Mark

    private func context(_ type: Any.Type) -> DecodingError.Context {
        let text = "expected \(type), found no value"
        return DecodingError.Context(codingPath: codingPath, debugDescription: text, underlyingError: object)
    }

    private func missing(_ type: Any.Type) -> DecodingError { .valueNotFound(type, context(type)) }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        throw missing([String: Any].self)
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw missing([Any].self) }
    func singleValueContainer() throws -> any SingleValueDecodingContainer { self }
    func decodeNil() -> Bool { true }
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try Value(from: self) }

    func decode(_ type: Bool.Type) throws -> Bool {
        // As for null.
        throw DecodingError.typeMismatch(type, context(type))
    }

    func decode(_ type: String.Type) throws -> String { throw missing(type) }
    func decode(_ type: Double.Type) throws -> Double { throw missing(type) }
    func decode(_ type: Float.Type) throws -> Float { throw missing(type) }
    func decode(_ type: Int.Type) throws -> Int { throw missing(type) }
    func decode(_ type: Int8.Type) throws -> Int8 { throw missing(type) }
    func decode(_ type: Int16.Type) throws -> Int16 { throw missing(type) }
    func decode(_ type: Int32.Type) throws -> Int32 { throw missing(type) }
    func decode(_ type: Int64.Type) throws -> Int64 { throw missing(type) }
    func decode(_ type: Int128.Type) throws -> Int128 { throw missing(type) }
    func decode(_ type: UInt.Type) throws -> UInt { throw missing(type) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { throw missing(type) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { throw missing(type) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { throw missing(type) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { throw missing(type) }
    func decode(_ type: UInt128.Type) throws -> UInt128 { throw missing(type) }
}
