/// The place that a keyed container writes to. It is memory of its own, so that a container can be used again for
/// another object.
@safe
final class KeyedPlace {
    @safe
    struct State {
        var container: ContainerPlace
        let table: UnsafeMutablePointer<KeyTextTable>
        /// The storage, if it has no reference to the container, so that the container must keep it.
        var owner: EncodingStorage?
        var keys = KeyForm.table
    }

    /// The way to write the keys of an object.
    enum KeyForm {
        /// By their names: for types of keys that have no table, and for a function that converts keys by their paths.
        case names
        /// From the table.
        case table
        /// From the table, each one on a line of its own.
        case tableWithLines
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
        guard unsafe state.pointee.keys == .table && state.pointee.container.isInnermost,
            let entry = unsafe state.pointee.table.pointee.entry(at: Self.tag(of: key))
        else { return try beginSlowly(key, hasParts: hasParts) }
        return begin(key, entry, hasParts: hasParts, hasLines: false)
    }

    /// Writes a key of the table.
    @inline(__always)
    private func begin(_ key: Key, _ entry: KeyTextTable.Entry, hasParts: Bool, hasLines: Bool) -> JSONTextWriter {
        let container = unsafe state.pointee.container
        let writer = container.writer
        _ = writer.noteKey(tag: entry.tag, of: container.index)
        let value = unsafe writer.openValue(container.index)
        unsafe value.pointee.lastStart = writer.count
        if hasParts {
            unsafe value.pointee.table = state.pointee.table
            unsafe value.pointee.tag = Self.tag(of: key)
        }
        let count = unsafe value.pointee.count
        unsafe value.pointee.count = count &+ 1
        if unsafe writer.state.pointee.sortsNames { writer.noteName(entry.prefix, of: container.index) }
        if hasLines {
            unsafe writer.appendLine(of: entry.text + 1, count: entry.count &- 2, hasComma: count != 0)
        } else {
            // The first member has no comma.
            let skipped = count == 0 ? 1 : 0
            unsafe writer.appendBlocks(entry.text + skipped, count: entry.count &- skipped)
        }
        return writer
    }

    /// Writes keys on lines, fills the table, reopens an object that was closed, and writes keys that have no table.
    @inline(never)
    private func beginSlowly(_ key: Key, hasParts: Bool) throws -> JSONTextWriter {
        if unsafe !state.pointee.container.isInnermost { try reopen() }
        let (form, table, tag) = unsafe (state.pointee.keys, state.pointee.table, Self.tag(of: key))
        if form != .names, let entry = unsafe table.pointee.entry(at: tag) {
            return begin(key, entry, hasParts: hasParts, hasLines: form == .tableWithLines)
        }
        let name = unsafe state.pointee.container.name(of: key)
        // A slash is escaped or not, by the settings of each encoding.
        let isKept = form != .names && !name.utf8.contains(UInt8(ascii: "/"))
        try unsafe state.pointee.container.beginMember(name, isUnique: isKept)
        let container = unsafe state.pointee.container
        if isKept {
            unsafe insert(key, to: table, from: container)
        } else if hasParts {
            container.keep(key)
        }
        return container.writer
    }

    /// Makes an object the innermost value.
    private func reopen() throws {
        let before = unsafe state.pointee.container.writer.storage
        try unsafe state.pointee.container.prepare()
        let storage = unsafe state.pointee.container.writer.storage
        if storage !== before { unsafe state.pointee.owner = storage }
    }

    /// Adds the key of the member that was begun to the table.
    private func insert(_ key: Key, to table: UnsafeMutablePointer<KeyTextTable>, from container: ContainerPlace) {
        let writer = container.writer
        let value = unsafe writer.openValue(container.index)
        let text = unsafe WrittenText(writer.text)
        let start = unsafe text.afterSpace(value.pointee.partStart)
        let name = start..<text.endOfString(at: start)
        let tag = Self.tag(of: key)
        let prefix = writer.namePrefix(of: name)
        let entry = unsafe table.pointee.insert(key, tag: tag, name: text.slice(name), prefix: prefix)
        _ = writer.noteKey(tag: entry.tag, of: container.index)
        unsafe value.pointee.table = table
        unsafe value.pointee.tag = tag
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
