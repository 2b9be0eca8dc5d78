import Tern

/// Shows one transfer on standard error: a live bar in a terminal, plain lines elsewhere.
struct ProgressDisplay {
    private let bar: Bar
    private let terminal: Terminal
    private let start = ContinuousClock.now
    private var pace: Pace
    private var isDrawn = false
    /// What was shown last.
    private(set) var figures = Figures(completed: 0)

    init(_ label: String, on terminal: Terminal) {
        bar = Bar(label: label)
        self.terminal = terminal
        pace = Pace(terminal.isInteractive ? .bar : .lines)
    }

    /// Time since the display began.
    var elapsed: Duration { ContinuousClock.now - start }

    /// Shows a value, if it is time to.
    mutating func show(_ progress: Session.Progress, note: String? = nil) {
        figures = Figures(progress, note: note)
        guard pace.admits(figures, at: elapsed) else { return }
        if terminal.isInteractive {
            terminal.redraw(bar.line(figures, columns: terminal.columns))
            isDrawn = true
        } else {
            terminal.say(bar.plainLine(figures))
        }
    }

    /// Shows values until their stream ends, and leaves a clean line.
    mutating func follow(_ stream: AsyncStream<Session.Progress>) async {
        for await progress in stream { show(progress) }
        clear()
    }

    /// Takes the bar away: what is said next begins on a clean line.
    mutating func clear() {
        if isDrawn { terminal.redraw("") }
        isDrawn = false
    }
}
