import TernConcurrency

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

#if !canImport(Darwin)
/// The system calls through which memory pressure on Linux is read. Tests replace them.
struct PressureSystem: Sendable {
    /// Returns the text of a file.
    var files: SystemFileReader
    /// Opens a file and writes a trigger into it. The descriptor has priority data when the trigger fires.
    var trigger: @Sendable (_ path: String, _ text: String) -> Int32?
    /// Opens a file whose descriptor has priority data after it changed.
    var watch: @Sendable (_ path: String) -> Int32?
    /// Returns the text of an open file, from its start; nil if the file was removed.
    var text: @Sendable (_ descriptor: Int32) -> String?
    /// Runs a closure on a thread of its own.
    var run: @Sendable (_ body: @escaping @Sendable () -> Void) -> Void

    static let live = PressureSystem(
        files: SystemDescriptor.contents, trigger: SystemDescriptor.trigger, watch: SystemDescriptor.watched,
        text: SystemDescriptor.text, run: startThread)

    /// Runs a closure on a new thread. If no thread can be created, caches work without reports of memory pressure.
    static let startThread: @Sendable (@escaping @Sendable () -> Void) -> Void = { _ = SystemThread.start($0) }
}

/// The reports that are used on this machine, selected once.
struct PressurePlan {
    /// A descriptor to monitor, and the meaning of its reports.
    enum Target: Hashable {
        case trigger(Int32, MemoryPressureLevel)
        /// The events of a group, in this folder.
        case events(Int32, folder: String)
    }

    /// The time between two readings where nothing notifies.
    static let interval = Duration.seconds(5)
    /// The triggers: a tenth of two seconds in which some task, or all tasks, waited for memory. A process without
    /// privileges may only use windows that are multiples of two seconds.
    static let triggers: [(text: String, level: MemoryPressureLevel)] = [
        ("some 200000 2000000", .warning), ("full 200000 2000000", .critical),
    ]

    private(set) var targets: [Target] = []
    /// The folders of version 1 to read.
    private(set) var sampledGroups: [String] = []
    private(set) var samplesMachine = false
    /// Whether stalls are reported. Then reaching a limit alone is no pressure.
    private(set) var hasStalls = false
    private var signals: [MemoryPressureAvailability.Signal] = []
    private var missing: [String] = []

    init(_ system: PressureSystem) {
        let group = ControlGroup(system.files("/proc/self/cgroup") ?? "")
        addStalls(group, system)
        addEvents(group, system)
        if targets.isEmpty { addSamples(group, system) }
    }

    var availability: MemoryPressureAvailability {
        MemoryPressureAvailability(
            signals: signals, interval: targets.isEmpty && !signals.isEmpty ? Self.interval : nil, missing: missing)
    }

    func mechanism(_ system: PressureSystem, clock: any Clock<Duration>) -> PressureMechanism {
        if !targets.isEmpty {
            let monitor = PressureMonitor(targets, hasStalls: hasStalls, system: system)
            return .notifications(monitor.broadcast) { monitor.start() }
        }
        if signals.isEmpty { return .unavailable }
        return .sampling(
            PressureSampler(
                groups: sampledGroups, includesMachine: samplesMachine, files: system.files, clock: clock))
    }

    /// Adds the stalls of the own group, or else those of the machine.
    private mutating func addStalls(_ group: ControlGroup, _ system: PressureSystem) {
        for path in group.version2.map({ $0 + "/memory.pressure" }) + ["/proc/pressure/memory"] {
            for (text, level) in Self.triggers {
                if let descriptor = system.trigger(path, text) { targets.append(.trigger(descriptor, level)) }
            }
            if !targets.isEmpty {
                hasStalls = true
                signals.append(.pressureStalls(path))
                return
            }
        }
        missing.append("pressure stall information: no memory.pressure file accepts a trigger from this process")
    }

    private mutating func addEvents(_ group: ControlGroup, _ system: PressureSystem) {
        for folder in group.version2 {
            guard let descriptor = system.watch(folder + "/memory.events") else { continue }
            targets.append(.events(descriptor, folder: folder))
            signals.append(.groupEvents(folder + "/memory.events"))
        }
        if signals.isEmpty || !signals.contains(where: \.isGroupEvents) {
            missing.append("control group version 2: no memory.events file")
        }
    }

    private mutating func addSamples(_ group: ControlGroup, _ system: PressureSystem) {
        sampledGroups = group.version1.filter { ControlGroupMemory.hasVersion1Limit($0, files: system.files) }
        signals += sampledGroups.map { .groupUsage($0) }
        if sampledGroups.isEmpty { missing.append("control group version 1: no limit on memory") }
        let info = MemoryInfo(files: system.files)
        samplesMachine = info?.total != nil && info?.available != nil
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

/// Opens and reads small files of the kernel.
enum SystemDescriptor {
    /// Returns the whole text of a small file, 64 KiB at most; nil if it does not exist or is not readable.
    static let contents: SystemFileReader = { path in
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        return text(descriptor)
    }

    /// Returns the text of an open file, from its start.
    static func text(_ descriptor: Int32) -> String? {
        var bytes: [UInt8] = []
        while bytes.count < 64 << 10 {
            let chunk = unsafe [UInt8](unsafeUninitializedCapacity: 4_096) { buffer, count in
                count = unsafe max(0, pread(descriptor, buffer.baseAddress, buffer.count, off_t(bytes.count)))
            }
            if chunk.isEmpty { break }
            bytes += chunk
        }
        return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
    }

    /// Opens a file and writes a trigger into it; nil if the kernel does not accept it.
    static func trigger(_ path: String, _ text: String) -> Int32? {
        let descriptor = unsafe open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        // The kernel requires the terminating zero (Documentation/accounting/psi.rst).
        let bytes = Array(text.utf8) + [0]
        let written = unsafe bytes.withUnsafeBytes { buffer in
            unsafe write(descriptor, buffer.baseAddress, buffer.count)
        }
        guard written == bytes.count else {
            close(descriptor)
            return nil
        }
        return descriptor
    }

    /// Opens a file to be read at each notification; nil if it does not exist.
    static func watched(_ path: String) -> Int32? {
        let descriptor = unsafe open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        return descriptor >= 0 ? descriptor : nil
    }
}
#endif
