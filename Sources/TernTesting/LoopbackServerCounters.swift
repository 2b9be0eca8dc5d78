import Synchronization

/// The server's counts as they grow: read at any time by any thread, each exact, together only roughly.
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
    /// What a server has done so far, and holds open now.
    public struct Counts: Sendable, Hashable {
        /// Connections accepted since the start.
        public var acceptedConnections: Int

        /// Connections that are open now.
        public var openConnections: Int

        /// Open connections that wait for a request, before the first or between two.
        public var idleConnections: Int

        /// Requests whose head has arrived.
        public var requestsReceived: Int

        /// Requests whose handler has returned.
        public var requestsServed: Int

        /// Bytes received on all connections, heads and framing included.
        public var bytesIn: Int

        /// Bytes handed to the system for sending, heads and framing included.
        public var bytesOut: Int
    }

    /// One line of the server's log: a request whose head has arrived.
    public struct LoggedRequest: Sendable, Hashable {
        /// The method as sent.
        public let method: String

        /// The target as sent: path and query.
        public let target: String

        /// Bytes of its body that have been read or drained so far, without framing. A handler that reads the body
        /// before it answers has the final number here before its client sees the answer.
        public internal(set) var bodySize: Int

        /// The connection it came on, counted from 0 in the order of acceptance.
        public let connectionIndex: Int

        /// Its place on that connection, from 0.
        public let requestIndex: Int
    }
}

/// The newest requests, in order of arrival, found again by their serial number while they are kept.
struct LoopbackLog {
    private var entries: [LoopbackServer.LoggedRequest?]
    /// Serial number of the next request; it goes on over `clear()`.
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
