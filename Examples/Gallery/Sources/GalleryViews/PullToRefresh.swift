public import GtkBridge
public import TernViewModels

/// A view that is pulled down at its upper end to be refreshed: by the wheel, or by two fingers.
@safe
public final class PullToRefresh: Stack, RefreshViewModel {
    /// Told when the user has pulled. The control shows a refresh already.
    public var onPull: (@MainActor () -> Void)?
    /// How often a refresh was begun, by the user or by a binding.
    public private(set) var beginCount = 0
    private let drawer: Drawer
    private let spinner: Spinner
    private let content: ScrollView
    private var pull = Pull()

    /// Around a view that scrolls.
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

    /// Whether a refresh is shown.
    public var isRefreshing: Bool { drawer.isOpen }

    /// Opens.
    public func beginRefreshing() {
        beginCount += 1
        drawer.isOpen = true
        spinner.isSpinning = true
    }

    /// Closes.
    public func endRefreshing() {
        drawer.isOpen = false
        spinner.isSpinning = false
    }
}

/// When turns of the wheel are a pull. Pure.
struct Pull {
    enum Action: Hashable {
        case none
        case begin
    }

    /// How many steps up, at the upper end, make a pull.
    static let threshold = 3.0
    private var steps = 0.0

    /// Whether the user has pulled now; further turns are none while a refresh is shown.
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
