public import Tern
import TernConcurrency

/// One thing that a view follows: what a `bind…` call gives.
///
/// It needs not be held: the binding lasts until what it follows has ended, until the same is bound anew, until `unbind`,
/// or until the view's end, whichever comes first. It does not keep the view alive, and dropping it ends nothing.
@MainActor
public final class ViewBinding: BindingContent {
    /// How a binding ended.
    public enum Outcome: Sendable, Hashable {
        /// What it followed has ended, and its last state was shown.
        case finished
        /// It was unbound.
        case unbound
        /// Another one took its place.
        case replaced
        /// The view ended first.
        case viewGone
    }

    /// The task that is followed; nil for several tasks, and for what is no task.
    public nonisolated let task: AnySessionTask?
    private weak var view: (any BindableView)?
    private var receipt: ViewBindings.Receipt?
    private var decided: Outcome?
    /// Owned here; cancelled when the binding ends, whoever ends it, and with this object.
    private let drivers = Lock<[Int: Task<Void, Never>]>([:])
    private var lastDriver = 0

    init(of view: any BindableView, to task: (any TaskHandle)?) {
        self.view = view
        self.task = task?.erased
    }

    deinit {
        cancelDrivers()
    }

    /// How the binding ended; nil while it lasts.
    public var outcome: Outcome? { decided ?? (view == nil ? .viewGone : nil) }

    /// Whether the binding lasts.
    public var isActive: Bool { outcome == nil }

    /// Stops following, and leaves the view as it is. No effect on a binding that has ended.
    public func unbind() { end(.unbound) }

    // MARK: The task

    /// Whether there is a task that `pause()` would stop.
    public var canPause: Bool { task?.state == .running }
    /// Whether there is a task that `resume()` would start or take up.
    public var canResume: Bool { task?.state == .suspended }
    /// Whether there is a task that `cancel()` would end.
    public var canCancel: Bool { task.map { !$0.state.isTerminal } ?? false }

    /// Pauses the task. The binding goes on.
    public func pause() { task?.pause() }
    /// Starts the task, or takes it up after a pause.
    public func resume() { task?.resume() }
    /// Cancels the task, not the binding: that ends as the task does.
    public func cancel() { task?.cancel() }

    // MARK: The slot

    /// The slot's part of the beginning.
    func entered(_ receipt: ViewBindings.Receipt) { self.receipt = receipt }

    /// The slot is another's.
    public func slotWasLost(_ cause: SlotLoss) { end(cause == .replaced ? .replaced : .unbound) }

    /// Nobody is there to be shown anything.
    public nonisolated func viewIsGone() { cancelDrivers() }

    func end(_ outcome: Outcome) {
        guard decided == nil else { return }
        decided = view == nil ? .viewGone : outcome
        cancelDrivers()
        if decided == .viewGone { receipt?.viewWasGone() }
        receipt?.remove()
    }

    // MARK: What is followed

    /// Follows a stream on the main actor, while the binding lasts: each element is received, and, if it comes, the end.
    func follow<View: BindableView, Element: Sendable>(
        _ stream: AsyncStream<Element>, for view: View, receive: @escaping @MainActor (View, Element) -> Void,
        ended: @escaping @MainActor (View) -> Void = { _ in }
    ) {
        drive { [weak self, weak view] in
            for await element in stream {
                guard let self, self.decided == nil else { return }
                guard let view else { return self.end(.viewGone) }
                receive(view, element)
            }
            guard let self, self.decided == nil else { return }
            guard let view else { return self.end(.viewGone) }
            ended(view)
        }
    }

    /// Runs work in a Swift task of the binding's own. The work holds neither binding nor view across a wait.
    func drive(_ work: @escaping @MainActor () async -> Void) {
        guard decided == nil else { return }
        lastDriver += 1
        let number = lastDriver
        // Owned by this binding, which cancels it at its end.
        let driver = Task { [weak self] in
            await work()
            self?.forget(number)
        }
        drivers.withLock { $0[number] = driver }
    }

    /// A binding that goes on, and follows ever more, keeps nothing of what has ended.
    private func forget(_ driver: Int) {
        _ = drivers.withLock { $0.removeValue(forKey: driver) }
    }

    private nonisolated func cancelDrivers() {
        let drivers = drivers.withLock { drivers in
            defer { drivers = [:] }
            return drivers
        }
        for driver in drivers.values { driver.cancel() }
    }
}
