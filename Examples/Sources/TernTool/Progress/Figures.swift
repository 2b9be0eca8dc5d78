import Tern

/// What a bar shows of a transfer.
struct Figures: Equatable {
    /// Bytes moved so far.
    var completed: Int64
    /// Bytes of the whole; nil when that is not known.
    var total: Int64?
    /// Bytes per second; nil until it can be told.
    var rate: Double?
    /// Time left; nil until it can be told.
    var remaining: Duration?
    /// A word in place of rate and time left, such as "paused".
    var note: String?

    init(completed: Int64, total: Int64? = nil, rate: Double? = nil, remaining: Duration? = nil, note: String? = nil) {
        self.completed = completed
        self.total = total
        self.rate = rate
        self.remaining = remaining
        self.note = note
    }

    init(_ progress: Session.Progress, note: String? = nil) {
        self.init(
            completed: progress.completedBytes, total: progress.totalBytes, rate: progress.bytesPerSecond,
            remaining: progress.estimatedTimeRemaining, note: note)
    }

    /// From 0 to 1; nil when the whole is not known.
    var fraction: Double? {
        guard let total else { return nil }
        return total > 0 ? min(1, Double(completed) / Double(total)) : 1
    }
}
