/// Values are opened and closed in order. When something is written to a value around the innermost one, those within
/// it are closed first.
extension JSONTextWriter {
    /// The number of open values.
    @inline(__always) var depth: Int { unsafe state.pointee.depth }

    /// The number of open arrays and objects.
    @inline(__always) var nesting: Int { unsafe state.pointee.nesting }

    @inline(__always)
    func openValue(_ index: Int) -> UnsafeMutablePointer<OpenValue> { unsafe state.pointee.open + index }

    /// Opens the value that the next bytes belong to, and returns its index.
    @inline(__always)
    func open() -> Int {
        let index = depth
        if unsafe index == state.pointee.openCapacity { growOpenValues() }
        unsafe openValue(index).initialize(to: OpenValue(start: count))
        unsafe state.pointee.depth = index &+ 1
        return index
    }

    @inline(never)
    private func growOpenValues() {
        let old = unsafe state.pointee.openCapacity
        let capacity = old * 2
        let open = UnsafeMutablePointer<OpenValue>.allocate(capacity: capacity)
        unsafe open.moveInitialize(from: state.pointee.open, count: depth)
        unsafe state.pointee.open.deallocate()
        unsafe state.pointee.open = open
        let seen = UnsafeMutablePointer<UInt64>.allocate(capacity: 4 * capacity)
        unsafe seen.moveInitialize(from: state.pointee.seen, count: 4 * depth)
        unsafe state.pointee.seen.deallocate()
        unsafe state.pointee.seen = seen
        let keys = UnsafeMutablePointer<(any CodingKey)?>.allocate(capacity: capacity)
        unsafe keys.moveInitialize(from: state.pointee.keys, count: old)
        unsafe (keys + old).initialize(repeating: nil, count: capacity - old)
        unsafe state.pointee.keys.deallocate()
        unsafe state.pointee.keys = keys
        unsafe state.pointee.openCapacity = capacity
    }

    /// Makes an open value, of which nothing is written, an object.
    ///
    /// Returns false if arrays and objects would nest too deep. Then nothing is written.
    @inline(__always)
    func beginObject(_ index: Int) -> Bool {
        guard enter() else { return false }
        if unsafe state.pointee.sortsNames { noteObject(index) }
        append(UInt8(ascii: "{"))
        unsafe openValue(index).pointee.id |= OpenValue.Kind.object.rawValue
        let seen = unsafe state.pointee.seen + 4 &* index
        unsafe seen[0] = 0
        unsafe seen[1] = 0
        unsafe seen[2] = 0
        unsafe seen[3] = 0
        return true
    }

    /// Makes an open value, of which nothing is written, an array.
    @inline(__always)
    func beginArray(_ index: Int) -> Bool {
        guard enter() else { return false }
        append(UInt8(ascii: "["))
        unsafe openValue(index).pointee.id |= OpenValue.Kind.array.rawValue
        return true
    }

    @inline(__always)
    private func enter() -> Bool {
        let nesting = unsafe state.pointee.nesting
        guard nesting < EncodingContext.maximumNesting else { return false }
        unsafe state.pointee.nesting = nesting &+ 1
        return true
    }

    /// The error for arrays and objects that nest too deep.
    static var tooDeep: EncodingError {
        let text = """
            Unable to encode the given top-level value to JSON: its values nest too deep (the limits are \
            \(EncodingContext.maximumNesting) levels of arrays and objects, and \(EncodingContext.maximumStack / 1_024) KiB \
            of stack).
            """
        return .invalidValue(
            Optional<Int>.none as Any, EncodingError.Context(codingPath: [], debugDescription: text))
    }

    /// Closes the innermost values until `depth` are left. A value of which nothing was written becomes an empty
    /// object.
    @inline(__always)
    func close(to depth: Int) {
        while self.depth > depth { closeLast() }
    }

    @inline(__always)
    private func closeLast() {
        let index = depth &- 1
        unsafe state.pointee.depth = index
        let value = unsafe openValue(index).pointee
        switch value.kind {
        case .object:
            if unsafe state.pointee.sortsNames { noteEnd(of: value) }
            closeBracket(UInt8(ascii: "}"), isEmpty: value.count == 0)
        case .array: closeBracket(UInt8(ascii: "]"), isEmpty: value.count == 0)
        case .undecided: if count == value.start { writeEmptyObject() }
        }
    }

    @inline(__always)
    private func closeBracket(_ bracket: UInt8, isEmpty: Bool) {
        unsafe state.pointee.nesting &-= 1
        if unsafe state.pointee.hasLines { appendLastLine(nesting, isEmpty: isEmpty) }
        append(bracket)
    }

    @inline(never)
    func writeEmptyObject() {
        append(UInt8(ascii: "{"))
        if unsafe state.pointee.hasLines { appendLastLine(nesting, isEmpty: true) }
        append(UInt8(ascii: "}"))
    }

    /// Returns whether a value is still open.
    @inline(__always)
    func isOpen(_ index: Int, id: Int) -> Bool {
        unsafe depth > index && openValue(index).pointee.id == id
    }

    /// Removes the last member or element of an array or object, whose value threw an error, as if it had not been
    /// written.
    @inline(never)
    func removeLast(of index: Int, id: Int) {
        guard isOpen(index, id: id) else { return }
        let value = unsafe openValue(index)
        // Another call can have removed it. The first element of an array has no comma and no key, so that it can have
        // no bytes yet.
        let hasBytes = unsafe value.pointee.lastStart < count
        let isFirst = unsafe value.pointee.count == 1 && value.pointee.lastStart == value.pointee.start + 1
        guard unsafe value.pointee.count > 0, hasBytes || isFirst else { return }
        dropOpenValues(to: index + 1)
        unsafe count = value.pointee.lastStart
        unsafe value.pointee.count &-= 1
        forgetNotes(of: index)
        if unsafe state.pointee.hasLate { storage.forgetLate(from: count) }
    }

    /// Forgets the innermost values until `depth` are left, whose text is about to be removed.
    private func dropOpenValues(to depth: Int) {
        while self.depth > depth {
            unsafe state.pointee.depth &-= 1
            if unsafe openValue(self.depth).pointee.kind != .undecided { unsafe state.pointee.nesting &-= 1 }
        }
    }

    /// The form of an open value at one time.
    struct Mark {
        fileprivate let index: Int
        fileprivate let count: Int
        fileprivate let value: OpenValue
    }

    /// Returns the present form of an open value, to return to it when the rest of the value throws an error.
    @inline(__always)
    func mark(_ index: Int) -> Mark { Mark(index: index, count: count, value: unsafe openValue(index).pointee) }

    /// Removes what was written since a mark, as if it had not been.
    @inline(never)
    func undo(to mark: Mark) {
        guard unsafe depth > mark.index && openValue(mark.index).pointee.start == mark.value.start,
            count >= mark.count
        else { return }
        dropOpenValues(to: mark.index + 1)
        if unsafe openValue(mark.index).pointee.kind != mark.value.kind { unsafe state.pointee.nesting &-= 1 }
        count = mark.count
        unsafe openValue(mark.index).pointee = mark.value
        forgetNotes(of: mark.index)
        if unsafe state.pointee.hasLate { storage.forgetLate(from: count) }
    }
}

/// An array or an object that is written: its text, and its place there.
@safe
struct ContainerPlace {
    private(set) var writer: JSONTextWriter
    private(set) var index: Int
    private(set) var id: Int

    @inline(__always)
    init(_ writer: JSONTextWriter, index: Int, id: Int) {
        self.writer = writer
        self.index = index
        self.id = id
    }

    /// A place where nothing can be written, because the container could not be made. Writing throws.
    static func nowhere(_ writer: JSONTextWriter) -> ContainerPlace { ContainerPlace(writer, index: .max - 1, id: -1) }

    /// Whether the container is the innermost value, so that something can be appended.
    @inline(__always) var isInnermost: Bool {
        unsafe writer.depth == index &+ 1 && writer.openValue(index).pointee.id == id
    }

    /// Makes the container the innermost value: closes those within it, or goes on in a text of its own if it is
    /// closed.
    ///
    /// - Throws: The encoding's failure, and `EncodingError` if there is no container at this place any more.
    @inline(__always)
    mutating func prepare() throws {
        if !isInnermost { try reopen() }
    }

    @inline(never)
    private mutating func reopen() throws {
        if writer.isOpen(index, id: id) {
            writer.close(to: index + 1)
            return
        }
        try writer.checkFailure()
        let kind = OpenValue.Kind(rawValue: id & 3) ?? .undecided
        guard id >= 0, let late = writer.storage.lateText(for: id >> 2, kind, nesting: index),
            late.writer.isOpen(0, id: OpenValue.id(start: 0, kind))
        else {
            let text = "A container was used whose value was removed, because another part of it threw an error."
            throw EncodingError.invalidValue(
                Optional<Int>.none as Any, EncodingError.Context(codingPath: [], debugDescription: text))
        }
        writer = late.writer
        index = 0
        id = OpenValue.id(start: 0, kind)
        writer.close(to: 1)
    }

    /// Begins an element of an array: writes the comma.
    @inline(__always)
    mutating func beginElement() throws {
        try prepare()
        let value = unsafe writer.openValue(index)
        unsafe value.pointee.lastStart = writer.count
        let count = unsafe value.pointee.count
        unsafe value.pointee.count = count &+ 1
        if count != 0 { writer.append(UInt8(ascii: ",")) }
        if unsafe writer.state.pointee.hasLines { writer.appendLine(writer.nesting) }
    }

    /// Begins a member of an object whose key is not in a table: writes the comma, the key and the colon.
    @inline(__always)
    mutating func beginMember(_ key: String, isUnique: Bool = false) throws {
        try prepare()
        let value = unsafe writer.openValue(index)
        unsafe value.pointee.lastStart = writer.count
        unsafe value.pointee.table = nil
        unsafe value.pointee.tag = 0
        let count = unsafe value.pointee.count
        unsafe value.pointee.count = count &+ 1
        if count != 0 { writer.append(UInt8(ascii: ",")) }
        if unsafe writer.state.pointee.hasLines { writer.appendLine(writer.nesting) }
        let start = writer.count
        writer.write(key)
        if !isUnique { _ = writer.noteKey(from: start, of: index) }
        if unsafe writer.state.pointee.sortsNames {
            writer.noteName(writer.namePrefix(of: start..<writer.count), of: index)
        }
        if unsafe writer.state.pointee.hasLines { writer.appendColon() } else { writer.append(UInt8(ascii: ":")) }
    }

    /// Removes the last member or element, whose value threw an error.
    func removeLast() { writer.removeLast(of: index, id: id) }
}

extension JSONTextWriter {
    /// Notes a key that is not in a table by a hash of 8 bits, and returns whether the object may have had it before.
    ///
    /// A collision costs a pass over the finished text, which then finds no duplicates.
    @inline(never)
    func noteKey(from start: Int, of index: Int) -> Bool {
        var hash = UInt64(0)
        var place = unsafe UnsafeRawPointer(state.pointee.bytes + start)
        var left = count &- start
        while left >= 8 {
            hash = unsafe (hash ^ place.loadUnaligned(as: UInt64.self)) &* 0x9E37_79B9_7F4A_7C15
            hash ^= hash &>> 29
            unsafe place += 8
            left &-= 8
        }
        while left > 0 {
            hash = unsafe (hash ^ UInt64(place.load(as: UInt8.self))) &* 0x9E37_79B9_7F4A_7C15
            unsafe place += 1
            left &-= 1
        }
        return noteKey(tag: UInt8(truncatingIfNeeded: hash &>> 56), of: index)
    }

    /// Notes a key, and returns whether the object had it before.
    @inline(__always)
    func noteKey(tag: UInt8, of index: Int) -> Bool {
        let word = unsafe state.pointee.seen + (4 &* index &+ Int(tag &>> 6))
        let bit = UInt64(1) &<< UInt64(tag & 63)
        let isKnown = unsafe word.pointee & bit != 0
        unsafe word.pointee |= bit
        if isKnown { unsafe state.pointee.context.pointee.mayHaveDuplicates = true }
        return isKnown
    }
}
