import GalleryChecks
import GalleryViews
import Glibc
import GtkBridge
import TernImages
import TernViewModels

extension SelfCheck {
    /// While 200 photos load, a timer of the main loop must not be late. Other programs may have the machine: of a few rounds
    /// the best counts, each is told, and those in which others had much of it prove nothing when they are bad.
    func checkLoop() async {
        let what = "while 200 photos load, a timer of 16 ms is late by at most 4 ms (median) and 20 ms (p95)"
        do {
            for number in 0..<Self.photoCount { try server.make(PhotoAddress(number, .jpeg), width: Self.photoWidth) }
        } catch {
            return checks.check(what, false, "\(error)")
        }
        var best: Lateness?
        let end = ContinuousClock.now + .seconds(60)
        for round in 1...Self.rounds where !(best?.isGood ?? false) && ContinuousClock.now < end {
            let before = MachineUse.now()
            guard let late = await lateness(round) else { return checks.check(what, false, "not all have loaded") }
            let others = MachineUse.now().shareOfOthers(since: before)
            checks.say("     round \(round): \(late); others had \(Int(others * 100)) % of the machine")
            if late.isGood || others < 0.3 && late.p95 < best?.p95 ?? .infinity { best = late }
        }
        if let best {
            checks.check(what, best.isGood, "the best of at most \(Self.rounds) rounds: \(best)")
        } else {
            checks.skip(what, because: "other programs have the machine")
        }
        checkThreads()
    }

    private func checkThreads() {
        let what = "photos are decoded by threads of lower priority, at most one less than there are cores"
        let threads = ProcessThread.all()
        let mainNice = threads.first(where: \.isMain)?.nice ?? 0
        guard mainNice <= 14 else { return checks.skip(what, because: "the process has the lowest priority itself") }
        // By five steps: some of Mesa's threads are lower still.
        let decoders = threads.count { $0.nice == mainNice + 5 }
        let cores = sysconf(Int32(_SC_NPROCESSORS_ONLN))
        checks.check(
            what, decoders >= 1 && decoders <= max(1, cores - 1), "\(decoders) of them, \(cores) cores")
    }

    private static let rounds = 6
    /// Each is loaded ten times, under another URL.
    private static let photoCount = 20
    private static let photoWidth = 2_400

    /// nil if a photo did not load.
    private func lateness(_ round: Int) async -> Lateness? {
        let window = Window("200 photos", width: 960, height: 400)
        defer { window.close() }
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
        for (index, cell) in cells.enumerated() {
            let address = PhotoAddress(index % Self.photoCount, .jpeg)
            cell.load(from: server.url(address, query: "width=\(Self.photoWidth)&n=\(round)-\(index)"))
        }
        let isThere = await MainLoop.wait(seconds: 60) { cells.allSatisfy(\.hasLoaded) }
        let lateness = timer.stop()
        return isThere ? lateness : nil
    }

    /// With nothing to do, nothing wakes up. What the checks before have left comes to its end first: the best of some
    /// rounds counts.
    func checkIdle() async {
        let seconds = 3
        var use = await use(of: seconds)
        for _ in 1..<Self.rounds where use.mainWakeUps > 10 || use.milliseconds > 15 {
            use = await self.use(of: seconds)
        }
        checks.check(
            "idle for \(seconds) s, the main thread wakes up 10 times at most", use.mainWakeUps <= 10,
            "\(use.mainWakeUps)"
        )
        checks.check(
            "and the process takes 15 ms of processor time at most", use.milliseconds <= 15,
            "\(use.milliseconds.rounded(to: 1)) ms, \(use.wakeUps) wake-ups of all threads")
    }

    private func use(of seconds: Int) async -> ProcessUse {
        let before = ProcessUse.now()
        await MainLoop.pause(seconds * 1_000)
        return ProcessUse.now() - before
    }
}
