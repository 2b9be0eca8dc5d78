import GalleryChecks
import GalleryViews
import Glibc
import GtkBridge
import TernImages
import TernViewModels

extension SelfCheck {
    /// While 200 photos load, a timer of the main loop must not be late. The machine may have other things to do: of a few
    /// rounds the best counts, and each is reported.
    func checkLoop() async {
        do {
            for number in 0..<Self.largePhotos { try server.make(PhotoAddress(number, .jpeg), width: Self.largeWidth) }
        } catch {
            return checks.check("photos are made", false, "\(error)")
        }
        var best = Lateness(median: .infinity, p95: .infinity)
        for round in 1...5 where !best.isGood {
            guard let lateness = await measureLoop(round) else { return }
            if lateness.p95 < best.p95 || lateness.isGood { best = lateness }
        }
        checks.check(
            "while 200 photos load, a timer of 16 ms is late by 4 ms at the median, 20 ms at p95, at most",
            best.isGood, "best: \(best)")
        let cores = sysconf(Int32(_SC_NPROCESSORS_ONLN))
        let threads = ProcessThread.all()
        let mainNice = threads.first(where: \.isMain)?.nice ?? 0
        let decoders = threads.count { $0.nice > mainNice }
        checks.check(
            "photos are decoded by threads of lower priority, at most one less than there are cores",
            decoders >= 1 && decoders <= max(1, cores - 1), "\(decoders) of them, \(cores) cores")
    }

    private static let largePhotos = 20
    private static let largeWidth = 1_600

    private func measureLoop(_ round: Int) async -> Lateness? {
        let window = Window("200 photos", width: 960, height: 400)
        let column = Stack(.column)
        var cells: [PhotoCell] = []
        for _ in 0..<10 {
            let row = Stack(.row)
            for _ in 0..<20 {
                let cell = PhotoCell(width: 44, height: 33)
                cells.append(cell)
                row.add(cell)
            }
            column.add(row)
        }
        window.setContent(column)
        window.present()
        await MainLoop.pause(300)
        let timer = LoopTimer()
        let start = ContinuousClock.now
        for (index, cell) in cells.enumerated() {
            let address = PhotoAddress(index % Self.largePhotos, .jpeg)
            cell.load(from: server.url(address, query: "width=\(Self.largeWidth)&n=\(round)-\(index)"))
        }
        let isThere = await MainLoop.wait(seconds: 60) { cells.allSatisfy(\.hasLoaded) }
        timer.stop()
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        window.close()
        guard isThere, let lateness = Lateness(timer.late) else {
            checks.check("200 photos load", false, "\(cells.filter { !$0.hasLoaded }.count) are missing")
            return nil
        }
        checks.say(
            "     round \(round): 200 photos in \(seconds.rounded(to: 2)) s, \(timer.late.count) ticks, \(lateness)")
        return lateness
    }

    /// With nothing to do, nothing wakes up.
    func checkIdle() async {
        await MainLoop.pause(2_000)
        let before = ProcessUse.now()
        let seconds = 3
        await MainLoop.pause(seconds * 1_000)
        let use = ProcessUse.now() - before
        checks.check(
            "idle for \(seconds) s, the main thread wakes up 10 times at most", use.mainWakeUps <= 10,
            "\(use.mainWakeUps)")
        checks.check(
            "and the process takes 15 ms of processor time at most", use.milliseconds <= 15,
            "\(use.milliseconds.rounded(to: 1)) ms, \(use.wakeUps) wake-ups of all threads")
    }
}

extension Double {
    func rounded(to places: Int) -> Double {
        let factor = places == 1 ? 10.0 : 100.0
        return (self * factor).rounded() / factor
    }
}

/// A timer of 16 ms in the main loop, which notes by how many milliseconds each of its turns came late.
@MainActor
private final class LoopTimer {
    private(set) var late: [Double] = []
    private var last = ContinuousClock.now
    private var isRunning = true

    init() {
        MainLoop.every(16) { self.turn() }
    }

    private func turn() -> Bool {
        let now = ContinuousClock.now
        late.append(max(0, (now - last) / .milliseconds(1) - 16))
        last = now
        return isRunning
    }

    func stop() { isRunning = false }
}

/// How late a timer came, in milliseconds.
struct Lateness: CustomStringConvertible {
    let median: Double
    let p95: Double

    var isGood: Bool { median <= 4 && p95 <= 20 }

    init(median: Double, p95: Double) {
        self.median = median
        self.p95 = p95
    }

    init?(_ samples: [Double]) {
        guard samples.count >= 20 else { return nil }
        let sorted = samples.sorted()
        self.init(median: sorted[sorted.count / 2], p95: sorted[sorted.count * 95 / 100])
    }

    var description: String { "median \(median.rounded(to: 2)) ms, p95 \(p95.rounded(to: 2)) ms" }
}
