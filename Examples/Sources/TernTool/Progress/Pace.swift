/// Decides which of very many progress values are shown, so that neither a terminal nor a log is flooded. Pure.
struct Pace {
    /// How values are shown.
    enum Style {
        /// A line that is drawn over: often enough to look alive.
        case bar
        /// Lines that stay: one a second, or one at each tenth of the whole.
        case lines
    }

    private static let frame = Duration.milliseconds(66)
    private static let second = Duration.seconds(1)

    private let style: Style
    private var lastTime: Duration?
    private var lastTenth = 0
    private var lastNote: String?

    init(_ style: Style) { self.style = style }

    /// Whether the figures are to be shown at this moment of a monotonic clock. A new note always is.
    mutating func admits(_ figures: Figures, at now: Duration) -> Bool {
        guard figures.note != lastNote || isDue(figures, now) else { return false }
        lastTime = now
        lastNote = figures.note
        lastTenth = Self.tenth(figures) ?? lastTenth
        return true
    }

    /// Whole tenths of the whole; differences of fractions would miss one by rounding.
    private static func tenth(_ figures: Figures) -> Int? {
        guard let total = figures.total, total > 0 else { return nil }
        return Int(figures.completed * 10 / total)
    }

    private func isDue(_ figures: Figures, _ now: Duration) -> Bool {
        switch style {
        case .bar:
            guard let lastTime else { return true }
            return now - lastTime >= Self.frame
        case .lines:
            // The beginning says nothing yet; it only starts the clock.
            if figures.completed == 0 { return false }
            if let tenth = Self.tenth(figures), tenth > lastTenth { return true }
            return now - (lastTime ?? .zero) >= Self.second
        }
    }
}
