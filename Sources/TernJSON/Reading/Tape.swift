/// The tokens of a JSON text, in memory that is used again for the next one.
///
/// A token takes 16 bytes, and a text of n bytes has at most (n + 1) / 2 tokens: the tape is at most 8 times as large
/// as the text (`[1,1,1,…`), and 8 bytes larger for each level of open brackets. It is about as large as usual texts.
@safe
struct Tape {
    private(set) var tokens: UnsafeMutablePointer<Token>
    private(set) var capacity: Int
    var count = 0
    /// The innermost container that was open when scanning ended with an error; -1 if there is none.
    var openContainer = -1

    init(capacity: Int) {
        self.capacity = capacity
        unsafe tokens = .allocate(capacity: capacity)
    }

    /// Makes room for a key and a value after the first `count` tokens.
    ///
    /// - Parameter limit: The largest capacity that the text can need.
    @inline(never)
    mutating func grow(limit: Int, count: Int) {
        let larger = min(capacity * 2, limit)
        precondition(larger >= count + 2)
        resize(to: larger, count: count)
    }

    private mutating func resize(to larger: Int, count: Int) {
        let copy = UnsafeMutablePointer<Token>.allocate(capacity: larger)
        unsafe copy.update(from: tokens, count: count)
        unsafe tokens.deallocate()
        unsafe tokens = unsafe copy
        capacity = larger
    }

    /// Makes room for the usual number of tokens of a text, so that it seldom grows while scanning.
    mutating func reserve(for byteCount: Int) {
        let usual = byteCount / 12
        if usual > capacity { resize(to: usual, count: 0) }
    }

    /// Forgets the tokens, and overwrites them.
    mutating func clear() {
        unsafe UnsafeMutableRawPointer(tokens).initializeMemory(
            as: UInt8.self, repeating: 0, count: count * MemoryLayout<Token>.stride)
        count = 0
    }

    func deallocate() { unsafe tokens.deallocate() }
}
