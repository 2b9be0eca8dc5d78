extension Request.Body {
    /// What is done to the bytes on their way. A reference: few bodies have it, and a request is copied often.
    final class Shaping: Sendable {
        let compression: Compression?
        let throttle: Throttle?

        init(compression: Compression?, throttle: Throttle?) {
            self.compression = compression
            self.throttle = throttle
        }
    }

    /// How a body is compressed, by the name that `Content-Encoding` has for it (RFC 9110 §8.4.1).
    public enum Compression: String, Sendable, Hashable {
        /// The zlib format (RFC 1950).
        case deflate
        /// The gzip format (RFC 1952).
        case gzip
    }

    /// The same body, compressed while it is sent, with the `Content-Encoding` that says so. Only for servers that are
    /// known to take it: none can say so before.
    ///
    /// Bytes in memory go out with their exact length, files and streams chunked (RFC 9112 §7.1). A request with a
    /// `Content-Encoding` or `Content-Length` of its own is refused with `.invalidRequest`.
    public func compressed(_ compression: Compression = .deflate) -> Self {
        var body = self
        body.shaping = Shaping(compression: compression, throttle: shaping?.throttle)
        return body
    }

    /// The same body, sent no faster than the throttle says; each time that it is sent.
    public func throttled(_ throttle: Throttle) -> Self {
        var body = self
        body.shaping = Shaping(compression: shaping?.compression, throttle: throttle)
        return body
    }
}
