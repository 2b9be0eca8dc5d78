/// A text with the notes of its objects and members (``NameNote``), which knows the order of members by their names.
@safe
struct NotedText {
    let bytes: UnsafeBufferPointer<UInt8>
    let notes: UnsafePointer<NameNote>
    let noteCount: Int
    /// Whether an object can have a name twice.
    let mayHaveDuplicates: Bool

    /// Makes the text of a writer readable up to `margin` bytes beyond its end, which are eight at least.
    init(_ writer: JSONTextWriter, margin: Int) {
        writer.reserve(margin)
        let context = unsafe writer.state.pointee.context
        unsafe bytes = writer.text
        unsafe notes = UnsafePointer(context.pointee.notes.elements)
        noteCount = unsafe context.pointee.notes.count
        mayHaveDuplicates = unsafe context.pointee.mayHaveDuplicates
    }

    /// Returns whether a member comes before another one: by their names, or as they were written.
    @inline(__always)
    func isOrdered(_ left: Int, _ right: Int) -> Bool {
        let (first, second) = unsafe (notes[left].key, notes[right].key)
        if first != second { return first < second }
        let order = compareNames(left, right)
        return order < 0 || order == 0 && left < right
    }

    /// Returns whether two members have one name.
    func haveOneName(_ left: Int, _ right: Int) -> Bool { compareNames(left, right) == 0 }

    /// Returns a number below, equal to, or above zero, as the name of a member is before, equal to, or after that of
    /// another one.
    @inline(never)
    private func compareNames(_ left: Int, _ right: Int) -> Int {
        let text = unsafe WrittenText(bytes)
        let start = unsafe (text.afterSpace(notes[left].start), text.afterSpace(notes[right].start))
        var (first, second) = (start.0 &+ 1, start.1 &+ 1)
        while max(first, second) < text.count {
            let words = (word(at: first), word(at: second))
            let difference = (words.0 ^ words.1).trailingZeroBitCount & ~7
            // A quote ends a name, and a backslash stands for another character.
            let stop = min(Self.firstStop(in: words.0), Self.firstStop(in: words.1))
            if stop > difference {
                return Int(words.0 &>> UInt64(difference) & 0xFF) &- Int(words.1 &>> UInt64(difference) & 0xFF)
            }
            if stop < 64 {
                let stops = (words.0 &>> UInt64(stop) & 0xFF, words.1 &>> UInt64(stop) & 0xFF)
                if stops.0 == 0x5C || stops.1 == 0x5C { break }
                return stops.0 == stops.1 ? 0 : stops.0 == 0x22 ? -1 : 1
            }
            (first, second) = (first &+ 8, second &+ 8)
        }
        let names = (
            text.unescaped(start.0..<text.endOfString(at: start.0)),
            text.unescaped(start.1..<text.endOfString(at: start.1))
        )
        return names.0 == names.1 ? 0 : names.0.lexicographicallyPrecedes(names.1) ? -1 : 1
    }

    /// Returns eight bytes of the text or of what follows it.
    @inline(__always)
    private func word(at place: Int) -> UInt64 {
        let word = unsafe UnsafeRawBufferPointer(bytes).baseAddress?
            .loadUnaligned(fromByteOffset: place, as: UInt64.self)
        return UInt64(littleEndian: word ?? 0)
    }

    /// Returns the bit at which the first quote or backslash begins; 64 if there is none.
    @inline(__always)
    private static func firstStop(in word: UInt64) -> Int {
        min(64, ByteWords.stringStops(word).trailingZeroBitCount & ~7)
    }
}
