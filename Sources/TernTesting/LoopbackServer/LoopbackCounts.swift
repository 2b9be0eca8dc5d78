import Synchronization

/// The growing counts of a server. Any thread may read them at any time; each count is exact, but a snapshot is not
/// consistent.
final class LoopbackCounters: Sendable {
    let accepted = Atomic<Int>(0)
    let open = Atomic<Int>(0)
    let idle = Atomic<Int>(0)
    let received = Atomic<Int>(0)
    let served = Atomic<Int>(0)
    let bytesIn = Atomic<Int>(0)
    let bytesOut = Atomic<Int>(0)

    var snapshot: LoopbackServer.Counts {
        LoopbackServer.Counts(
            acceptedConnections: accepted.load(ordering: .sequentiallyConsistent),
            openConnections: open.load(ordering: .sequentiallyConsistent),
            idleConnections: idle.load(ordering: .sequentiallyConsistent),
            requestsReceived: received.load(ordering: .sequentiallyConsistent),
            requestsServed: served.load(ordering: .sequentiallyConsistent),
            bytesIn: bytesIn.load(ordering: .sequentiallyConsistent),
            bytesOut: bytesOut.load(ordering: .sequentiallyConsistent))
    }
}

extension LoopbackServer {
    /// The counts of a server since its start, and its open connections.
    public struct Counts: Sendable, Hashable {
        /// The number of connections accepted since the start.
        public var acceptedConnections: Int

        /// The number of open connections.
        public var openConnections: Int

        /// The number of open connections that wait for a request, before the first or between two.
        public var idleConnections: Int

        /// The number of requests whose head has arrived.
        public var requestsReceived: Int

        /// The number of requests whose handler has returned.
        public var requestsServed: Int

        /// The number of bytes received on all connections, including heads and framing.
        public var bytesIn: Int

        /// The number of bytes passed to the system for sending, including heads and framing.
        public var bytesOut: Int
    }

    /// An entry of the server's log: a request whose head has arrived.
    public struct LoggedRequest: Sendable, Hashable {
        /// The method as sent.
        public let method: String

        /// The target as sent, with path and query.
        public let target: String

        /// The number of bytes of the body read or drained so far, without framing. If a handler reads the body before
        /// it answers, the number is final before the client sees the response.
        public internal(set) var bodySize: Int

        /// The index of the connection, from 0 in the order of acceptance.
        public let connectionIndex: Int

        /// The index of the request on its connection, from 0.
        public let requestIndex: Int
    }
}

/// The newest requests in the order of arrival, indexed by serial number.
struct LoopbackLog {
    private var entries: [LoopbackServer.LoggedRequest?]
    /// The serial number of the next request; `clear()` does not reset it.
    private var next = 0
    private var first = 0

    init(limit: Int) { entries = Array(repeating: nil, count: limit) }

    var requests: [LoopbackServer.LoggedRequest] { (first..<next).compactMap { entries[$0 % entries.count] } }

    mutating func append(_ request: LoopbackServer.LoggedRequest) -> Int {
        entries[next % entries.count] = request
        next += 1
        first = max(first, next - entries.count)
        return next - 1
    }

    mutating func setBodySize(_ size: Int, of serial: Int) {
        guard serial >= first else { return }
        entries[serial % entries.count]?.bodySize = size
    }

    mutating func clear() { first = next }
}
