#if canImport(Network) && !os(watchOS)
import Dispatch
import Network
import TernConcurrency
#endif

/// The system's own source.
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
/// Apple's systems. A monitor that was cancelled cannot be started again: each watch has its own.
struct PathReachability: ReachabilitySource {
    var ask: (@Sendable () -> Reachability.Status)? { nil }

    func watch(_ tell: @escaping @Sendable (Reachability.Status) -> Void) -> (any ReachabilityWatch)? {
        let monitor = NWPathMonitor()
        monitor.pathUpdateHandler = { path in tell(Self.status(path)) }
        monitor.start(queue: DispatchQueue(label: "tern.reachability"))
        return PathWatch(monitor)
    }

    private static func status(_ path: NWPath) -> Reachability.Status {
        // `requiresConnection`: a connection would bring the way up.
        if path.status == .unsatisfied { return .unreachable }
        if path.usesInterfaceType(.wifi) { return .reachable(.wifi) }
        if path.usesInterfaceType(.wiredEthernet) { return .reachable(.wired) }
        if path.usesInterfaceType(.cellular) { return .reachable(.cellular) }
        return .reachable(.other)
    }
}

/// Behind a lock: not every version of the system's interface says that a monitor is Sendable.
private final class PathWatch: ReachabilityWatch {
    private let monitor: Lock<NWPathMonitor>

    init(_ monitor: sending NWPathMonitor) { self.monitor = Lock(monitor) }

    func close() { monitor.withLock { $0.cancel() } }
}
#endif
