/// Receives the events of the streams of a session, and provides the bodies of requests.
///
/// The session calls its delegate from within `receive(_:ecn:at:)`, `takeDatagrams(into:at:)`, `expire(at:)` and
/// `connectionClosed(_:)`. The delegate may call the session's other methods from there, but not these four.
///
/// Of one stream, calls arrive in this order: any number of `streamReceivedInterim`, one `streamReceivedHead`, any
/// number of `streamReceivedBody`, at most one `streamReceivedTrailers`, and `streamEnded`. `streamFailed` takes the
/// place of all that is missing. After `streamEnded`, `streamFailed` or `cancel(_:)` no call for the stream follows,
/// and its request body is not read any more.
package protocol HTTP3SessionDelegate: AnyObject {
    /// Judges the certificates of the server and its stapled response, which may be empty. Returns 0 to accept them, or
    /// the alert of TLS that refuses them (RFC 8446 §6.2). Called once, before a byte of a request is sent.
    func verify(_ certificates: [UnsafeRawBufferPointer], staple: UnsafeRawBufferPointer) -> UInt8
    /// Called when the handshake is complete and the certificates are accepted.
    func handshakeCompleted(isResumed: Bool)
    /// Called with data by which a later connection resumes the session. Several can arrive.
    func ticketReceived(_ ticket: [UInt8])
    /// Called with a line of a key log, in NSS's format, if the settings say so. The first ones come within the handshake.
    func keyLogged(_ line: String)
    func streamReceivedInterim(_ stream: Int64, head: ReceivedHead)
    func streamReceivedHead(_ stream: Int64, head: ReceivedHead)
    /// Called with bytes of the body, which are valid within the call and never empty. The delegate calls
    /// `consume(_:count:)` when its reader has taken them.
    func streamReceivedBody(_ stream: Int64, bytes: UnsafeRawBufferPointer)
    /// Called with the lines of the trailers, each with CRLF at its end. They are not empty.
    func streamReceivedTrailers(_ stream: Int64, lines: [UInt8])
    func streamEnded(_ stream: Int64)
    /// Called when the server has ended its side of a tunnel (RFC 9114 §4.4). The request body is read on, and
    /// `streamEnded` or `streamFailed` follows.
    func streamEndedReceiving(_ stream: Int64)
    func streamFailed(_ stream: Int64, error: EngineError)
    /// Called for the next part of a request's body. The buffer is never empty.
    func readBody(_ stream: Int64, into buffer: UnsafeMutableRawBufferPointer) -> HTTP2BodyPart
    /// Called when the server allows more streams than before.
    func roomChanged()
    /// Called when SETTINGS of the server arrive.
    func settingsReceived(allowsExtendedConnect: Bool)
    /// Called when the server sent GOAWAY. The session takes no further request.
    func goAwayReceived()
}
