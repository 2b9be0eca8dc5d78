import TernConcurrency

/// The decoded frames of one animation, shared by all that play it: each is decoded once as long as the budget holds it.
///
/// One task decodes at a time, for what is needed most; it ends when nothing is needed, and is cancelled when the last
/// reader leaves.
final class FrameStore: Sendable {
    typealias Outcome = Result<ImageFrame, ImageError>

    private struct Shared {
        var demands = FrameDemands()
        var readers = 0
        var waiters: [Int: [Waiter<Outcome>]] = [:]
        /// A frame that cannot be decoded is not tried again while somebody plays on.
        var failures: [Int: ImageError] = [:]
        var durations: [Duration?]
        var isWorking = false
        var worker: Task<Void, Never>?
        var turn = 0
    }

    private enum Step {
        case have(ImageFrame)
        case fail(ImageError)
        case wait(Waiter<Outcome>)
    }

    let frames: any ImageFrames
    let budget: FrameBudget
    private let executor: any TaskExecutor
    private let number: Int
    private let shared: Lock<Shared>

    init(_ frames: any ImageFrames, budget: FrameBudget, executor: any TaskExecutor) {
        self.frames = frames
        self.budget = budget
        self.executor = executor
        number = budget.makeStore()
        shared = Lock(Shared(durations: Array(repeating: nil, count: max(1, frames.count))))
    }

    deinit { budget.removeAll(of: number) }

    /// Bytes of one frame.
    var frameBytes: Int { frames.size.pixelCount * 4 }

    func join() -> Int {
        budget.addReader()
        return shared.withLock { shared in
            shared.readers += 1
            return shared.demands.join()
        }
    }

    func leave(_ reader: Int) {
        budget.removeReader()
        let worker = shared.withLock { shared -> Task<Void, Never>? in
            shared.readers -= 1
            shared.demands.leave(reader)
            guard shared.readers == 0 else { return nil }
            shared.failures = [:]
            return shared.worker
        }
        worker?.cancel()
    }

    /// How long the frame shows, if anybody has decoded it.
    func duration(of index: Int) -> Duration? { shared.withLock { $0.durations[index] } }

    /// The first frame of the window; the others are decoded after it, while the reader shows it.
    ///
    /// Throws the decoder's error, and the kind `.cancelled` when the calling task is cancelled.
    func frame(for window: FrameDemands.Window, of reader: Int) async throws(ImageError) -> ImageFrame {
        guard let index = window.indices.first else {
            throw ImageError(.invalidArgument, "a window without frames")
        }
        let (step, turn) = shared.withLock { shared -> (Step, Int?) in
            if let failure = shared.failures[index] { return (.fail(failure), nil) }
            let held = budget.frame(index, of: number)
            demand(window, of: reader, &shared)
            if let held { return (.have(held), Self.startTurn(&shared)) }
            let waiter = Waiter<Outcome>()
            shared.waiters[index, default: []].append(waiter)
            return (.wait(waiter), Self.startTurn(&shared))
        }
        if let turn { work(turn) }
        switch step {
        case .have(let frame): return frame
        case .fail(let error): throw error
        case .wait(let waiter):
            let outcome = await waiter.wait(cancelled: .failure(ImageError(.cancelled, "the task was cancelled")))
            shared.withLock { shared in
                shared.waiters[index]?.removeAll { $0 === waiter }
                if shared.waiters[index]?.isEmpty == true { shared.waiters[index] = nil }
            }
            return try outcome.get()
        }
    }

    /// Decodes the frames of the window that are not held, while the reader does something else.
    func prepare(_ window: FrameDemands.Window, of reader: Int) {
        let turn = shared.withLock { shared in
            demand(window, of: reader, &shared)
            return Self.startTurn(&shared)
        }
        if let turn { work(turn) }
    }

    /// Notes what the reader needs, in place of what it needed before.
    private func demand(_ window: FrameDemands.Window, of reader: Int, _ shared: inout Shared) {
        let failures = shared.failures
        var wanted = window
        wanted.indices = budget.missing(window.indices, of: number).filter { failures[$0] == nil }
        shared.demands.set(wanted, length: window.indices.count, of: reader)
    }

    /// A number for a new worker if one is needed and none is at work.
    private static func startTurn(_ shared: inout Shared) -> Int? {
        let waiters = shared.waiters
        guard !shared.isWorking, shared.demands.next(waited: { waiters[$0] != nil }) != nil else { return nil }
        shared.isWorking = true
        shared.turn += 1
        return shared.turn
    }

    private func work(_ turn: Int) {
        // Its owner is this store: `leave` cancels it. The next one starts only when this one is through.
        let worker = Task(executorPreference: executor) { [weak self] in
            while let self, let index = self.nextIndex() {
                guard settle(index, decode(index)) else { return }
            }
        }
        let isLate = shared.withLock { shared in
            if shared.turn == turn { shared.worker = worker }
            return shared.readers == 0
        }
        if isLate { worker.cancel() }
    }

    private func decode(_ index: Int) -> Outcome {
        do throws(ImageError) { return .success(try frames.frame(at: index)) } catch { return .failure(error) }
    }

    /// The frame to decode; nil, and the worker is through, if there is none.
    private func nextIndex() -> Int? {
        shared.withLock { shared in
            let waiters = shared.waiters
            let index = shared.demands.next { waiters[$0] != nil }
            shared.isWorking = index != nil
            return index
        }
    }

    /// Takes a decoded frame in and hands it to who waits. False if the worker was cancelled: a new one goes on then for
    /// readers that have come meanwhile.
    private func settle(_ index: Int, _ outcome: Outcome) -> Bool {
        if case .failure(let error) = outcome, error.kind == .cancelled {
            let turn = shared.withLock { shared -> Int? in
                shared.isWorking = false
                return Self.startTurn(&shared)
            }
            if let turn { work(turn) }
            return false
        }
        let (waiters, left) = shared.withLock { shared -> ([Waiter<Outcome>], [ImageFrame]) in
            var left: [ImageFrame] = []
            switch outcome {
            case .success(let frame):
                shared.durations[index] = frame.duration
                left = budget.keep(frame, index, of: number)
            case .failure(let error):
                shared.failures[index] = error
            }
            shared.demands.settle(index)
            return (shared.waiters.removeValue(forKey: index) ?? [], left)
        }
        withExtendedLifetime(left) {}
        for waiter in waiters { waiter.resume(returning: outcome) }
        return true
    }
}
