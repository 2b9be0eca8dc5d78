/// An object as a container with keys.
///
/// It is a pointer, and no more, because the standard library copies it for each call. See ``DecodingPark`` for the
/// state's life.
@safe
struct KeyedContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    private let state: UnsafeMutablePointer<KeyedState>

    @unsafe
    init(_ state: UnsafeMutablePointer<KeyedState>) { unsafe self.state = state }

    @inline(__always) private var core: DecodingCore { unsafe state.pointee.core }

    var codingPath: [any CodingKey] { unsafe core.codingPath(of: state.pointee.object) }

    var allKeys: [Key] {
        if let index = unsafe state.pointee.index { return index.names.compactMap(Key.init(stringValue:)) }
        var keys: [Key] = []
        var place = unsafe state.pointee.object + 1
        let convert = unsafe core.keyConversion(in: state.pointee.object)
        while unsafe place < state.pointee.end {
            if let key = Key(stringValue: convert(core.string(core.token(place)))) { keys.append(key) }
            place = core.skip(place + 1)
        }
        return keys
    }

    func contains(_ key: Key) -> Bool { unsafe state.find(key, advances: false) >= 0 }

    /// Returns the index of a key's value; -1 if there is none.
    @inline(__always)
    private func find(_ key: Key) throws -> Int {
        if unsafe state.pointee.mode == .name { return try findByName(key) }
        return unsafe state.find(key, advances: true)
    }

    /// Counts the value, because a type can read any number of scalars in a loop over such keys.
    @inline(never)
    private func findByName(_ key: Key) throws -> Int {
        try core.countValue()
        return unsafe state.find(name: key.stringValue, advances: true)
    }

    /// Returns the index of a key's value.
    @inline(__always)
    private func required(_ key: Key) throws -> Int {
        let index = try find(key)
        if index < 0 { throw unsafe core.missing(key, in: state.pointee.object) }
        return index
    }

    /// Returns the index of a key's value; nil if it is missing or null.
    @inline(__always)
    private func present(_ key: Key) throws -> Int? {
        let index = try find(key)
        return index < 0 || core.isNull(index) ? nil : index
    }

    func decodeNil(forKey key: Key) throws -> Bool {
        try core.countValue()
        let index = unsafe state.find(key, advances: false)
        if index < 0 { throw unsafe core.missing(key, in: state.pointee.object) }
        return core.isNull(index)
    }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try core.value(type, at: required(key))
    }

    func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
        guard let index = try present(key) else { return nil }
        return try core.value(type, at: index)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        try core.container(at: required(key), keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try UnkeyedContainer(owner: core.owner, array: required(key))
    }

    func superDecoder() throws -> any Decoder {
        let parent = JSONKey(stringValue: "super")
        return unsafe decoder(at: state.find(name: "super", advances: true), key: parent)
    }

    func superDecoder(forKey key: Key) throws -> any Decoder {
        decoder(at: try find(key), key: key)
    }

    private func decoder(at index: Int, key: any CodingKey) -> any Decoder {
        if index >= 0 { return ValueDecoder(owner: core.owner, index: index) }
        return unsafe MissingValueDecoder(
            codingPath: codingPath + [key], userInfo: core.storage.pointee.settings.values.userInfo,
            object: DecodingCore.Mark(token: state.pointee.object))
    }

    // MARK: Scalars

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try core.boolean(at: required(key)) }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try core.string(at: required(key)) }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try core.double(at: required(key)) }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try core.float(at: required(key)) }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try core.integer(at: required(key)) }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try core.integer(at: required(key)) }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try core.integer(at: required(key)) }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try core.integer(at: required(key)) }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try core.integer(at: required(key)) }
    func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 { try core.integer(at: required(key)) }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try core.integer(at: required(key)) }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try core.integer(at: required(key)) }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try core.integer(at: required(key)) }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try core.integer(at: required(key)) }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try core.integer(at: required(key)) }
    func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 { try core.integer(at: required(key)) }

    // MARK: Scalars that can be missing

    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
        try present(key).map { try core.boolean(at: $0) }
    }
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
        try present(key).map { try core.string(at: $0) }
    }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
        try present(key).map { try core.double(at: $0) }
    }
    func decodeIfPresent(_ type: Float.Type, forKey key: Key) throws -> Float? {
        try present(key).map { try core.float(at: $0) }
    }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
        try present(key).map { try core.integer(at: $0) }
    }
    func decodeIfPresent(_ type: Int8.Type, forKey key: Key) throws -> Int8? {
        try present(key).map { try core.integer(at: $0) }
    }
    func decodeIfPresent(_ type: Int16.Type, forKey key: Key) throws -> Int16? {
        try present(key).map { try core.integer(at: $0) }
    }
    func decodeIfPresent(_ type: Int32.Type, forKey key: Key) throws -> Int32? {
        try present(key).map { try core.integer(at: $0) }
    }
    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? {
        try present(key).map { try core.integer(at: $0) }
    }
    func decodeIfPresent(_ type: Int128.Type, forKey key: Key) throws -> Int128? {
        try present(key).map { try core.integer(at: $0) }
    }
    func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? {
        try present(key).map { try core.integer(at: $0) }
    }
    func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? {
        try present(key).map { try core.integer(at: $0) }
    }
    func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? {
        try present(key).map { try core.integer(at: $0) }
    }
    func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? {
        try present(key).map { try core.integer(at: $0) }
    }
    func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? {
        try present(key).map { try core.integer(at: $0) }
    }
    func decodeIfPresent(_ type: UInt128.Type, forKey key: Key) throws -> UInt128? {
        try present(key).map { try core.integer(at: $0) }
    }
}
