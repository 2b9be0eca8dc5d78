public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension Recording {
    /// Reads a HAR 1.2 file, as browsers and debugging proxies export it.
    ///
    /// ```swift
    /// let stub = StubTransport(replaying: try Recording(har: data))
    /// ```
    ///
    /// Each entry is an exchange, redirects included. Bodies are those of the file, which are decompressed: an exchange
    /// has no `Content-Encoding`, and its `Content-Length` is that of the body here. Fields without a name that HTTP
    /// allows, such as `:status` of HTTP/2, are left out. An entry without a response, or with the status 0, is a
    /// failure. A body that the program has not kept is marked by ``Received/cut``; a replay of it fails with
    /// `.truncatedBody`.
    ///
    /// HAR has no form for bodies of requests that are not text. Browsers leave the files of a form out and replace
    /// bytes, so that such a request matches each body (``Sent/cut``); with `encoding` as `base64` it is exact.
    ///
    /// Everything in the file is untrusted. The time is proportional to its size.
    ///
    /// - Parameters:
    ///   - data: The content of the file, with or without a byte order mark.
    ///   - redaction: The redaction of each exchange; by default it hides secrets. Use the same one for the replay.
    /// - Throws: A `DecodingError` whose text names the entry, counted from 1, and the value; `CancellationError` if
    ///   the current task is cancelled.
    public init(har data: Data, redaction: Redaction = .secrets) throws {
        var exchanges = try HARFile(reading: data).exchanges
        for index in exchanges.indices { redaction.change(&exchanges[index]) }
        self.init(exchanges)
    }

    /// Returns the recording as a HAR 1.2 file, which browsers and debugging proxies show.
    ///
    /// Each exchange is an entry, in the order of the recording. A failure is an entry with the status 0 and its reason
    /// in `_error`. A body that is not UTF-8 text is written in Base64, with `encoding`, also that of a request. Times
    /// that are not known are −1, or 0 where HAR allows no other number: the time to send a request is part of `wait`.
    ///
    /// - Parameters:
    ///   - redaction: The redaction before an exchange is written; by default it hides secrets, also in a recording
    ///     that was made without redaction.
    ///   - bodyLimit: The maximum number of bytes of each body in the file. The `comment` of a longer one says how many
    ///     bytes it has. 16 MiB by default.
    /// - Throws: The error of the encoder; `CancellationError` if the current task is cancelled.
    public func har(redaction: Redaction = .secrets, bodyLimit: Int = 16 << 20) throws -> Data {
        let safe = exchanges.map { exchange in
            var exchange = exchange
            redaction.change(&exchange)
            return exchange
        }
        return try HARFile(safe, bodyLimit: bodyLimit).data
    }

    /// Writes the recording as a HAR 1.2 file (``har(redaction:bodyLimit:)``), atomically and so that only its owner
    /// can read it (mode 0600). A failure leaves an existing file unchanged.
    ///
    /// - Parameters:
    ///   - file: The file.
    ///   - redaction: The redaction before an exchange is written; by default it hides secrets.
    ///   - bodyLimit: The maximum number of bytes of each body in the file. 16 MiB by default.
    /// - Throws: The error of the encoder or of writing the file; `CancellationError` if the current task is cancelled.
    public func writeHAR(
        to file: URL, redaction: Redaction = .secrets, bodyLimit: Int = 16 << 20
    ) throws {
        try OwnerOnlyFile.write(har(redaction: redaction, bodyLimit: bodyLimit), to: file.path)
    }
}

extension Recording {
    /// The part of a body that a recording lacks.
    public struct Cut: Sendable, Hashable, Codable {
        /// The number of bytes of the whole body; nil if it is not known.
        public var wholeSize: Int64?

        /// Creates a cut.
        public init(wholeSize: Int64? = nil) { self.wholeSize = wholeSize }
    }

    /// The facts about an exchange that a replay can do without: when it was, and how long each of its phases took.
    ///
    /// A HAR file has them. The file of ``Recording/write(to:)`` does not, so that a new recording of the same
    /// exchanges is the same file. Each is nil if it is not known.
    public struct Details: Sendable, Hashable {
        /// The time at which the request was sent.
        public var started: Date?
        /// The version of HTTP of the response.
        public var httpVersion: HTTPVersion?
        /// The reason phrase of the status line.
        public var reasonPhrase: String?
        /// The numeric address of the peer.
        public var remoteAddress: String?
        /// The wait for a connection, where it was measured apart from the look-up of the name.
        public var blocked: Duration?
        /// The time to look up the name of the host.
        public var nameLookup: Duration?
        /// The time to connect, without TLS.
        public var connect: Duration?
        /// The time of the TLS handshake.
        public var tls: Duration?
        /// The time to send the request, where it was measured apart from the wait for the response.
        public var send: Duration?
        /// The time from the connection, or from the end of the request, to the first byte of the response.
        public var wait: Duration?
        /// The time from the first byte of the response to its last.
        public var receive: Duration?
        /// The time of the whole exchange.
        public var total: Duration?
        /// The number of bytes of the response on the wire, with its head.
        public var receivedBytes: Int64?
        /// The number of bytes of the response's body on the wire, before decompression.
        public var encodedBodyBytes: Int64?

        /// Creates details that know nothing.
        public init() {}
    }
}

extension Recording.Details {
    /// Takes the measurements of an exchange that ended, or failed.
    package mutating func take(_ metrics: TaskMetrics) {
        httpVersion = metrics.httpVersion
        remoteAddress = metrics.remoteAddress
        nameLookup = metrics.nameLookup
        connect = metrics.connect
        tls = metrics.tls
        total = metrics.total
        if metrics.receivedBytes > 0 { receivedBytes = metrics.receivedBytes }
        let ready = [nameLookup, connect, tls].reduce(.zero) { $0 + ($1 ?? .zero) }
        wait = (metrics.firstByte ?? metrics.total).map { max(.zero, $0 - ready) }
        receive = metrics.firstByte.flatMap { first in metrics.total.map { max(.zero, $0 - first) } }
    }

    /// Takes the head and the size of a response.
    mutating func take(_ response: Response<Data>) {
        take(response.metrics)
        httpVersion = response.head.version
        if !response.head.reasonPhrase.isEmpty { reasonPhrase = response.head.reasonPhrase }
        let isCompressed = response.headers.contains("Content-Encoding")
        encodedBodyBytes =
            isCompressed ? response.headers["Content-Length"].flatMap { Int64($0) } : Int64(response.value.count)
    }
}
