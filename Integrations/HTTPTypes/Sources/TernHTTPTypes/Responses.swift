public import HTTPTypes
public import Tern

extension HTTPResponse {
    /// Creates a response of swift-http-types from the head of one of Tern: its status, reason phrase and header fields
    /// in their order.
    ///
    /// The URL, the version of HTTP and the redirects have no counterpart. If the session decompressed the body, the
    /// head still has the `Content-Encoding` and the `Content-Length` that the server sent.
    ///
    /// - Throws: ``ConversionError`` for a status outside 100–999 or a field that HTTP does not allow. Only an
    ///   interceptor that answers in place of a server can give one.
    public init(_ head: ResponseHead) throws(ConversionError) {
        guard 100...999 ~= head.status else {
            throw ConversionError("the status \(head.status) does not have three digits (RFC 9110 §15)")
        }
        self.init(
            status: Status(code: head.status, reasonPhrase: head.reasonPhrase),
            headerFields: try HTTPFields(head.headers))
    }
}
