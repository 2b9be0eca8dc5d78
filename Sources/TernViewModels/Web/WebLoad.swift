public import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A handle to one load of a web view, to observe, await, pause and cancel it.
///
/// The load belongs to its view: releasing the handle changes nothing, and the load ends when another load replaces it
/// or the view is released.
@MainActor
public final class WebLoad: BindingContent {
    /// The request as given.
    public let request: Request
    /// The task, for its progress, its states and further bindings.
    public nonisolated let task: AnySessionTask

    let placement: WebHistory.Placement
    private let options: WebOptions
    private let source: SessionTask<Response<Data>>
    private weak var view: (any WebContentViewModel)?
    private var registration: ViewBindings.Registration?
    private var state = WebLoadState()
    private var result: Result<WebContent, NetworkError>?
    private var isProgressFinished = false
    private var waiters = WaiterList()
    /// The Swift tasks of this load, which cancels them at its end: one awaits the response, one follows the progress.
    private var drivers: [Task<Void, Never>] = []

    init(
        _ request: Request, options: WebOptions, placement: WebHistory.Placement, for view: any WebContentViewModel
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

    /// The content after it was shown. Any number of callers may await it. Cancelling a caller ends only the wait of
    /// that caller.
    ///
    /// - Throws: `NetworkError`; of kind `.cancelled` if the load was cancelled or replaced, or the view was released.
    public var value: WebContent {
        get async throws(NetworkError) {
            if result == nil {
                let waiter = waiters.add()
                await waiter.wait()
                waiters.remove(waiter)
            }
            guard let result else {
                throw NetworkError(.cancelled, reason: "the wait for the page was cancelled; the load continues")
            }
            return try result.get()
        }
    }

    /// A Boolean value that indicates whether the load has not ended.
    public var isActive: Bool { !state.hasEnded }

    /// Starts the load, or continues it after a pause. No effect after the end.
    public func resume() {
        if perform(state.resume()) { return }
        task.resume()
    }

    /// Stops the transfer until `resume()`.
    public func pause() { task.pause() }

    /// Ends the load with `.cancelled` for its caller, and reports the cancellation to the view. No effect after the
    /// end.
    public func cancel() { perform(state.cancel()) }

    // MARK: The slot

    /// Ends the load because another load replaced it or the view's loads were cancelled.
    public func didLeaveSlot(_ reason: SlotRemovalReason) { perform(state.cancel()) }

    /// Cancels the task, which ends the load, because the view was released.
    public nonisolated func viewWasReleased() { task.cancel() }

    func register(_ registration: ViewBindings.Registration) {
        // Another load may already have the slot: the notification of the cancelled load may have started one.
        guard isActive else { return }
        self.registration = registration
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

    // MARK: Events

    private func receive(_ progress: Session.Progress) {
        guard let view else {
            // The view was released.
            registration?.sweepReleasedViews()
            return task.cancel()
        }
        guard !isProgressFinished else { return }
        isProgressFinished = progress.isFinished
        view.showLoadingProgress(progress)
    }

    private func receive(_ outcome: Result<WebContent, NetworkError>) {
        guard let view else {
            perform(state.cancel())
            return
        }
        switch outcome {
        case .failure(let error):
            guard state.fail() == .fail else { return }
            end(with: outcome)
            view.didFailLoading(self, error)
        case .success(let content):
            // The last element of the stream may arrive after the value.
            if isActive { receive(task.progressNow) }
            guard state.succeed() == .show else { return }
            view.history.commit(placement, request: request, options: options, head: content.response)
            view.showContent(content)
            guard state.finishShowing() == .finish else { return }
            end(with: outcome)
            view.didFinishLoading(self)
        }
    }

    /// Returns a Boolean value that indicates whether the action had an effect.
    @discardableResult
    private func perform(_ action: WebLoadState.Action) -> Bool {
        switch action {
        case .start:
            task.resume()
            view?.didStartLoading(self)
            return true
        case .endCancelled(let notifiesView):
            task.cancel()
            end(with: .failure(cancellation))
            if notifiesView { view?.didCancelLoading(self) }
            return true
        case .none, .show, .fail, .finish:
            return false
        }
    }

    private var cancellation: NetworkError {
        let reason = "the view's load was cancelled or replaced"
        return NetworkError(.cancelled, method: request.method, reason: reason)
            .identified(task: task.id, session: task.sessionID, label: task.label)
    }

    /// Ends the load for its callers.
    private func end(with result: Result<WebContent, NetworkError>) {
        self.result = result
        for driver in drivers { driver.cancel() }
        drivers = []
        registration?.remove()
        for waiter in waiters.removeAll() { waiter.resume() }
    }
}

extension WebLoad {
    /// Awaits the response and builds the content.
    static func outcome(
        _ source: SessionTask<Response<Data>>, _ options: WebOptions
    ) async -> Result<WebContent, NetworkError> {
        do throws(NetworkError) {
            let response = try await source.value
            switch await WebContentBuilder.content(of: response, options) {
            case .success(let content): return .success(content)
            case .failure(let failure): throw error(failure, of: source, response: response)
            }
        } catch {
            return .failure(error)
        }
    }

    private static func error(
        _ failure: FailureCause, of source: SessionTask<Response<Data>>, response: Response<Data>
    ) -> NetworkError {
        guard let request = source.request else {
            return NetworkError(failure.kind, reason: failure.reason, underlying: failure.underlying)
        }
        return NetworkError(failure, request: request, response: response.head, metrics: response.metrics)
            .identified(task: source.id, session: source.sessionID, label: source.label)
    }
}

extension Session {
    /// The session of all web views without one of their own; created on first use with the default configuration.
    public static let forWebViews = Session()
}

/// Decides the course of a web view's load: the notifications, and its one end. Pure.
struct WebLoadState {
    enum Action: Hashable {
        case none
        /// Start the task and notify the view.
        case start
        /// Show the content, and then call `finishShowing`.
        case show
        /// Notify the view and the callers of the failure.
        case fail
        /// Notify the view of the end, and give the content to the callers.
        case finish
        /// Throw an error of kind `.cancelled` to the callers, and notify the view if it was notified of the start.
        case endCancelled(notifiesView: Bool)
    }

    private enum Phase {
        case suspended
        case running
        case showing
        case ended
    }

    private var phase = Phase.suspended

    var hasEnded: Bool { phase == .ended }

    /// Handles a resume. The first one starts the load; later ones only affect the task.
    mutating func resume() -> Action {
        guard phase == .suspended else { return .none }
        phase = .running
        return .start
    }

    mutating func succeed() -> Action {
        guard phase == .suspended || phase == .running else { return .none }
        phase = .showing
        return .show
    }

    mutating func fail() -> Action {
        guard phase == .suspended || phase == .running else { return .none }
        phase = .ended
        return .fail
    }

    /// Records that the view has shown the content, unless that call started another load of the view.
    mutating func finishShowing() -> Action {
        guard phase == .showing else { return .none }
        phase = .ended
        return .finish
    }

    /// Handles a cancellation, a replacement or the release of the view.
    mutating func cancel() -> Action {
        guard phase != .ended else { return .none }
        defer { phase = .ended }
        return .endCancelled(notifiesView: phase != .suspended)
    }
}
