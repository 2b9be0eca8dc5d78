import TernConcurrency

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
/// again (``OfflineWaitInterceptor``). Watching begins with the first look at ``status`` or ``statuses`` and costs one
/// descriptor; nothing wakes up while nothing changes.
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

    private let source: any ReachabilitySource
    private let latest = Latest(Status.unknown)
    private let isStarted = Lock(false)

    /// The status of this machine.
    public init() { self.init(SystemReachability.source()) }

    package init(_ source: any ReachabilitySource) { self.source = source }

    deinit {
        source.stop()
        latest.finish { $0 }
    }

    /// The status at this moment. On Apple's systems `.unknown` at the very first look.
    public nonisolated var status: Status {
        start()
        return latest.current
    }

    /// The status at this moment, then each change of it; equal ones are told once, and a slow reader gets the newest.
    /// Ends when the `Reachability` is released.
    public nonisolated var statuses: AsyncStream<Status> {
        start()
        return latest.stream()
    }

    private nonisolated func start() {
        let isFirst = isStarted.withLock { isStarted in
            defer { isStarted = true }
            return !isStarted
        }
        if !isFirst { return }
        source.start { [latest] status in
            latest.update { $0 == status ? nil : status }
        }
    }
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

/// Who knows the status.
package protocol ReachabilitySource: Sendable {
    /// Tells the status, at once where it can, and every change of it from then on. Called once.
    func start(_ tell: @escaping @Sendable (Reachability.Status) -> Void)
    /// Tells no more.
    func stop()
}
