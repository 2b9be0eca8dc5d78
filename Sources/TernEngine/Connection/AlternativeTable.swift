/// The alternatives over HTTP/3 that servers have named for their origins, and those of them that have failed
/// (RFC 7838 §2.2, §2.4).
///
/// Pure: the caller passes the time, in nanoseconds of a clock that does not go back. Bounded: the origin that was used
/// the longest time ago leaves first.
package struct AlternativeTable: Sendable {
    /// The connections that an alternative is for. A policy that trusts more does not decide for the others.
    package struct Key: Hashable, Sendable {
        /// `https://host:port`.
        let origin: String
        /// The number of the trust policy.
        let policy: UInt64

        package init(origin: String, policy: UInt64) {
            self.origin = origin
            self.policy = policy
        }
    }

    /// The number of origins, and of failures, that are remembered.
    package static let limit = 256
    /// The time for which an alternative that has failed is not tried. It doubles with each further failure.
    package static let firstPause: UInt64 = 300_000_000_000
    package static let longestPause: UInt64 = 7_200_000_000_000

    private struct Entry {
        var offers: [(service: AlternativeService, end: UInt64, isPersistent: Bool)]
        var lastUse: UInt64
    }

    private struct FailedService: Hashable {
        let key: Key
        let service: AlternativeService
    }

    private struct Failure {
        var pause: UInt64
        var end: UInt64
        var lastUse: UInt64
    }

    private var entries: [Key: Entry] = [:]
    private var failures: [FailedService: Failure] = [:]
    private var uses: UInt64 = 0

    package init() {}

    /// The number of origins that have alternatives.
    package var count: Int { entries.count }

    /// Takes the fields of a response, in place of those before.
    ///
    /// - Parameters:
    ///   - host: The host of the origin.
    ///   - age: The age of the response in seconds.
    package mutating func take(_ field: AlternativeServiceField, of key: Key, host: String, age: Int64, now: UInt64) {
        guard case .offered(let offers) = field else {
            entries[key] = nil
            return
        }
        var kept: [(service: AlternativeService, end: UInt64, isPersistent: Bool)] = []
        for offer in offers {
            // The age can be any number, and has no sign.
            let seconds = offer.lifetime - min(max(0, age), offer.lifetime)
            guard seconds > 0 else { continue }
            var service = offer.service
            if service.host == host.lowercased() { service.host = nil }
            kept.append((service, now + UInt64(clamping: seconds) * 1_000_000_000, offer.isPersistent))
        }
        guard !kept.isEmpty else {
            entries[key] = nil
            return
        }
        uses &+= 1
        if entries[key] == nil, entries.count >= Self.limit,
            let oldest = entries.min(by: { $0.value.lastUse < $1.value.lastUse })?.key
        {
            entries[oldest] = nil
        }
        entries[key] = Entry(offers: kept, lastUse: uses)
    }

    /// Returns the first alternative that has neither expired nor failed; nil without one.
    ///
    /// - Parameter allowsOtherHosts: Whether an alternative can be on another host than that of the origin.
    package mutating func best(of key: Key, allowsOtherHosts: Bool, now: UInt64) -> AlternativeService? {
        guard let entry = entries[key] else { return nil }
        if entry.offers.contains(where: { $0.end <= now }) {
            let left = entry.offers.filter { $0.end > now }
            entries[key] = left.isEmpty ? nil : Entry(offers: left, lastUse: entry.lastUse)
        }
        uses &+= 1
        entries[key]?.lastUse = uses
        return entries[key]?.offers.first { offer in
            guard allowsOtherHosts || offer.service.host == nil else { return false }
            return failures[FailedService(key: key, service: offer.service)].map { $0.end <= now } ?? true
        }?.service
    }

    /// Records that an alternative was of no use. Several attempts that fail at a time are one failure.
    package mutating func failed(_ service: AlternativeService, of key: Key, now: UInt64) {
        let failed = FailedService(key: key, service: service)
        uses &+= 1
        var failure = failures[failed] ?? Failure(pause: Self.firstPause / 2, end: 0, lastUse: uses)
        failure.lastUse = uses
        if failure.end <= now {
            failure.pause = min(2 * failure.pause, Self.longestPause)
            failure.end = now + failure.pause
        }
        if failures[failed] == nil, failures.count >= Self.limit,
            let oldest = failures.min(by: { $0.value.lastUse < $1.value.lastUse })?.key
        {
            failures[oldest] = nil
        }
        failures[failed] = failure
    }

    /// Forgets what holds for a network alone, after a change to another: the failures, and the alternatives without
    /// `persist` (RFC 7838 §3.1).
    package mutating func networkChanged() {
        failures = [:]
        entries = entries.compactMapValues { entry in
            let left = entry.offers.filter(\.isPersistent)
            return left.isEmpty ? nil : Entry(offers: left, lastUse: entry.lastUse)
        }
    }

    /// Records that an alternative was reached.
    package mutating func succeeded(_ service: AlternativeService, of key: Key) {
        failures[FailedService(key: key, service: service)] = nil
    }
}
