/// The reason for which a transfer moves no bytes at present. New cases can be added, so a switch needs a `default`.
public enum TransferWait: Sendable, Hashable {
    /// There is no default route, and none to the host is known. The transfer continues when there is a network, and
    /// tries the host again after this delay in any case.
    case route(host: String, nextTrial: Duration)
    /// The last attempt has failed. The next one begins after this delay.
    case delay(Duration)
    /// The process or the system has no free descriptor for a connection or a file, not even that of an idle
    /// connection. The transfer is tried again after this delay.
    case descriptor(nextTrial: Duration)
    /// The network is metered, and the item must not use it.
    case unmeteredNetwork
}

extension TransferWait: CustomStringConvertible {
    /// A phrase for people, such as `for a route to 192.0.2.7, which is tried again after 4.0 seconds`.
    public var description: String {
        switch self {
        case .route(let host, let delay): "for a route to \(host), which is tried again after \(delay)"
        case .delay(let delay): "for the next attempt, which begins after \(delay)"
        case .descriptor(let delay): "for a free descriptor; it is tried again after \(delay)"
        case .unmeteredNetwork: "for a network that is not metered"
        }
    }
}
