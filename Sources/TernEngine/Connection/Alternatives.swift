#if os(Linux)
import TernConcurrency

/// The alternatives over HTTP/3 that one session has learned. All loops of the session share them.
final class Alternatives: Sendable {
    private struct State {
        var table = AlternativeTable()
        /// The network of the entries of the table; nil without one.
        var network: NetworkMark?
        /// The time at which the network is looked at again.
        var nextLook: UInt64 = 0
    }

    /// The time between two looks at the network, in nanoseconds.
    private static let lookInterval: UInt64 = 1_000_000_000

    private let state = Lock(State())
    private let network: @Sendable () -> NetworkMark

    /// - Parameter network: Returns the network that the machine is in.
    init(network: @escaping @Sendable () -> NetworkMark = { NetworkMark.current() }) { self.network = network }

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
            if let alternative { change { $0.failed(alternative, of: key, now: now) } }
            return
        }
        guard let (field, age) = head.alternatives else { return }
        change { $0.take(field, of: key, host: destination.host, age: age, now: now) }
    }

    /// Returns the alternative to try; nil for none.
    func best(for destination: Destination, now: UInt64) -> AlternativeService? {
        guard let key = destination.alternativeKey else { return nil }
        // Addresses that the caller has set are those of the origin's host.
        let allowsOtherHosts = destination.addresses == nil
        return state.withLock { state in
            if let known = state.network, now >= state.nextLook {
                state.nextLook = now + Self.lookInterval
                let network = network()
                if network != known {
                    state.network = network
                    state.table.networkChanged()
                }
            }
            return state.table.best(of: key, allowsOtherHosts: allowsOtherHosts, now: now)
        }
    }

    func failed(_ alternative: AlternativeService, of destination: Destination, now: UInt64) {
        guard let key = destination.alternativeKey else { return }
        change { $0.failed(alternative, of: key, now: now) }
    }

    func succeeded(_ alternative: AlternativeService, of destination: Destination) {
        guard let key = destination.alternativeKey else { return }
        change { $0.succeeded(alternative, of: key) }
    }

    private func change(_ change: (inout AlternativeTable) -> Void) {
        state.withLock { state in
            if state.network == nil { state.network = network() }
            change(&state.table)
        }
    }
}

extension AlternativeService {
    /// The host and port in an Alt-Used field, for the origin of a destination. The default port is left out.
    func authority(of destination: Destination) -> String {
        let name = AlternativeService(host: host ?? destination.host, port: port).name
        return port == 443 ? String(name.dropLast(4)) : name
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
