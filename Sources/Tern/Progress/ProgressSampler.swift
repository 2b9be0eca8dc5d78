import TernConcurrency

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
