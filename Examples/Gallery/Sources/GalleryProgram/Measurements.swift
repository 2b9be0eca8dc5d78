import GalleryViews
import Glibc
import GtkBridge
import TernImages
import TernViewModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The resources that this process has used.
struct ProcessUse {
    /// The number of times the main thread, and any thread, has waited and was woken.
    var mainWakeUps: Int
    var wakeUps: Int
    /// The processor time of all threads.
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

/// The processor time of all programs and of this one.
struct MachineUse {
    /// Milliseconds of all cores together.
    private let all: Double
    private let possible: Double
    private let own: Double

    static func now() -> MachineUse {
        // `try?`: without the file the use counts as zero, and every round counts.
        let text =
            (try? Data(contentsOf: URL(filePath: "/proc/stat"))).map { String(decoding: $0, as: UTF8.self) } ?? ""
        // user, nice, system, idle, waiting for the disk, …, in hundredths of a second.
        let times = text.split(separator: "\n").first?.split(separator: " ").compactMap { Double($0) } ?? []
        let possible = times.prefix(8).reduce(0, +)
        let unused = times.count > 4 ? times[3] + times[4] : possible
        return MachineUse(all: (possible - unused) * 10, possible: possible * 10, own: ProcessUse.now().milliseconds)
    }

    /// Returns the share of other programs, from 0 to 1.
    func shareOfOthers(since before: MachineUse) -> Double {
        let others = (all - before.all) - (own - before.own)
        return max(0, others / max(1, possible - before.possible))
    }
}

/// A thread of this process, as the system reports it.
struct ProcessThread {
    let id: Int
    /// The nice value.
    let nice: Int
    /// The number of times it has waited and was woken.
    let wakeUps: Int

    var isMain: Bool { id == Int(getpid()) }

    static func all() -> [ProcessThread] {
        // `try?`: without the list there are no threads, and the checks of them fail.
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.compactMap { Int($0).flatMap(ProcessThread.init) }
    }

    private static let folder = "/proc/self/task"

    private init?(id: Int) {
        guard let stat = Self.text(of: "\(id)/stat"), let status = Self.text(of: "\(id)/status") else { return nil }
        // The name of the program is in brackets and may contain anything: count the fields from behind it.
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
        // `try?`: a thread may end while its files are read, and is then omitted.
        (try? Data(contentsOf: URL(filePath: "\(folder)/\(file)"))).map { String(decoding: $0, as: UTF8.self) }
    }
}

/// A timer of 16 ms in the main loop that records the delay of each turn in milliseconds.
@MainActor
final class LoopTimer {
    private var late: [Double] = []
    private let start = ContinuousClock.now
    private var last = ContinuousClock.now
    private var isRunning = true

    init() {
        MainLoop.every(16) { self.turn() }
    }

    private func turn() -> Bool {
        guard isRunning else { return false }
        let now = ContinuousClock.now
        // GLib measures the next turn from this one.
        late.append(max(0, (now - last) / .milliseconds(1) - 16))
        last = now
        return true
    }

    /// Stops the timer and returns its delays. A turn that is overdue counts.
    func stop() -> Lateness {
        _ = turn()
        isRunning = false
        return Lateness(late, (last - start) / .seconds(1))
    }
}

/// The delays of a timer in milliseconds.
struct Lateness: CustomStringConvertible {
    let median: Double
    let p95: Double
    private let count: Int
    private let seconds: Double

    var isGood: Bool { median <= 4 && p95 <= 20 }

    init(_ samples: [Double], _ seconds: Double) {
        let sorted = samples.sorted()
        count = sorted.count
        self.seconds = seconds
        median = count == 0 ? 0 : sorted[count / 2]
        p95 = count == 0 ? 0 : sorted[count * 95 / 100]
    }

    var description: String {
        "median \(median.rounded(to: 2)) ms, p95 \(p95.rounded(to: 2)) ms, \(count) turns in \(seconds.rounded(to: 2)) s"
    }
}

extension Double {
    func rounded(to places: Int) -> Double {
        let factor = places == 1 ? 10.0 : 100.0
        return (self * factor).rounded() / factor
    }
}

/// Binds photos to cells between two marks, which `scripts/gallery` finds in a trace of the system calls: photos
/// in no cache, photos in memory, and photos only on the disk.
@MainActor
struct BindProbe {
    private let server: PhotoServer

    init(_ server: PhotoServer) { self.server = server }

    func run() async {
        let window = Window("Binding", width: 960, height: 200)
        let row = Stack(.row)
        let cells = (0..<20).map { _ in PhotoCell(width: 44, height: 33) }
        for cell in cells { row.add(cell) }
        window.setContent(row)
        window.present()
        await MainLoop.pause(300)
        bind(cells, ImageRequest.Caching())
        await MainLoop.wait { cells.allSatisfy(\.hasLoaded) }
        for cell in cells { cell.clearImage() }
        bind(cells, ImageRequest.Caching())
        let wereInMemory = cells.allSatisfy(\.hasLoaded)
        for cell in cells { cell.clearImage() }
        bind(cells, ImageRequest.Caching(memory: .write))
        await MainLoop.wait { cells.allSatisfy(\.hasLoaded) }
        print("bound \(3 * cells.count) photos, \(wereInMemory ? cells.count : 0) of them from memory")
        window.close()
    }

    private func bind(_ cells: [PhotoCell], _ caching: ImageRequest.Caching) {
        mark("begin")
        for (number, cell) in cells.enumerated() {
            var request = ImageRequest(server.url(PhotoAddress(number, .jpeg)))
            request.caching = caching
            cell.load(request)
        }
        mark("end")
    }

    /// A system call without effect that marks a place in the trace.
    private func mark(_ name: String) { _ = unsafe access("/tern-bind-\(name)", F_OK) }
}
