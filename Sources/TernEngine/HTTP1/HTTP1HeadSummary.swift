/// The facts of a response's head that determine the end of the body and the use of the connection.
@safe struct HTTP1HeadSummary: Sendable {
    var status = 0
    var isHTTP10 = false
    /// Whether the head ends the message, because a tunnel begins after it. Fields that frame a body are then ignored,
    /// whatever their value (RFC 9110 §9.3.6).
    var beginsTunnel = false
    private(set) var contentLength: Int64?
    private(set) var hasTransferEncoding = false
    private(set) var isChunked = false
    /// Whether the head has a transfer coding other than one `chunked`.
    private(set) var hasForeignTransferCoding = false
    /// Whether Connection has the option `close`.
    private(set) var asksToClose = false
    /// Whether Connection has the option `keep-alive`.
    private(set) var keepsAlive = false
    private(set) var setsCookies = false
    private(set) var isEncoded = false
    /// The promise of Keep-Alive fields about the connection.
    private(set) var keepAlive = HTTP1KeepAlive()

    /// Whether the head announces a body of at least one byte, or of unknown length.
    var statesBody: Bool { hasTransferEncoding || (contentLength ?? 0) > 0 }

    /// How a field may be folded. A fold is replaced by a blank (RFC 9112 §5.2).
    enum Folding {
        case allowed
        /// The fold is replaced, and the connection carries no further request: the parts of the value are read one by
        /// one.
        case endsConnection
        /// The field frames the body, so that two recipients could see its end at different places.
        case refused
    }

    /// Notes a field. The length of the name tells most fields apart.
    @unsafe @inline(__always)
    mutating func note(
        _ base: UnsafeRawPointer, name: Range<Int>, value: Range<Int>
    ) throws(HTTP1Violation) -> Folding {
        switch name.count {
        case 10:
            if unsafe HTTPBytes.equals(base, in: name, to: "connection") {
                unsafe takeConnection(base, value)
                return .endsConnection
            } else if unsafe HTTPBytes.equals(base, in: name, to: "set-cookie") {
                setsCookies = true
            } else if unsafe HTTPBytes.equals(base, in: name, to: "keep-alive") {
                unsafe keepAlive.take(base, value)
                return .endsConnection
            }
        case 14 where unsafe HTTPBytes.equals(base, in: name, to: "content-length"):
            if beginsTunnel { return .allowed }
            try unsafe takeLength(base, value)
            return .refused
        case 16 where unsafe HTTPBytes.equals(base, in: name, to: "content-encoding"):
            isEncoded = true
        case 17 where unsafe HTTPBytes.equals(base, in: name, to: "transfer-encoding"):
            if beginsTunnel { return .allowed }
            unsafe takeTransferEncoding(base, value)
            return .refused
        default: break
        }
        return .allowed
    }

    /// Notes that a field with options of the connection is folded.
    mutating func takeFoldedOptions() { asksToClose = true }

    private mutating func takeConnection(_ base: UnsafeRawPointer, _ value: Range<Int>) {
        var position = value.lowerBound
        while let option = unsafe HTTPBytes.nextElement(base, from: &position, to: value.upperBound) {
            if unsafe HTTPBytes.equals(base, in: option, to: "close") { asksToClose = true }
            if unsafe HTTPBytes.equals(base, in: option, to: "keep-alive") { keepsAlive = true }
        }
    }

    /// Accepts one number, also several times, in one field or in several (RFC 9112 §6.3).
    private mutating func takeLength(_ base: UnsafeRawPointer, _ value: Range<Int>) throws(HTTP1Violation) {
        var position = value.lowerBound
        while let element = unsafe HTTPBytes.nextElement(base, from: &position, to: value.upperBound) {
            guard let length = unsafe HTTPBytes.number(base, in: element) else { throw .contentLength }
            guard (contentLength ?? length) == length else { throw .contentLength }
            contentLength = length
        }
    }

    /// Accepts `chunked` once (RFC 9112 §6.1), or `identity` once, which is no coding.
    private mutating func takeTransferEncoding(_ base: UnsafeRawPointer, _ value: Range<Int>) {
        let coding = unsafe HTTPBytes.trimmed(base, value)
        if hasTransferEncoding {
            hasForeignTransferCoding = true
        } else if unsafe HTTPBytes.equals(base, in: coding, to: "chunked") {
            isChunked = true
        } else if unsafe !HTTPBytes.equals(base, in: coding, to: "identity") {
            hasForeignTransferCoding = true
        }
        hasTransferEncoding = true
    }

    /// Returns whether a trailer field is ignored: fields that frame, route or describe the message have no meaning
    /// after its body (RFC 9110 §6.5.1).
    @unsafe
    static func isForbiddenTrailer(_ base: UnsafeRawPointer, _ name: Range<Int>) -> Bool {
        switch name.count {
        case 2: unsafe HTTPBytes.equals(base, in: name, to: "te")
        case 4: unsafe HTTPBytes.equals(base, in: name, to: "host")
        case 7:
            unsafe HTTPBytes.equals(base, in: name, to: "trailer") || HTTPBytes.equals(base, in: name, to: "upgrade")
        case 10:
            unsafe HTTPBytes.equals(base, in: name, to: "connection")
                || HTTPBytes.equals(base, in: name, to: "keep-alive")
                || HTTPBytes.equals(base, in: name, to: "set-cookie")
        case 12: unsafe HTTPBytes.equals(base, in: name, to: "content-type")
        case 13: unsafe HTTPBytes.equals(base, in: name, to: "content-range")
        case 14: unsafe HTTPBytes.equals(base, in: name, to: "content-length")
        case 16:
            unsafe HTTPBytes.equals(base, in: name, to: "content-encoding")
                || HTTPBytes.equals(base, in: name, to: "proxy-connection")
        case 17: unsafe HTTPBytes.equals(base, in: name, to: "transfer-encoding")
        default: false
        }
    }
}
