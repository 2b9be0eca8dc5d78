/// Builds the head and the trailers of one response from its decoded fields, within limits.
struct HTTP2HeadBuilder {
    /// A header block that is whole.
    enum Block {
        case interim(ReceivedHead)
        case head(ReceivedHead)
        /// The lines of the trailers, each with CRLF at its end.
        case trailers([UInt8])
        case failed(EngineError)
    }

    /// Bytes of head that most responses do not exceed.
    private static let usualSize = 512

    private let limits: HeadLimits
    private let version: WireVersion
    private var bytes: [UInt8] = []
    /// The number of bytes of the interim heads so far.
    private var interimSize = 0
    private var interims = 0
    private var fields = 0
    private var status = 0
    private var setsCookies = false
    private var isEncoded = false
    private var contentLength: Int64?
    /// Whether the final head is whole. A later block is the trailers.
    private(set) var isComplete = false

    /// - Parameter version: `.http2` or `.http3`.
    init(limits: HeadLimits, version: WireVersion = .http2) {
        self.limits = limits
        self.version = version
    }

    /// Starts a header block.
    mutating func begin() {
        bytes.removeAll(keepingCapacity: true)
        if !isComplete { bytes.reserveCapacity(Self.usualSize) }
        fields = 0
        status = 0
        setsCookies = false
        isEncoded = false
        contentLength = nil
    }

    /// Adds a field, whose name and value nghttp2 has checked. Returns an error if the block cannot be used.
    mutating func add(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> EngineError? {
        if unsafe name.first == UInt8(ascii: ":") { return unsafe takeStatus(name: name, value: value) }
        guard isComplete || status != 0 else {
            return .malformed("a field of the response precedes :status (RFC 9113 §8.3)")
        }
        fields += 1
        guard fields <= limits.fields else {
            return EngineError(.tooLarge, "the response has more than \(limits.fields) fields")
        }
        if isComplete, let base = name.baseAddress,
            unsafe HTTP1HeadSummary.isForbiddenTrailer(base, 0..<name.count)
        {
            return nil
        }
        let (room, hasOverflow) = (limits.bytes - interimSize).subtractingReportingOverflow(bytes.count)
        // Two bytes end the head.
        guard !hasOverflow, name.count <= room, value.count <= room - name.count, name.count + value.count + 6 <= room
        else {
            return EngineError(
                .tooLarge, "the \(isComplete ? "trailers" : "head") of the response exceeds \(limits.bytes) bytes")
        }
        unsafe bytes.append(contentsOf: name)
        bytes.append(UInt8(ascii: ":"))
        bytes.append(UInt8(ascii: " "))
        unsafe bytes.append(contentsOf: value)
        appendLineEnd()
        return isComplete ? nil : unsafe interpret(name: name, value: value)
    }

    /// Ends a header block.
    mutating func finish() -> Block {
        if isComplete { return .trailers(takenBytes()) }
        guard status != 0 else { return .failed(.malformed("the response has no :status (RFC 9113 §8.3.2)")) }
        appendLineEnd()
        let size = bytes.count
        guard size <= limits.bytes - interimSize else {
            return .failed(EngineError(.tooLarge, "the head of the response exceeds \(limits.bytes) bytes"))
        }
        var head = ReceivedHead(status: status, version: version, bytes: takenBytes())
        guard status >= 200 else {
            interims += 1
            interimSize += size
            guard interims <= limits.interimResponses else {
                return .failed(
                    EngineError(.tooLarge, "the server sent more than \(limits.interimResponses) interim responses"))
            }
            return .interim(head)
        }
        head.setsCookies = setsCookies
        head.isEncoded = isEncoded
        head.contentLength = contentLength
        isComplete = true
        interimSize = 0
        return .head(head)
    }

    private mutating func takenBytes() -> [UInt8] {
        let taken = bytes
        bytes = []
        return taken
    }

    private mutating func appendLineEnd() {
        bytes.append(0x0D)
        bytes.append(0x0A)
    }

    /// Reads :status, the only pseudo-header field of a response (RFC 9113 §8.3.2).
    private mutating func takeStatus(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> EngineError? {
        guard !isComplete, status == 0, fields == 0, unsafe HTTP2Syntax.matches(":status", name) else {
            return .malformed("the response has a pseudo-header field that is not valid here (RFC 9113 §8.3)")
        }
        guard value.count == 3, let code = unsafe HTTP2Syntax.number(value), code >= 100 else {
            return .malformed("the :status of the response is not three digits from 100 to 999 (RFC 9110 §15)")
        }
        guard code != 101 else {
            return .malformed("the response has the status 101, which HTTP/2 does not have (RFC 9113 §8.6)")
        }
        status = Int(code)
        bytes.append(contentsOf: (version == .http3 ? "HTTP/3 " : "HTTP/2 ").utf8)
        unsafe bytes.append(contentsOf: value)
        appendLineEnd()
        return nil
    }

    private mutating func interpret(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> EngineError? {
        switch name.count {
        case 10 where unsafe HTTP2Syntax.matches("set-cookie", name):
            setsCookies = true
        case 16 where unsafe HTTP2Syntax.matches("content-encoding", name):
            isEncoded = true
        case 14 where unsafe HTTP2Syntax.matches("content-length", name):
            guard contentLength == nil, let length = unsafe HTTP2Syntax.number(value) else {
                return .malformed("the Content-Length of the response is not one number (RFC 9110 §8.6)")
            }
            contentLength = length
        default:
            break
        }
        return nil
    }
}
