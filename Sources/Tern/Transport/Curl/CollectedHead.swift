#if os(Linux)
/// The bytes of a response's head, line by line as libcurl hands them over, and those of its trailers.
struct CollectedHead {
    /// The kind of a line.
    enum Line {
        case inside
        /// A status line of HTTP/2, as libcurl writes it. A server can send the same line over HTTP/1.
        case http2Status
        /// The empty line: the head, or that of an interim response, is whole.
        case end
        case tooLarge
        case tooManyFields
        /// A line that violates the rules of RFC 9112 in a way that no recipient has to accept. The text states the
        /// violation. libcurl would accept the parts that it can read.
        case malformed(StaticString)
    }

    /// The kind of the line before.
    private enum Place {
        /// The status line, or no line yet.
        case start
        case field
        /// A field that determines the end or the coding of the body.
        case framing
    }

    /// Bytes of head that most responses do not exceed.
    private static let usualSize = 512

    /// The maximum number of fields of a head and its trailers. hyper and Python's http.client accept 100, Node.js
    /// 2,000, and curl 5,000.
    static let fieldLimit = 1_000
    /// The maximum number of interim responses before a response. A server can send `102 Processing` every 20 seconds
    /// (RFC 2518 §10.1), so this covers more than half an hour.
    static let interimLimit = 100

    private let limit: Int
    /// The number of lines of the head except the first, and of the trailers.
    private var fields = -1
    private var interims = 0
    private(set) var bytes: [UInt8] = []
    private var trailerBytes: [UInt8] = []
    /// A Boolean value that indicates whether the head has a Content-Encoding.
    private(set) var isEncoded = false
    /// A Boolean value that indicates whether the head has a transfer coding other than `chunked`.
    private(set) var hasForeignTransferCoding = false
    /// A Boolean value that indicates whether the head has a Set-Cookie.
    private(set) var setsCookies = false
    /// A Boolean value that indicates whether any line has arrived, including lines of interim responses.
    private(set) var hasBegun = false
    private var statedLength: Int64?
    /// A Boolean value that indicates whether the head has a Transfer-Encoding that libcurl undoes.
    private var isChunked = false
    private var isHTTP10 = false
    private var place = Place.start
    /// The number of bytes of the interim responses so far. A server that never sends the final response gets no more
    /// room than one long head.
    private var interimSize = 0
    /// A Boolean value that indicates whether the head is complete. Lines that arrive afterwards are trailers.
    private var isComplete = false

    init(limit: Int) {
        self.limit = limit
        bytes.reserveCapacity(Self.usualSize)
    }

    var trailers: Headers { trailerBytes.isEmpty ? [:] : ResponseHeadParser.fields(trailerBytes) }

    mutating func add(_ line: UnsafeRawBufferPointer) -> Line {
        let isBlank = unsafe line.count <= 2 && line.allSatisfy { $0 == 13 || $0 == 10 }
        if isComplete {
            unsafe trailerBytes.append(contentsOf: line)
            fields += 1
            guard fields <= Self.fieldLimit else { return .tooManyFields }
            if trailerBytes.count > limit { return .tooLarge }
            return unsafe (isBlank ? nil : takeField(line)) ?? .inside
        }
        let isFirst = bytes.isEmpty
        unsafe bytes.append(contentsOf: line)
        hasBegun = true
        guard interimSize + bytes.count <= limit else { return .tooLarge }
        if isBlank && !isFirst { return .end }
        fields += 1
        guard fields <= Self.fieldLimit else { return .tooManyFields }
        if isFirst { return unsafe takeStatusLine(line) }
        if let problem = unsafe takeField(line) { return problem }
        return unsafe interpret(line)
    }

    /// Checks a status line. Accepts the form that `ResponseHeadParser` reads: a version, one or more spaces, three
    /// digits, and a space or the end.
    private mutating func takeStatusLine(_ line: UnsafeRawBufferPointer) -> Line {
        let malformed = Line.malformed("the response's status line is malformed (RFC 9112 §4)")
        guard unsafe line.starts(with: "HTTP/".utf8) else { return malformed }
        isHTTP10 = unsafe line.starts(with: "HTTP/1.0 ".utf8)
        let isHTTP2 = unsafe line.starts(with: "HTTP/2 ".utf8)
        guard unsafe isHTTP10 || isHTTP2 || line.starts(with: "HTTP/1.1 ".utf8) else {
            return .malformed("the response's status line names no version of HTTP that was asked for (RFC 9112 §2.3)")
        }
        let afterVersion = unsafe line.drop { $0 > 0x20 }
        let rest = unsafe afterVersion.drop { $0 == 0x20 }
        let digits = unsafe rest.prefix { $0.isASCIIDigit }
        let isStatus = unsafe afterVersion.count > rest.count && digits.count == 3 && digits.first != 0x30
        let next = unsafe rest.dropFirst(3).first ?? 0x0A
        guard isStatus else { return malformed }
        guard next == 0x20 || next == 0x0D || next == 0x0A else { return malformed }
        return isHTTP2 ? .http2Status : .inside
    }

    /// Checks the form of a field line. Returns nil for a line that may be read.
    private mutating func takeField(_ line: UnsafeRawBufferPointer) -> Line? {
        if unsafe line[0].isHTTPWhitespace {
            switch place {
            case .start:
                return .malformed("the response's first header field begins with a blank (RFC 9112 §2.2)")
            case .framing:
                return .malformed("a field that tells how the body is framed or encoded is folded (RFC 9112 §5.2)")
            case .field:
                return nil
            }
        }
        place = .field
        let token = ByteSet.token
        for index in line.indices {
            let byte = unsafe line[index]
            if byte == UInt8(ascii: ":") && index > 0 { return nil }
            if !token.contains(byte) { break }
        }
        return .malformed(
            "a line of the response's header or trailer is not a name, a colon and a value (RFC 9112 §5.1)")
    }

    private mutating func interpret(_ line: UnsafeRawBufferPointer) -> Line {
        // C, S and T: the names that matter here begin with them.
        let first = unsafe line[0] | 0x20
        if first == 0x73, unsafe Self.has("set-cookie:", line) { setsCookies = true }
        if first == 0x74, unsafe Self.has("transfer-encoding:", line) {
            place = .framing
            // Chunked at most once, in any spelling (RFC 9112 §6.1).
            if unsafe isChunked || !Self.isPlain(line) { hasForeignTransferCoding = true }
            isChunked = true
        }
        guard first == 0x63 else { return .inside }
        if unsafe Self.has("content-encoding:", line) {
            place = .framing
            isEncoded = true
        } else if unsafe Self.has("content-length:", line) {
            place = .framing
            // An invalid number, or a second number that differs, makes the end of the body unknown.
            guard unsafe takeLength(line) else {
                return .malformed("the response's Content-Length is not one number (RFC 9112 §6.3)")
            }
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

    /// Prepares for the next head after an interim one (RFC 9110 §15.2). Returns false when too many have arrived.
    mutating func startOver() -> Bool {
        interims += 1
        fields = -1
        interimSize += bytes.count
        bytes.removeAll(keepingCapacity: true)
        isEncoded = false
        hasForeignTransferCoding = false
        setsCookies = false
        statedLength = nil
        isChunked = false
        place = .start
        return interims <= Self.interimLimit
    }

    mutating func complete() {
        isComplete = true
        place = .start
    }

    /// A Boolean value that indicates whether the head has both a Transfer-Encoding and a Content-Length. The bytes
    /// that follow such a response on its connection are not reliable (RFC 9112 §6.1).
    var hasTwoLengths: Bool { isChunked && statedLength != nil }

    /// The reason why the end of the body is not reliable; nil if it is reliable.
    var framingProblem: String? {
        // Chunks take precedence over a Content-Length (RFC 9112 §6.3).
        isChunked && isHTTP10 ? "the response is HTTP/1.0 and has a Transfer-Encoding (RFC 9112 §6.1)" : nil
    }

    /// Returns whether a transfer coding leaves the body unchanged.
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
