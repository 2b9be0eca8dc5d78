/// A stream of HTTP/2.
typealias HTTP2Stream = StreamState<Int32>

/// A stream of HTTP/3.
typealias HTTP3Stream = StreamState<Int64>

/// The state of one stream, from its request to the end of both directions.
final class StreamState<ID: Sendable> {
    let id: ID
    /// The number of bytes that the request's body must have; nil if it is not known.
    let requestLength: Int64?
    /// Whether the stream carries another protocol after a successful response.
    let isConnect: Bool
    /// Whether the stream carries another protocol now.
    var isTunnel = false
    /// Whether the server has ended its side of a tunnel.
    var isResponseEnded = false
    var builder: HTTP2HeadBuilder
    /// Whether the request's HEADERS were handed over to the connection.
    var isSent = false
    /// Whether the last byte of the request was handed over to the connection.
    var isRequestEnded: Bool
    /// Whether the delegate hears no more of the stream.
    var isDone = false
    /// Whether the server reset the stream.
    var isReset = false
    /// The number of bytes of the request's body so far.
    var sentBytes: Int64 = 0
    /// The number of bytes of the response's body so far.
    var receivedBytes: Int64 = 0
    /// The number of bytes of the response's body that the reader has not taken.
    var unconsumed = 0
    /// Whether the frame that is being received ends the response before its stated length.
    var endsEarly = false
    /// The length that the response's head states; nil if it states none.
    var contentLength: Int64?

    /// - Parameter version: `.http2` or `.http3`.
    init(id: ID, request: HTTP2Request, version: WireVersion = .http2) {
        self.id = id
        requestLength = request.hasBody ? request.contentLength : nil
        isConnect = request.method == "CONNECT"
        isRequestEnded = !request.hasBody
        builder = HTTP2HeadBuilder(limits: request.headLimits, version: version)
    }

    /// Whether the head was received and its stated length was not.
    var isTruncated: Bool { contentLength.map { receivedBytes < $0 } ?? false }

    /// Notes the start of a frame with `count` bytes of the response's body.
    func beginFrame(count: Int, isLast: Bool) {
        endsEarly = isLast && contentLength.map { receivedBytes + Int64(count) < $0 } ?? false
    }

    /// Counts bytes of the request's body. Returns an error if the stated length does not agree.
    func takeSent(_ count: Int, isLast: Bool) -> EngineError? {
        sentBytes += Int64(count)
        guard let requestLength else { return nil }
        if isLast ? sentBytes == requestLength : sentBytes <= requestLength { return nil }
        return EngineError(
            .invalidRequest, "the body of the request does not have its stated length of \(requestLength) bytes")
    }
}
