public import GtkBridge
public import Tern
public import TernViewModels

// GTK's widgets as Tern's view models: each implements how it shows something.

extension ProgressBar: ProgressViewModel {
    /// Shows the progress; the bar pulses while the total is unknown.
    public func showProgress(_ progress: ProgressUpdate) {
        if let fraction = progress.fraction { self.fraction = fraction } else { pulse() }
    }
}

extension Spinner: ActivityViewModel {
    /// A Boolean value that indicates whether the spinner turns.
    public var isActivityShown: Bool { isSpinning }
    /// Starts the spinner.
    public func beginActivity() { isSpinning = true }
    /// Stops the spinner.
    public func endActivity() { isSpinning = false }
}

extension Button: BindableView {}

extension Button {
    /// Pauses and resumes the task of a binding, and shows which of the two a click does.
    public func bindPause(to task: any TaskHandle) {
        bind(task.states, of: task, for: .pause) { button, state in
            button.text = state == .suspended ? "Resume" : "Pause"
            button.isEnabled = !state.isTerminal
        }
    }

    /// Pauses or resumes the current task at each click.
    public func pausesAtClick() {
        onClick { [weak self] in
            guard let binding = self?.bindings[.pause] else { return }
            if binding.canPause { binding.pause() } else { binding.resume() }
        }
    }
}

extension BindingKey<ViewBinding> {
    fileprivate static var pause: Self { Self("pause") }
}

/// A view that the user pulls down at its upper end to refresh, with the wheel or two fingers.
@safe
public final class PullToRefresh: Stack, RefreshViewModel {
    /// Called when the user has pulled. The control already shows a refresh.
    public var onPull: (@MainActor () -> Void)?
    /// The number of refreshes that the user or a binding began.
    public private(set) var beginCount = 0
    private let drawer: Drawer
    private let spinner: Spinner
    private let content: ScrollView
    private var pull = Pull()

    /// Creates the control around a scrolling view.
    public init(_ content: ScrollView) {
        self.content = content
        spinner = Spinner()
        spinner.setMargin(8)
        drawer = Drawer(spinner)
        super.init(.column)
        add(drawer).add(content)
        content.expand()
        content.onWheel { [weak self] steps in self?.turned(by: steps) }
    }

    private func turned(by steps: Double) {
        guard pull.turn(by: steps, isAtTop: content.offset <= 0, isRefreshing: isRefreshing) == .begin else { return }
        beginRefreshing()
        onPull?()
    }

    /// A Boolean value that indicates whether a refresh is shown.
    public var isRefreshing: Bool { drawer.isOpen }

    /// Opens the drawer.
    public func beginRefreshing() {
        beginCount += 1
        drawer.isOpen = true
        spinner.isSpinning = true
    }

    /// Closes the drawer.
    public func endRefreshing() {
        drawer.isOpen = false
        spinner.isSpinning = false
    }
}

/// Decides which turns of the wheel are a pull. Pure.
struct Pull {
    enum Action: Hashable {
        case none
        case begin
    }

    /// The number of steps up, at the upper end, that make a pull.
    static let threshold = 3.0
    private var steps = 0.0

    /// Handles a turn of the wheel. Turns during a refresh are ignored.
    mutating func turn(by step: Double, isAtTop: Bool, isRefreshing: Bool) -> Action {
        guard isAtTop, step < 0, !isRefreshing else {
            steps = 0
            return .none
        }
        steps -= step
        guard steps >= Self.threshold else { return .none }
        steps = 0
        return .begin
    }
}
