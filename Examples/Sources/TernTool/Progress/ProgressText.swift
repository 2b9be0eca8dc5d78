import Tern
import TernViewModels

/// The status of a transfer for a progress bar.
struct TransferStatus: Equatable {
    /// The bytes transferred so far.
    var completed: Int64
    /// The total bytes; nil if unknown.
    var total: Int64?
    /// The completed fraction, from 0 to 1; nil if the total is unknown.
    let fraction: Double?
    /// The bytes per second; nil until known.
    var rate: Double?
    /// The remaining time; nil until known.
    var remaining: Duration?
    /// A word in place of the rate and the remaining time, such as "paused".
    var note: String?

    init(completed: Int64, total: Int64? = nil, rate: Double? = nil, remaining: Duration? = nil, note: String? = nil) {
        self.completed = completed
        self.total = total
        fraction = total.map { $0 > 0 ? min(1, Double(completed) / Double($0)) : 1 }
        self.rate = rate
        self.remaining = remaining
        self.note = note
    }

    init(_ shown: ProgressUpdate, note: String? = nil) {
        let progress = shown.progress
        completed = progress.completedBytes
        total = progress.totalBytes
        fraction = shown.fraction
        rate = progress.bytesPerSecond
        remaining = progress.estimatedTimeRemaining
        self.note = note
    }
}

/// Formats numbers of bytes in decimal units, with one digit after the point.
enum ByteText {
    private static let units: [(size: Double, name: String)] = [
        (1, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB"), (1e15, "PB"),
    ]

    /// Returns a size such as `999 B`, `1.5 kB` or `200.0 MB`.
    static func size(_ bytes: Int64) -> String {
        let unit = unit(for: Double(bytes))
        return "\(number(Double(bytes), unit)) \(unit.name)"
    }

    /// Returns the number without its unit, in the unit of `whole`.
    static func size(_ bytes: Int64, inUnitOf whole: Int64) -> String {
        number(Double(bytes), unit(for: Double(whole)))
    }

    /// Returns a rate such as `12.3 MB/s`.
    static func rate(_ bytesPerSecond: Double) -> String {
        let unit = unit(for: bytesPerSecond)
        return "\(number(bytesPerSecond, unit)) \(unit.name)/s"
    }

    /// Returns the rate of a number of bytes in a duration, such as `512.0 MB/s`.
    static func rate(_ bytes: Int64, in time: Duration) -> String {
        time > .zero ? rate(Double(bytes) / (time / .seconds(1))) : "at once"
    }

    private static func unit(for value: Double) -> (size: Double, name: String) {
        // 999,960 bytes would round to 1000.0 kB; use 1.0 MB instead.
        units.last { value >= $0.size * 0.99995 } ?? units[0]
    }

    private static func number(_ value: Double, _ unit: (size: Double, name: String)) -> String {
        unit.size == 1 ? "\(Int64(value))" : Decimals.one(value / unit.size)
    }
}

/// Formats numbers with a fixed number of digits.
enum Decimals {
    /// Returns a number such as `12.3`.
    static func one(_ value: Double) -> String {
        let tenths = Int64((value * 10).rounded())
        return "\(tenths / 10).\(abs(tenths % 10))"
    }

    /// Returns a number such as `1.23`.
    static func two(_ value: Double) -> String {
        let hundredths = Int64((value * 100).rounded())
        let rest = abs(hundredths % 100)
        return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)"
    }
}

/// Formats durations.
enum DurationText {
    /// Returns the remaining time like a clock: `0:07`, `12:40`, `3:05:00`. Rounds up to seconds; a day or more is `>24
    /// h`.
    static func clock(_ duration: Duration) -> String {
        let parts = duration.components
        let seconds = max(0, parts.seconds + (parts.attoseconds > 0 ? 1 : 0))
        if seconds >= 86_400 { return ">24 h" }
        let (hours, minutes, rest) = (seconds / 3_600, seconds / 60 % 60, seconds % 60)
        return hours > 0 ? "\(hours):\(padded(minutes)):\(padded(rest))" : "\(minutes):\(padded(rest))"
    }

    /// Returns an elapsed time such as `84 µs`, `1.3 ms` or `2.41 s`.
    static func span(_ duration: Duration) -> String {
        let seconds = duration / .seconds(1)
        if seconds < 0.001 { return "\(Int64((seconds * 1e6).rounded())) µs" }
        if seconds < 1 { return "\(Decimals.one(seconds * 1e3)) ms" }
        return "\(Decimals.two(seconds)) s"
    }

    private static func padded(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}

/// Measures the width of text in a terminal, and adjusts it.
enum Columns {
    /// Returns the number of columns of a text.
    static func count(_ text: String) -> Int { text.reduce(0) { $0 + width($1) } }

    /// Truncates a text in its middle, because the beginning and the end of a file's name are the most informative.
    static func fit(_ text: String, to columns: Int) -> String {
        if count(text) <= columns { return text }
        guard columns > 1 else { return String(repeating: "~", count: max(0, columns)) }
        let head = prefix(text, (columns - 1) / 2)
        let tail = prefix(text.reversed(), columns - 1 - count(head))
        return head + "~" + String(tail.reversed())
    }

    /// Returns the text aligned to the right.
    static func right(_ text: String, _ columns: Int) -> String { blanks(columns - count(text)) + text }

    /// Returns the text aligned to the left.
    static func left(_ text: String, _ columns: Int) -> String { text + blanks(columns - count(text)) }

    private static func blanks(_ count: Int) -> String { String(repeating: " ", count: max(0, count)) }

    private static func prefix(_ characters: some Sequence<Character>, _ columns: Int) -> String {
        var result = ""
        var used = 0
        for character in characters {
            used += width(character)
            if used > columns { break }
            result.append(character)
        }
        return result
    }

    /// Returns the columns of a character. East Asian and emoji characters have two; the ranges are the wide blocks of
    /// Unicode's UAX 11.
    private static func width(_ character: Character) -> Int {
        guard let scalar = character.unicodeScalars.first else { return 0 }
        switch scalar.value {
        case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60,
            0xFFE0...0xFFE6, 0x1F300...0x1FAFF, 0x20000...0x3FFFD:
            return 2
        default:
            return 1
        }
    }
}

/// Limits the number of shown progress values, so that they flood neither a terminal nor a log. Pure.
struct DisplayThrottle {
    /// The style of the output.
    enum Style {
        /// A line that is redrawn, often enough to look alive.
        case bar
        /// Lines that stay: one each second, or one at each tenth of the total.
        case lines
    }

    private static let frame = Duration.milliseconds(66)
    private static let second = Duration.seconds(1)

    private let style: Style
    private var lastTime: Duration?
    private var lastTenth = 0
    private var lastNote: String?

    init(_ style: Style) { self.style = style }

    /// Returns a Boolean value that indicates whether to show a status at a time of a monotonic clock. A new note is
    /// always shown.
    mutating func admits(_ status: TransferStatus, at now: Duration) -> Bool {
        guard status.note != lastNote || isDue(status, now) else { return false }
        lastTime = now
        lastNote = status.note
        lastTenth = Self.tenth(status) ?? lastTenth
        return true
    }

    /// Returns the completed tenths. Differences of fractions would miss one because of rounding.
    private static func tenth(_ status: TransferStatus) -> Int? {
        guard let total = status.total, total > 0 else { return nil }
        let (tenths, overflows) = status.completed.multipliedReportingOverflow(by: 10)
        let moved = Int(overflows ? status.completed / max(1, total / 10) : tenths / total)
        // All bytes can have moved before the transfer has ended. The last tenth is that of the end.
        return status.fraction.map { $0 < 1 } ?? false ? min(9, moved) : moved
    }

    private func isDue(_ status: TransferStatus, _ now: Duration) -> Bool {
        switch style {
        case .bar:
            guard let lastTime else { return true }
            return now - lastTime >= Self.frame
        case .lines:
            // The first value has no information; it only starts the clock.
            if status.completed == 0 { return false }
            if let tenth = Self.tenth(status), tenth > lastTenth { return true }
            return now - (lastTime ?? .zero) >= Self.second
        }
    }
}
