import Tern
import TernViewModels

/// Shows one transfer on standard error: a live bar in a terminal, plain lines elsewhere. A view like any other: it says
/// how it shows, and is bound to a task.
@MainActor
final class TerminalBar: ProgressViewModel, ActivityViewModel {
    let bindings = ViewBindings()
    private nonisolated let start = ContinuousClock.now
    private let bar: Bar
    private let terminal: Terminal
    private var pace: Pace
    private var isDrawn = false
    /// What was shown last.
    private(set) var figures = Figures(completed: 0)
    private(set) var isActivityShown = false
    /// Finished with the last element of progress.
    private let (ends, ending) = AsyncStream<Void>.makeStream()

    init(_ label: String, on terminal: Terminal) {
        bar = Bar(label: label)
        self.terminal = terminal
        pace = Pace(terminal.isInteractive ? .bar : .lines)
    }

    /// Time since the bar was made.
    nonisolated var elapsed: Duration { ContinuousClock.now - start }

    /// Binds a transfer: its progress, and whether it is paused.
    func bind(_ task: any TaskHandle, _ direction: ShownProgress.Direction = .download) {
        switch direction {
        case .download: bindDownloadProgress(of: task)
        case .upload: bindUploadProgress(of: task)
        }
        bindActivity(to: task)
    }

    /// Waits for the end of what is bound, and leaves a clean line.
    func finished() async {
        for await _ in ends {}
        unbindActivity(ending: true)
        clear()
    }

    /// Shows a transfer to its end, and leaves a clean line.
    func follow(_ task: any TaskHandle, _ direction: ShownProgress.Direction = .download) async {
        bind(task, direction)
        await finished()
    }

    /// Takes the bar away: what is said next begins on a clean line.
    func clear() {
        if isDrawn { terminal.redraw("") }
        isDrawn = false
    }

    // MARK: The view

    func showProgress(_ progress: ShownProgress) {
        figures = Figures(progress, note: figures.note)
        draw()
        if progress.isFinished { ending.finish() }
    }

    func beginActivity() {
        isActivityShown = true
        note(nil)
    }

    /// At a pause, and at the end, which needs no note.
    func endActivity() {
        isActivityShown = false
        if activityBinding?.canResume ?? false { note("paused") }
    }

    private func note(_ note: String?) {
        guard note != figures.note else { return }
        figures.note = note
        draw()
    }

    /// Draws what is to be shown, if it is time to.
    private func draw() {
        guard pace.admits(figures, at: elapsed) else { return }
        if terminal.isInteractive {
            terminal.redraw(bar.line(figures, columns: terminal.columns))
            isDrawn = true
        } else {
            terminal.say(bar.plainLine(figures))
        }
    }
}
