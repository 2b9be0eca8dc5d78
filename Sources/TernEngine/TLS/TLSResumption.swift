#if os(Linux)
import CTernOpenSSL
import TernConcurrency

/// The state that lets one later connection resume a session of TLS, with the facts on which the judge decided.
final class TLSTicket: Sendable {
    /// The address of OpenSSL's object, which the ticket owns.
    let address: UInt
    /// The chain that was judged; empty without a judge.
    let chain: [[UInt8]]
    /// The time, in seconds since 1970, at which the first certificate of the verified chain expires.
    let chainExpiry: Int64
    /// The time, in seconds since 1970, from which the ticket is not used: its own, or that of the chain.
    let expiry: Int64

    init(address: UInt, chain: [[UInt8]], chainExpiry: Int64) {
        self.address = address
        self.chain = chain
        self.chainExpiry = chainExpiry
        expiry = unsafe min(chainExpiry, tern_ssl_ticket_expiry(OpaquePointer(bitPattern: address)))
    }

    deinit { unsafe tern_ssl_ticket_free(OpaquePointer(bitPattern: address)) }
}

/// Keeps the tickets of servers, so that later connections save a round trip of certificates and signatures. Any thread
/// may use it.
///
/// A ticket is used once (RFC 8446 §C.4), and only for the same policy, origin, host and protocols.
package final class TLSResumption: Sendable {
    private let cache: Lock<TicketCache<TLSTicket>>

    /// Creates an empty cache.
    ///
    /// - Parameters:
    ///   - origins: The number of origins that have tickets.
    ///   - ticketsPerOrigin: The number of tickets of each origin. A new one replaces the oldest.
    package init(origins: Int = 256, ticketsPerOrigin: Int = 2) {
        cache = Lock(TicketCache(keys: origins, perKey: ticketsPerOrigin))
    }

    /// The number of tickets.
    package var count: Int { cache.withLock { $0.count } }

    /// Removes all tickets.
    package func removeAll() { cache.withLock { $0.removeAll() } }

    func insert(_ ticket: TLSTicket, for key: TicketKey) {
        cache.withLock { $0.insert(ticket, for: key, until: ticket.expiry) }
    }

    /// Removes and returns the newest ticket that is valid now, in seconds since 1970.
    func take(_ key: TicketKey, now: Int64) -> TLSTicket? { cache.withLock { $0.take(key, now: now) } }
}
#endif

/// The connections that may share a ticket.
struct TicketKey: Hashable, Sendable {
    let policy: UInt64
    let origin: String
    let host: String
    let protocols: [String]
}

/// A bounded store of values that expire and are taken once. The key that was used the longest time ago leaves first.
struct TicketCache<Ticket: Sendable>: Sendable {
    private struct Entry {
        var tickets: [(ticket: Ticket, expiry: Int64)]
        var lastUse: UInt64
    }

    private let keys: Int
    private let perKey: Int
    private var entries: [TicketKey: Entry] = [:]
    private var uses: UInt64 = 0

    init(keys: Int, perKey: Int) {
        self.keys = max(0, keys)
        self.perKey = max(0, perKey)
    }

    var count: Int { entries.values.reduce(0) { $0 + $1.tickets.count } }

    mutating func removeAll() { entries = [:] }

    mutating func insert(_ ticket: Ticket, for key: TicketKey, until expiry: Int64) {
        guard keys > 0, perKey > 0 else { return }
        uses &+= 1
        if entries[key] == nil, entries.count >= keys,
            let oldest = entries.min(by: { $0.value.lastUse < $1.value.lastUse })?.key
        {
            entries[oldest] = nil
        }
        var entry = entries[key] ?? Entry(tickets: [], lastUse: uses)
        entry.lastUse = uses
        if entry.tickets.count >= perKey { entry.tickets.removeFirst() }
        entry.tickets.append((ticket, expiry))
        entries[key] = entry
    }

    mutating func take(_ key: TicketKey, now: Int64) -> Ticket? {
        guard var entry = entries[key] else { return nil }
        uses &+= 1
        entry.lastUse = uses
        entry.tickets.removeAll { $0.expiry <= now }
        let ticket = entry.tickets.popLast()?.ticket
        entries[key] = entry.tickets.isEmpty ? nil : entry
        return ticket
    }
}
