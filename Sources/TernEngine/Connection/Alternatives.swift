#if os(Linux)
import TernConcurrency

/// The alternatives over HTTP/3 that one session has learned. All loops of the session share them.
final class Alternatives: Sendable {
    private let table = Lock(AlternativeTable())

    /// Takes the Alt-Svc fields of a response that came over a connection to the origin itself, or over an alternative.
    /// Its certificates are verified: an alternative can only be named by one that speaks for the origin (RFC 7838
    /// §2.1).
    ///
    /// - Parameter alternative: The alternative that the response came from; nil for the origin.
    func learn(
        from head: ReceivedHead, of destination: Destination, over alternative: AlternativeService?, now: UInt64
    ) {
        guard let key = destination.alternativeKey else { return }
        // Such a response names none, and says that the alternative does not serve the origin (RFC 7838 §6).
        if head.status == 421 {
            if let alternative { table.withLock { $0.failed(alternative, of: key, now: now) } }
            return
        }
        guard let (field, age) = head.alternatives else { return }
        table.withLock { $0.take(field, of: key, host: destination.host, age: age, now: now) }
    }

    /// Returns the alternative to try; nil for none.
    func best(for destination: Destination, now: UInt64) -> AlternativeService? {
        guard let key = destination.alternativeKey else { return nil }
        // Addresses that the caller has set are those of the origin's host.
        let allowsOtherHosts = destination.addresses == nil
        return table.withLock { $0.best(of: key, allowsOtherHosts: allowsOtherHosts, now: now) }
    }

    func failed(_ alternative: AlternativeService, of destination: Destination, now: UInt64) {
        guard let key = destination.alternativeKey else { return }
        table.withLock { $0.failed(alternative, of: key, now: now) }
    }

    func succeeded(_ alternative: AlternativeService, of destination: Destination) {
        guard let key = destination.alternativeKey else { return }
        table.withLock { $0.succeeded(alternative, of: key) }
    }
}

extension Destination {
    /// The key of the alternatives; nil if none are used.
    fileprivate var alternativeKey: AlternativeTable.Key? {
        guard takesAlternatives, let trust else { return nil }
        return AlternativeTable.Key(origin: origin, policy: trust.identifier)
    }
}
#endif
