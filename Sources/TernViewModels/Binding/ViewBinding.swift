public import Tern
import TernConcurrency

/// A handle to one stream or task that a view follows; the result of a `bind…` call.
///
/// The caller need not keep it. The binding lasts until its source ends, the view is bound again, `unbind` is called,
/// or the view is released, whichever comes first. The binding does not keep the view alive, and releasing the handle
/// ends nothing.
@MainActor
public final class ViewBinding: BindingContent {
    /// The way a binding ended.
    public enum Outcome: Sendable, Hashable {
        /// The source ended, and its last state was shown.
        case finished
        /// The binding was unbound.
        case unbound
        /// Another binding replaced this one.
        case replaced
        /// The view was released first.
        case viewReleased
    }

    /// The task that the binding follows; nil for several tasks, and for a source that is not a task.
    public nonisolated let task: AnySessionTask?
    private weak var view: (any BindableView)?
    private var registration: ViewBindings.Registration?
    private var finalOutcome: Outcome?
    /// The Swift tasks of this binding, which owns them. They are cancelled when the binding ends and when this object
    /// is released.
    private let drivers = Lock<[Int: Task<Void, Never>]>([:])
    private var lastDriver = 0

    init(of view: any BindableView, to task: (any TaskHandle)?) {
        self.view = view
        self.task = task?.erased
    }

    deinit {
        cancelDrivers()
    }

    /// The way the binding ended; nil while it is active.
    public var outcome: Outcome? { finalOutcome ?? (view == nil ? .viewReleased : nil) }

    /// A Boolean value that indicates whether the binding has not ended.
    public var isActive: Bool { outcome == nil }

    /// Stops following the source, and leaves the view unchanged. No effect after the end.
    public func unbind() { end(.unbound) }

    // MARK: The task

    /// A Boolean value that indicates whether `pause()` would pause the task.
    public var canPause: Bool { task?.state == .running }
    /// A Boolean value that indicates whether `resume()` would start or continue the task.
    public var canResume: Bool { task?.state == .suspended }
    /// A Boolean value that indicates whether `cancel()` would cancel the task.
    public var canCancel: Bool { task.map { !$0.state.isTerminal } ?? false }

    /// Pauses the task. The binding stays active.
    public func pause() { task?.pause() }
    /// Starts the task, or continues it after a pause.
    public func resume() { task?.resume() }
    /// Cancels the task. The binding ends when the task does.
    public func cancel() { task?.cancel() }

    // MARK: The slot

    /// Stores the binding's place in its slot.
    func register(_ registration: ViewBindings.Registration) { self.registration = registration }

    /// Ends the binding because the slot was reassigned or cancelled.
    public func didLeaveSlot(_ reason: SlotRemovalReason) { end(reason == .replaced ? .replaced : .unbound) }

    /// Stops the binding's work after the view was released.
    public nonisolated func viewWasReleased() { cancelDrivers() }

    func end(_ outcome: Outcome) {
        guard finalOutcome == nil else { return }
        finalOutcome = view == nil ? .viewReleased : outcome
        cancelDrivers()
        if finalOutcome == .viewReleased { registration?.sweepReleasedViews() }
        registration?.remove()
    }

    // MARK: The source

    /// Follows a stream on the main actor while the binding is active. Calls `receive` for each element, and `ended` if
    /// the stream ends.
    func follow<View: BindableView, Element: Sendable>(
        _ stream: AsyncStream<Element>, for view: View, receive: @escaping @MainActor (View, Element) -> Void,
        ended: @escaping @MainActor (View) -> Void = { _ in }
    ) {
        drive { [weak self, weak view] in
            for await element in stream {
                guard let self, self.finalOutcome == nil else { return }
                guard let view else { return self.end(.viewReleased) }
                receive(view, element)
            }
            guard let self, self.finalOutcome == nil else { return }
            guard let view else { return self.end(.viewReleased) }
            ended(view)
        }
    }

    /// Runs work in a Swift task of the binding. The work must hold neither the binding nor the view while it waits.
    func drive(_ work: @escaping @MainActor () async -> Void) {
        guard finalOutcome == nil else { return }
        lastDriver += 1
        let number = lastDriver
        // Owned by this binding, which cancels it at its end.
        let driver = Task { [weak self] in
            await work()
            self?.remove(number)
        }
        drivers.withLock { $0[number] = driver }
    }

    /// Removes a finished Swift task, so that a binding that follows many tasks over time does not grow.
    private func remove(_ driver: Int) {
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
