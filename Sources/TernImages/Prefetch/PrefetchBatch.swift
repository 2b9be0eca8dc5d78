import TernConcurrency

/// Pictures that are prefetched together: how far they are, and how to stop them. Dropping it stops nothing.
public final class PrefetchBatch: Sendable {
    /// How far a batch is.
    public struct Progress: Sendable, Hashable {
        /// Pictures of the batch.
        public let total: Int
        /// Pictures that are loaded now, were there already, or have failed.
        public internal(set) var finished = 0
        /// Those of them that were in the cache already.
        public internal(set) var skipped = 0
        /// Those of them that have failed.
        public internal(set) var failed = 0
        /// Whether this is the last element.
        public internal(set) var isFinished = false
        /// Whether it is the last because the batch was cancelled.
        public internal(set) var isCancelled = false
    }

    /// What became of one picture.
    public struct Outcome: Sendable {
        /// What was asked for.
        public let request: ImageRequest
        /// Its place in the batch, from 0.
        public let index: Int
        /// Why it failed; nil if it did not.
        public let error: ImageError?
        /// Whether it was in the cache already.
        public let isSkipped: Bool
        /// How far the batch is with it.
        public let progress: Progress
    }

    /// The pictures, in the order in which they are begun.
    public let requests: [ImageRequest]
    let number: UInt64
    private let prefetcher: ImagePrefetcher
    private let latest: Latest<Progress>
    private let outcomes = Lock(Outcomes())

    private struct Outcomes {
        var all: [Outcome] = []
        var isOver = false
        var waiters: [Waiter<Void>] = []
    }

    init(_ requests: [ImageRequest], _ number: UInt64, _ prefetcher: ImagePrefetcher) {
        self.requests = requests
        self.number = number
        self.prefetcher = prefetcher
        latest = Latest(Progress(total: requests.count))
    }

    /// How far it is: the current element first, the newest for a slow reader, the last one in any case. Each access gives
    /// a stream of its own.
    public var progress: AsyncStream<Progress> { latest.stream() }

    /// How far it is at this moment.
    public var current: Progress { latest.current }

    /// What became of each picture, in the order in which they end; those that have ended first. Each access gives a stream
    /// of its own, which ends with the batch.
    public var results: AsyncStream<Outcome> {
        let place = Place()
        return AsyncStream { await self.next(after: place) }
    }

    /// Stops what runs and drops what waits. The streams end; what is loaded stays where it is.
    public func cancel() {
        end(isCancelled: true)
        Task { await self.prefetcher.cancel(self) }
    }

    /// Returns when all pictures have ended, or the batch was cancelled, or the caller is.
    @discardableResult
    public func finished() async -> Progress {
        for await progress in latest.stream() where progress.isFinished { return progress }
        return latest.current
    }

    // MARK: What the prefetcher tells

    func ended(_ index: Int, _ error: ImageError?, isSkipped: Bool) {
        latest.update { progress in
            var next = progress
            next.finished += 1
            next.skipped += isSkipped ? 1 : 0
            next.failed += error == nil ? 0 : 1
            return next
        }
        let progress = latest.current
        let outcome = Outcome(
            request: requests[index], index: index, error: error, isSkipped: isSkipped, progress: progress)
        wake { $0.all.append(outcome) }
        if progress.finished == progress.total { end(isCancelled: false) }
    }

    func end(isCancelled: Bool) {
        latest.finish { progress in
            var last = progress
            last.isFinished = true
            last.isCancelled = isCancelled
            return last
        }
        wake { $0.isOver = true }
    }

    private func wake(_ change: (inout Outcomes) -> Void) {
        let waiters = outcomes.withLock { outcomes -> [Waiter<Void>] in
            guard !outcomes.isOver else { return [] }
            change(&outcomes)
            defer { outcomes.waiters = [] }
            return outcomes.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// How many outcomes one stream has given.
    private final class Place: Sendable {
        let seen = Lock(0)
    }

    private func next(after place: Place) async -> Outcome? {
        while !Task.isCancelled {
            let waiter = Waiter<Void>()
            let seen = place.seen.withLock { $0 }
            let (outcome, isOver) = outcomes.withLock { outcomes -> (Outcome?, Bool) in
                if seen < outcomes.all.count { return (outcomes.all[seen], false) }
                if !outcomes.isOver { outcomes.waiters.append(waiter) }
                return (nil, outcomes.isOver)
            }
            if let outcome {
                place.seen.withLock { $0 += 1 }
                return outcome
            }
            if isOver { return nil }
            await waiter.wait()
        }
        return nil
    }
}
