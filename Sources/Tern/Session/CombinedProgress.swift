import TernConcurrency

extension Session.Progress {
    /// Returns the sum of several progresses.
    ///
    /// The total is nil as long as one of them is not known; an ended transfer of unknown length counts the bytes that it moved.
    /// The speed is the sum of the known speeds of those that have not ended, and nil if none is known. The sum is finished when
    /// all are, and so is that of none.
    public static func combined(of progresses: some Sequence<Session.Progress>) -> Session.Progress {
        var (completed, total, speed, isFinished) = (Int64(0), Optional(Int64(0)), Double?.none, true)
        for progress in progresses {
            completed = sum(completed, progress.completedBytes)
            let part = progress.totalBytes ?? (progress.isFinished ? progress.completedBytes : nil)
            total = total.flatMap { total in part.map { sum(total, $0) } }
            if progress.isFinished { continue }
            isFinished = false
            if let part = progress.bytesPerSecond { speed = (speed ?? 0) + part }
        }
        return Session.Progress(
            completedBytes: completed, totalBytes: total, bytesPerSecond: speed, isFinished: isFinished)
    }

    private static func sum(_ left: Int64, _ right: Int64) -> Int64 {
        let (sum, overflows) = left.addingReportingOverflow(right)
        return overflows ? .max : sum
    }

    /// Returns the progress of the responses of several tasks together: bytes, speed and remaining time.
    ///
    /// The stream has at most 10 elements a second. It begins with the present sum, and its last element, for which `isFinished` is
    /// true, comes when the last task has ended, with or without success. A slow reader misses elements, never the last one.
    /// Cancelling the reader ends the stream, and no task.
    ///
    /// ```swift
    /// for await progress in Session.Progress.combined(of: tasks) { bar.value = progress.fractionCompleted ?? 0 }
    /// ```
    public static func combined(of tasks: [any TaskHandle]) -> AsyncStream<Session.Progress> {
        ProgressSampler.stream { combined(of: tasks.lazy.map { $0.erased.progressNow }) }
    }

    /// Returns the progress of the request bodies of several tasks together, like `combined(of:)` for their responses.
    public static func combined(ofUploads tasks: [any TaskHandle]) -> AsyncStream<Session.Progress> {
        ProgressSampler.stream { combined(of: tasks.lazy.map { $0.erased.uploadProgressNow }) }
    }
}

/// Reads a progress that nobody publishes, as often as its stream is read and at most 10 times a second.
///
/// No task runs for it: the reader's own task waits between two elements.
package final class ProgressSampler: Sendable {
    private struct State {
        var last: Session.Progress?
        var meter = ThroughputMeter()
    }

    private let sample: @Sendable () async -> Session.Progress
    private let state = Lock(State())

    private static let interval = Duration.milliseconds(100)

    private init(_ sample: @escaping @Sendable () async -> Session.Progress) { self.sample = sample }

    /// Returns a stream of a progress, up to the first element that is finished. The speed is measured here.
    ///
    /// - Parameter sample: Returns the present progress. Its speed is ignored.
    package static func stream(
        of sample: @escaping @Sendable () async -> Session.Progress
    ) -> AsyncStream<Session.Progress> {
        let sampler = ProgressSampler(sample)
        return AsyncStream { await sampler.next() }
    }

    private func next() async -> Session.Progress? {
        guard var last = state.withLock({ $0.last }) else { return take(await sample()) }
        if last.isFinished { return nil }
        repeat {
            do {
                try await ContinuousClock().sleepWithoutDescriptor(for: Self.interval)
            } catch {
                // The reader was cancelled.
                return nil
            }
            let before = last
            last = take(await sample())
            if last.completedBytes != before.completedBytes || last.totalBytes != before.totalBytes { break }
        } while !last.isFinished
        return last
    }

    /// Returns the element of a sample. Completed bytes never decrease.
    private func take(_ progress: Session.Progress) -> Session.Progress {
        state.withLock { state in
            let completed = max(progress.completedBytes, state.last?.completedBytes ?? 0)
            state.meter.record(completed: completed, at: MonotonicClock.nanoseconds())
            let element = Session.Progress(
                completedBytes: completed, totalBytes: progress.totalBytes, bytesPerSecond: state.meter.bytesPerSecond,
                isFinished: progress.isFinished)
            state.last = element
            return element
        }
    }
}
