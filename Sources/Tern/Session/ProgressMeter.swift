import Synchronization
import TernConcurrency

/// The bytes that a task has moved in both directions, and the streams of those who watch.
///
/// The transport stores four numbers a loop turn; only when somebody watches is anything computed from them.
package final class ProgressMeter: Sendable {
    private static let unknown: Int64 = -1

    private let sent = Atomic<Int64>(0)
    private let sentTotal = Atomic<Int64>(unknown)
    private let received = Atomic<Int64>(0)
    private let receivedTotal = Atomic<Int64>(unknown)
    /// Where a resumed download begins.
    private let offset = Atomic<Int64>(0)
    private let isWatched = Atomic<Bool>(false)
    /// When `noteDecoded` shows its count again.
    private let nextShown = Atomic<UInt64>(0)
    private let channels = Lock<Channels?>(nil)

    /// Made for the first who watches: a meter that nobody watches is a handful of numbers.
    private final class Channels: Sendable {
        let upload = Latest(Session.Progress())
        let download = Latest(Session.Progress())
        let rates = Lock((upload: ThroughputMeter(), download: ThroughputMeter()))

        func reset() {
            rates.withLock { rates in
                rates.upload.reset()
                rates.download.reset()
            }
        }
    }

    package init() {}

    // MARK: The transport's side

    /// The numbers of the running attempt; nil totals are not known. Returns whether somebody watches: `publish()` is
    /// due, soon if not at once.
    /// `received` is nil where the session counts (`noteDecoded`).
    package func note(sent: Int64, of sentTotal: Int64?, received: Int64?, of receivedTotal: Int64?) -> Bool {
        self.sent.store(sent, ordering: .relaxed)
        self.sentTotal.store(sentTotal ?? Self.unknown, ordering: .relaxed)
        if let received { self.received.store(received, ordering: .relaxed) }
        self.receivedTotal.store(receivedTotal ?? Self.unknown, ordering: .relaxed)
        return isWatched.load(ordering: .relaxed)
    }

    /// As `note`, and publishes at once.
    package func store(sent: Int64, of sentTotal: Int64?, received: Int64, of receivedTotal: Int64?) {
        if note(sent: sent, of: sentTotal, received: received, of: receivedTotal) { publish() }
    }

    /// Shows the numbers to those who watch.
    package func publish() {
        guard let channels = channels.withLock({ $0 }) else { return }
        let now = MonotonicClock.nanoseconds()
        let (upload, download) = (numbers(.upload), numbers(.download))
        let (uploadRate, downloadRate) = channels.rates.withLock { rates in
            rates.upload.record(completed: upload.completedBytes, at: now)
            rates.download.record(completed: download.completedBytes, at: now)
            return (rates.upload.bytesPerSecond, rates.download.bytesPerSecond)
        }
        channels.upload.update { Self.change($0, to: upload, rate: uploadRate) }
        channels.download.update { Self.change($0, to: download, rate: downloadRate) }
    }

    // MARK: The session's side

    /// How much of the body is decompressed; shown to those who watch as often as the transport would.
    func noteDecoded(_ count: Int64) {
        received.store(count, ordering: .relaxed)
        guard isWatched.load(ordering: .relaxed) else { return }
        let now = MonotonicClock.nanoseconds()
        guard now >= nextShown.load(ordering: .relaxed) else { return }
        nextShown.store(now + 10_000_000, ordering: .relaxed)
        publish()
    }

    /// A resumed download starts its count here.
    package func startDownload(at offset: Int64) {
        self.offset.store(offset, ordering: .relaxed)
        // Who watched from before saw the count at 0: what was there already moved at no speed.
        channels.withLock { $0 }?.rates.withLock { $0.download.reset() }
        publish()
    }

    /// The clock of the throughput stands still while the task does.
    package func taskPausedOrResumed() {
        guard isWatched.load(ordering: .relaxed) else { return }
        channels.withLock { $0 }?.reset()
    }

    package var uploadStream: AsyncStream<Session.Progress> { stream { $0.upload } }
    package var downloadStream: AsyncStream<Session.Progress> { stream { $0.download } }

    package var upload: Session.Progress { numbers(.upload) }
    package var download: Session.Progress { numbers(.download) }

    /// The end of the task: every stream delivers the last numbers and ends, however the task ended.
    package func finish() {
        // Before anything is looked at: a stream made after that look sees it, and ends by itself.
        isFinished.store(true, ordering: .sequentiallyConsistent)
        guard isWatched.load(ordering: .sequentiallyConsistent), let ended = channels.withLock({ $0 }) else { return }
        let (upload, download) = (numbers(.upload), numbers(.download))
        ended.upload.finish { Self.advance($0, to: upload, rate: $0.bytesPerSecond, isFinished: true) }
        ended.download.finish { Self.advance($0, to: download, rate: $0.bytesPerSecond, isFinished: true) }
    }

    private let isFinished = Atomic<Bool>(false)

    private enum Direction { case upload, download }

    private func numbers(_ direction: Direction) -> Session.Progress {
        let (completed, total) =
            switch direction {
            case .upload: (sent.load(ordering: .relaxed), sentTotal.load(ordering: .relaxed))
            case .download: (received.load(ordering: .relaxed), receivedTotal.load(ordering: .relaxed))
            }
        let offset = direction == .download ? offset.load(ordering: .relaxed) : 0
        return Session.Progress(
            completedBytes: completed + offset, totalBytes: total == Self.unknown ? nil : total + offset,
            isFinished: isFinished.load(ordering: .relaxed))
    }

    private func stream(_ channel: (Channels) -> Latest<Session.Progress>) -> AsyncStream<Session.Progress> {
        // Register before the numbers are read: a change in between is published.
        isWatched.store(true, ordering: .sequentiallyConsistent)
        let channels = self.channels.withLock { channels -> Channels in
            let known = channels ?? Channels()
            channels = known
            return known
        }
        let stream = channel(channels).stream()
        if isFinished.load(ordering: .sequentiallyConsistent) { finish() } else { publish() }
        return stream
    }

    /// The next element of a stream, or nil when nothing but the rate would differ.
    private static func change(
        _ old: Session.Progress, to new: Session.Progress, rate: Double?
    ) -> Session.Progress? {
        let next = advance(old, to: new, rate: rate, isFinished: false)
        return next.completedBytes == old.completedBytes && next.totalBytes == old.totalBytes ? nil : next
    }

    /// Completed bytes never fall, also when a replayed body starts over.
    private static func advance(
        _ old: Session.Progress, to new: Session.Progress, rate: Double?, isFinished: Bool
    ) -> Session.Progress {
        Session.Progress(
            completedBytes: max(old.completedBytes, new.completedBytes), totalBytes: new.totalBytes ?? old.totalBytes,
            bytesPerSecond: rate, isFinished: isFinished)
    }
}
