extension RequestFields {
    /// The names of fields that a request's trailers cannot have, because a recipient needs them before the body: they
    /// frame, route, authenticate or change the request, or describe its body (RFC 9110 §6.5.1).
    private static let forbiddenInTrailers: Set<String> = [
        // The framing of the message and its connection; Content-Length and Transfer-Encoding have no line.
        "connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade",
        // Routing.
        "host", "max-forwards",
        // Conditions and other changes of the request's meaning.
        "cache-control", "expect", "if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since",
        "pragma", "range",
        // Authentication and state.
        "authorization", "cookie", "proxy-authorization", "set-cookie",
        // The form of the body.
        "content-encoding", "content-range", "content-type",
    ]

    /// Returns the lines of these fields as the trailers of a request, each with CRLF. Throws `.invalidRequest` if one
    /// of them cannot be a trailer (RFC 9110 §6.5.1).
    package func trailerLines() throws(EngineError) -> [UInt8] {
        if statedLength != nil { throw Self.forbidden("Content-Length") }
        if summary.contains(.chunked) { throw Self.forbidden("Transfer-Encoding") }
        for field in fields {
            let name = String(decoding: bytes[field.name], as: UTF8.self)
            if Self.forbiddenInTrailers.contains(name.lowercased()) { throw Self.forbidden(name) }
        }
        return bytes
    }

    private static func forbidden(_ name: String) -> EngineError {
        EngineError(.invalidRequest, "\(name) cannot be sent as a trailer of a request (RFC 9110 §6.5.1)")
    }
}
