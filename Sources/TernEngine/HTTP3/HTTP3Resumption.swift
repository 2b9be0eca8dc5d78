#if os(Linux)
import TernConcurrency

/// Keeps the tickets of servers over QUIC, as `TLSResumption` keeps those over TCP. Any thread may use it.
package final class HTTP3Resumption: Sendable {
    /// The time in seconds for which a ticket is kept. GnuTLS refuses one that has expired before.
    private static let life: Int64 = 86_400

    private let cache = Lock(TicketCache<[UInt8]>(keys: 256, perKey: 2))

    package init() {}

    /// Keeps a ticket, up to the time at which a certificate of its chain expires, in seconds since 1970.
    func insert(_ ticket: [UInt8], for key: TicketKey, chainExpiry: Int64, now: Int64) {
        cache.withLock { $0.insert(ticket, for: key, until: min(chainExpiry, now + Self.life)) }
    }

    /// Removes and returns the newest ticket that is valid now, in seconds since 1970.
    func take(_ key: TicketKey, now: Int64) -> [UInt8]? { cache.withLock { $0.take(key, now: now) } }
}
#endif
