/// A part of a request's body.
package enum HTTP2BodyPart: Sendable, Equatable {
    /// The number of bytes that were written, and more follow. 0 is the same as `wait`.
    case bytes(Int)
    /// The number of bytes that were written, from 0, and the body ends after them.
    case last(Int)
    /// No bytes yet. The session asks again after `resumeBody(_:)`.
    case wait
    /// The end of the body. The same as `last(0)`.
    case end
    /// The end of the body, followed by trailers: field lines, each with CRLF at its end.
    case trailers([UInt8])
    /// A failure of the body. The session resets the stream, and reports the error to `streamFailed(_:error:)`.
    case failed(EngineError)
}

/// Receives the events of the streams of a session, and provides the bodies of requests.
///
/// The session calls its delegate from within `receive(_:at:)`, `takeOutput(into:upTo:)` and
/// `connectionClosed(_:)`. The delegate may call `submit(_:)`, `cancel(_:)`, `consume(_:count:)`, `resumeBody(_:)`,
/// `ping()`, `setPriority(_:of:)` and `goAway()` from there, but not the three methods above. It must not touch the
/// buffer that it passed to `takeOutput(into:upTo:)`.
///
/// Of one stream, calls arrive in this order: any number of `streamReceivedInterim`, one `streamReceivedHead`, any
/// number of `streamReceivedBody`, at most one `streamReceivedTrailers`, and `streamEnded`. `streamFailed` takes the
/// place of all that is missing. After `streamEnded`, `streamFailed` or `cancel(_:)` no call for the stream follows,
/// and its request body is not read any more.
package protocol HTTP2SessionDelegate: AnyObject {
    func streamReceivedInterim(_ stream: Int32, head: ReceivedHead)
    func streamReceivedHead(_ stream: Int32, head: ReceivedHead)
    /// Called with bytes of the body, which are valid within the call and never empty. The delegate calls
    /// `consume(_:count:)` when its reader has taken them.
    func streamReceivedBody(_ stream: Int32, bytes: UnsafeRawBufferPointer)
    /// Called with the lines of the trailers, each with CRLF at its end. They are not empty.
    func streamReceivedTrailers(_ stream: Int32, lines: [UInt8])
    func streamEnded(_ stream: Int32)
    /// Called when the server has ended its side of a tunnel (RFC 9113 §8.5). The request body is read on, and
    /// `streamEnded` or `streamFailed` follows.
    func streamEndedReceiving(_ stream: Int32)
    func streamFailed(_ stream: Int32, error: EngineError)
    /// Called for the next part of a request's body. The buffer is never empty.
    func readBody(_ stream: Int32, into buffer: UnsafeMutableRawBufferPointer) -> HTTP2BodyPart
    /// Called with the number of streams that may be open at once, at the server's first SETTINGS and when others
    /// change it.
    func maximumStreamsChanged(_ maximum: Int)
    /// Called when SETTINGS of the server allow extended CONNECT (RFC 8441 §3), or no longer do.
    func extendedConnectChanged(_ isAllowed: Bool)
    /// Called when the server sent GOAWAY, before the streams above `lastStream`, and those that were not sent, fail
    /// with `.notProcessed`. The session takes no further request. `error` is nil for a graceful end.
    func goAwayReceived(lastStream: Int32, error: EngineError?)
    /// Called with the answer to the newest `ping()`.
    func pongReceived()
}

extension HTTP2SessionDelegate {
    /// Does nothing.
    package func extendedConnectChanged(_ isAllowed: Bool) {}

    /// Does nothing.
    package func streamEndedReceiving(_ stream: Int32) {}
}
