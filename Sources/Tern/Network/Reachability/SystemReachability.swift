import TernConcurrency

#if canImport(Network) && !os(watchOS)
import Dispatch
import Network
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

/// Nobody knows.
struct UnknownReachability: ReachabilitySource {
    func start(_ tell: @escaping @Sendable (Reachability.Status) -> Void) {}
    func stop() {}
}

#if canImport(Network) && !os(watchOS)
/// Apple's systems.
final class PathReachability: ReachabilitySource {
    private let monitor = NWPathMonitor()

    func start(_ tell: @escaping @Sendable (Reachability.Status) -> Void) {
        monitor.pathUpdateHandler = { path in tell(Self.status(path)) }
        monitor.start(queue: DispatchQueue(label: "tern.reachability"))
    }

    func stop() { monitor.cancel() }

    private static func status(_ path: NWPath) -> Reachability.Status {
        // `requiresConnection`: a connection would bring the way up.
        if path.status == .unsatisfied { return .unreachable }
        if path.usesInterfaceType(.wifi) { return .reachable(.wifi) }
        if path.usesInterfaceType(.wiredEthernet) { return .reachable(.wired) }
        if path.usesInterfaceType(.cellular) { return .reachable(.cellular) }
        return .reachable(.other)
    }
}
#endif
