/// A text that is being written, and the values in it that are not finished.
///
/// Writers reach the state through a pointer, because properties of a class would cost a retain and a check of
/// exclusive access for each member. ``EncodingStorage`` owns the memory.
@safe
struct EncodingState {
    // MARK: The text

    /// The text so far. Its names are sorted when it is finished.
    var bytes: UnsafeMutablePointer<UInt8>
    var count = 0
    /// The count up to which nothing has to be checked: the capacity, or the next look for cancellation.
    var limit: Int
    var capacity: Int
    /// The count at which the task is asked for cancellation again.
    var nextCheck = EncodingState.checkInterval
    /// Eight times `/`, or a byte that is always escaped.
    var slashes = EncodingState.escapedSlashes
    /// For each byte, its text with escapes, and the length of this in the highest byte.
    var escapes: UnsafeMutablePointer<UInt64>

    /// Whether each member and element has a line of its own.
    var hasLines = false
    /// Whether the places of members are noted, to sort them.
    var sortsNames = false

    // MARK: Open values

    var open: UnsafeMutablePointer<OpenValue>
    var openCapacity: Int
    /// The number of open values.
    var depth = 0
    /// The number of arrays and objects among them, and around this text.
    var nesting = 0
    /// For each open value, 256 bits that say which keys an object has.
    var seen: UnsafeMutablePointer<UInt64>
    /// For each open value, the key under which a member is written, if it is not one of a key table.
    var keys: UnsafeMutablePointer<(any CodingKey)?>
    /// Whether there is any of these keys.
    var hasKeys = false
    /// Whether the storage has late texts or indexes.
    var hasLate = false
    /// The number of elements that an array had before it was reopened.
    var earlierElements = 0

    // MARK: Shared by all texts of an encoding

    var context: UnsafeMutablePointer<EncodingContext>
    /// The owner of this state.
    unowned(unsafe) var storage: EncodingStorage

    static let checkInterval = 65_536
    static let escapedSlashes = UInt64(0x2F2F_2F2F_2F2F_2F2F)
    static let backslashes = UInt64(0x5C5C_5C5C_5C5C_5C5C)
}

/// A value that is being written.
@safe
struct OpenValue {
    /// The kind of what was written of the value. The raw values are the lower bits of ``OpenValue/id``.
    enum Kind: Int {
        /// Nothing, or a whole value.
        case undecided = 0
        /// The opening bracket of an object, and members.
        case object = 1
        /// The opening bracket of an array, and elements.
        case array = 2
    }

    /// The place of the value's first byte in the text, shifted by two, and the kind.
    var id: Int
    /// The number of members or elements.
    var count = 0
    /// The place of the last member or element, before its comma.
    var lastStart = 0
    /// The keys of which `tag` is one, if the last member was written with a key table.
    var table: UnsafeMutablePointer<KeyTextTable>?
    /// The last key.
    var tag = UInt8(0)
    /// The index of an object's note, if names are sorted.
    var note = 0

    @inline(__always)
    init(start: Int) { id = start &<< 2 }

    @inline(__always)
    static func id(start: Int, _ kind: Kind) -> Int { start &<< 2 | kind.rawValue }

    @inline(__always) var start: Int { id &>> 2 }
    /// The place of the last member or element, after its comma.
    @inline(__always) var partStart: Int { lastStart &+ (count > 1 ? 1 : 0) }
    @inline(__always) var kind: Kind { Kind(rawValue: id & 3) ?? .undecided }
}

/// The settings of an encoding, and what all its texts share.
@safe
struct EncodingContext {
    var options = TernJSONEncoder()
    var formatting: TernJSONEncoder.OutputFormatting = []
    /// Whether the options are all of an encoder that has no settings, except for its formatting.
    var hasDefaultOptions = true
    /// For each byte, its text with escapes: see ``EncodingState/escapes``.
    let escapes = unsafe EscapeTable.make()
    /// The storage for the text in its final form.
    var output: EncodingStorage?
    /// Whether a name depends on its key only. Not with a function that converts keys, which gets the whole path.
    var usesKeyTables = true
    /// The number of `encode(to:)` that are running.
    var calls = 0
    /// Counts down to the next look at the task's cancellation.
    var callsUntilCheck = Self.callsBetweenChecks
    /// The place on the stack where the encoding began.
    var stackStart = 0
    /// The error with which the encoding ends, because the place where it occurred could not throw.
    var failure: (any Error)?
    /// A Boolean value that is read more often than the error.
    var hasFailed = false
    /// A name may occur twice in an object.
    var mayHaveDuplicates = false
    /// The places of the members of the main text, if names are sorted.
    var notes = PooledRow<NameNote>()
    /// The texts that were written out of order.
    var lateStorages: [EncodingStorage] = []

    // MARK: Kept for the next encoding

    var valueKinds = TypeTable<ValueKind>()
    var keyTables = KeyTableCache()
    var sorter = NameSorter()

    /// The number of calls of `encode(to:)` after which the task is asked for cancellation.
    static let callsBetweenChecks = 16
    /// The largest number of calls of `encode(to:)` within each other.
    static let maximumCalls = 512
    /// The number of calls for which the stack always suffices.
    static let uncheckedCalls = 32
    /// The stack that they may use, in bytes. A level takes 0.4 to 1.5 KiB in a release build, and 1 to 7 KiB in a
    /// debug build; threads of Apple's systems have 512 KiB.
    static let maximumStack = 320 * 1_024
    /// The deepest nesting of arrays and objects.
    static let maximumNesting = 512
}
