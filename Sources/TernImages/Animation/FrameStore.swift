import TernConcurrency

/// The decoded frames of one animation, shared by its players. Each frame is decoded once as long as the budget holds
/// it.
///
/// One task decodes at a time, the most needed frame first. It ends when no frame is needed, and is cancelled when the
/// last reader leaves.
final class FrameStore: Sendable {
    typealias Outcome = Result<ImageFrame, ImageError>

    private struct Shared {
        var queue = FrameDecodingQueue()
        var readers = 0
        var waiters: [Int: [Waiter<Outcome>]] = [:]
        /// Frames that cannot be decoded. They are not tried again while there is a reader.
        var failures: [Int: ImageError] = [:]
        var durations: [Duration?]
        var isWorking = false
        var worker: Task<Void, Never>?
        var workerNumber = 0
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

    /// The bytes of one frame.
    var frameBytes: Int { frames.size.pixelCount * frames.bytesPerPixel }

    func join() -> Int {
        budget.addReader()
        return shared.withLock { shared in
            shared.readers += 1
            return shared.queue.join()
        }
    }

    func leave(_ reader: Int) {
        budget.removeReader()
        let worker = shared.withLock { shared -> Task<Void, Never>? in
            shared.readers -= 1
            shared.queue.leave(reader)
            guard shared.readers == 0 else { return nil }
            shared.failures = [:]
            return shared.worker
        }
        worker?.cancel()
    }

    /// Returns the duration of a frame; nil if it was not decoded yet.
    func duration(of index: Int) -> Duration? { shared.withLock { $0.durations[index] } }

    /// Returns the first frame of the window. The others are decoded after it, while the reader shows it.
    ///
    /// Throws the decoder's error, and `.cancelled` when the calling task is cancelled.
    func frame(for window: FrameDecodingQueue.Window, of reader: Int) async throws(ImageError) -> ImageFrame {
        guard let index = window.indices.first else {
            throw ImageError(.invalidArgument, "no frame was requested")
        }
        let (step, workerNumber) = shared.withLock { shared -> (Step, Int?) in
            if let failure = shared.failures[index] { return (.fail(failure), nil) }
            let held = budget.frame(index, of: number)
            request(window: window, of: reader, in: &shared)
            if let held { return (.have(held), Self.reserveWorker(&shared)) }
            let waiter = Waiter<Outcome>()
            shared.waiters[index, default: []].append(waiter)
            return (.wait(waiter), Self.reserveWorker(&shared))
        }
        if let workerNumber { startWorker(number: workerNumber) }
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

    /// Decodes the missing frames of the window in the background.
    func prepare(_ window: FrameDecodingQueue.Window, of reader: Int) {
        let workerNumber = shared.withLock { shared in
            request(window: window, of: reader, in: &shared)
            return Self.reserveWorker(&shared)
        }
        if let workerNumber { startWorker(number: workerNumber) }
    }

    /// Replaces the frames that the reader needs.
    private func request(window: FrameDecodingQueue.Window, of reader: Int, in shared: inout Shared) {
        let failures = shared.failures
        var wanted = window
        wanted.indices = budget.missing(window.indices, of: number).filter { failures[$0] == nil }
        shared.queue.set(wanted, length: window.indices.count, of: reader)
    }

    /// Returns a number for a new worker if one is needed and none is running.
    private static func reserveWorker(_ shared: inout Shared) -> Int? {
        let waiters = shared.waiters
        guard !shared.isWorking, shared.queue.next(waited: { waiters[$0] != nil }) != nil else { return nil }
        shared.isWorking = true
        shared.workerNumber += 1
        return shared.workerNumber
    }

    private func startWorker(number workerNumber: Int) {
        // Owned by this store: `leave` cancels it. The next worker starts only after this one has ended.
        let worker = Task(executorPreference: executor) { [weak self] in
            while let self, let index = self.nextIndex() {
                guard finish(index, with: decode(index)) else { return }
            }
        }
        let isLate = shared.withLock { shared in
            if shared.workerNumber == workerNumber { shared.worker = worker }
            return shared.readers == 0
        }
        if isLate { worker.cancel() }
    }

    private func decode(_ index: Int) -> Outcome {
        Result { () throws(ImageError) in try frames.frame(at: index) }
    }

    /// Returns the frame to decode; nil, which ends the worker, if there is none.
    private func nextIndex() -> Int? {
        shared.withLock { shared in
            let waiters = shared.waiters
            let index = shared.queue.next { waiters[$0] != nil }
            shared.isWorking = index != nil
            return index
        }
    }

    /// Stores a decoded frame and resumes its waiters. Returns false if the worker was cancelled: a new worker then
    /// serves the readers that have joined since.
    private func finish(_ index: Int, with outcome: Outcome) -> Bool {
        if case .failure(let error) = outcome, error.kind == .cancelled {
            let workerNumber = shared.withLock { shared -> Int? in
                shared.isWorking = false
                return Self.reserveWorker(&shared)
            }
            if let workerNumber { startWorker(number: workerNumber) }
            return false
        }
        let (waiters, evicted) = shared.withLock { shared -> ([Waiter<Outcome>], [ImageFrame]) in
            var evicted: [ImageFrame] = []
            switch outcome {
            case .success(let frame):
                shared.durations[index] = frame.duration
                evicted = budget.insert(frame, at: index, of: number)
            case .failure(let error):
                shared.failures[index] = error
            }
            shared.queue.remove(index)
            return (shared.waiters.removeValue(forKey: index) ?? [], evicted)
        }
        withExtendedLifetime(evicted) {}
        for waiter in waiters { waiter.resume(returning: outcome) }
        return true
    }
}

/// Decides which frame of an animation is decoded next, among those that its readers wait for or will need. Pure.
struct FrameDecodingQueue {
    /// The frames that one reader needs: the frame to show, then those after it.
    struct Window: Equatable {
        var indices: [Int]
        /// Whether the reader plays towards the first frame. Decoders only go forward, so earlier frames are decoded on
        /// the way.
        var isBackwards = false
    }

    private var windows: [(reader: Int, window: Window, length: Int)] = []
    private var lastReader = 0

    var isEmpty: Bool { windows.isEmpty }

    mutating func join() -> Int {
        lastReader += 1
        return lastReader
    }

    /// Replaces the frames that the reader needs and that are not held.
    /// - Parameter length: The number of frames in its window, including those that are held.
    mutating func set(_ window: Window, length: Int, of reader: Int) {
        windows.removeAll { $0.reader == reader }
        if !window.indices.isEmpty { windows.append((reader, window, length)) }
    }

    mutating func leave(_ reader: Int) { windows.removeAll { $0.reader == reader } }

    /// Removes a frame that was decoded or cannot be decoded.
    mutating func remove(_ index: Int) {
        for place in windows.indices { windows[place].window.indices.removeAll { $0 == index } }
        windows.removeAll { $0.window.indices.isEmpty }
    }

    /// Returns the frame to decode next; nil if no frame is needed.
    ///
    /// Frames that a reader waits for come before frames that a reader will need; among equals, the first request wins.
    /// Backwards, each batch of frames begins again at the first frame: the next batch is decoded only when half of the
    /// window is used up, and then in one pass.
    /// - Parameter waited: Returns whether a reader waits for the frame.
    func next(waited: (Int) -> Bool) -> Int? {
        let waiting = windows.first { entry in entry.window.indices.contains(where: waited) }
        let due = windows.first { entry in
            !entry.window.isBackwards || entry.window.indices.count * 2 >= entry.length
        }
        guard let window = (waiting ?? due)?.window else { return nil }
        return window.isBackwards ? window.indices.min() : window.indices.first
    }
}
