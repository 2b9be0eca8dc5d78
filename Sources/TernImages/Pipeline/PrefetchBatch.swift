import TernConcurrency

/// A group of images that are prefetched together, with its progress. Releasing it does not cancel it.
public final class PrefetchBatch: Sendable {
    /// The progress of a batch.
    public struct Progress: Sendable, Hashable {
        /// The number of images in the batch.
        public let total: Int
        /// The number of images that were loaded, found in the cache, or failed.
        public internal(set) var finished = 0
        /// The number of images that were in the cache already.
        public internal(set) var skipped = 0
        /// The number of images that failed.
        public internal(set) var failed = 0
        /// A Boolean value that indicates whether this is the last element.
        public internal(set) var isFinished = false
        /// A Boolean value that indicates whether the batch was cancelled.
        public internal(set) var isCancelled = false
    }

    /// The result of one image.
    public struct Outcome: Sendable {
        /// The request.
        public let request: ImageRequest
        /// The index in the batch, from 0.
        public let index: Int
        /// The error; nil if the load succeeded.
        public let error: ImageError?
        /// A Boolean value that indicates whether the image was in the cache already.
        public let isSkipped: Bool
        /// The progress of the batch, this image included.
        public let progress: Progress
    }

    /// The requests, in the order in which they begin.
    public let requests: [ImageRequest]
    let number: UInt64
    private let prefetcher: ImagePrefetcher
    private let latest: Latest<Progress>
    private let outcomes = Lock(Outcomes())

    private struct Outcomes {
        var all: [Outcome] = []
        var isOver = false
        var waiters = WaiterList()
    }

    init(_ requests: [ImageRequest], number: UInt64, prefetcher: ImagePrefetcher) {
        self.requests = requests
        self.number = number
        self.prefetcher = prefetcher
        latest = Latest(Progress(total: requests.count))
    }

    /// The progress: the current element first, the newest for a slow reader, and the last element in any case. Each
    /// access returns a separate stream.
    public var progress: AsyncStream<Progress> { latest.stream() }

    /// The current progress.
    public var current: Progress { latest.current }

    /// The result of each image in the order in which they end, earlier results first. Each access returns a separate
    /// stream, which ends with the batch.
    public var results: AsyncStream<Outcome> {
        let place = Place()
        return AsyncStream { await self.next(after: place) }
    }

    /// Cancels the running and waiting loads. The streams end; loaded images stay in the cache.
    public func cancel() {
        end(isCancelled: true)
        Task { await self.prefetcher.cancel(self) }
    }

    /// Returns when all images have ended, when the batch is cancelled, or when the caller is cancelled.
    @discardableResult
    public func finished() async -> Progress {
        for await progress in latest.stream() where progress.isFinished { return progress }
        return latest.current
    }

    // MARK: Updates from the prefetcher

    func itemEnded(at index: Int, error: ImageError?, isSkipped: Bool) {
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
            return outcomes.waiters.removeAll()
        }
        for waiter in waiters { waiter.resume() }
    }

    /// The number of results that one stream has returned.
    private final class Place: Sendable {
        let seen = Lock(0)
    }

    private func next(after place: Place) async -> Outcome? {
        let outcome = await WaiterList.next {
            let seen = place.seen.withLock { $0 }
            return outcomes.withLock { outcomes -> ReadStep<Outcome> in
                if seen < outcomes.all.count { return .element(outcomes.all[seen]) }
                return outcomes.isOver ? .end : .wait(outcomes.waiters.add())
            }
        } remove: { waiter in
            outcomes.withLock { $0.waiters.remove(waiter) }
        }
        if outcome != nil { place.seen.withLock { $0 += 1 } }
        return outcome
    }
}
