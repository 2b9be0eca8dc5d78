import TernConcurrency

#if canImport(Darwin)
import Dispatch
import Foundation
#endif

/// The severity of memory pressure, present or expected.
public enum MemoryPressureLevel: Sendable, Hashable, CaseIterable {
    /// Memory is getting short. Caches should free what they can spare.
    case warning
    /// The process may be terminated, or makes no progress for lack of memory. Caches should free everything.
    case critical
    /// The app moved to the background, where the process that uses the least memory lives longest.
    case background
}

/// A source that reports memory pressure. Implement it in tests, or in an app that knows more than the system reports.
public protocol MemoryPressureSource: Sendable {
    /// The levels from now on. Each access returns a stream of its own, with one element for each event, not for a
    /// state that lasts. The stream ends only when no more levels can come.
    var levels: AsyncStream<MemoryPressureLevel> { get }
}

/// The system's reports of memory pressure: `DispatchSource` and the app's move to the background on Apple platforms,
/// the kernel's files on Linux.
///
/// On Linux, it uses the first available of two mechanisms. The first is a trigger on the pressure stall information of
/// the process's control group or of the machine (`memory.pressure`, `/proc/pressure/memory`), together with the events
/// of the control groups (version 2, `memory.events`); one thread sleeps in the kernel until they report. The second
/// reads the limit of version 1 and `MemAvailable` every 5 seconds, while somebody listens. `availability` says which
/// is used.
public final class SystemMemoryPressure: MemoryPressureSource {
    /// The source of the process.
    public static let shared = SystemMemoryPressure()

    private let mechanism: PressureMechanism

    /// The reports that this system offers, and those that it lacks.
    public let availability: MemoryPressureAvailability

    #if canImport(Darwin)
    private init() {
        let pressure = ApplePressure()
        mechanism = .notifications(pressure.broadcast) { pressure.start() }
        availability = pressure.availability
    }
    #else
    private convenience init() {
        self.init(.live, clock: ContinuousClock())
    }

    /// Creates a source with the given system calls and clock.
    init(_ system: PressureSystem, clock: any Clock<Duration>) {
        let plan = PressurePlan(system)
        availability = plan.availability
        mechanism = plan.mechanism(system, clock: clock)
    }
    #endif

    /// The levels from now on. Ends at once where the system reports nothing. A slow reader receives the latest 16.
    public var levels: AsyncStream<MemoryPressureLevel> {
        switch mechanism {
        case .notifications(let broadcast, let start):
            let stream = broadcast.stream()
            start()
            return stream
        case .sampling(let sampler):
            return sampler.stream()
        case .unavailable:
            return AsyncStream { nil }
        }
    }
}

/// The mechanism by which one source learns of memory pressure.
enum PressureMechanism: Sendable {
    /// One monitor notifies all listeners. The first listener starts it.
    case notifications(EventBroadcast<MemoryPressureLevel>, start: @Sendable () -> Void)
    /// Each listener reads the figures itself.
    case sampling(PressureSampler)
    case unavailable
}

extension EventBroadcast where Event == MemoryPressureLevel {
    /// Creates a broadcast of levels, of which a slow reader receives the latest 16.
    convenience init() { self.init(limit: 16, overflow: .replaceOldest) }
}

/// The reports on which a source of memory pressure is based.
public struct MemoryPressureAvailability: Sendable, Hashable {
    /// One kind of report.
    public enum Signal: Sendable, Hashable {
        /// Notifications of the system (Apple).
        case systemNotices
        /// Stalls for lack of memory, from this file (Linux, PSI).
        case pressureStalls(String)
        /// Events of a control group, from this file (Linux, version 2).
        case groupEvents(String)
        /// The memory use of a control group against its limit, from this folder (Linux, version 1).
        case groupUsage(String)
        /// The available memory of the machine (Linux, `/proc/meminfo`).
        case availableMemory
    }

    /// The reports in use. If it is empty, the system reports nothing, and caches do not shrink by themselves.
    public let signals: [Signal]
    /// The time between two readings; nil if the system notifies and nothing is read periodically.
    public let interval: Duration?
    /// The reports that cannot be used here, one line each.
    public let missing: [String]

    /// A Boolean value that indicates whether any report is available.
    public var isAvailable: Bool { !signals.isEmpty }
}

#if canImport(Darwin)
/// The notifications of Apple's systems: two sources of `Dispatch`, and the app's move to the background.
final class ApplePressure: Sendable {
    let broadcast = EventBroadcast<MemoryPressureLevel>()
    let availability = MemoryPressureAvailability(signals: [.systemNotices], interval: nil, missing: [])
    private let sources = Lock<[any DispatchSourceMemoryPressure]>([])

    /// Starts the sources. Further calls have no effect.
    func start() {
        sources.withLock { sources in
            guard sources.isEmpty else { return }
            sources = [source(.warning, .warning), source(.critical, .critical)]
        }
        Self.observeBackground(broadcast)
    }

    /// Creates a source for one level, so that its handler need not ask which level occurred.
    private func source(
        _ event: DispatchSource.MemoryPressureEvent, _ level: MemoryPressureLevel
    ) -> any DispatchSourceMemoryPressure {
        let source = DispatchSource.makeMemoryPressureSource(eventMask: event, queue: .global(qos: .utility))
        source.setEventHandler { [broadcast] in broadcast.send(level) }
        source.activate()
        return source
    }

    private static let isObserved = Lock(false)

    /// Observes the notification by its name, because this module does not link UIKit. On macOS it is never posted.
    private static func observeBackground(_ broadcast: EventBroadcast<MemoryPressureLevel>) {
        let isFirst = isObserved.withLock { isObserved in
            defer { isObserved = true }
            return !isObserved
        }
        guard isFirst else { return }
        // For the life of the process, like the one source that it belongs to.
        _ = NotificationCenter.default.addObserver(
            forName: Notification.Name("UIApplicationDidEnterBackgroundNotification"), object: nil, queue: nil
        ) { _ in broadcast.send(.background) }
    }
}
#endif
