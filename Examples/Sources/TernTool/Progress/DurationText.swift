/// Times for people.
enum DurationText {
    /// Time left, as a clock shows it: `0:07`, `12:40`, `3:05:00`. A begun second counts; a day or more is `>24 h`.
    static func clock(_ duration: Duration) -> String {
        let parts = duration.components
        let seconds = max(0, parts.seconds + (parts.attoseconds > 0 ? 1 : 0))
        if seconds >= 86_400 { return ">24 h" }
        let (hours, minutes, rest) = (seconds / 3_600, seconds / 60 % 60, seconds % 60)
        return hours > 0 ? "\(hours):\(padded(minutes)):\(padded(rest))" : "\(minutes):\(padded(rest))"
    }

    /// Time that something took: `84 µs`, `1.3 ms`, `2.41 s`.
    static func span(_ duration: Duration) -> String {
        let seconds = duration / .seconds(1)
        if seconds < 0.001 { return "\(Int64((seconds * 1e6).rounded())) µs" }
        if seconds < 1 { return "\(Decimals.one(seconds * 1e3)) ms" }
        return "\(Decimals.two(seconds)) s"
    }

    private static func padded(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
