import Synchronization
import TernConcurrency

/// Counts the bytes that a task has moved in both directions, and publishes its progress.
///
/// The transport stores four numbers in each turn of its loop. Progress is computed from them only if a stream exists.
package final class ProgressMeter: Sendable {
    private static let unknown: Int64 = -1

    private let sent = Atomic<Int64>(0)
    private let sentTotal = Atomic<Int64>(unknown)
    private let received = Atomic<Int64>(0)
    private let receivedTotal = Atomic<Int64>(unknown)
    /// The offset at which a resumed download begins.
    private let offset = Atomic<Int64>(0)
    /// The length of the whole file of a resumed download; if it is not known, the response states it.
    private let fileTotal = Atomic<Int64>(unknown)
    /// The position of a resumed download that no count exceeds: the end of the part that the response brings.
    private let end = Atomic<Int64>(.max)
    /// Whether the body of the response counts for a resumed download, because it is known to bring bytes of the file.
    private let isBodyOfFile = Atomic<Bool>(true)
    /// The number of attempts that have begun; 0 and 1 are the first.
    private let attempts = Atomic<Int>(0)
    /// The attempt on the wire whose numbers count; 0 for any.
    private let source = Atomic<UInt64>(0)
    /// Whether the body of the present response counts, because it can be the result.
    private let isBodyCounted = Atomic<Bool>(true)
    /// Whether `takeSentBody` has returned the bytes of the present attempt.
    private let isSentBodyTaken = Atomic<Bool>(false)
    private let isWatched = Atomic<Bool>(false)
    /// The time from which `publishSoon` publishes at once.
    private let nextPublication = Atomic<UInt64>(0)
    /// Whether numbers wait for that time.
    private let isPublicationWaiting = Atomic<Bool>(false)
    /// The shortest time between two publications of `publishSoon`, in nanoseconds.
    private static let publicationInterval: UInt64 = 10_000_000
    /// Empty until the first stream, so that a meter without streams is a few numbers.
    private let channels = AtomicLazyReference<Channels>()

    /// The streams.
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

    /// Begins an attempt on the wire. After the first one, all numbers start over. Those of an earlier attempt, which
    /// can still end on the transport's thread, no longer count.
    ///
    /// - Parameter length: The number of bytes of the request's body; nil if it is not known.
    func beginAttempt(_ id: UInt64, sending length: Int64? = nil) {
        source.store(id, ordering: .relaxed)
        isSentBodyTaken.store(false, ordering: .relaxed)
        guard attempts.add(1, ordering: .relaxed).newValue > 1 else {
            // A transfer of several requests, whose number is 0, knows the length of the whole.
            if length != nil || id != 0 { sentTotal.store(length ?? Self.unknown, ordering: .relaxed) }
            return
        }
        isBodyCounted.store(true, ordering: .relaxed)
        sentTotal.store(length ?? Self.unknown, ordering: .relaxed)
        if update(sent: 0, of: length, received: 0, of: nil) { publish() }
    }

    /// Begins an attempt of a transfer that sends its file again from the first byte.
    package func beginAttempt(sending length: Int64) { beginAttempt(0, sending: length) }

    /// Sets the number of bytes of the request's body before the first attempt, which replaces it.
    package func setMeasuredBody(_ length: Int64) {
        let isFirst = sentTotal.compareExchange(expected: Self.unknown, desired: length, ordering: .relaxed).exchanged
        if isFirst, isWatched.load(ordering: .relaxed) { publish() }
    }

    /// Returns the number of bytes of the request's body that the present attempt has sent, once; nil for none.
    func takeSentBody() -> Int64? {
        let count = sent.load(ordering: .relaxed)
        return count > 0 && !isSentBodyTaken.exchange(true, ordering: .relaxed) ? count : nil
    }

    /// Returns whether the numbers of an attempt on the wire count.
    func counts(_ id: UInt64) -> Bool {
        let source = source.load(ordering: .relaxed)
        return source == id || source == 0
    }

    /// Sets whether the body of the present response counts. Its numbers are stored in either case.
    func setBodyCounted(_ isCounted: Bool) {
        isBodyCounted.store(isCounted, ordering: .relaxed)
        if isCounted, isWatched.load(ordering: .relaxed) { publish() }
    }

    /// Stores the numbers of the running attempt. A total is nil if it is not known; one of the request's body that is
    /// known stays. `received` is nil for a compressed body, whose bytes `setDecoded` counts. Returns whether a stream
    /// exists, so that the caller calls `publish()` soon.
    package func update(sent: Int64, of sentTotal: Int64?, received: Int64?, of receivedTotal: Int64?) -> Bool {
        self.sent.store(sent, ordering: .relaxed)
        if let sentTotal { self.sentTotal.store(sentTotal, ordering: .relaxed) }
        if let received { self.received.store(received, ordering: .relaxed) }
        self.receivedTotal.store(receivedTotal ?? Self.unknown, ordering: .relaxed)
        return isWatched.load(ordering: .relaxed)
    }

    /// Stores the numbers of the running attempt and publishes them at once.
    package func store(sent: Int64, of sentTotal: Int64?, received: Int64, of receivedTotal: Int64?) {
        if update(sent: sent, of: sentTotal, received: received, of: receivedTotal) { publish() }
    }

    // MARK: Tasks that wait for the same bytes

    /// Copies the present and all later numbers of the response to the meter of a task that waits for the same bytes.
    /// The two tasks need not end together.
    func addFollower(_ meter: ProgressMeter) {
        let earlierAttempts = meter.attempt - attempt
        followers.withLock { $0.append(Follower(meter: meter, earlierAttempts: earlierAttempts)) }
        isWatched.store(true, ordering: .sequentiallyConsistent)
        publish()
    }

    /// Ends that for a task that has numbers of its own from now on.
    func dropFollower(_ meter: ProgressMeter) { followers.withLock { $0.removeAll { $0.meter === meter } } }

    /// Ends that, with the numbers of this moment.
    func removeFollower(_ meter: ProgressMeter) {
        let removed = followers.withLock { followers in
            defer { followers.removeAll { $0.meter === meter } }
            return followers.first { $0.meter === meter }
        }
        removed?.copy(numbers(.download))
    }

    private struct Follower {
        weak var meter: ProgressMeter?
        /// The number of attempts that the other task made before, less those of this one.
        let earlierAttempts: Int

        func copy(_ progress: Session.Progress) {
            guard let meter, !meter.isFinished.load(ordering: .relaxed) else { return }
            meter.attempts.store(max(1, progress.attempt + earlierAttempts), ordering: .relaxed)
            meter.store(sent: 0, of: nil, received: progress.completedBytes, of: progress.totalBytes)
        }
    }

    /// Empty for all but tasks that others wait for.
    private let followers = Lock<[Follower]>([])

    private func publishToFollowers() {
        let followers = followers.withLock { $0 }
        if followers.isEmpty { return }
        let progress = numbers(.download)
        for follower in followers { follower.copy(progress) }
    }

    /// The number of the present attempt, from 1.
    private var attempt: Int { max(1, attempts.load(ordering: .relaxed)) }

    /// Publishes the numbers to the streams.
    package func publish() {
        publishToFollowers()
        // Either this sees the streams, or the new stream sees the numbers that were stored before.
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        guard let channels = channels.load() else { return }
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

    /// Publishes the numbers of a whole response whose task does not end at once.
    func publishWhole() {
        if isWatched.load(ordering: .relaxed) { publish() }
    }

    /// Publishes the numbers to the streams: at once, or if that was done in the last 10 ms, when they have passed. The
    /// last numbers before a pause of the sender are published, too.
    package func publishSoon() {
        let (now, next) = (MonotonicClock.nanoseconds(), nextPublication.load(ordering: .relaxed))
        if now >= next {
            nextPublication.store(now + Self.publicationInterval, ordering: .relaxed)
            return publish()
        }
        guard !isPublicationWaiting.exchange(true, ordering: .releasing) else { return }
        Task {
            // `try?`: nobody cancels this task.
            try? await ContinuousClock().sleepWithoutDescriptor(for: .nanoseconds(Int64(next - now)))
            // In this order, numbers that come now are published here or wait again.
            _ = isPublicationWaiting.exchange(false, ordering: .acquiring)
            nextPublication.store(MonotonicClock.nanoseconds() + Self.publicationInterval, ordering: .relaxed)
            publish()
        }
    }

    // MARK: The session's side

    /// Stores the number of decompressed bytes, and publishes it as often as the transport does.
    func setDecoded(_ count: Int64) {
        received.store(count, ordering: .relaxed)
        if isWatched.load(ordering: .relaxed) { publishSoon() }
    }

    /// Continues a download at an offset, or starts it over at 0. Begins a new attempt if there are more bytes by now,
    /// because they were discarded.
    ///
    /// - Parameters:
    ///   - total: The length of the whole file; nil for that of the response.
    ///   - countsBody: False for a response that counts only from `countRest(until:of:)` or `countWhole(of:)` on.
    package func startDownload(at offset: Int64, of total: Int64? = nil, countsBody: Bool = true) {
        startDownload(at: offset, of: total, end: .max, countsBody: countsBody)
    }

    /// Ends the counts of a download whose last bytes were discarded.
    func endDownload(at offset: Int64, of total: Int64) {
        // The transport can still count bytes of the response.
        startDownload(at: offset, of: total, end: offset, countsBody: true)
    }

    private func startDownload(at offset: Int64, of total: Int64?, end: Int64, countsBody: Bool) {
        let isLess = numbers(.download).completedBytes > offset
        isBodyOfFile.store(countsBody, ordering: .relaxed)
        // The new attempt never shows the bytes of the one before: they would not decrease any more.
        received.store(0, ordering: .relaxed)
        receivedTotal.store(Self.unknown, ordering: .relaxed)
        self.offset.store(offset, ordering: .relaxed)
        fileTotal.store(total ?? Self.unknown, ordering: .relaxed)
        self.end.store(end, ordering: .relaxed)
        if isLess { attempts.store(attempt + 1, ordering: .releasing) }
        publishWithoutRate()
    }

    /// Counts the body of the present response from now on, and what has arrived of it: it is the rest of the file, or
    /// the beginning of that.
    ///
    /// - Parameters:
    ///   - end: The position in the file after the body.
    ///   - total: The length of the whole file.
    func countRest(until end: Int64, of total: Int64) {
        self.end.store(end, ordering: .relaxed)
        fileTotal.store(total, ordering: .relaxed)
        isBodyOfFile.store(true, ordering: .relaxed)
        publish()
    }

    /// Counts the body of the present response from now on, and what has arrived of it: it is the whole file. Begins a
    /// new attempt in place of the rest.
    ///
    /// - Parameter total: The length of the whole file; nil for that of the response.
    func countWhole(of total: Int64?) {
        let hadPart = offset.exchange(0, ordering: .relaxed) > 0
        fileTotal.store(total ?? Self.unknown, ordering: .relaxed)
        end.store(.max, ordering: .relaxed)
        if hadPart { attempts.store(attempt + 1, ordering: .releasing) }
        isBodyOfFile.store(true, ordering: .relaxed)
        publishWithoutRate()
    }

    /// Publishes numbers that no transfer has led to. Streams that exist already saw other bytes, which must not count
    /// as throughput.
    private func publishWithoutRate() {
        channels.load()?.rates.withLock { $0.download.reset() }
        publish()
    }

    /// Resets the throughput when the task pauses or resumes.
    package func taskPausedOrResumed() {
        guard isWatched.load(ordering: .relaxed) else { return }
        channels.load()?.reset()
    }

    package var uploadStream: AsyncStream<Session.Progress> { stream { $0.upload } }
    package var downloadStream: AsyncStream<Session.Progress> { stream { $0.download } }

    package var upload: Session.Progress { numbers(.upload) }
    package var download: Session.Progress { numbers(.download) }

    /// Ends every stream with the last numbers, regardless of how the task ended.
    package func finish() {
        // Set before the streams are read: a stream that is created later sees it and ends by itself.
        isFinished.store(true, ordering: .sequentiallyConsistent)
        guard isWatched.load(ordering: .sequentiallyConsistent), let ended = channels.load() else { return }
        let (upload, download) = (numbers(.upload), numbers(.download))
        ended.upload.finish { Self.advance($0, to: upload, rate: $0.bytesPerSecond, isFinished: true) }
        ended.download.finish { Self.advance($0, to: download, rate: $0.bytesPerSecond, isFinished: true) }
    }

    private let isFinished = Atomic<Bool>(false)

    private enum Direction { case upload, download }

    private func numbers(_ direction: Direction) -> Session.Progress {
        // Read first: the numbers of a finished transfer are its last ones.
        let isFinished = isFinished.load(ordering: .acquiring)
        let (completed, total) =
            switch direction {
            case .upload: (sent.load(ordering: .relaxed), sentTotal.load(ordering: .relaxed))
            case .download where !isBodyCounted.load(ordering: .relaxed) || !isBodyOfFile.load(ordering: .relaxed):
                (0, Self.unknown)
            case .download: (received.load(ordering: .relaxed), receivedTotal.load(ordering: .relaxed))
            }
        let (offset, end, fileTotal) =
            direction == .download
            ? (offset.load(ordering: .relaxed), end.load(ordering: .relaxed), fileTotal.load(ordering: .relaxed))
            : (0, .max, Self.unknown)
        // A server can state any length, also for the rest of a resumed download.
        let stated = total == Self.unknown ? nil : Session.Progress.sum(total, offset)
        return Session.Progress(
            completedBytes: min(Session.Progress.sum(completed, offset), end),
            totalBytes: fileTotal == Self.unknown ? stated : fileTotal, isFinished: isFinished, attempt: attempt)
    }

    private func stream(_ channel: (Channels) -> Latest<Session.Progress>) -> AsyncStream<Session.Progress> {
        let stream = channel(channels.load() ?? channels.storeIfNil(Channels())).stream()
        // Set once the streams can be seen, and before the numbers are read, so that a change in between is published
        // and an end in between is not missed.
        isWatched.store(true, ordering: .sequentiallyConsistent)
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        if isFinished.load(ordering: .sequentiallyConsistent) { finish() } else { publish() }
        return stream
    }

    /// Returns the next element of a stream; nil if only the rate would differ.
    private static func change(
        _ old: Session.Progress, to new: Session.Progress, rate: Double?
    ) -> Session.Progress? {
        let next = advance(old, to: new, rate: rate, isFinished: false)
        let isSame =
            next.completedBytes == old.completedBytes && next.totalBytes == old.totalBytes
            && next.attempt == old.attempt
        return isSame ? nil : next
    }

    /// Returns the next element. Within an attempt, completed bytes never decrease and a known total stays known.
    private static func advance(
        _ old: Session.Progress, to new: Session.Progress, rate: Double?, isFinished: Bool
    ) -> Session.Progress {
        let isSameAttempt = new.attempt == old.attempt
        return Session.Progress(
            completedBytes: isSameAttempt ? max(old.completedBytes, new.completedBytes) : new.completedBytes,
            totalBytes: new.totalBytes ?? (isSameAttempt ? old.totalBytes : nil),
            bytesPerSecond: rate, isFinished: isFinished, attempt: new.attempt)
    }
}
