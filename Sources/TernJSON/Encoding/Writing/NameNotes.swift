/// The place of an object, or of a member, in a text whose names are sorted when it is finished.
///
/// The note of an object is before those of its members. An object whose members were written in order, as were those
/// of all objects within it, leaves no notes.
struct NameNote: BitwiseCopyable {
    /// The first eight bytes of a member's name as a number, without escapes. For an object, 1 if its members are not
    /// in order.
    var key = UInt64(0)
    /// The place of a member in the text, after its comma, or of an object's first byte.
    var start: Int
    /// The place after a member, or after the last member of an object.
    var end = 0
    /// The index after the notes of what is in a member or an object.
    var noteEnd = 0
    /// The index of an object's last member, or of the member before; that of the object if there is none.
    var last: Int
}

extension JSONTextWriter {
    /// Notes an object that is about to be opened.
    @inline(__always)
    func noteObject(_ index: Int) {
        let added = unsafe state.pointee.context.pointee.notes.count
        unsafe openValue(index).pointee.note = added
        unsafe state.pointee.context.pointee.notes.append(NameNote(start: count, last: added))
    }

    /// Notes the member that was begun.
    ///
    /// - Parameter prefix: The first eight bytes of its name.
    @inline(never)
    func noteName(_ prefix: UInt64, of index: Int) {
        let context = unsafe state.pointee.context
        let value = unsafe openValue(index)
        let object = unsafe value.pointee.note
        let last = unsafe context.pointee.notes.elements[object].last
        let added = unsafe context.pointee.notes.count
        unsafe context.pointee.notes.append(NameNote(key: prefix, start: value.pointee.partStart, last: last))
        let notes = unsafe context.pointee.notes.elements
        unsafe notes[object].last = added
        unsafe notes[last].end = value.pointee.lastStart
        unsafe notes[last].noteEnd = added
        // Equal prefixes are compared when the names are sorted.
        if unsafe notes[last].key >= prefix { unsafe notes[object].key = 1 }
    }

    /// Notes the end of an object, or forgets it, if nothing in it has to be sorted.
    @inline(never)
    func noteEnd(of object: OpenValue) {
        let context = unsafe state.pointee.context
        let notes = unsafe context.pointee.notes.elements
        let noteCount = unsafe context.pointee.notes.count
        if unsafe notes[object.note].key == 0, noteCount == object.note &+ 1 &+ object.count {
            return unsafe context.pointee.notes.cut(to: object.note)
        }
        let last = unsafe notes + notes[object.note].last
        unsafe (last.pointee.end, last.pointee.noteEnd) = (count, noteCount)
        unsafe (notes[object.note].end, notes[object.note].noteEnd) = (count, noteCount)
    }

    /// Forgets the notes of text that was removed from an open value.
    func forgetNotes(of index: Int) {
        guard unsafe state.pointee.sortsNames else { return }
        let context = unsafe state.pointee.context
        let notes = unsafe context.pointee.notes.elements
        let value = unsafe openValue(index).pointee
        if value.kind == .object {
            var last = unsafe notes[value.note].last
            while unsafe last > value.note && notes[last].start >= count { last = unsafe notes[last].last }
            unsafe notes[value.note].last = last
        }
        var kept = unsafe context.pointee.notes.count
        while unsafe kept > 0 && notes[kept - 1].start >= count { kept -= 1 }
        unsafe context.pointee.notes.cut(to: kept)
    }

    /// Returns the first eight bytes of a name that was just written, as a number. A shorter name is followed by zeros.
    ///
    /// - Parameter name: The range of the name with its quotes, after which the text has room for a word.
    func namePrefix(of name: Range<Int>) -> UInt64 {
        let length = name.count &- 2
        let start = unsafe UnsafeRawPointer(state.pointee.bytes + name.lowerBound + 1)
        let word = unsafe start.loadUnaligned(as: UInt64.self).bigEndian
        let prefix = length >= 8 ? word : word & ~(UInt64.max &>> UInt64(8 &* length))
        guard ByteWords.hasByte(UInt8(ascii: "\\"), in: prefix) else { return prefix }
        let bytes = unsafe WrittenText(text).unescaped(name).prefix(8)
        return bytes.reduce(0) { $0 << 8 | UInt64($1) } << UInt64(8 * (8 - bytes.count))
    }
}
