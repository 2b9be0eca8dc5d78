public import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One load of a web view: a handle to watch, await, pause and cancel it.
///
/// The load belongs to its view: dropping the handle changes nothing, another load of the view ends this one, and so does
/// the view's end.
@MainActor
public final class WebLoad: BindingContent {
    /// The request as it was given.
    public let request: Request
    /// The task: for its progress, its states, and whatever else is to be bound to it.
    public nonisolated let task: AnySessionTask

    let placement: WebHistory.Placement
    private let options: WebOptions
    private let source: SessionTask<Response<Data>>
    private weak var view: (any WebContentViewModel)?
    private var receipt: ViewBindings.Receipt?
    private var state = WebLoadState()
    private var result: Result<WebContent, NetworkError>?
    private var isProgressFinished = false
    private var waiters: [Waiter<Void>] = []
    /// Owned here, cancelled with the load: one awaits the response, one follows the progress.
    private var drivers: [Task<Void, Never>] = []

    init(
        _ request: Request, _ options: WebOptions, _ placement: WebHistory.Placement, for view: any WebContentViewModel
    ) {
        self.request = request
        self.options = options
        self.placement = placement
        self.view = view
        let session = view.webSession ?? .forWebViews
        source = session.task(for: request, decode: view.webDecoder ?? .data, startsImmediately: false)
        task = source.erased
    }

    deinit {
        for driver in drivers { driver.cancel() }
    }

    /// What is shown, once it is; awaited by any number of callers. Cancelling the caller ends its wait alone.
    ///
    /// - Throws: `NetworkError`; of kind `.cancelled` when the load was cancelled, when another one took its place, and
    ///   when the view has ended.
    public var value: WebContent {
        get async throws(NetworkError) {
            if result == nil {
                let waiter = Waiter<Void>()
                waiters.append(waiter)
                await waiter.wait()
                waiters.removeAll { $0 === waiter }
            }
            guard let result else {
                throw NetworkError(.cancelled, reason: "the wait for the page was cancelled; its load goes on")
            }
            return try result.get()
        }
    }

    /// Whether it has not ended.
    public var isActive: Bool { !state.hasEnded }

    /// Starts the load, or takes it up after a pause. No effect on one that has ended.
    public func resume() {
        if perform(state.resumed()) { return }
        task.resume()
    }

    /// Moves no more bytes until `resume()`.
    public func pause() { task.pause() }

    /// Ends the load with `.cancelled` for its caller; the view hears of that, and no more. No effect on one that has ended.
    public func cancel() { perform(state.lost()) }

    // MARK: The slot

    /// Another load of the view, or a cancellation of the view's loads.
    public func slotWasLost(_ cause: SlotLoss) { perform(state.lost()) }

    /// The transfer ends, and with it the load.
    public nonisolated func viewIsGone() { task.cancel() }

    func entered(_ receipt: ViewBindings.Receipt) {
        // The slot may be another's already: of whoever hears that the one before was cancelled, and loads something.
        guard isActive else { return }
        self.receipt = receipt
        // Owned by this load.
        drivers.append(
            Task { [weak self, source, options] in
                let outcome = await Self.outcome(source, options)
                self?.receive(outcome)
            })
        let progress = task.progress
        drivers.append(
            Task { [weak self] in
                for await progress in progress {
                    guard let self, self.isActive else { return }
                    self.receive(progress)
                }
            })
    }

    // MARK: What comes

    private func receive(_ progress: Session.Progress) {
        guard let view else {
            // Nobody is left to see it.
            receipt?.viewWasGone()
            return task.cancel()
        }
        guard !isProgressFinished else { return }
        isProgressFinished = progress.isFinished
        view.showLoadingProgress(progress)
    }

    private func receive(_ outcome: Result<WebContent, NetworkError>) {
        guard let view else {
            perform(state.lost())
            return
        }
        switch outcome {
        case .failure(let error):
            guard state.failed() == .fail else { return }
            leave(with: outcome)
            view.didFailLoading(self, error)
        case .success(let content):
            // The stream's last element may come later than the value.
            if isActive { receive(task.progressNow) }
            guard state.succeeded() == .show else { return }
            view.history.commit(placement, request, options, content.response)
            view.showContent(content)
            guard state.shown() == .finish else { return }
            leave(with: outcome)
            view.didFinishLoading(self)
        }
    }

    /// Returns whether there was anything to do.
    @discardableResult
    private func perform(_ action: WebLoadState.Action) -> Bool {
        switch action {
        case .start:
            task.resume()
            view?.didStartLoading(self)
            return true
        case .endCancelled(let tellsView):
            task.cancel()
            leave(with: .failure(cancellation))
            if tellsView { view?.didCancelLoading(self) }
            return true
        case .none, .show, .fail, .finish:
            return false
        }
    }

    private var cancellation: NetworkError {
        let reason = "the view's load was cancelled, or another took its place"
        return NetworkError(.cancelled, method: request.method, reason: reason)
            .identified(task: task.id, session: task.sessionID, label: task.label)
    }

    /// The end, for whoever awaits it.
    private func leave(with result: Result<WebContent, NetworkError>) {
        self.result = result
        for driver in drivers { driver.cancel() }
        drivers = []
        receipt?.remove()
        let waiters = waiters
        self.waiters = []
        for waiter in waiters { waiter.resume() }
    }
}
