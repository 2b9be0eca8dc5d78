import Synchronization
import TernConcurrency

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

#if !canImport(Darwin)
/// Sleeps in the kernel until one of the descriptors reports, and broadcasts the level. It uses one thread without a
/// timeout: without pressure, nothing wakes up.
final class PressureMonitor: Sendable {
    let broadcast = EventBroadcast<MemoryPressureLevel>()
    private let targets: [PressurePlan.Target]
    private let hasStalls: Bool
    private let system: PressureSystem
    private let isStarted = Atomic<Bool>(false)

    init(_ targets: [PressurePlan.Target], hasStalls: Bool, system: PressureSystem) {
        self.targets = targets
        self.hasStalls = hasStalls
        self.system = system
    }

    /// Starts the thread. Further calls have no effect.
    func start() {
        if isStarted.exchange(true, ordering: .relaxed) { return }
        // The thread holds this object forever: both it and the descriptors belong to the process.
        system.run { self.run() }
    }

    private func run() {
        var files = targets.map { MonitoredFile($0, text: system.text) }
        while !files.isEmpty {
            var descriptors = files.map { pollfd(fd: $0.descriptor, events: Int16(POLLPRI), revents: 0) }
            guard unsafe poll(&descriptors, nfds_t(descriptors.count), -1) > 0 else {
                if errno == EINTR { continue }
                break
            }
            var removed: [Int] = []
            for (index, descriptor) in descriptors.enumerated() where descriptor.revents != 0 {
                switch files[index].handle(descriptor.revents, hasStalls: hasStalls, system: system) {
                case .level(let level): broadcast.send(level)
                case .nothing: break
                case .removed: removed.append(index)
                }
            }
            for index in removed.reversed() {
                close(files[index].descriptor)
                files.remove(at: index)
            }
        }
        broadcast.finish()
    }
}

/// One descriptor and its known state. Pure, except for reading the file.
struct MonitoredFile {
    enum Report: Hashable {
        case level(MemoryPressureLevel)
        case nothing
        /// The group was removed. The descriptor would report forever, without content.
        case removed
    }

    let target: PressurePlan.Target
    private var events: ControlGroupEvents

    init(_ target: PressurePlan.Target, text: (Int32) -> String?) {
        self.target = target
        if case .events(let descriptor, _) = target {
            // The first reading also arms the notification.
            events = ControlGroupEvents(text(descriptor) ?? "")
        } else {
            events = ControlGroupEvents("")
        }
    }

    var descriptor: Int32 {
        switch target {
        case .trigger(let descriptor, _), .events(let descriptor, _): descriptor
        }
    }

    /// Interprets the result of `poll` for this descriptor.
    mutating func handle(_ bits: Int16, hasStalls: Bool, system: PressureSystem) -> Report {
        switch target {
        case .trigger(_, let level):
            if bits & Int16(POLLERR | POLLNVAL) != 0 { return .removed }
            return bits & Int16(POLLPRI) != 0 ? .level(MemoryShortage.stall(level, files: system.files)) : .nothing
        case .events(let descriptor, let folder):
            guard bits & Int16(POLLNVAL) == 0, let text = system.text(descriptor) else { return .removed }
            let new = ControlGroupEvents(text)
            let change = events.change(to: new)
            events = new
            switch change {
            case .outOfMemory: return .level(.critical)
            // Where stalls are reported, they are the better indication.
            case .atLimit where !hasStalls:
                return ControlGroupMemory.version2(folder, files: system.files).map { .level($0) } ?? .nothing
            case .atLimit, nil: return .nothing
            }
        }
    }
}
#endif
