/// The system's own word on pressure: `DispatchSource` and the app's way to the background on Apple platforms, the kernel's
/// files on Linux.
///
/// On Linux, the first that is there: a trigger on the pressure stall information of the process's control group or of the
/// machine (`memory.pressure`, `/proc/pressure/memory`), together with the events of the control groups (version 2,
/// `memory.events`): one thread sleeps in the kernel until they speak. Where neither is to be had, the limit of version 1
/// and `MemAvailable` are looked at every 5 seconds, while somebody listens. `availability` says which it is.
public final class SystemMemoryPressure: MemoryPressureSource {
    /// The one of the process.
    public static let shared = SystemMemoryPressure()

    private let feed: PressureFeed

    /// What this system can tell, and what it cannot.
    public let availability: MemoryPressureAvailability

    #if canImport(Darwin)
    private init() {
        let feed = ApplePressure()
        self.feed = .notified(feed.broadcast) { feed.start() }
        availability = feed.availability
    }
    #else
    private convenience init() {
        self.init(.live, clock: ContinuousClock())
    }

    /// On the files, descriptors and time that are given.
    init(_ system: PressureSystem, clock: any Clock<Duration>) {
        let plan = PressurePlan(system)
        availability = plan.availability
        feed = plan.feed(system, clock: clock)
    }
    #endif

    /// The levels from now on; ends at once where the system tells nothing. A slow reader gets the latest 16.
    public var levels: AsyncStream<MemoryPressureLevel> {
        switch feed {
        case .notified(let broadcast, let start):
            let stream = broadcast.stream()
            start()
            return stream
        case .sampled(let sampler):
            return sampler.stream()
        case .nothing:
            return AsyncStream { nil }
        }
    }
}

/// Where the levels of one source come from.
enum PressureFeed: Sendable {
    /// Something tells all listeners; it is started by the first one.
    case notified(PressureBroadcast, start: @Sendable () -> Void)
    /// Each listener looks for itself.
    case sampled(PressureSampler)
    case nothing
}

/// What a source of memory pressure rests on.
public struct MemoryPressureAvailability: Sendable, Hashable {
    /// One thing that tells of pressure.
    public enum Signal: Sendable, Hashable {
        /// The system's notices (Apple).
        case systemNotices
        /// Stalls for lack of memory, from this file (Linux, PSI).
        case pressureStalls(String)
        /// Events of a control group, from this file (Linux, version 2).
        case groupEvents(String)
        /// The use of a control group against its limit, from this folder (Linux, version 1).
        case groupUsage(String)
        /// The memory that is available on the machine (Linux, `/proc/meminfo`).
        case availableMemory
    }

    /// What is listened to; empty: the system tells nothing, and caches do not shrink by themselves.
    public let signals: [Signal]
    /// The time between two looks; nil: the system notifies, and nobody looks.
    public let interval: Duration?
    /// What was looked for and cannot be used here, one line each.
    public let missing: [String]

    /// Whether anything tells of pressure.
    public var isAvailable: Bool { !signals.isEmpty }
}
