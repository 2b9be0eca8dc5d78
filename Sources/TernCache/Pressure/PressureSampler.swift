import TernConcurrency

/// Looks at figures from time to time, for one listener: where the kernel does not notify. Each look that finds a shortage
/// tells it again, so that caches go on giving up what they have.
struct PressureSampler: Sendable {
    let groups: [String]
    let machine: Bool
    let files: SystemFiles
    let clock: any Clock<Duration>
    var interval = Duration.seconds(5)

    func stream() -> AsyncStream<MemoryPressureLevel> {
        AsyncStream { await next() }
    }

    /// Nil when the listener is cancelled.
    private func next() async -> MemoryPressureLevel? {
        while true {
            do { try await clock.sleepWithoutDescriptor(for: interval) } catch { return nil }
            if let level = look() { return level }
        }
    }

    func look() -> MemoryPressureLevel? {
        let levels = groups.map { GroupMemory.version1($0, files) }
        let whole = machine ? files("/proc/meminfo").flatMap { MemoryShortage.machine(MemoryInfo($0)) } : nil
        return levels.reduce(whole, MemoryShortage.worst)
    }
}
