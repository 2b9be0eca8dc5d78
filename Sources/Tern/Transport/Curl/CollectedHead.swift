#if os(Linux)
/// The bytes of a response's head, line by line as libcurl hands them over, and those of its trailers.
struct CollectedHead {
    /// What a line was.
    enum Line {
        case inside
        /// The empty line: the head, or that of an interim response, is whole.
        case end
        case tooLarge
        case tooManyFields
        /// A length that is no number, or a second one that is another: where the body ends cannot be known
        /// (RFC 9112 §6.3). libcurl would take what it can read.
        case senselessLength
    }

    /// Bytes of head that most responses do not exceed.
    private static let usualSize = 512

    /// Fields of a head and its trailers: hyper and Python's http.client take 100, Node.js 2,000, curl 5,000.
    static let fieldLimit = 1_000
    /// Interim responses before a response. A server may send `102 Processing` every 20 seconds (RFC 2518 §10.1): this is
    /// more than half an hour of them.
    static let interimLimit = 100

    private let limit: Int
    /// Lines of the head besides its first, and of the trailers.
    private var fields = -1
    private var interims = 0
    private(set) var bytes: [UInt8] = []
    private var trailerBytes: [UInt8] = []
    /// Whether the head has a Content-Encoding.
    private(set) var isEncoded = false
    /// How many codings its Content-Encoding names.
    private(set) var codings = 0
    /// Whether the head has a transfer coding besides `chunked`.
    private(set) var hasForeignTransferCoding = false
    /// Whether the head has a Set-Cookie.
    private(set) var setsCookies = false
    /// Whether any line came, of an interim response too.
    private(set) var hasBegun = false
    private var statedLength: Int64?
    /// Of the interim responses before: a server that never comes to the final one has no more room than one long head.
    private var interimSize = 0
    /// Lines that come now are trailers.
    private var isComplete = false

    init(limit: Int) {
        self.limit = limit
        bytes.reserveCapacity(Self.usualSize)
    }

    var trailers: Headers { trailerBytes.isEmpty ? [:] : ResponseHeadParser.fields(trailerBytes) }

    mutating func add(_ line: UnsafeRawBufferPointer) -> Line {
        if isComplete {
            unsafe trailerBytes.append(contentsOf: line)
            fields += 1
            guard fields <= Self.fieldLimit else { return .tooManyFields }
            return trailerBytes.count <= limit ? .inside : .tooLarge
        }
        unsafe bytes.append(contentsOf: line)
        hasBegun = true
        guard interimSize + bytes.count <= limit else { return .tooLarge }
        if unsafe line.count <= 2 && line.allSatisfy({ $0 == 13 || $0 == 10 }) { return .end }
        fields += 1
        guard fields <= Self.fieldLimit else { return .tooManyFields }
        // C, S and T: the names that matter here begin with them.
        let first = unsafe line[0] | 0x20
        if first == 0x73, unsafe Self.has("set-cookie:", line) { setsCookies = true }
        if first == 0x74, unsafe Self.has("transfer-encoding:", line), unsafe !Self.isPlain(line) {
            hasForeignTransferCoding = true
        }
        guard first == 0x63 else { return .inside }
        if unsafe Self.has("content-encoding:", line) {
            isEncoded = true
            codings += unsafe Self.codings(line)
        } else if unsafe Self.has("content-length:", line), unsafe !takeLength(line) {
            return .senselessLength
        }
        return .inside
    }

    private mutating func takeLength(_ line: UnsafeRawBufferPointer) -> Bool {
        let value = unsafe line.dropFirst("content-length:".utf8.count).drop { $0.isHTTPWhitespace }
        let digits = unsafe value.prefix { $0.isASCIIDigit }
        // 18 digits fit into 64 bits, and no body is longer.
        guard unsafe 1...18 ~= digits.count, unsafe value[digits.endIndex...].allSatisfy({ $0 <= 0x20 }) else {
            return false
        }
        let length = unsafe digits.reduce(Int64(0)) { $0 * 10 + Int64($1 &- 0x30) }
        defer { statedLength = length }
        return statedLength == nil || statedLength == length
    }

    /// The head was an interim one: the final one follows (RFC 9110 §15.2). Returns false when too many have come.
    mutating func startOver() -> Bool {
        interims += 1
        fields = -1
        interimSize += bytes.count
        bytes.removeAll(keepingCapacity: true)
        isEncoded = false
        codings = 0
        hasForeignTransferCoding = false
        setsCookies = false
        statedLength = nil
        return interims <= Self.interimLimit
    }

    mutating func complete() { isComplete = true }

    /// The members of a Content-Encoding's list.
    private static func codings(_ line: UnsafeRawBufferPointer) -> Int {
        let counted = unsafe line.dropFirst("content-encoding:".utf8.count).reduce((count: 0, isInside: false)) {
            let isOfName = $1 > 0x20 && $1 != UInt8(ascii: ",")
            return ($0.count + (isOfName && !$0.isInside ? 1 : 0), isOfName)
        }
        return counted.count
    }

    /// Whether a transfer coding leaves the body as it is.
    private static func isPlain(_ line: UnsafeRawBufferPointer) -> Bool {
        let value = unsafe line.dropFirst("transfer-encoding:".utf8.count).drop { $0.isHTTPWhitespace }
        let name = unsafe UnsafeRawBufferPointer(rebasing: value)
        return unsafe isAlone("chunked", name) || isAlone("identity", name)
    }

    private static func isAlone(_ name: StaticString, _ value: UnsafeRawBufferPointer) -> Bool {
        unsafe has(name, value) && value.dropFirst(name.utf8CodeUnitCount).allSatisfy { $0 <= 0x20 }
    }

    private static func has(_ name: StaticString, _ line: UnsafeRawBufferPointer) -> Bool {
        guard line.count > name.utf8CodeUnitCount else { return false }
        return (0..<name.utf8CodeUnitCount).allSatisfy { unsafe line[$0] | 0x20 == name.utf8Start[$0] | 0x20 }
    }
}
#endif
