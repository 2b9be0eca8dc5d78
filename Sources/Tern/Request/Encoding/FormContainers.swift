/// The members of a structure or a dictionary.
struct FormKeyedContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: FormValueEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    mutating func encodeNil(forKey key: Key) throws { encoder.nested(key).node.content = .null }

    mutating func encode(_ value: some Encodable, forKey key: Key) throws { try encoder.nested(key).encode(value) }

    // What is absent is encoded as nil: the options say what becomes of it. The protocol's own would leave it out, one by
    // one for each of the types below.
    mutating func encodeIfPresent(_ value: (some Encodable)?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: Bool?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: String?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: Double?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: Float?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: Int?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: Int8?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: Int16?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: Int32?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: Int64?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: UInt?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: UInt8?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: UInt16?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: UInt32?, forKey key: Key) throws { try put(value, key) }
    mutating func encodeIfPresent(_ value: UInt64?, forKey key: Key) throws { try put(value, key) }

    private mutating func put(_ value: (some Encodable)?, _ key: Key) throws {
        if let value { try encode(value, forKey: key) } else { encoder.nested(key).node.content = .absent }
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        encoder.nested(key).container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        encoder.nested(key).unkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder { encoder.nested(FormSuperKey.super) }

    mutating func superEncoder(forKey key: Key) -> any Encoder { encoder.nested(key) }
}

/// The elements of an array.
struct FormListContainer: UnkeyedEncodingContainer {
    let encoder: FormValueEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    var count: Int {
        if case .list(let nodes, _) = encoder.node.content { nodes.count } else { 0 }
    }

    mutating func encodeNil() throws { encoder.element().node.content = .null }

    mutating func encode(_ value: some Encodable) throws { try encoder.element().encode(value) }

    mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        encoder.element().container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { encoder.element().unkeyedContainer() }

    mutating func superEncoder() -> any Encoder { encoder.element() }
}

/// A value that is neither.
struct FormSingleContainer: SingleValueEncodingContainer {
    let encoder: FormValueEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    mutating func encodeNil() throws { encoder.node.content = .null }
    mutating func encode(_ value: Bool) throws { try encoder.encode(value) }
    mutating func encode(_ value: String) throws { try encoder.encode(value) }
    mutating func encode(_ value: Double) throws { try encoder.encode(finite: value) }
    mutating func encode(_ value: Float) throws { try encoder.encode(finite: value) }
    mutating func encode(_ value: Int) throws { put(value) }
    mutating func encode(_ value: Int8) throws { put(value) }
    mutating func encode(_ value: Int16) throws { put(value) }
    mutating func encode(_ value: Int32) throws { put(value) }
    mutating func encode(_ value: Int64) throws { put(value) }
    mutating func encode(_ value: UInt) throws { put(value) }
    mutating func encode(_ value: UInt8) throws { put(value) }
    mutating func encode(_ value: UInt16) throws { put(value) }
    mutating func encode(_ value: UInt32) throws { put(value) }
    mutating func encode(_ value: UInt64) throws { put(value) }
    mutating func encode(_ value: some Encodable) throws { try encoder.encode(value) }

    private func put(_ value: some BinaryInteger) { encoder.node.content = .text(value.description) }
}

private enum FormSuperKey: String, CodingKey {
    case `super`
}
