/// The place that a keyed container writes to. It is memory of its own, so that a container can be used again for another object.
@safe
final class KeyedPlace {
    @safe
    struct State {
        var container: ContainerPlace
        let table: UnsafeMutablePointer<KeyTextTable>
        /// The storage, if it has no reference to the container, so that the container must keep it.
        var owner: EncodingStorage?
        /// A Boolean value that indicates whether keys are looked up in the table. Not for a function that converts them, whose result depends on the path.
        var usesTable = true
    }

    let state: UnsafeMutablePointer<State>

    init(_ container: ContainerPlace, table: UnsafeMutablePointer<KeyTextTable>) {
        unsafe state = .allocate(capacity: 1)
        unsafe state.initialize(to: State(container: container, table: table))
    }

    deinit {
        unsafe state.deinitialize(count: 1)
        unsafe state.deallocate()
    }
}

/// Writes the members of an object.
@safe
struct KeyedWriter<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let place: KeyedPlace
    /// The state of the place, whose reference would cost a retain each time.
    private let state: UnsafeMutablePointer<KeyedPlace.State>

    init(_ place: KeyedPlace) {
        self.place = place
        unsafe state = place.state
    }

    var codingPath: [any CodingKey] { unsafe state.pointee.container.codingPath }

    // MARK: Keys

    /// Writes the comma, the key and the colon, and returns the writer for the value.
    @inline(__always)
    private func begin(_ key: Key, hasParts: Bool = false) throws -> JSONTextWriter {
        let container = unsafe state.pointee.container
        guard unsafe state.pointee.usesTable, container.isInnermost else {
            return try beginSlowly(key, hasParts: hasParts)
        }
        let tag = Self.tag(of: key)
        let table = unsafe state.pointee.table
        guard unsafe Int(tag) < table.pointee.count, let text = unsafe table.pointee.entries[Int(tag)].text else {
            return try beginSlowly(key, hasParts: hasParts)
        }
        let entry = unsafe table.pointee.entries[Int(tag)]
        let writer = container.writer
        _ = writer.noteKey(tag: entry.tag, of: container.index)
        let value = unsafe writer.openValue(container.index)
        unsafe value.pointee.lastStart = writer.count
        if hasParts {
            unsafe value.pointee.table = table
            unsafe value.pointee.tag = tag
        }
        let count = unsafe value.pointee.count
        unsafe value.pointee.count = count &+ 1
        // The first member has no comma.
        let skipped = count == 0 ? 1 : 0
        unsafe writer.appendBlocks(text + skipped, count: entry.count &- skipped)
        return writer
    }

    /// Fills the table, reopens an object that was closed, and writes keys that have no table.
    @inline(never)
    private func beginSlowly(_ key: Key, hasParts: Bool) throws -> JSONTextWriter {
        let before = unsafe state.pointee.container.writer.storage
        try unsafe state.pointee.container.prepare()
        let container = unsafe state.pointee.container
        if container.writer.storage !== before { unsafe state.pointee.owner = container.writer.storage }
        let name = container.name(of: key)
        if unsafe state.pointee.usesTable {
            let tag = Self.tag(of: key)
            let table = unsafe state.pointee.table
            let isKnown = unsafe Int(tag) < table.pointee.count && table.pointee.entries[Int(tag)].text != nil
            // A slash is escaped or not, by the settings of each encoding.
            if isKnown || !name.utf8.contains(UInt8(ascii: "/")) {
                if !isKnown { unsafe table.pointee.insert(key, tag: tag, name: name) }
                return try begin(key, hasParts: hasParts)
            }
        }
        try unsafe state.pointee.container.beginMember(name)
        if hasParts { container.keep(key) }
        return container.writer
    }

    /// Returns the byte that the key is, or 0 for a type with one key.
    @inline(__always)
    private static func tag(of key: Key) -> UInt8 {
        MemoryLayout<Key>.size == 1 ? unsafe unsafeBitCast(key, to: UInt8.self) : 0
    }

    // MARK: Values

    func encodeNil(forKey key: Key) throws { try begin(key).writeNull() }
    func encode(_ value: Bool, forKey key: Key) throws { try begin(key).write(value) }
    func encode(_ value: String, forKey key: Key) throws { try begin(key).write(value) }
    func encode(_ value: Int, forKey key: Key) throws { try begin(key).write(value) }
    func encode(_ value: Int8, forKey key: Key) throws { try begin(key).write(value) }
    func encode(_ value: Int16, forKey key: Key) throws { try begin(key).write(value) }
    func encode(_ value: Int32, forKey key: Key) throws { try begin(key).write(value) }
    func encode(_ value: Int64, forKey key: Key) throws { try begin(key).write(value) }
    func encode(_ value: Int128, forKey key: Key) throws { try begin(key).write(value) }
    func encode(_ value: UInt, forKey key: Key) throws { try begin(key).write(value) }
    func encode(_ value: UInt8, forKey key: Key) throws { try begin(key).write(value) }
    func encode(_ value: UInt16, forKey key: Key) throws { try begin(key).write(value) }
    func encode(_ value: UInt32, forKey key: Key) throws { try begin(key).write(value) }
    func encode(_ value: UInt64, forKey key: Key) throws { try begin(key).write(value) }
    func encode(_ value: UInt128, forKey key: Key) throws { try begin(key).write(value) }

    func encode(_ value: Double, forKey key: Key) throws {
        guard value.isFinite else { return try encodeNonFinite(value, forKey: key) }
        try begin(key).write(finite: value)
    }

    func encode(_ value: Float, forKey key: Key) throws {
        guard value.isFinite else { return try encodeNonFinite(value, forKey: key) }
        try begin(key).write(finite: value)
    }

    @inline(never)
    private func encodeNonFinite<Value: BinaryFloatingPoint>(_ value: Value, forKey key: Key) throws {
        let writer = try begin(key)
        do {
            try writer.writeNonFinite(value) { codingPath + [key] }
        } catch {
            unsafe state.pointee.container.removeLast()
            throw error
        }
    }

    func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
        let writer = try begin(key, hasParts: true)
        do {
            try writer.write(value: value)
        } catch {
            unsafe state.pointee.container.removeLast()
            throw error
        }
    }

    // MARK: Optional values

    // The default implementations call the above through the protocol.

    func encodeIfPresent(_ value: Bool?, forKey key: Key) throws { if let value { try encode(value, forKey: key) } }
    func encodeIfPresent(_ value: String?, forKey key: Key) throws { if let value { try encode(value, forKey: key) } }
    func encodeIfPresent(_ value: Double?, forKey key: Key) throws { if let value { try encode(value, forKey: key) } }
    func encodeIfPresent(_ value: Float?, forKey key: Key) throws { if let value { try encode(value, forKey: key) } }
    func encodeIfPresent(_ value: Int?, forKey key: Key) throws { if let value { try encode(value, forKey: key) } }
    func encodeIfPresent(_ value: Int8?, forKey key: Key) throws { if let value { try encode(value, forKey: key) } }
    func encodeIfPresent(_ value: Int16?, forKey key: Key) throws { if let value { try encode(value, forKey: key) } }
    func encodeIfPresent(_ value: Int32?, forKey key: Key) throws { if let value { try encode(value, forKey: key) } }
    func encodeIfPresent(_ value: Int64?, forKey key: Key) throws { if let value { try encode(value, forKey: key) } }
    func encodeIfPresent(_ value: Int128?, forKey key: Key) throws { if let value { try encode(value, forKey: key) } }
    func encodeIfPresent(_ value: UInt?, forKey key: Key) throws { if let value { try encode(value, forKey: key) } }
    func encodeIfPresent(_ value: UInt8?, forKey key: Key) throws { if let value { try encode(value, forKey: key) } }
    func encodeIfPresent(_ value: UInt16?, forKey key: Key) throws { if let value { try encode(value, forKey: key) } }
    func encodeIfPresent(_ value: UInt32?, forKey key: Key) throws { if let value { try encode(value, forKey: key) } }
    func encodeIfPresent(_ value: UInt64?, forKey key: Key) throws { if let value { try encode(value, forKey: key) } }
    func encodeIfPresent(_ value: UInt128?, forKey key: Key) throws { if let value { try encode(value, forKey: key) } }

    func encodeIfPresent<Value: Encodable>(_ value: Value?, forKey key: Key) throws {
        if let value { try encode(value, forKey: key) }
    }

    // MARK: Nested containers

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) -> KeyedEncodingContainer<NestedKey> {
        let nested = nestedPlace(.object, forKey: key)
        return nested.writer.keyedContainer(keyedBy: type, at: nested)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        UnkeyedWriter(nestedPlace(.array, forKey: key))
    }

    func superEncoder(forKey key: Key) -> any Encoder {
        do {
            return ValueEncoder(open: try begin(key, hasParts: true))
        } catch {
            return ValueEncoder(failed: unsafe state.pointee.container.writer, error)
        }
    }

    func superEncoder() -> any Encoder {
        // As a key of the type, if it has this one, so that duplicates are found.
        if let key = Key(stringValue: "super") { return superEncoder(forKey: key) }
        do {
            let key = PathKey(stringValue: "super")
            let name = unsafe state.pointee.container.name(of: key)
            try unsafe state.pointee.container.beginMember(name)
            let container = unsafe state.pointee.container
            unsafe state.pointee.owner = container.writer.storage
            container.keep(key)
            return ValueEncoder(open: container.writer)
        } catch {
            return ValueEncoder(failed: unsafe state.pointee.container.writer, error)
        }
    }

    /// Opens a nested array or object. If the key has one already, it is continued.
    private func nestedPlace(_ kind: OpenValue.Kind, forKey key: Key) -> ContainerPlace {
        do {
            let writer = try begin(key, hasParts: true)
            let container = unsafe state.pointee.container
            if let earlier = container.earlierContainer(kind) {
                container.removeLast()
                return earlier
            }
            return writer.openContainer(kind)
        } catch {
            let writer = unsafe state.pointee.container.writer
            writer.fail(error)
            return .nowhere(writer)
        }
    }
}
