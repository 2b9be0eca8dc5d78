#if !canImport(Darwin)
/// What the pressure of Linux is read through: the seam to the kernel.
struct PressureSystem: Sendable {
    /// The text of a file.
    var files: SystemFiles
    /// Opens a file and writes a trigger into it: a descriptor that has priority data when it fires.
    var trigger: @Sendable (_ path: String, _ text: String) -> Int32?
    /// Opens a file that has priority data when it has changed.
    var watch: @Sendable (_ path: String) -> Int32?
    /// The text of an open file, from its start; nil when it is gone.
    var text: @Sendable (_ descriptor: Int32) -> String?
    /// Runs something on a thread of its own.
    var run: @Sendable (_ body: @escaping @Sendable () -> Void) -> Void

    static let live = PressureSystem(
        files: SystemDescriptor.contents, trigger: SystemDescriptor.trigger, watch: SystemDescriptor.watched,
        text: SystemDescriptor.text, run: PressureThread.run)
}

/// What is listened to on this machine, decided once.
struct PressurePlan {
    /// A descriptor, and what it means when it speaks.
    enum Watched: Hashable {
        case trigger(Int32, MemoryPressureLevel)
        /// The events of a group, in this folder.
        case events(Int32, folder: String)
    }

    /// The time between two looks where nothing notifies.
    static let interval = Duration.seconds(5)
    /// A tenth of two seconds in which some task, or all of them, waited for memory. Who has no privilege may only ask
    /// for windows that are multiples of two seconds.
    static let triggers: [(text: String, level: MemoryPressureLevel)] = [
        ("some 200000 2000000", .warning), ("full 200000 2000000", .critical),
    ]

    private(set) var watched: [Watched] = []
    /// Folders of version 1 to look at.
    private(set) var sampledGroups: [String] = []
    private(set) var samplesMachine = false
    /// Stalls are told: being at the limit alone is not asked about.
    private(set) var hasStalls = false
    private var signals: [MemoryPressureAvailability.Signal] = []
    private var missing: [String] = []

    init(_ system: PressureSystem) {
        let group = ControlGroup(system.files("/proc/self/cgroup") ?? "")
        watchStalls(group, system)
        watchEvents(group, system)
        if watched.isEmpty { sample(group, system) }
    }

    var availability: MemoryPressureAvailability {
        MemoryPressureAvailability(
            signals: signals, interval: watched.isEmpty && !signals.isEmpty ? Self.interval : nil, missing: missing)
    }

    func feed(_ system: PressureSystem, clock: any Clock<Duration>) -> PressureFeed {
        if !watched.isEmpty {
            let watch = PressureWatch(watched, hasStalls: hasStalls, system: system)
            return .notified(watch.broadcast) { watch.start() }
        }
        if signals.isEmpty { return .nothing }
        return .sampled(
            PressureSampler(groups: sampledGroups, machine: samplesMachine, files: system.files, clock: clock))
    }

    /// The own group's stalls where they may be asked for, else the machine's.
    private mutating func watchStalls(_ group: ControlGroup, _ system: PressureSystem) {
        for path in group.version2.map({ $0 + "/memory.pressure" }) + ["/proc/pressure/memory"] {
            for (text, level) in Self.triggers {
                if let descriptor = system.trigger(path, text) { watched.append(.trigger(descriptor, level)) }
            }
            if !watched.isEmpty {
                hasStalls = true
                signals.append(.pressureStalls(path))
                return
            }
        }
        missing.append("pressure stall information: no memory.pressure file takes a trigger from this process")
    }

    private mutating func watchEvents(_ group: ControlGroup, _ system: PressureSystem) {
        for folder in group.version2 {
            guard let descriptor = system.watch(folder + "/memory.events") else { continue }
            watched.append(.events(descriptor, folder: folder))
            signals.append(.groupEvents(folder + "/memory.events"))
        }
        if signals.isEmpty || !signals.contains(where: \.isGroupEvents) {
            missing.append("control group version 2: no memory.events file")
        }
    }

    private mutating func sample(_ group: ControlGroup, _ system: PressureSystem) {
        sampledGroups = group.version1.filter { GroupMemory.hasVersion1Limit($0, system.files) }
        signals += sampledGroups.map { .groupUsage($0) }
        if sampledGroups.isEmpty { missing.append("control group version 1: no limit on memory") }
        let info = MemoryInfo(system.files("/proc/meminfo") ?? "")
        samplesMachine = info.total != nil && info.available != nil
        if samplesMachine {
            signals.append(.availableMemory)
        } else {
            missing.append("/proc/meminfo: no MemTotal and MemAvailable")
        }
    }
}

extension MemoryPressureAvailability.Signal {
    fileprivate var isGroupEvents: Bool {
        if case .groupEvents = self { true } else { false }
    }
}
#endif
