/// Whether the network can be reached, and through what: the status of this machine, not of any server.
///
/// ```swift
/// for await status in Reachability.shared.statuses {
///     if case .unreachable = status { showOfflineBanner() } else { hideOfflineBanner() }
/// }
/// ```
///
/// On Linux the kernel tells (rtnetlink): reachable is a machine with a default route over an interface that is up and
/// has a carrier. On Apple's systems `NWPathMonitor` tells. On watchOS, and where the kernel may not be asked, the status
/// stays `.unknown`.
///
/// A request should be sent, not predicted: what this is for is to tell a user why nothing comes, and to know when to try
/// again (``OfflineWaitInterceptor``). The network is watched while somebody listens to ``statuses``, which costs one
/// descriptor for all who do; nothing wakes up while nothing changes, and nothing is held once nobody listens.
public actor Reachability {
    /// What is known of the network.
    public enum Status: Sendable, Hashable {
        /// Nothing yet, or nothing can be known here.
        case unknown
        /// There is no way out.
        case unreachable
        /// There is a way out, through this.
        case reachable(Medium)
    }

    /// What the way out leads through.
    public enum Medium: String, Sendable, Hashable, CaseIterable {
        /// A cable.
        case wired
        /// Wi-Fi.
        case wifi
        /// A mobile network, which may cost by the byte.
        case cellular
        /// Something else: a tunnel, a bridge, a virtual interface.
        case other
    }

    /// The process's own: used by every session that has no other (`Session.Configuration.reachability`).
    public static let shared = Reachability()

    private let watch: StatusWatch

    /// The status of this machine.
    public init() { self.init(SystemReachability.source()) }

    package init(_ source: any ReachabilitySource) { watch = StatusWatch(source) }

    deinit { watch.end() }

    /// The status at this moment. On Linux the kernel is asked, unless somebody listens to ``statuses`` already. On
    /// Apple's systems it is `.unknown` at the very first look, which begins a watch that lasts as long as the
    /// `Reachability`.
    public nonisolated var status: Status { watch.status }

    /// The status at this moment, then each change of it; equal ones are told once, and a slow reader gets the newest.
    /// Ends when the `Reachability` is released. Who is cancelled, or lets go of the stream, listens no more.
    public nonisolated var statuses: AsyncStream<Status> { watch.stream() }

    /// Begins to watch where only a watch tells the status, so that it is known when it is asked for.
    package nonisolated func prepare() { watch.keepWhereNeeded() }
}

extension Reachability.Status {
    /// Whether there is a way out; false also while nothing is known.
    public var isReachable: Bool {
        if case .reachable = self { true } else { false }
    }
}

extension Reachability.Status: CustomStringConvertible {
    /// A phrase in English, for logs: `reachable via wifi`.
    public var description: String {
        switch self {
        case .unknown: "unknown"
        case .unreachable: "not reachable"
        case .reachable(let medium): "reachable via \(medium.rawValue)"
        }
    }
}
