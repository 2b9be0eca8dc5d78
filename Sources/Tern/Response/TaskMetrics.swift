/// What was measured of a task: times, bytes and the connection. Of its last attempt, unless said otherwise.
public struct TaskMetrics: Sendable, Hashable {
    // Microseconds since the attempt began on the wire, as the engine counts them; −1: never reached.
    package var nameLookupEnd: Int64 = -1
    package var connectEnd: Int64 = -1
    package var tlsEnd: Int64 = -1
    package var firstByteTime: Int64 = -1
    package var totalTime: Int64 = -1
    /// Nanoseconds that count for the total time limit: no pauses, but the wait for a connection.
    package var activeTime: UInt64 = 0

    /// Bytes of the response on the wire: head and body as they came, before decompression.
    public package(set) var receivedBytes: Int64 = 0
    /// Bytes of the request on the wire: head and body.
    public package(set) var sentBytes: Int64 = 0
    /// Bytes of the response's body after decompression.
    public package(set) var decodedBodyBytes: Int64 = 0
    /// The version of HTTP that was spoken; nil when no response came.
    public package(set) var httpVersion: HTTPVersion?
    /// Whether the connection had carried a request before.
    public package(set) var isReusedConnection = false
    /// The numeric address of the peer; nil when there was no connection, and for a Unix domain socket.
    public package(set) var remoteAddress: String?
    /// The port of the peer; nil when there was no connection, and for a Unix domain socket.
    public package(set) var remotePort: Int?
    /// What a trust policy would have refused, were it not `isReportOnly`: told of the request that made the connection.
    public package(set) var pinReport: String?
    /// How often the request was put on the wire: 2 after a dead pooled connection.
    public package(set) var attempts = 1

    package init() {}

    /// Until the host's name was resolved; nil when it was not needed or not reached.
    public var nameLookup: Duration? { Self.duration(nameLookupEnd) }
    /// From the resolved name to the TCP connection; nil on a reused connection.
    public var connect: Duration? { Self.duration(connectEnd, since: nameLookupEnd) }
    /// From the TCP connection to the end of the TLS handshake; nil without one.
    public var tls: Duration? { tlsEnd > 0 ? Self.duration(tlsEnd, since: connectEnd) : nil }
    /// From the attempt's start to the first byte of the response.
    public var firstByte: Duration? { Self.duration(firstByteTime) }
    /// From the attempt's start to its end.
    public var total: Duration? { Self.duration(totalTime) }

    private static func duration(_ microseconds: Int64, since start: Int64 = 0) -> Duration? {
        microseconds >= 0 ? .microseconds(max(0, microseconds - max(0, start))) : nil
    }
}
