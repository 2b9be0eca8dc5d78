import Tern
import TernConcurrency

#if canImport(Network) && !os(watchOS)
import Dispatch
import Network
#endif

extension ImagePipeline {
    /// The condition under which the alternatives for low data are preferred (`ImageRequest.Alternative.lowData`).
    ///
    /// It is asked on the caller's thread when the load of a request with such an alternative begins, and does not
    /// change a load that has begun.
    public struct LowDataMode: Sendable {
        let isOn: @Sendable () -> Bool

        /// Creates a condition, such as a setting of the program. It must return at once.
        public init(_ isOn: @escaping @Sendable () -> Bool) { self.isOn = isOn }

        /// Never.
        public static let never = LowDataMode { false }
        /// The user's setting for the current network.
        ///
        /// On Apple's systems, this is Low Data Mode (`NWPath.isConstrained`); the first request that asks starts to
        /// watch it, and can be too early to know it. On Linux and watchOS, where no such setting is known, it is never
        /// on: use `cellular`, or a setting of your program.
        public static let system = LowDataMode {
            #if canImport(Network) && !os(watchOS)
            return ConstrainedPath.shared.isConstrained
            #else
            return false
            #endif
        }
        /// While the default route is over a mobile network (`Reachability.Medium.cellular`).
        public static let cellular = LowDataMode { Reachability.shared.status == .reachable(.cellular) }
    }
}

#if canImport(Network) && !os(watchOS)
/// Watches whether the path to the network is in Low Data Mode, from its first use to the end of the process.
private final class ConstrainedPath: Sendable {
    static let shared = ConstrainedPath()

    private let monitor: Lock<NWPathMonitor>
    private let state: SharedFlag

    private init() {
        let (monitor, state) = (NWPathMonitor(), SharedFlag())
        monitor.pathUpdateHandler = { state.value = $0.isConstrained }
        monitor.start(queue: DispatchQueue(label: "tern.images.low-data"))
        self.state = state
        self.monitor = Lock(monitor)
    }

    var isConstrained: Bool { state.value }
}

private final class SharedFlag: Sendable {
    private let flag = Lock(false)

    var value: Bool {
        get { flag.withLock { $0 } }
        set { flag.withLock { $0 = newValue } }
    }
}
#endif
