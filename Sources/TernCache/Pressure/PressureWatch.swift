import Synchronization
import TernConcurrency

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

#if !canImport(Darwin)
/// Sleeps in the kernel until one of the descriptors speaks, and tells. One thread, without a time limit: while there is
/// no pressure nothing wakes up.
final class PressureWatch: Sendable {
    let broadcast = PressureBroadcast()
    private let watched: [PressurePlan.Watched]
    private let hasStalls: Bool
    private let system: PressureSystem
    private let isStarted = Atomic<Bool>(false)

    init(_ watched: [PressurePlan.Watched], hasStalls: Bool, system: PressureSystem) {
        self.watched = watched
        self.hasStalls = hasStalls
        self.system = system
    }

    func start() {
        if isStarted.exchange(true, ordering: .relaxed) { return }
        // The thread holds this object for ever: it is one of the process, as are its descriptors.
        system.run { self.run() }
    }

    private func run() {
        var watches = watched.map { Watch($0, text: system.text) }
        while !watches.isEmpty {
            var descriptors = watches.map { pollfd(fd: $0.descriptor, events: Int16(POLLPRI), revents: 0) }
            guard unsafe poll(&descriptors, nfds_t(descriptors.count), -1) > 0 else {
                if errno == EINTR { continue }
                break
            }
            var gone: [Int] = []
            for (place, descriptor) in descriptors.enumerated() where descriptor.revents != 0 {
                switch watches[place].heard(descriptor.revents, hasStalls: hasStalls, system) {
                case .level(let level): broadcast.tell(level)
                case .nothing: break
                case .gone: gone.append(place)
                }
            }
            for place in gone.reversed() {
                close(watches[place].descriptor)
                watches.remove(at: place)
            }
        }
        broadcast.finish()
    }
}

/// One descriptor and what is known of it. Pure but for the reading.
struct Watch {
    enum Answer: Hashable {
        case level(MemoryPressureLevel)
        case nothing
        /// The group was removed: the descriptor speaks for ever, and says nothing.
        case gone
    }

    let watched: PressurePlan.Watched
    private var events: GroupEvents

    init(_ watched: PressurePlan.Watched, text: (Int32) -> String?) {
        self.watched = watched
        if case .events(let descriptor, _) = watched {
            // The first reading arms the notice too.
            events = GroupEvents(text(descriptor) ?? "")
        } else {
            events = GroupEvents("")
        }
    }

    var descriptor: Int32 {
        switch watched {
        case .trigger(let descriptor, _), .events(let descriptor, _): descriptor
        }
    }

    mutating func heard(_ bits: Int16, hasStalls: Bool, _ system: PressureSystem) -> Answer {
        switch watched {
        case .trigger(_, let level):
            if bits & Int16(POLLERR | POLLNVAL) != 0 { return .gone }
            return bits & Int16(POLLPRI) != 0 ? .level(MemoryShortage.stall(level, system.files)) : .nothing
        case .events(let descriptor, let folder):
            guard bits & Int16(POLLNVAL) == 0, let text = system.text(descriptor) else { return .gone }
            let new = GroupEvents(text)
            let change = events.change(to: new)
            events = new
            switch change {
            case .outOfMemory: return .level(.critical)
            // Stalls tell it better where they are told.
            case .atLimit where !hasStalls:
                return GroupMemory.version2(folder, system.files).map { .level($0) } ?? .nothing
            case .atLimit, nil: return .nothing
            }
        }
    }
}

/// Starts the thread that watches.
enum PressureThread {
    private final class Start: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Without a thread, the caches go on without a word on pressure.
    static let run: @Sendable (@escaping @Sendable () -> Void) -> Void = { body in
        let start = unsafe Unmanaged.passRetained(Start(body))
        var thread = pthread_t()
        let code = unsafe pthread_create(&thread, nil, { unsafe Self.enter($0) }, start.toOpaque())
        if code == 0 { pthread_detach(thread) } else { unsafe start.release() }
    }

    private static func enter(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        if let argument = unsafe argument { unsafe Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body() }
        return nil
    }
}
#endif
