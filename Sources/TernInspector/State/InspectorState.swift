import Tern

/// The tasks that an inspector keeps: those that run, and a ring of those that have ended last. Pure: times come in.
///
/// Each change has a number, so that a viewer receives what is new since its last update, and a slow one skips the
/// rest.
struct InspectorState: Sendable {
    typealias Key = InspectedTask.Key

    /// The numbers since the beginning.
    struct Totals: Sendable, Equatable {
        var started: UInt64 = 0
        var ended: UInt64 = 0
        var failed: UInt64 = 0
        var receivedBytes: Int64 = 0
        var sentBytes: Int64 = 0
        /// The number of tasks that were not kept at their start, because too many ran.
        var unseen: UInt64 = 0
    }

    /// The changes since an earlier revision.
    struct Changes: Sendable {
        var tasks: [InspectedTask]
        var revision: UInt64
        /// The lowest number of an end that is kept.
        var firstEnd: UInt64
        /// The number of changed tasks that are left out, the oldest ones.
        var omitted: Int
        var totals: Totals
    }

    /// The number of tasks that have ended and are kept, and of those that run and are.
    let limit: Int
    private var running: [Key: InspectedTask] = [:]
    /// A ring: the next end goes to the place of the oldest one.
    private var ended: [InspectedTask] = []
    private var lastNumber: UInt64 = 0
    private(set) var revision: UInt64 = 0
    private(set) var totals = Totals()

    init(limit: Int) {
        self.limit = max(1, limit)
        ended.reserveCapacity(self.limit)
    }

    /// The number of tasks that run and are kept.
    var runningCount: Int { running.count }
    /// The number of tasks that have ended and are kept.
    var endedCount: Int { ended.count }

    // MARK: Stages

    /// Records a task that starts. Has no effect on one that is known, because it was paused.
    mutating func start(_ key: Key, _ make: (_ number: UInt64) -> InspectedTask) {
        guard running[key] == nil else { return }
        totals.started += 1
        guard running.count < limit else {
            totals.unseen += 1
            return
        }
        lastNumber += 1
        var task = make(lastNumber)
        revision += 1
        task.revision = revision
        running[key] = task
    }

    /// Changes a task that runs.
    mutating func change(_ key: Key, _ change: (inout InspectedTask) -> Void) {
        // In place: a copy would have many fields.
        guard let index = running.index(forKey: key) else { return }
        revision += 1
        change(&running.values[index])
        running.values[index].revision = revision
    }

    /// Records the end of a task. `make` returns one that was not recorded at its start.
    mutating func end(_ key: Key, as end: InspectedTask.End, _ make: (_ number: UInt64) -> InspectedTask) {
        var task: InspectedTask
        if let known = running.removeValue(forKey: key) {
            task = known
        } else {
            lastNumber += 1
            task = make(lastNumber)
        }
        totals.ended += 1
        if end.failure != nil { totals.failed += 1 }
        totals.receivedBytes += end.metrics?.receivedBytes ?? 0
        totals.sentBytes += end.metrics?.sentBytes ?? 0
        task.endAttempt(at: end.time, response: end.response, failure: end.failure, metrics: end.metrics)
        task.end = end
        task.handle = nil
        revision += 1
        task.revision = revision
        task.endNumber = totals.ended
        if ended.count < limit {
            ended.append(task)
        } else {
            ended[place(of: totals.ended)] = task
        }
    }

    /// The place of an end in the ring.
    private func place(of number: UInt64) -> Int { Int((number - 1) % UInt64(limit)) }

    // MARK: Views

    /// Returns the newest tasks that changed after a revision, in the order of their numbers.
    func changes(since earlier: UInt64, limit: Int) -> Changes {
        var changed: [InspectedTask] = []
        for task in running.values where task.revision > earlier { changed.append(task) }
        // Newest first: a viewer that is up to date sees few of many.
        var number = totals.ended
        while number > 0, totals.ended - number < UInt64(ended.count) {
            let task = ended[place(of: number)]
            if task.revision <= earlier { break }
            changed.append(task)
            number -= 1
        }
        let omitted = max(0, changed.count - limit)
        if omitted > 0 {
            changed.sort { $0.revision > $1.revision }
            changed.removeLast(omitted)
        }
        changed.sort { $0.number < $1.number }
        let firstEnd = totals.ended - UInt64(ended.count) + 1
        return Changes(tasks: changed, revision: revision, firstEnd: firstEnd, omitted: omitted, totals: totals)
    }

    /// Returns the task with a number; nil for one that is not kept.
    func task(_ number: UInt64) -> InspectedTask? {
        running.values.first { $0.number == number } ?? ended.first { $0.number == number }
    }

    /// The tasks that have ended, in the order of their ends.
    var endedTasks: [InspectedTask] { ended.sorted { $0.endNumber < $1.endNumber } }
}
