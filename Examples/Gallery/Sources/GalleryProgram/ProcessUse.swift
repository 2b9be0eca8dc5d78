import Glibc

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What this process has used of the machine.
struct ProcessUse {
    /// How often the main thread, and how often any thread, has waited and was woken.
    var mainWakeUps: Int
    var wakeUps: Int
    /// Processor time of all threads.
    var milliseconds: Double

    static func now() -> ProcessUse {
        var usage = rusage()
        unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return ProcessUse(
            mainWakeUps: ProcessThread.all().first(where: \.isMain)?.wakeUps ?? 0, wakeUps: usage.ru_nvcsw,
            milliseconds: milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime))
    }

    private static func milliseconds(_ time: timeval) -> Double {
        Double(time.tv_sec) * 1_000 + Double(time.tv_usec) / 1_000
    }

    static func - (after: ProcessUse, before: ProcessUse) -> ProcessUse {
        ProcessUse(
            mainWakeUps: after.mainWakeUps - before.mainWakeUps, wakeUps: after.wakeUps - before.wakeUps,
            milliseconds: after.milliseconds - before.milliseconds)
    }
}

/// What all programs have used of the machine, and what this one has.
struct MachineUse {
    /// In milliseconds of all cores together.
    private let all: Double
    private let possible: Double
    private let own: Double

    static func now() -> MachineUse {
        // `try?`: without the file nobody is said to have used anything, and every round counts.
        let text =
            (try? Data(contentsOf: URL(filePath: "/proc/stat"))).map { String(decoding: $0, as: UTF8.self) } ?? ""
        // user, nice, system, idle, waiting for the disk, …, in hundredths of a second.
        let times = text.split(separator: "\n").first?.split(separator: " ").compactMap { Double($0) } ?? []
        let possible = times.prefix(8).reduce(0, +)
        let unused = times.count > 4 ? times[3] + times[4] : possible
        return MachineUse(all: (possible - unused) * 10, possible: possible * 10, own: ProcessUse.now().milliseconds)
    }

    /// From 0 to 1.
    func shareOfOthers(since before: MachineUse) -> Double {
        let others = (all - before.all) - (own - before.own)
        return max(0, others / max(1, possible - before.possible))
    }
}

/// A thread of this process, as the system tells.
struct ProcessThread {
    let id: Int
    /// The steps of priority that it gives up.
    let nice: Int
    /// How often it has waited and was woken.
    let wakeUps: Int

    var isMain: Bool { id == Int(getpid()) }

    static func all() -> [ProcessThread] {
        // `try?`: without the list there are no threads, and no check of them holds.
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.compactMap { Int($0).flatMap(ProcessThread.init) }
    }

    private static let folder = "/proc/self/task"

    private init?(id: Int) {
        guard let stat = Self.text(of: "\(id)/stat"), let status = Self.text(of: "\(id)/status") else { return nil }
        // The name of the program stands in brackets, and may hold anything: the fields are counted from behind it.
        let fields = stat.split(separator: ")").last?.split(separator: " ") ?? []
        let line = status.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches:") }
        guard fields.count > 16, let nice = Int(fields[16]),
            let wakeUps = line?.split(separator: "\t").last.flatMap({ Int($0) })
        else { return nil }
        self.id = id
        self.nice = nice
        self.wakeUps = wakeUps
    }

    private static func text(of file: String) -> String? {
        // `try?`: a thread may end while its files are read, and is then none.
        (try? Data(contentsOf: URL(filePath: "\(folder)/\(file)"))).map { String(decoding: $0, as: UTF8.self) }
    }
}
