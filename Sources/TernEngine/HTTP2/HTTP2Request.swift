/// A request over HTTP/2, before its fields are encoded.
package struct HTTP2Request: Sendable, Equatable {
    package var method: String
    package var scheme: String
    /// The host and the port of the target. A Host field takes its place (RFC 9113 §8.3.1).
    package var authority: String
    /// The path and the query. Not used for CONNECT without `connectProtocol` (RFC 9113 §8.5).
    package var path: String
    /// The protocol that the stream carries after a successful response to extended CONNECT (RFC 8441 §4); nil for
    /// none.
    package var connectProtocol: String?
    /// The field lines, each with CRLF at its end. Names are sent in lower case. Fields of the connection (RFC 9113
    /// §8.2.2), and Expect without a body, are left out.
    package var fields: [UInt8]
    /// The length of the body, sent as Content-Length in place of the caller's field; nil if it is not known.
    package var contentLength: Int64?
    /// Whether that length is sent. The session checks the body against it nevertheless.
    package var statesLength = true
    /// Whether a body follows, which the session asks its delegate for.
    package var hasBody: Bool
    /// The priority, sent as a Priority field unless `fields` has one; nil for none.
    package var priority: HTTP2Priority?
    /// The limits for the head and the trailers of the response.
    package var headLimits: HeadLimits

    package init(
        method: String, scheme: String, authority: String, path: String, fields: [UInt8] = [],
        contentLength: Int64? = nil, hasBody: Bool = false, priority: HTTP2Priority? = nil,
        headLimits: HeadLimits = HeadLimits(bytes: 256 << 10)
    ) {
        self.method = method
        self.scheme = scheme
        self.authority = authority
        self.path = path
        self.fields = fields
        self.contentLength = contentLength
        self.hasBody = hasBody
        self.priority = priority
        self.headLimits = headLimits
    }
}

/// The priority of a request (RFC 9218 §4).
package struct HTTP2Priority: Sendable, Equatable {
    /// The urgency, from 0 (first) to 7 (last). Greater numbers count as 7.
    package var urgency: UInt8
    /// Whether a part of the response is of use before the rest.
    package var isIncremental: Bool

    package init(urgency: UInt8 = 3, isIncremental: Bool = false) {
        self.urgency = min(urgency, 7)
        self.isIncremental = isIncremental
    }

    /// The value of the Priority field, a dictionary of structured fields (RFC 9218 §5).
    var fieldValue: String { "u=\(urgency)" + (isIncremental ? ", i" : "") }
}

/// The fields of a request or of its trailers, ready for the encoder of HPACK. One value is used for all requests of a
/// connection, so that its buffers are allocated once.
struct HTTP2FieldBlock {
    /// A field as two ranges of `bytes`.
    struct Field: Equatable {
        var name: Range<Int>
        var value: Range<Int>
        /// Whether no table of HPACK may keep the value (RFC 7541 §7.1.3).
        var isSecret = false
    }

    /// The number of bytes that the block may have. More do not fit into the limits of any known server.
    static let limit = 1 << 20

    private(set) var bytes: [UInt8] = []
    private(set) var fields: [Field] = []

    /// Replaces the block by the fields of a request: pseudo-header fields first (RFC 9113 §8.3). Returns an error for
    /// a request that cannot be sent.
    mutating func take(_ request: HTTP2Request) -> EngineError? {
        removeAll()
        let isConnect = request.method == "CONNECT" && request.connectProtocol == nil
        guard appendPseudo(":method", request.method), HTTP2Syntax.isToken(request.method.utf8) else {
            return Self.invalid("the method of the request is not a token (RFC 9110 §9.1)")
        }
        if let name = request.connectProtocol {
            guard appendPseudo(":protocol", name), HTTP2Syntax.isToken(name.utf8) else {
                return Self.invalid("the protocol of the request is not a token (RFC 8441 §4)")
            }
        }
        if !isConnect {
            guard appendPseudo(":scheme", request.scheme) else {
                return Self.invalid("the scheme of the request is empty or has control characters (RFC 9113 §8.3.1)")
            }
        }
        let authority = fields.count
        guard appendPseudo(":authority", request.authority) else {
            return Self.invalid("the authority of the request is empty or has control characters (RFC 9113 §8.3.1)")
        }
        if !isConnect {
            guard appendPseudo(":path", request.path) else {
                return Self.invalid("the path of the request is empty or has control characters (RFC 9113 §8.3.1)")
            }
        }
        let start = bytes.count
        bytes.append(contentsOf: request.fields)
        let options = LineOptions(
            start: start, authority: authority, dropsLength: request.contentLength != nil,
            dropsExpect: !request.hasBody, isTrailer: false, isExtendedConnect: request.connectProtocol != nil)
        if let error = takeLines(options) { return error }
        if request.statesLength, let length = request.contentLength { append("content-length", String(length)) }
        if let priority = request.priority, !has("priority") { append("priority", priority.fieldValue) }
        guard bytes.count <= Self.limit else { return Self.invalid("the head of the request exceeds 1 MiB") }
        return nil
    }

    /// Replaces the block by trailers.
    mutating func takeTrailers(_ lines: [UInt8]) -> EngineError? {
        removeAll()
        guard lines.count <= Self.limit else { return Self.invalid("the trailers of the request exceed 1 MiB") }
        bytes.append(contentsOf: lines)
        return takeLines(LineOptions(start: 0, authority: nil, dropsLength: true, dropsExpect: true, isTrailer: true))
    }

    private static func invalid(_ reason: String) -> EngineError { EngineError(.invalidRequest, reason) }

    private mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        fields.removeAll(keepingCapacity: true)
    }

    private mutating func append(_ name: StaticString, _ value: String) {
        let start = bytes.count
        unsafe bytes.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        let middle = bytes.count
        bytes.append(contentsOf: value.utf8)
        fields.append(Field(name: start..<middle, value: middle..<bytes.count))
    }

    /// Appends a pseudo-header field. Returns false if its value is empty or has blanks or control characters.
    private mutating func appendPseudo(_ name: StaticString, _ value: String) -> Bool {
        append(name, value)
        return !value.isEmpty && value.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
    }

    private func has(_ name: StaticString) -> Bool {
        fields.contains { HTTP2Syntax.matches(name, bytes, in: $0.name) }
    }

    private struct LineOptions {
        var start: Int
        /// The index of the :authority field, which a Host field replaces.
        var authority: Int?
        var dropsLength: Bool
        /// Whether no body follows that the server could be asked for (RFC 9110 §10.1.1).
        var dropsExpect: Bool
        var isTrailer: Bool
        /// Whether the stream itself proves that the server speaks WebSocket, so that no key does (RFC 8441 §5).
        var isExtendedConnect = false
    }

    /// Reads field lines that stand in `bytes`.
    private mutating func takeLines(_ options: LineOptions) -> EngineError? {
        var position = options.start
        let end = bytes.count
        while position < end {
            guard let feed = bytes[position..<end].firstIndex(of: 0x0A), feed > position, bytes[feed - 1] == 0x0D,
                let colon = bytes[position..<feed].firstIndex(of: 0x3A),
                HTTP2Syntax.isToken(bytes[position..<colon])
            else {
                return Self.invalid("a field line of the request is not a name, a colon and a value (RFC 9110 §5.1)")
            }
            var first = colon + 1
            var last = feed - 1
            while first < last, bytes[first] == 0x20 || bytes[first] == 0x09 { first += 1 }
            while first < last, bytes[last - 1] == 0x20 || bytes[last - 1] == 0x09 { last -= 1 }
            guard HTTP2Syntax.isValue(bytes[first..<last]) else {
                return Self.invalid("a field value of the request has control characters (RFC 9110 §5.5)")
            }
            take(Field(name: position..<colon, value: first..<last), options)
            position = feed + 1
        }
        return nil
    }

    /// Appends a field, unless HTTP/2 has no place for it.
    private mutating func take(_ field: Field, _ options: LineOptions) {
        for index in field.name where bytes[index] &- 0x41 < 26 { bytes[index] |= 0x20 }
        var field = field
        switch field.name.count {
        case 2 where isNamed("te", field):
            // Only "trailers" may be sent (RFC 9113 §8.2.2).
            guard HTTP2Syntax.matches("trailers", bytes, in: field.value) else { return }
        case 4 where isNamed("host", field):
            if let authority = options.authority, !field.value.isEmpty { fields[authority].value = field.value }
            return
        case 7 where isNamed("upgrade", field), 10 where isNamed("connection", field),
            10 where isNamed("keep-alive", field), 16 where isNamed("proxy-connection", field),
            17 where isNamed("transfer-encoding", field),
            // Only a proxy may receive it, and none receives requests over HTTP/2.
            19 where isNamed("proxy-authorization", field):
            return
        case 17 where options.isExtendedConnect && isNamed("sec-websocket-key", field):
            return
        case 14 where isNamed("http2-settings", field):
            return
        case 6 where options.dropsExpect && isNamed("expect", field):
            return
        case 14 where options.dropsLength && isNamed("content-length", field):
            return
        case 13 where isNamed("authorization", field):
            field.isSecret = true
        default:
            break
        }
        fields.append(field)
    }

    private func isNamed(_ name: StaticString, _ field: Field) -> Bool {
        HTTP2Syntax.matches(name, bytes, in: field.name)
    }
}
