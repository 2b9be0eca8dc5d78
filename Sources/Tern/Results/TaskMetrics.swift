/// The measurements of a task: times, bytes and the connection. They are those of the last attempt, unless stated
/// otherwise.
public struct TaskMetrics: Sendable, Hashable {
    // Microseconds since the attempt entered the queue for a connection, as the transport counts them; −1 if never
    // reached.
    package var nameLookupEnd: Int64
    package var connectEnd: Int64 = -1
    package var tlsEnd: Int64 = -1
    package var firstByteTime: Int64 = -1
    package var totalTime: Int64 = -1
    /// Nanoseconds that count for the total time limit, without pauses, but with the wait for a connection.
    package var activeTime: UInt64 = 0

    /// The number of bytes of the response on the wire: head and body as they arrived, before decompression.
    public package(set) var receivedBytes: Int64 = 0
    /// The number of bytes of the request on the wire: head and body.
    public package(set) var sentBytes: Int64 = 0
    /// The number of bytes of the response's body after decompression.
    public package(set) var decodedBodyBytes: Int64 = 0
    /// The version of HTTP; nil without a response.
    public package(set) var httpVersion: HTTPVersion?
    /// A Boolean value that indicates whether the connection carried another request before.
    public package(set) var isReusedConnection = false
    /// The numeric address of the peer, which is the proxy if there is one; nil when there was no connection, and for a
    /// Unix domain socket.
    public package(set) var remoteAddress: String?
    /// The port of the peer; nil when there was no connection, and for a Unix domain socket.
    public package(set) var remotePort: Int?
    /// The number of the connection, from 1, which no other one of the process has; nil when there was no connection,
    /// and with URLSession. Requests that share a connection over HTTP/2 or HTTP/3 have the same number.
    public package(set) var connectionNumber: UInt64?
    /// The reason why a trust policy that is `isReportOnly` would have refused the server; nil without one. Reported
    /// with the request that opened the connection.
    public package(set) var pinReport: String?
    /// The number of times that the request was sent over the wire: 2 after a dead pooled connection, one more for each
    /// time that the server stated that it has not processed the request, up to 10; otherwise 1.
    ///
    /// Redirects, challenges, 417, 421 and retries are requests of their own and do not count here.
    /// `NetworkError.attempts` counts the tries of a `RetryInterceptor`.
    public package(set) var transactions = 1

    /// The time until the name of the host was resolved, or a numeric address was read; nil if that was not reached.
    public var nameLookup: Duration? { Self.duration(nameLookupEnd) }
    /// The time from the resolved name to the TCP connection; nil on a reused connection.
    public var connect: Duration? { Self.duration(connectEnd, since: nameLookupEnd) }
    /// The time from the TCP connection to the end of the TLS handshake; nil without one.
    public var tls: Duration? { tlsEnd > 0 ? Self.duration(tlsEnd, since: connectEnd) : nil }
    /// The time from the start of the attempt to the first byte of the response. The start is the one after the last
    /// pause before a connection, and the wait for a connection counts.
    public var firstByte: Duration? { Self.duration(firstByteTime) }
    /// The time from the start of the attempt to its end.
    public var total: Duration? { Self.duration(totalTime) }

    private static func duration(_ microseconds: Int64, since start: Int64 = 0) -> Duration? {
        microseconds >= 0 ? .microseconds(max(0, microseconds - max(0, start))) : nil
    }
}

extension TaskMetrics {
    /// Creates the measurements of an attempt that has not begun. By hand, because the implicit one is for this module
    /// only; for that, one property has no default.
    package init() { self.init(nameLookupEnd: -1) }
}

extension TaskMetrics: CustomStringConvertible, CustomReflectable {
    /// The measurements with their units, such as `12.1 ms in all, first byte after 11.8 ms, connected in 0.4 ms; sent
    /// 120 bytes, received 2345 bytes; HTTP/1.1 with 192.0.2.1:443`. Stages that were not reached are left out.
    public var description: String {
        let times = [
            total.map { "\(Self.milliseconds($0)) in all" },
            firstByte.map { "first byte after \(Self.milliseconds($0))" },
            nameLookup.map { "name looked up in \(Self.milliseconds($0))" },
            connect.map { "connected in \(Self.milliseconds($0))" }, tls.map { "TLS in \(Self.milliseconds($0))" },
        ]
        let decoded = decodedBodyBytes > receivedBytes ? ", \(decodedBodyBytes) bytes decompressed" : ""
        let peer = remoteAddress.map { address in
            let host = address.contains(":") ? "[\(address)]" : address
            return " with \(host)\(remotePort.map { ":\($0)" } ?? "")"
        }
        let connection = [
            httpVersion.map { $0.rawValue + (peer ?? "") }, isReusedConnection ? "reused connection" : nil,
            transactions > 1 ? "sent \(transactions) times" : nil, pinReport.map { "pins: \($0)" },
        ]
        let parts = [times, ["sent \(sentBytes) bytes, received \(receivedBytes) bytes\(decoded)"], connection]
        return parts.map { $0.compactMap { $0 }.joined(separator: ", ") }.filter { !$0.isEmpty }.joined(separator: "; ")
    }

    /// The public properties.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "nameLookup": nameLookup as Any, "connect": connect as Any, "tls": tls as Any,
                "firstByte": firstByte as Any, "total": total as Any, "receivedBytes": receivedBytes,
                "sentBytes": sentBytes, "decodedBodyBytes": decodedBodyBytes, "httpVersion": httpVersion as Any,
                "isReusedConnection": isReusedConnection, "remoteAddress": remoteAddress as Any,
                "remotePort": remotePort as Any, "connectionNumber": connectionNumber as Any,
                "pinReport": pinReport as Any, "transactions": transactions,
            ])
    }

    private static func milliseconds(_ duration: Duration) -> String {
        let tenths = duration.components.seconds * 10_000 + duration.components.attoseconds / 100_000_000_000_000
        return "\(tenths / 10).\(tenths % 10) ms"
    }
}
