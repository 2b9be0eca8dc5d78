import Tern
import TernViewModels

/// What a bar shows of a transfer.
struct Figures: Equatable {
    /// Bytes moved so far.
    var completed: Int64
    /// Bytes of the whole; nil when that is not known.
    var total: Int64?
    /// From 0 to 1; nil when the whole is not known.
    let fraction: Double?
    /// Bytes per second; nil until it can be told.
    var rate: Double?
    /// Time left; nil until it can be told.
    var remaining: Duration?
    /// A word in place of rate and time left, such as "paused".
    var note: String?

    init(completed: Int64, total: Int64? = nil, rate: Double? = nil, remaining: Duration? = nil, note: String? = nil) {
        self.completed = completed
        self.total = total
        fraction = total.map { $0 > 0 ? min(1, Double(completed) / Double($0)) : 1 }
        self.rate = rate
        self.remaining = remaining
        self.note = note
    }

    init(_ shown: ShownProgress, note: String? = nil) {
        let progress = shown.progress
        completed = progress.completedBytes
        total = progress.totalBytes
        fraction = shown.fraction
        rate = progress.bytesPerSecond
        remaining = progress.estimatedTimeRemaining
        self.note = note
    }
}
