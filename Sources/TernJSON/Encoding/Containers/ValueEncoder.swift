/// The encoder for one value, and its container for a single value.
struct ValueEncoder: Encoder, SingleValueEncodingContainer {
    /// The storage is kept while the encoder is.
    private let storage: EncodingStorage
    /// The open value that is encoded, and the place of its first byte.
    private let index: Int
    private let start: Int

    @inline(__always)
    init(_ storage: EncodingStorage, index: Int, start: Int) {
        self.storage = storage
        self.index = index
        self.start = start
    }

    /// Opens the next value of a text.
    init(open writer: JSONTextWriter) {
        let start = writer.count
        self.init(writer.storage, index: writer.open(), start: start)
    }

    /// Creates an encoder that writes nothing, where no error can be thrown. The encoding ends with the error.
    init(failed writer: JSONTextWriter, _ error: any Error) {
        writer.fail(error)
        self.init(writer.storage, index: .max - 1, start: -1)
    }

    private var writer: JSONTextWriter {
        @inline(__always) get { storage.writer }
    }

    var codingPath: [any CodingKey] {
        isOpen ? writer.codingPath(below: index) : storage.path(to: start)
    }

    var userInfo: [CodingUserInfoKey: Any] { writer.options.userInfo }

    // MARK: The place

    @inline(__always) private var isOpen: Bool {
        unsafe writer.depth > index && writer.openValue(index).pointee.start == start
    }

    /// The kind of what was written of the value. The value is open.
    @inline(__always) private var kind: OpenValue.Kind { unsafe writer.openValue(index).pointee.kind }

    @inline(__always) private var isEmpty: Bool { writer.count == start && isOpen && kind == .undecided }

    private func misuse(_ text: String) -> EncodingError {
        .invalidValue(
            Optional<Int>.none as Any, EncodingError.Context(codingPath: codingPath, debugDescription: text))
    }

    /// Returns the place of the array or object that the value is or becomes.
    @inline(__always)
    private func container(_ kind: OpenValue.Kind) throws -> ContainerPlace {
        if writer.depth == index &+ 1, isEmpty {
            guard kind == .object ? writer.beginObject(index) : writer.beginArray(index) else {
                throw JSONTextWriter.tooDeep
            }
            return ContainerPlace(writer, index: index, id: OpenValue.id(start: start, kind))
        }
        return try earlierContainer(kind)
    }

    /// Returns the place of a container that was made before, or that continues a value that is finished.
    @inline(never)
    private func earlierContainer(_ kind: OpenValue.Kind) throws -> ContainerPlace {
        try writer.checkFailure()
        if isOpen {
            writer.close(to: index + 1)
            if isEmpty { return try container(kind) }
            if self.kind == kind {
                // Another type of keys can have the same names.
                if kind == .object { writer.noteDuplicates() }
                return ContainerPlace(writer, index: index, id: OpenValue.id(start: start, kind))
            }
        }
        if !isOpen || self.kind == .undecided, let late = storage.lateText(for: start, kind, nesting: index) {
            return try ValueEncoder(late, index: 0, start: 0).container(kind)
        }
        throw misuse(
            kind == .object
                ? "Attempt to push new keyed encoding container when already previously encoded at this path."
                : "Attempt to push new unkeyed encoding container when already previously encoded at this path.")
    }

    // MARK: Encoder

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        do {
            return writer.keyedContainer(keyedBy: type, at: try container(.object))
        } catch {
            writer.fail(error)
            return writer.keyedContainer(keyedBy: type, at: .nowhere(writer))
        }
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        do {
            return UnkeyedWriter(try container(.array))
        } catch {
            writer.fail(error)
            return UnkeyedWriter(.nowhere(writer))
        }
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    // MARK: A single value

    /// Returns the encoder that the value goes to: this one, or one for a value that comes late.
    ///
    /// - Throws: `EncodingError` if there is a value already.
    @inline(__always)
    private func begin() throws -> JSONTextWriter {
        if writer.depth == index &+ 1, isEmpty { return writer }
        let late = try located()
        guard late.isEmpty else {
            throw misuse(
                "Attempt to encode value through single value container when previously value already encoded.")
        }
        return late.writer
    }

    /// Returns the encoder for the value, which is the innermost open one.
    @inline(never)
    private func located() throws -> ValueEncoder {
        try writer.checkFailure()
        if isOpen {
            writer.close(to: index + 1)
            return self
        }
        guard let late = storage.lateText(for: start, .undecided, nesting: index) else {
            throw misuse("Attempt to encode a value after the value at this path was finished.")
        }
        late.writer.close(to: 1)
        return ValueEncoder(late, index: 0, start: 0)
    }

    func encodeNil() throws { try begin().writeNull() }
    func encode(_ value: Bool) throws { try begin().write(value) }
    func encode(_ value: String) throws { try begin().write(value) }
    func encode(_ value: Double) throws { try begin().write(value) }
    func encode(_ value: Float) throws { try begin().write(value) }
    func encode(_ value: Int) throws { try begin().write(value) }
    func encode(_ value: Int8) throws { try begin().write(value) }
    func encode(_ value: Int16) throws { try begin().write(value) }
    func encode(_ value: Int32) throws { try begin().write(value) }
    func encode(_ value: Int64) throws { try begin().write(value) }
    func encode(_ value: Int128) throws { try begin().write(value) }
    func encode(_ value: UInt) throws { try begin().write(value) }
    func encode(_ value: UInt8) throws { try begin().write(value) }
    func encode(_ value: UInt16) throws { try begin().write(value) }
    func encode(_ value: UInt32) throws { try begin().write(value) }
    func encode(_ value: UInt64) throws { try begin().write(value) }
    func encode(_ value: UInt128) throws { try begin().write(value) }

    /// Encodes a value at this place. A value with parts of its own adds them to what is there already, as a base class
    /// does.
    func encode<Value: Encodable>(_ value: Value) throws {
        let place = writer.depth == index &+ 1 && isEmpty ? self : try located()
        let kind = place.writer.kind(of: Value.self)
        let entry = place.writer.mark(place.index)
        do {
            guard kind.isPlain || (kind.isContainer && !place.isEmpty) else {
                return try place.begin().write(value, as: kind)
            }
            try place.writer.withinCall { try value.encode(to: place) }
        } catch {
            // The caller can go on with another value.
            place.writer.undo(to: entry)
            throw error
        }
        if place.isEmpty { place.writer.writeEmptyObject() }
    }
}
