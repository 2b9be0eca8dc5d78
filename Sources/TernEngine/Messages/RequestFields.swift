/// The header fields of a request in the form of the wire, written once and sent with many requests.
///
/// Fields that concern the framing of the message or the connection cannot contradict the bytes that the engine writes:
///
/// | field of the caller | treatment | over HTTP/2 (RFC 9113 §8.2.2) |
/// |---|---|---|
/// | Host | allowed once, in place of the engine's own (RFC 9112 §3.2) | is `:authority` (§8.3.1) |
/// | Content-Length | refused unless it is the length of the body (RFC 9112 §6.2) | the same |
/// | Transfer-Encoding | `chunked` alone, and only for a body of unknown length, else refused (§6.1) | not sent |
/// | Connection | allowed: `close` ends the connection; names of fields of the framing are refused | not sent |
/// | Keep-Alive, Proxy-Connection | allowed, without effect | not sent |
/// | TE | `trailers` alone; the engine adds `Connection: TE` (RFC 9110 §10.1.4) | without Connection |
/// | Trailer | allowed, except the names of fields that trailers cannot have (RFC 9110 §6.5.1) | the same |
/// | Upgrade | refused; an exchange asks for a protocol with `HTTPExchange.upgrade` (RFC 9110 §7.8) | refused |
/// | Expect | `100-continue` alone; sent only with a body (RFC 9110 §10.1.1) | the same |
/// | HTTP2-Settings | refused (RFC 9113 §3.1) | refused |
/// | Proxy-Authorization | allowed; left out for a server behind a tunnel | not sent: no proxy receives requests |
/// | Priority | allowed | takes the place of the engine's own (RFC 9218 §5) |
///
/// A field that is refused is refused in every version, because the version is not known before the connection is.
@safe package struct RequestFields: Sendable, Equatable {
    /// The ranges of a field in `bytes`.
    package struct Field: Sendable, Equatable {
        package let name: Range<Int>
        /// The value, without blanks around it.
        package let value: Range<Int>
        package let role: Role

        /// The line, with its CRLF.
        package var line: Range<Int> { name.lowerBound..<(value.upperBound + 2) }
    }

    /// The treatment of a field.
    package enum Role: Sendable, Equatable {
        case ordinary
        case host
        /// Connection, Keep-Alive or Proxy-Connection, which HTTP/2 cannot carry (RFC 9113 §8.2.2).
        case connection
        case te
        case trailer
        /// Expect: 100-continue, which is sent only with a body.
        case expect
        /// Proxy-Authorization, which is for a proxy alone.
        case proxyAuthorization
        case cookie
    }

    /// The facts about the fields.
    package struct Summary: OptionSet, Sendable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }

        package static var host: Summary { Summary(rawValue: 1 << 0) }
        package static var accept: Summary { Summary(rawValue: 1 << 1) }
        package static var acceptEncoding: Summary { Summary(rawValue: 1 << 2) }
        package static var userAgent: Summary { Summary(rawValue: 1 << 3) }
        package static var contentType: Summary { Summary(rawValue: 1 << 4) }
        package static var expectsContinue: Summary { Summary(rawValue: 1 << 5) }
        package static var te: Summary { Summary(rawValue: 1 << 7) }
        package static var cookie: Summary { Summary(rawValue: 1 << 8) }
        package static var authorization: Summary { Summary(rawValue: 1 << 9) }
        package static var proxyAuthorization: Summary { Summary(rawValue: 1 << 10) }
        /// Connection has the option `close`.
        package static var asksToClose: Summary { Summary(rawValue: 1 << 11) }
        /// Connection has the option `upgrade`.
        package static var namesUpgrade: Summary { Summary(rawValue: 1 << 12) }
        /// Connection has the option `TE`.
        package static var namesTE: Summary { Summary(rawValue: 1 << 13) }
        /// A Transfer-Encoding of `chunked` was given.
        package static var chunked: Summary { Summary(rawValue: 1 << 14) }
        package static var priority: Summary { Summary(rawValue: 1 << 15) }
    }

    /// The same fields for many requests. One reference, because a copy of the fields has several.
    package final class Shared: Sendable {
        package let fields: RequestFields

        package init(_ fields: RequestFields) { self.fields = fields }
    }

    /// The lines `Name: value`, or `Name:` for an empty value, each with CRLF.
    package private(set) var bytes: [UInt8] = []
    /// The fields of `bytes`, in their order.
    package private(set) var fields: [Field] = []
    package private(set) var summary: Summary = []
    /// The Content-Length of the caller.
    package private(set) var statedLength: Int64?

    package init() {}

    package mutating func reserveCapacity(bytes count: Int, fields number: Int) {
        bytes.reserveCapacity(count)
        fields.reserveCapacity(number)
    }

    /// Adds a field. Throws `.invalidRequest` for a field that cannot be sent, and then changes nothing.
    package mutating func append(name: String, value: String) throws(EngineError) {
        let start = bytes.count
        bytes.append(contentsOf: name.utf8)
        let end = bytes.count
        bytes.append(UInt8(ascii: ":"))
        bytes.append(0x20)
        bytes.append(contentsOf: value.utf8)
        try finish(start: start, nameEnd: end)
    }

    /// Adds a field whose value need not be UTF-8.
    package mutating func append(name: String, bytes value: [UInt8]) throws(EngineError) {
        let start = bytes.count
        bytes.append(contentsOf: name.utf8)
        let end = bytes.count
        bytes.append(UInt8(ascii: ":"))
        bytes.append(0x20)
        bytes.append(contentsOf: value)
        try finish(start: start, nameEnd: end)
    }

    /// Refuses fields that state another framing than that of the body, in every version of HTTP.
    package func check(against body: RequestBody) throws(EngineError) {
        if summary.contains(.chunked), body != .stream {
            throw EngineError(.invalidRequest, "Transfer-Encoding says chunked and the body is not (RFC 9112 §6.1)")
        }
        guard let stated = statedLength else { return }
        switch body {
        case .none where stated == 0, .length(stated): return
        case .none: throw EngineError(.invalidRequest, "Content-Length says \(stated) bytes and there is no body")
        case .length(let length):
            throw EngineError(.invalidRequest, "Content-Length says \(stated) bytes and the body has \(length)")
        case .stream:
            throw EngineError(
                .invalidRequest, "Content-Length says \(stated) bytes and the length of the body is not known")
        }
    }

    /// Checks the line at the end of `bytes`, and completes it or removes it.
    private mutating func finish(start: Int, nameEnd: Int) throws(EngineError) {
        let name = start..<nameEnd
        var value = (nameEnd + 2)..<bytes.count
        let verdict = unsafe bytes.withUnsafeBytes { buffer -> RequestFieldRules.Verdict in
            guard let base = buffer.baseAddress else { return .refused("a header field has no name") }
            unsafe value = HTTPBytes.trimmed(base, value)
            return unsafe RequestFieldRules.verdict(base, name: name, value: value)
        }
        switch verdict {
        case .refused(let reason):
            bytes.removeLast(bytes.count - start)
            throw EngineError(.invalidRequest, "\(reason)")
        case .length(let length):
            bytes.removeLast(bytes.count - start)
            guard (statedLength ?? length) == length else {
                throw EngineError(
                    .invalidRequest, "the request has two different Content-Length fields (RFC 9112 §6.3)")
            }
            statedLength = length
        case .chunked:
            bytes.removeLast(bytes.count - start)
            summary.insert(.chunked)
        case .kept(let role, let facts):
            if role == .host, summary.contains(.host) {
                bytes.removeLast(bytes.count - start)
                throw EngineError(.invalidRequest, "the request has two Host fields (RFC 9112 §3.2)")
            }
            summary.formUnion(facts)
            // Blanks around the value are not sent, nor the one after the colon of an empty value.
            bytes.removeLast(bytes.count - value.upperBound)
            let isEmpty = value.isEmpty
            bytes.removeSubrange((nameEnd + (isEmpty ? 1 : 2))..<value.lowerBound)
            let valueStart = nameEnd + (isEmpty ? 1 : 2)
            fields.append(Field(name: name, value: valueStart..<bytes.count, role: role))
            bytes.append(HTTPBytes.carriageReturn)
            bytes.append(HTTPBytes.lineFeed)
        }
    }
}
