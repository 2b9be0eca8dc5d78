extension Session {
    /// The progress of an upload or a download.
    public struct Progress: Sendable, Hashable {
        /// The number of bytes of the body moved so far. A resumed download starts at its offset. Never decreases
        /// within an attempt. Counts a compressed response after decompression.
        ///
        /// The body of a response counts only if it can be the result: its status is one of 200–299, or is final and
        /// the request has rules of its own for the status (``ResponseValidation/statuses``). The body of a redirect,
        /// of a challenge or of an error does not count. For a resumed download, only a body that brings bytes of the
        /// file counts.
        public let completedBytes: Int64
        /// The number of bytes of the whole body, and of the whole file for a resumed download; nil as long as the
        /// length is not known.
        public let totalBytes: Int64?
        /// Bytes per second over about the last three seconds; nil until enough bytes were measured.
        public let bytesPerSecond: Double?
        /// A Boolean value that indicates whether this is the last element. The transfer has ended, with or without
        /// success.
        public let isFinished: Bool
        /// The number of the attempt that these bytes belong to, beginning with 1.
        ///
        /// A request that is sent again, after a redirect, for a challenge or by a retry, begins a new attempt, and so
        /// does a download whose file is sent from its beginning again. Bytes and total then start over. The progress
        /// of several tasks together, and of an image, always has 1.
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

        /// The fraction from 0 to 1; nil as long as the length is not known. Less than 1 before the end, also when all
        /// bytes have moved, because the task can still send its request again. An empty body counts as 1 once it has
        /// ended.
        public var fractionCompleted: Double? {
            guard let totalBytes else { return nil }
            guard totalBytes > 0 else { return isFinished ? 1 : 0 }
            return min(isFinished ? 1 : Self.greatestUnfinishedFraction, Double(completedBytes) / Double(totalBytes))
        }

        /// The greatest number below 1 that a `Float` holds, so that a view that shows one does not round it up.
        private static let greatestUnfinishedFraction = Double(Float(1).nextDown)

        /// The remaining time, estimated from the throughput; nil until enough bytes were measured, zero at the end of
        /// a whole body, and nil for a transfer that ended before it. Also nil for more than 100 years.
        public var estimatedTimeRemaining: Duration? {
            if isFinished { return completedBytes == totalBytes ? .zero : nil }
            guard let totalBytes, let bytesPerSecond, bytesPerSecond > 0 else { return nil }
            let seconds = max(0, Double(totalBytes) - Double(completedBytes)) / bytesPerSecond
            // A server can state any length, and a duration of more seconds than an integer holds would end the
            // process.
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

extension Session.Progress {
    /// Returns the sum of several progresses.
    ///
    /// The total is nil as long as one of them is not known; an ended transfer of unknown length counts the bytes that
    /// it moved. The speed is the sum of the known speeds of those that have not ended, and nil if none is known. The
    /// sum is finished when all are, and so is that of none.
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
}
