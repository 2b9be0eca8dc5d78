#if canImport(Network) && !os(watchOS)
import Dispatch
import Network
import TernConcurrency
#endif

/// Reports whether this machine has a network, and of which kind. It says nothing about any server.
///
/// ```swift
/// for await status in Reachability.shared.statuses {
///     if case .unreachable = status { showOfflineBanner() } else { hideOfflineBanner() }
/// }
/// ```
///
/// On Linux the status comes from the kernel (rtnetlink): a machine is reachable if it has a default route over an
/// interface that is up and has a carrier. On Apple's systems it comes from `NWPathMonitor`. On watchOS, and where the
/// kernel refuses to answer, the status stays `.unknown`.
///
/// A machine without a default route can still reach other hosts: those of its own networks, and itself. Tern's own
/// waits for the network ask the kernel for a route to the host, if that is an address, and try again after 1 to 30
/// seconds in any case.
///
/// Do not use the status to decide whether to send a request. Use it to explain to a user why nothing arrives, and to
/// know when to try again (``OfflineWaitInterceptor``). On Linux, the network is watched only while ``statuses`` has
/// listeners. On Apple's systems, the first use of ``status``, or the first request through an
/// ``OfflineWaitInterceptor``, starts a watch that lasts as long as the `Reachability`. A watch does nothing until the
/// network changes; on Linux it costs one descriptor for all listeners.
public actor Reachability {
    /// The state of the network.
    public enum Status: Sendable, Hashable {
        /// The status is not known yet, or cannot be known on this system.
        case unknown
        /// There is no default route.
        case unreachable
        /// There is a default route over this medium.
        case reachable(Medium)
    }

    /// The medium of the default route.
    public enum Medium: String, Sendable, Hashable, CaseIterable {
        /// A cable. On Linux also a bond, and a bridge or another interface whose name begins with `br`.
        case wired
        /// Wi-Fi.
        case wifi
        /// A mobile network, which can be charged by volume.
        case cellular
        /// Another medium, such as a tunnel or a virtual interface.
        case other
    }

    /// The shared instance, which sessions use by default (`Session.Configuration.reachability`).
    public static let shared = Reachability()

    private let watch: StatusWatch

    /// Creates an instance for this machine.
    public init() { self.init(SystemReachability.source()) }

    package init(_ source: any ReachabilitySource) { watch = StatusWatch(source) }

    deinit { watch.end() }

    /// The current status. On Linux this asks the kernel, unless ``statuses`` has listeners. On Apple's systems the
    /// first access returns `.unknown` and starts a watch that lasts as long as the `Reachability`.
    public nonisolated var status: Status { watch.status }

    /// The current status, then each change. Equal consecutive values are reported once, and a slow reader receives the
    /// newest. Ends when the `Reachability` is released. Cancelling the reading task, or releasing the stream, ends the
    /// subscription.
    public nonisolated var statuses: AsyncStream<Status> { watch.stream() }

    /// Returns whether the system has a route to a host; nil for a name, which is not looked up, and where the system
    /// cannot say. The route says nothing about the host itself.
    package nonisolated func hasRoute(to host: String) -> Bool? {
        if host == "localhost" || host.hasSuffix(".localhost") { return true }
        return watch.hasRoute(to: host)
    }

    /// Starts the watch on systems where only a watch provides the status.
    package nonisolated func startPermanentWatchIfNeeded() { watch.startPermanentWatchIfNeeded() }
}

extension Reachability {
    /// Returns whether a host is known to be out of reach: there is no default route, and none to the host. A host name
    /// is not looked up, so that there is no route to it without a default route.
    package nonisolated func isOffline(to target: Target) -> Bool {
        status == .unreachable && hasRoute(to: target.host) != true
    }

    /// Waits until there is a default route or its status is unknown, until the time is over, or until the task is
    /// cancelled.
    ///
    /// - Parameters:
    ///   - limit: The time after which the wait ends.
    ///   - sleep: Waits for a time on the clock of the caller.
    /// - Returns: True if the status has ended the wait.
    package nonisolated func returns(
        within limit: Duration, sleep: @escaping @Sendable (Duration) async throws -> Void
    ) async -> Bool {
        startPermanentWatchIfNeeded()
        return await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                for await status in self.statuses where status != .unreachable { return true }
                return false
            }
            group.addTask {
                // Cancelled: the status changed first, or the caller was cancelled.
                try? await sleep(limit)
                return false
            }
            let isBack = await group.next() ?? false
            group.cancelAll()
            return isBack
        }
    }
}

/// Decides after which delays a host is tried again to which no route is known. Pure.
///
/// The status of the network does not tell whether a host can be reached: an isolated network has no default route, and
/// a name can lead anywhere. So each wait ends also by trying.
package struct RouteTrials: Sendable, Equatable {
    private static let firstDelay = Duration.seconds(1)
    private static let longestDelay = Duration.seconds(30)

    /// The delay before the next trial: 1 second at first, and twice as long after each one, up to 30 seconds.
    package private(set) var nextDelay = firstDelay

    package init() {}

    /// Returns the delay before the next trial, and doubles it for the one after that.
    package mutating func next() -> Duration {
        defer { nextDelay = min(nextDelay * 2, Self.longestDelay) }
        return nextDelay
    }
}

extension Reachability.Status {
    /// A Boolean value that indicates whether there is a default route. False while nothing is known.
    public var isReachable: Bool {
        if case .reachable = self { true } else { false }
    }
}

extension Reachability.Status: CustomStringConvertible {
    /// An English phrase for logs, such as `reachable via wifi`.
    public var description: String {
        switch self {
        case .unknown: "unknown"
        case .unreachable: "not reachable"
        case .reachable(let medium): "reachable via \(medium.rawValue)"
        }
    }
}

/// Provides the status of the network.
package protocol ReachabilitySource: Sendable {
    /// Returns the current status without a watch; nil where only a watch provides it.
    var currentStatus: (@Sendable () -> Reachability.Status)? { get }
    /// Starts a watch that reports the current status and each change until it is closed. It can be called again
    /// afterwards. Returns nil if no watch could be opened.
    func watch(_ onChange: @escaping @Sendable (Reachability.Status) -> Void) -> (any ReachabilityWatch)?
    /// Returns whether the system has a route to an address; nil for a name, and where the system cannot say.
    func hasRoute(to address: String) -> Bool?
}

extension ReachabilitySource {
    package func hasRoute(to address: String) -> Bool? { nil }
}

/// A running watch of a source.
package protocol ReachabilityWatch: Sendable {
    /// Releases the resources of the watch. Called once. Later reports of the watch are ignored.
    func close()
}

/// A source that knows nothing.
struct UnknownReachability: ReachabilitySource {
    var currentStatus: (@Sendable () -> Reachability.Status)? { { .unknown } }
    func watch(_ onChange: @escaping @Sendable (Reachability.Status) -> Void) -> (any ReachabilityWatch)? { nil }
}

/// Creates the source of the system.
enum SystemReachability {
    static func source() -> any ReachabilitySource {
        #if os(Linux)
        NetlinkReachability()
        #elseif canImport(Network) && !os(watchOS)
        PathReachability()
        #else
        UnknownReachability()
        #endif
    }
}

#if canImport(Network) && !os(watchOS)
/// The source on Apple's systems. A cancelled monitor cannot be started again, so each watch has its own.
struct PathReachability: ReachabilitySource {
    var currentStatus: (@Sendable () -> Reachability.Status)? { nil }

    func watch(_ onChange: @escaping @Sendable (Reachability.Status) -> Void) -> (any ReachabilityWatch)? {
        let monitor = NWPathMonitor()
        monitor.pathUpdateHandler = { path in onChange(Self.status(path)) }
        monitor.start(queue: DispatchQueue(label: "tern.reachability"))
        return PathWatch(monitor)
    }

    private static func status(_ path: NWPath) -> Reachability.Status {
        // `requiresConnection` means that a connection attempt would establish the path.
        if path.status == .unsatisfied { return .unreachable }
        if path.usesInterfaceType(.wifi) { return .reachable(.wifi) }
        if path.usesInterfaceType(.wiredEthernet) { return .reachable(.wired) }
        if path.usesInterfaceType(.cellular) { return .reachable(.cellular) }
        return .reachable(.other)
    }
}

/// Holds a monitor behind a lock, because not every version of the system's interface declares it Sendable.
private final class PathWatch: ReachabilityWatch {
    private let monitor: Lock<NWPathMonitor>

    init(_ monitor: sending NWPathMonitor) { self.monitor = Lock(monitor) }

    func close() { monitor.withLock { $0.cancel() } }
}
#endif
