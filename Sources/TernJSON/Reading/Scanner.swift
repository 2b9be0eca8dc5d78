/// Reads a JSON text (RFC 8259) to a ``Tape`` in one pass, without recursion.
///
/// Each place is compared with the end before it is read, so that no bytes can make it read beyond them.
@safe
struct Scanner {
    let base: UnsafePointer<UInt8>
    let end: UnsafePointer<UInt8>
    let depthLimit: Int

    /// The largest text: offsets and indexes have 32 bits.
    static var largestSize: Int { Int(UInt32(exactly: Int.max) ?? UInt32.max) - 64 }

    /// The number of bytes after which the task is asked whether it was cancelled.
    private static var checkInterval: Int { 65_536 }

    /// Reads a text. The caller keeps the bytes alive.
    @unsafe
    static func scan(
        _ bytes: UnsafeBufferPointer<UInt8>, to tape: inout Tape, depthLimit: Int
    ) throws(ScanFailure) {
        tape.count = 0
        tape.openContainer = -1
        guard let base = bytes.baseAddress, bytes.count > 0 else {
            throw .syntax(SyntaxError(problem: .isEmpty, offset: 0))
        }
        guard bytes.count <= largestSize else { throw .syntax(SyntaxError(problem: .tooLarge, offset: 0)) }
        tape.reserve(for: bytes.count)
        let scanner = unsafe Scanner(base: base, end: base + bytes.count, depthLimit: depthLimit)
        try scanner.scan(to: &tape)
    }

    private func scan(to tape: inout Tape) throws(ScanFailure) {
        var place = unsafe try begin()
        var tokens = unsafe tape.tokens
        var capacity = tape.capacity
        var count = 0
        var checkpoint = unsafe base + min(end - base, Self.checkInterval)
        // While a container is open, its token holds the index of the parent (plus one) and the parent's number of
        // elements.
        var parent = -1
        var elements = 0
        var depth = 0
        var isInObject = false
        // Keeps the tokens so far for the message of an error.
        defer {
            tape.count = count
            tape.openContainer = parent
        }

        while true {
            if unsafe count &+ 2 > capacity || place > checkpoint {
                if count &+ 2 > capacity {
                    tape.grow(limit: largestCapacity, count: count)
                    unsafe tokens = tape.tokens
                    capacity = tape.capacity
                }
                if unsafe place > checkpoint {
                    do { try DecodingCheckpoint.pass() } catch { throw .stopped(error) }
                    unsafe checkpoint = unsafe place + min(end - place, Self.checkInterval)
                }
            }
            if isInObject {
                unsafe place = try scanKey(at: place, token: tokens + count)
                count &+= 1
            }
            guard unsafe place < end else { throw unsafe failure(.endsEarly, at: end) }
            let byte = unsafe place[0]
            var isOpened = false
            var isContainer = false
            switch byte {
            case UInt8(ascii: "\""):
                var flags: UInt8 = 0
                let start = unsafe place + 1
                unsafe place = try endOfString(from: start, flags: &flags)
                let length = unsafe UInt64(truncatingIfNeeded: place - start)
                let offset = unsafe UInt32(truncatingIfNeeded: start - base)
                unsafe (tokens + count).initialize(to: Token(.string, flags: flags, start: offset, payload: length))
                unsafe place += 1
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth &+= 1
                if depth > depthLimit { throw unsafe failure(.tooDeep(depthLimit), at: place) }
                isInObject = byte == UInt8(ascii: "{")
                let offset = unsafe UInt32(truncatingIfNeeded: place - base)
                let outer = Token.halves(parent &+ 1, elements)
                unsafe (tokens + count).initialize(
                    to: Token(isInObject ? .object : .array, start: offset, payload: outer))
                parent = count
                elements = 0
                isContainer = true
                unsafe place = skipWhiteSpace(place + 1)
                guard unsafe place < end else { throw unsafe failure(.endsEarly, at: end) }
                isOpened = unsafe place[0] != (isInObject ? UInt8(ascii: "}") : UInt8(ascii: "]"))
            case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                unsafe place = try number(at: place, token: tokens + count)
            default:
                unsafe place = try literal(at: place, token: tokens + count)
            }
            count &+= 1
            if isOpened { continue }
            // An empty container is counted where it closes.
            if !isContainer { elements &+= 1 }
            // The value can be the last one of several containers.
            while true {
                if parent < 0 {
                    unsafe place = skipWhiteSpace(place)
                    guard unsafe place == end else { throw unsafe failure(.contentAfterValue, at: place) }
                    return
                }
                if unsafe place >= end || place[0] <= 0x20 {
                    unsafe place = skipWhiteSpace(place)
                    guard unsafe place < end else { throw unsafe failure(.endsEarly, at: end) }
                }
                let next = unsafe place[0]
                if next == UInt8(ascii: ",") && elements > 0 {
                    unsafe place = skipSpace(place + 1)
                    break
                }
                guard next == (isInObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else {
                    throw unsafe failure(isInObject ? .noSeparatorInObject : .noSeparatorInArray, at: place)
                }
                unsafe place += 1
                depth &-= 1
                let outer = unsafe tokens[parent].payload
                unsafe tokens[parent].payload = Token.halves(count, elements)
                parent = Int(truncatingIfNeeded: outer & 0xFFFF_FFFF) &- 1
                elements = Int(truncatingIfNeeded: outer &>> 32) &+ 1
                isInObject = unsafe parent >= 0 && tokens[parent].kind == .object
            }
        }
    }

    /// The largest number of tokens, with room for a key and a value.
    ///
    /// A text of n bytes has at most (n + 1) / 2 tokens. The beginning of a text is completed by a member (`"":0`) and
    /// one byte for each open container: with these, it has at most (n + depth + 5) / 2.
    private var largestCapacity: Int {
        let size = unsafe end - base
        return (size + min(max(depthLimit, 0), size) + 5) / 2
    }

    /// Skips a byte order mark in UTF-8, which RFC 8259 §8.1 allows to ignore, and refuses other encodings.
    private func begin() throws(ScanFailure) -> UnsafePointer<UInt8> {
        let size = unsafe end - base
        let first = unsafe base[0]
        let second = unsafe size > 1 ? base[1] : 1
        let isWide = unsafe size >= 4 && (first == 0 && second == 0 || base[2] == 0 && base[3] == 0)
        if first == 0xFE && second == 0xFF || first == 0xFF && second == 0xFE || first == 0 || second == 0 {
            throw unsafe failure(.otherEncoding(isWide ? "UTF-32" : "UTF-16"), at: base)
        }
        let hasMark = unsafe size >= 3 && first == 0xEF && second == 0xBB && base[2] == 0xBF
        let place = unsafe skipWhiteSpace(hasMark ? base + 3 : base)
        if unsafe place == end { throw unsafe failure(.isEmpty, at: end) }
        return unsafe place
    }

    /// Reads a key with its colon. Returns the beginning of the value.
    @unsafe @inline(__always)
    private func scanKey(
        at start: UnsafePointer<UInt8>, token: UnsafeMutablePointer<Token>
    ) throws(ScanFailure) -> UnsafePointer<UInt8> {
        guard unsafe start < end, unsafe start[0] == UInt8(ascii: "\"") else {
            let isClosed = unsafe start < end && start[0] == UInt8(ascii: "}")
            let problem: SyntaxError.Problem = unsafe start == end ? .endsEarly : isClosed ? .trailingComma : .noKey
            throw unsafe failure(problem, at: start)
        }
        var flags: UInt8 = 0
        let first = unsafe start + 1
        var place = try unsafe endOfString(from: first, flags: &flags)
        let length = unsafe place - first
        let hash = unsafe ByteWords.keyHash(first, count: length)
        let offset = unsafe UInt32(truncatingIfNeeded: first - base)
        unsafe token.initialize(
            to: Token(
                .string, flags: flags, start: offset, payload: Token.halves(length, Int(truncatingIfNeeded: hash))))
        unsafe place += 1
        if unsafe place >= end || place[0] != UInt8(ascii: ":") {
            unsafe place = skipWhiteSpace(place)
            guard unsafe place < end, unsafe place[0] == UInt8(ascii: ":") else {
                throw unsafe failure(place == end ? .endsEarly : .noColon, at: place)
            }
        }
        return unsafe skipSpace(place + 1)
    }

    /// Reads true, false or null.
    @unsafe @inline(__always)
    private func literal(
        at place: UnsafePointer<UInt8>, token: UnsafeMutablePointer<Token>
    ) throws(ScanFailure) -> UnsafePointer<UInt8> {
        let offset = unsafe UInt32(truncatingIfNeeded: place - base)
        let left = unsafe end - place
        if left >= 4 {
            let letters = unsafe ByteWords.loadHalf(place)
            if letters == 0x6C6C_756E {
                unsafe token.initialize(to: Token(.null, start: offset))
                return unsafe place + 4
            }
            if letters == 0x6575_7274 {
                unsafe token.initialize(to: Token(.yes, start: offset))
                return unsafe place + 4
            }
            if letters == 0x736C_6166, left >= 5, unsafe place[4] == UInt8(ascii: "e") {
                unsafe token.initialize(to: Token(.no, start: offset))
                return unsafe place + 5
            }
        }
        throw unsafe literalFailure(at: place)
    }

    @unsafe @inline(never)
    private func literalFailure(at place: UnsafePointer<UInt8>) -> ScanFailure {
        switch unsafe place[0] {
        case UInt8(ascii: "t"), UInt8(ascii: "f"), UInt8(ascii: "n"): unsafe failure(.badLiteral, at: place)
        case UInt8(ascii: "]"): unsafe failure(.trailingComma, at: place)
        default: unsafe failure(.noValue, at: place)
        }
    }

    // MARK: White space

    /// Skips white space where there is usually none, or one space.
    @unsafe @inline(__always)
    private func skipSpace(_ place: UnsafePointer<UInt8>) -> UnsafePointer<UInt8> {
        if unsafe end - place >= 2 {
            if unsafe place[0] > 0x20 { return unsafe place }
            if unsafe place[0] == 0x20 && place[1] > 0x20 { return unsafe place + 1 }
        }
        return unsafe skipWhiteSpace(place)
    }

    @unsafe @inline(__always)
    private func skipWhiteSpace(_ start: UnsafePointer<UInt8>) -> UnsafePointer<UInt8> {
        var place = unsafe start
        while unsafe place < end {
            let byte = unsafe place[0]
            if byte > 0x20 { return unsafe place }
            if byte == 0x20 || byte == 0x0A {
                unsafe place += 1
                // Indentation.
                while unsafe end - place >= 8 && ByteWords.load(place) == ByteWords.spaces { unsafe place += 8 }
            } else if byte == 0x0D || byte == 0x09 {
                unsafe place += 1
            } else {
                return unsafe place
            }
        }
        return unsafe place
    }

    @unsafe @inline(never)
    func failure(_ problem: SyntaxError.Problem, at place: UnsafePointer<UInt8>) -> ScanFailure {
        unsafe .syntax(SyntaxError(problem: problem, offset: place - base))
    }
}
