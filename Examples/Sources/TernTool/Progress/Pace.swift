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
    private static let step = 0.1

    private let style: Style
    private var lastTime: Duration?
    private var lastFraction = 0.0
    private var lastNote: String?

    init(_ style: Style) { self.style = style }

    /// Whether the figures are to be shown at this moment of a monotonic clock. A new note always is.
    mutating func admits(_ figures: Figures, at now: Duration) -> Bool {
        guard figures.note != lastNote || isDue(figures, now) else { return false }
        lastTime = now
        lastNote = figures.note
        if let fraction = figures.fraction { lastFraction = fraction }
        return true
    }

    private func isDue(_ figures: Figures, _ now: Duration) -> Bool {
        switch style {
        case .bar:
            guard let lastTime else { return true }
            return now - lastTime >= Self.frame
        case .lines:
            // The beginning says nothing yet; it only starts the clock.
            if figures.completed == 0 { return false }
            if let fraction = figures.fraction, fraction - lastFraction >= Self.step { return true }
            return now - (lastTime ?? .zero) >= Self.second
        }
    }
}
