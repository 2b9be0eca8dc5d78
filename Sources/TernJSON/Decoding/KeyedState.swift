/// The keys of one type of coding keys as bytes, found by the byte that is the key in memory.
///
/// Enumerations without associated values, as the compiler makes them, are one byte. (A key type of one byte must
/// always give the same string for the same byte; all that is needed is that its `stringValue` is a function of the
/// key.)
@safe
struct KeyTable {
    @safe
    struct Entry {
        var bytes: UnsafeMutablePointer<UInt8>?
        /// The length and hash, as in the payload of a key's token.
        var word: UInt64 = 0
        /// The key in a text that was converted from snake case to this one the last time, and its word.
        var snakeBytes: UnsafeMutablePointer<UInt8>?
        var snakeWord: UInt64 = 0
    }

    private(set) var entries: UnsafeMutablePointer<Entry>
    private(set) var capacity: Int

    init() {
        capacity = 32
        unsafe entries = .allocate(capacity: capacity)
        unsafe entries.initialize(repeating: Entry(), count: capacity)
    }

    @inline(never)
    mutating func fill(_ number: Int, with name: String) {
        if number >= capacity {
            let larger = UnsafeMutablePointer<Entry>.allocate(capacity: 256)
            unsafe larger.initialize(repeating: Entry(), count: 256)
            unsafe larger.update(from: entries, count: capacity)
            unsafe entries.deallocate()
            unsafe entries = unsafe larger
            capacity = 256
        }
        let (bytes, word) = unsafe Self.copy(name)
        unsafe entries[number] = unsafe Entry(bytes: bytes, word: word)
    }

    /// Remembers the key in a text that is converted to a key.
    mutating func learn(_ snake: String, for number: Int) {
        unsafe entries[number].snakeBytes?.deallocate()
        unsafe (entries[number].snakeBytes, entries[number].snakeWord) = unsafe Self.copy(snake)
    }

    @unsafe
    private static func copy(_ name: String) -> (UnsafeMutablePointer<UInt8>, UInt64) {
        let utf8 = Array(name.utf8)
        let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: utf8.count + 1)
        for index in utf8.indices { unsafe bytes[index] = utf8[index] }
        let hash = unsafe ByteWords.keyHash(bytes, count: utf8.count)
        return unsafe (bytes, Token.halves(utf8.count, Int(truncatingIfNeeded: hash)))
    }

    func deallocate() {
        for index in 0..<capacity {
            unsafe entries[index].bytes?.deallocate()
            unsafe entries[index].snakeBytes?.deallocate()
        }
        unsafe entries.deallocate()
    }
}

/// The state of one keyed container.
@safe
struct KeyedState {
    let core: DecodingCore
    let table: UnsafeMutablePointer<KeyTable>
    /// Whether keys are of at most one byte, so that the table has them.
    let keysAreBytes: Bool
    var mode: Mode
    var object = 0
    var end = 0
    /// The key that is compared first: the one after the last that was found.
    var cursor = 0
    /// The number of keys that may be compared before an index is made.
    var comparisonsLeft = 0
    var index: KeyIndex?

    /// The ways to find a key.
    enum Mode {
        /// By its bytes in the table.
        case table
        /// As `table`, with keys that the text has in snake case.
        case snake
        /// By its name.
        case name
    }
}
