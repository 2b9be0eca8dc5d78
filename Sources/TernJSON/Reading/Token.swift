/// A value or key of a JSON text, as the scanner found it. A text becomes an array of tokens, the tape.
///
/// The tokens of an array or object follow its own; in an object, each value follows its key.
struct Token {
    /// The kinds in an order that lets a comparison tell numbers and containers apart from the rest.
    enum Kind: UInt8 {
        case null
        case no
        case yes
        /// A number without fraction and exponent whose magnitude fits into 64 bits.
        case integer
        /// A number with at most 19 digits: ``Token/significand`` × 10^``Token/exponent``.
        case decimal
        /// A number with more digits, of ``Token/length`` bytes.
        case longNumber
        case string
        case array
        case object
    }

    /// Facts about a token that save work later.
    enum Flags {
        /// A number is negative.
        static var isNegative: UInt8 { 1 }
        /// A string has escapes.
        static var hasEscapes: UInt8 { 1 }
        /// A string has characters beyond ASCII, also by escapes.
        static var isNotASCII: UInt8 { 2 }
        /// The keys of an object are known to be different and without escapes: a plain search finds the right one.
        static var isPlain: UInt8 { 4 }
        /// The keys of an object must be looked up in an index.
        static var needsIndex: UInt8 { 8 }
        /// An object was decoded as a dictionary, whose keys are not converted.
        static var isDictionary: UInt8 { 16 }
    }

    /// Kind, flags, exponent and start in one word, so that a token is written with two stores.
    private var header: UInt64
    /// The significand of a number; or two halves: for a string, its length and hash (keys only); for a container, the
    /// index of the token after its last one and the number of its elements.
    var payload: UInt64

    @inline(__always)
    init(_ kind: Kind, flags: UInt8 = 0, exponent: Int16 = 0, start: UInt32, payload: UInt64 = 0) {
        let low = UInt64(kind.rawValue) | UInt64(flags) &<< 8
        header = low | UInt64(UInt16(bitPattern: exponent)) &<< 16 | UInt64(start) &<< 32
        self.payload = payload
    }

    @inline(__always)
    var kind: Kind {
        // The byte comes from a kind.
        unsafe unsafeBitCast(UInt8(truncatingIfNeeded: header), to: Kind.self)
    }
    @inline(__always) var flags: UInt8 { UInt8(truncatingIfNeeded: header &>> 8) }
    @inline(__always) var exponent: Int16 { Int16(truncatingIfNeeded: header &>> 16) }
    /// The offset of the value's first byte; for a string, of its first byte after the quotation mark.
    @inline(__always) var start: UInt32 { UInt32(truncatingIfNeeded: header &>> 32) }

    mutating func insert(_ flag: UInt8) { header |= UInt64(flag) &<< 8 }

    @inline(__always) var low: Int { Int(truncatingIfNeeded: payload & 0xFFFF_FFFF) }
    @inline(__always) var high: Int { Int(truncatingIfNeeded: payload &>> 32) }
    /// The number of bytes of a string between its quotation marks, or of a long number.
    @inline(__always) var length: Int { low }
    /// The index of the token after the last one of a container.
    @inline(__always) var end: Int { low }
    /// The number of elements of an array or members of an object.
    @inline(__always) var count: Int { high }
    @inline(__always) var isNegative: Bool { flags & Flags.isNegative != 0 }
    @inline(__always) var isContainer: Bool { kind.rawValue >= Kind.array.rawValue }
    @inline(__always) var isNumber: Bool {
        kind.rawValue &- Kind.integer.rawValue <= Kind.longNumber.rawValue &- Kind.integer.rawValue
    }

    @inline(__always)
    static func halves(_ low: Int, _ high: Int) -> UInt64 {
        UInt64(truncatingIfNeeded: low) & 0xFFFF_FFFF | UInt64(truncatingIfNeeded: high) &<< 32
    }

    /// The kind in words, for errors.
    var kindName: String {
        switch kind {
        case .null: "null"
        case .no, .yes: "a Boolean"
        case .integer, .decimal, .longNumber: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }
}
