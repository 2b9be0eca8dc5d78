import Synchronization
import TernConcurrency

extension Session {
    /// The progress of an upload or a download.
    public struct Progress: Sendable, Hashable {
        /// The number of bytes of the body moved so far. A resumed download starts at its offset. Never decreases within an
        /// attempt. Counts a compressed response after decompression.
        ///
        /// The body of a response counts only if it can be the result: its status is one of 200–299, or is final and the
        /// request has rules of its own for the status (``ResponseValidation/statuses``). The body of a redirect, of a
        /// challenge or of an error does not count.
        public let completedBytes: Int64
        /// The number of bytes of the whole body; nil as long as the length is not known.
        public let totalBytes: Int64?
        /// Bytes per second over about the last three seconds; nil until enough bytes were measured.
        public let bytesPerSecond: Double?
        /// A Boolean value that indicates whether this is the last element. The transfer has ended, with or without success.
        public let isFinished: Bool
        /// The number of the attempt that these bytes belong to, beginning with 1.
        ///
        /// A request that is sent again, after a redirect, for a challenge or by a retry, begins a new attempt, and so does a
        /// download whose file is sent from its beginning again. Bytes and total then start over. The progress of several
        /// tasks together, and of an image, always has 1.
        public let attempt: Int

        /// Creates an element, for tests and previews of views that show progress.
        public init(
            completedBytes: Int64 = 0, totalBytes: Int64? = nil, bytesPerSecond: Double? = nil,
            isFinished: Bool = false, attempt: Int = 1
        ) {
            self.completedBytes = completedBytes
            self.totalBytes = totalBytes
            self.bytesPerSecond = bytesPerSecond
            self.isFinished = isFinished
            self.attempt = attempt
        }

        /// The fraction from 0 to 1; nil as long as the length is not known. Less than 1 before the end, also when all bytes
        /// have moved, because the task can still send its request again. An empty body counts as 1 once it has ended.
        public var fractionCompleted: Double? {
            guard let totalBytes else { return nil }
            guard totalBytes > 0 else { return isFinished ? 1 : 0 }
            return min(isFinished ? 1 : Self.greatestUnfinishedFraction, Double(completedBytes) / Double(totalBytes))
        }

        /// The greatest number below 1 that a `Float` holds, so that a view that shows one does not round it up.
        private static let greatestUnfinishedFraction = Double(Float(1).nextDown)

        /// The remaining time, estimated from the throughput; nil until enough bytes were measured, zero at the end of a whole
        /// body, and nil for a transfer that ended before it. Also nil for more than 100 years.
        public var estimatedTimeRemaining: Duration? {
            if isFinished { return completedBytes == totalBytes ? .zero : nil }
            guard let totalBytes, let bytesPerSecond, bytesPerSecond > 0 else { return nil }
            let seconds = max(0, Double(totalBytes) - Double(completedBytes)) / bytesPerSecond
            // A server can state any length, and a duration of more seconds than an integer holds would end the process.
            return seconds <= 100 * 365 * 86_400 ? .seconds(seconds) : nil
        }
    }
}

extension Session.Progress: CustomStringConvertible {
    /// The numbers with their units, such as `29.6 MB of 57.2 MB (51%), 10.2 MB/s, 3 s left`, as far as they are known.
    public var description: String {
        let total = totalBytes.map { " of \(Self.amount(Double($0)))" } ?? ""
        let percent = fractionCompleted.map { " (\(Int((min(max(0, $0), 1) * 100).rounded(.down)))%)" } ?? ""
        let speed = bytesPerSecond.map { "\(Self.amount($0))/s" }
        let end = isFinished ? "ended" : estimatedTimeRemaining.map { "\(Self.time($0)) left" }
        return (["\(Self.amount(Double(completedBytes)))\(total)\(percent)", speed, end] as [String?])
            .compactMap { $0 }.joined(separator: ", ")
    }

    /// Returns bytes in the decimal unit that fits, with one decimal from kB on.
    private static func amount(_ bytes: Double) -> String {
        let units = [("bytes", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)]
        // An integer holds the tenths of the largest number of bytes, but not of any speed.
        let bytes = bytes.isFinite ? min(max(0, bytes), 0x1p63) : 0
        guard let (name, size) = units.last(where: { bytes >= $0.1 }), size > 1 else { return "\(Int(bytes)) bytes" }
        let tenths = Int((bytes / size * 10).rounded(.down))
        return "\(tenths / 10).\(tenths % 10) \(name)"
    }

    /// Returns a time in seconds, minutes or hours, rounded up.
    private static func time(_ duration: Duration) -> String {
        let seconds = duration.components.seconds + (duration.components.attoseconds > 0 ? 1 : 0)
        if seconds < 60 { return "\(seconds) s" }
        let minutes = (seconds + 59) / 60
        return minutes < 60 ? "\(minutes) min" : "\(minutes / 60) h \(minutes % 60) min"
    }
}

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
    /// The number of attempts that have begun; 0 and 1 are the first.
    private let attempts = Atomic<Int>(0)
    /// The attempt on the wire whose numbers count; 0 for any.
    private let source = Atomic<UInt64>(0)
    /// A Boolean value that indicates whether the body of the present response counts, because it can be the result.
    private let isBodyCounted = Atomic<Bool>(true)
    private let isWatched = Atomic<Bool>(false)
    /// The time from which `publishSoon` publishes at once.
    private let nextPublication = Atomic<UInt64>(0)
    /// A Boolean value that indicates whether numbers wait for that time.
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

    /// Begins an attempt on the wire. After the first one, all numbers start over. Those of an earlier attempt, which can
    /// still end on the transport's thread, no longer count.
    func beginAttempt(_ id: UInt64) {
        source.store(id, ordering: .relaxed)
        guard attempts.add(1, ordering: .relaxed).newValue > 1 else { return }
        isBodyCounted.store(true, ordering: .relaxed)
        if update(sent: 0, of: nil, received: 0, of: nil) { publish() }
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

    /// Stores the numbers of the running attempt. A total is nil if it is not known. `received` is nil for a compressed
    /// body, whose bytes `setDecoded` counts. Returns whether a stream exists, so that the caller calls `publish()`
    /// soon.
    package func update(sent: Int64, of sentTotal: Int64?, received: Int64?, of receivedTotal: Int64?) -> Bool {
        self.sent.store(sent, ordering: .relaxed)
        self.sentTotal.store(sentTotal ?? Self.unknown, ordering: .relaxed)
        if let received { self.received.store(received, ordering: .relaxed) }
        self.receivedTotal.store(receivedTotal ?? Self.unknown, ordering: .relaxed)
        return isWatched.load(ordering: .relaxed)
    }

    /// Stores the numbers of the running attempt and publishes them at once.
    package func store(sent: Int64, of sentTotal: Int64?, received: Int64, of receivedTotal: Int64?) {
        if update(sent: sent, of: sentTotal, received: received, of: receivedTotal) { publish() }
    }

    /// Publishes the numbers to the streams.
    package func publish() {
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

    /// Publishes the numbers to the streams: at once, or if that was done in the last 10 ms, when they have passed. The last
    /// numbers before a pause of the sender are published, too.
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

    /// Sets the offset at which a resumed download starts. An offset below the one before begins a new attempt.
    package func startDownload(at offset: Int64) {
        if self.offset.exchange(offset, ordering: .relaxed) > offset {
            attempts.store(max(1, attempts.load(ordering: .relaxed)) + 1, ordering: .relaxed)
        }
        // Streams that exist already saw 0 bytes. The bytes up to the offset must not count as throughput.
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
            case .download where !isBodyCounted.load(ordering: .relaxed): (0, Self.unknown)
            case .download: (received.load(ordering: .relaxed), receivedTotal.load(ordering: .relaxed))
            }
        let offset = direction == .download ? offset.load(ordering: .relaxed) : 0
        // A server can state any length, also for the rest of a resumed download.
        return Session.Progress(
            completedBytes: Session.Progress.sum(completed, offset),
            totalBytes: total == Self.unknown ? nil : Session.Progress.sum(total, offset),
            isFinished: isFinished, attempt: max(1, attempts.load(ordering: .relaxed)))
    }

    private func stream(_ channel: (Channels) -> Latest<Session.Progress>) -> AsyncStream<Session.Progress> {
        let stream = channel(channels.load() ?? channels.storeIfNil(Channels())).stream()
        // Set once the streams can be seen, and before the numbers are read, so that a change in between is published and an
        // end in between is not missed.
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

/// Measures throughput as an average over about the last three seconds.
///
/// Bytes and time are averaged separately and divided at the end. The first figure is therefore the plain average since the
/// start, a burst counts with the pause before it, and unequal intervals are weighted by their length.
package struct ThroughputMeter: Sendable, Hashable {
    /// The number of seconds after which an interval counts 1/e.
    private static let window = 3.0
    /// The shortest interval in nanoseconds. A shorter one waits for the next record, because a socket delivers in bursts.
    private static let shortestInterval: UInt64 = 50_000_000
    /// The number of seconds before the first figure.
    private static let shortestMeasurement = 0.1

    private struct Mark: Hashable {
        var bytes: Int64
        var time: UInt64
    }

    private var last: Mark?
    private var completed: Int64 = 0
    private var bytes = 0.0
    private var seconds = 0.0
    private var measured = 0.0

    package init() {}

    /// Records the number of bytes moved so far, at an instant of a monotonic clock.
    ///
    /// Counting begins at the first record, so the bytes that a resumed download had before do not count. A number below
    /// the last one, when a body is sent again, starts the measurement over.
    package mutating func record(completed: Int64, at nanoseconds: UInt64) {
        self.completed = completed
        guard let last else {
            self.last = Mark(bytes: completed, time: nanoseconds)
            return
        }
        guard completed >= last.bytes else {
            reset()
            self.last = Mark(bytes: completed, time: nanoseconds)
            return
        }
        guard nanoseconds >= last.time, nanoseconds - last.time >= Self.shortestInterval else { return }
        let interval = Double(nanoseconds - last.time) / 1e9
        // 1 / (1 + x) instead of exp(-x): equal for short intervals, larger for long ones, and without libm.
        let kept = 1 / (1 + interval / Self.window)
        bytes = bytes * kept + Double(completed - last.bytes)
        seconds = seconds * kept + interval
        measured += interval
        self.last = Mark(bytes: completed, time: nanoseconds)
    }

    /// Resets the measurement when a transfer pauses, because the time until the next record must not count.
    package mutating func reset() {
        last = nil
        bytes = 0
        seconds = 0
        measured = 0
    }

    /// Bytes per second; nil until enough time was measured.
    package var bytesPerSecond: Double? {
        measured >= Self.shortestMeasurement ? bytes / seconds : nil
    }

    /// Returns the number of seconds until `total` bytes have moved at the present speed; nil if the total or the speed is
    /// unknown, or nothing moves.
    package func secondsLeft(total: Int64?) -> Double? {
        guard let total else { return nil }
        if completed >= total { return 0 }
        guard let speed = bytesPerSecond, speed > 0 else { return nil }
        return Double(total - completed) / speed
    }
}

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

    /// Returns the sum, or the largest number if it is larger.
    package static func sum(_ left: Int64, _ right: Int64) -> Int64 {
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
