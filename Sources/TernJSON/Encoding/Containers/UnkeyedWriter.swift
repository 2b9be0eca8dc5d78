/// Writes the elements of an array.
struct UnkeyedWriter: UnkeyedEncodingContainer {
    /// The storage is kept while the container is.
    private var storage: EncodingStorage
    private var index: Int
    private var id: Int

    init(_ place: ContainerPlace) {
        storage = place.writer.storage
        (index, id) = (place.index, place.id)
    }

    private var place: ContainerPlace {
        @inline(__always) get { ContainerPlace(storage.writer, index: index, id: id) }
    }

    var codingPath: [any CodingKey] { place.codingPath }

    var count: Int { place.elementCount }

    /// Writes the comma, and returns the writer for the element.
    @inline(__always)
    private mutating func begin() throws -> JSONTextWriter {
        var place = place
        if !place.isInnermost {
            try place.prepare()
            storage = place.writer.storage
            (index, id) = (place.index, place.id)
        }
        try place.beginElement()
        return place.writer
    }

    mutating func encodeNil() throws { try begin().writeNull() }
    mutating func encode(_ value: Bool) throws { try begin().write(value) }
    mutating func encode(_ value: String) throws { try begin().write(value) }
    mutating func encode(_ value: Int) throws { try begin().write(value) }
    mutating func encode(_ value: Int8) throws { try begin().write(value) }
    mutating func encode(_ value: Int16) throws { try begin().write(value) }
    mutating func encode(_ value: Int32) throws { try begin().write(value) }
    mutating func encode(_ value: Int64) throws { try begin().write(value) }
    mutating func encode(_ value: Int128) throws { try begin().write(value) }
    mutating func encode(_ value: UInt) throws { try begin().write(value) }
    mutating func encode(_ value: UInt8) throws { try begin().write(value) }
    mutating func encode(_ value: UInt16) throws { try begin().write(value) }
    mutating func encode(_ value: UInt32) throws { try begin().write(value) }
    mutating func encode(_ value: UInt64) throws { try begin().write(value) }
    mutating func encode(_ value: UInt128) throws { try begin().write(value) }

    mutating func encode(_ value: Double) throws { try encodeParts { try $0.write(value) } }
    mutating func encode(_ value: Float) throws { try encodeParts { try $0.write(value) } }
    mutating func encode<Value: Encodable>(_ value: Value) throws { try encodeParts { try $0.write(value: value) } }

    /// Writes an element that can throw, and is then removed.
    @inline(__always)
    private mutating func encodeParts(_ write: (JSONTextWriter) throws -> Void) throws {
        let writer = try begin()
        do {
            try write(writer)
        } catch {
            place.removeLast()
            throw error
        }
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) -> KeyedEncodingContainer<NestedKey> {
        let nested = nestedPlace(.object)
        return nested.writer.keyedContainer(keyedBy: type, at: nested)
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { UnkeyedWriter(nestedPlace(.array)) }

    mutating func superEncoder() -> any Encoder {
        do {
            return ValueEncoder(open: try begin())
        } catch {
            return ValueEncoder(failed: storage.writer, error)
        }
    }

    private mutating func nestedPlace(_ kind: OpenValue.Kind) -> ContainerPlace {
        do {
            return try begin().openContainer(kind)
        } catch {
            storage.writer.fail(error)
            return .nowhere(storage.writer)
        }
    }
}
