import TernConcurrency
public import TernImages

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A handle to one load in a slot of a view, to observe, await and cancel it.
///
/// The load belongs to its slot: releasing the handle changes nothing, and the load ends when another load takes the
/// slot or the view is released. A load ends exactly once.
@MainActor
public final class ImageLoad: BindingContent {
    /// A closure that gets the result of a load.
    public typealias Completion = @MainActor (Result<ImageResponse, ImageError>) -> Void
    /// A closure that gets the images instead of the view.
    public typealias Receiver = @MainActor (ImageResponse) -> Void

    /// The request as sent to the pipeline.
    public internal(set) var request: ImageRequest
    /// The request before the size of the view was known.
    let originalRequest: ImageRequest
    /// The slot of the load.
    public let slot: ImageSlot
    let pipeline: ImagePipeline?
    /// The display options; nil for a load that is only stored by its key and not shown.
    let display: ImageDisplay?
    let receiver: Receiver?
    /// Whether the load shows substitutes; false for one of several loads that form an animation.
    var showsSubstitutes = true
    let sharedState = ImageLoadSharedState()
    weak var view: (any BindableView)?
    var registration: ViewBindings.Registration?
    var state = ImageLoadState()
    var completions: [Completion] = []
    /// The image that arrived last.
    var lastResponse: ImageResponse?
    /// The source of the image that was delivered before the load followed the events. The events report this image
    /// again.
    var deliveredSource: ImageResponse.Source?
    /// Resumed when the last transition has ended, if the load waits for it.
    var transition: Waiter<Void>?

    init(
        _ request: ImageRequest, in slot: ImageSlot, of view: any BindableView, pipeline: ImagePipeline?,
        display: ImageDisplay?, receiver: Receiver? = nil
    ) {
        self.request = request
        originalRequest = request
        self.slot = slot
        self.view = view
        self.pipeline = pipeline
        self.display = display
        self.receiver = receiver
    }

    /// The image after the load has ended. Any number of callers may await it. Cancelling a caller ends only the wait
    /// of that caller.
    ///
    /// - Throws: `ImageError`; of kind `.cancelled` if the load was cancelled or replaced or the view was released, and
    ///   of kind `.invalidURL` if there was no URL.
    public var value: ImageResponse {
        get async throws(ImageError) { try await sharedState.value() }
    }

    /// The result of the load; nil until it has ended.
    public var result: Result<ImageResponse, ImageError>? { sharedState.result }
    /// A Boolean value that indicates whether the load has not ended.
    public var isActive: Bool { sharedState.result == nil }
    /// The URL of the image; nil for bytes that a closure provides, and without a URL.
    public var url: URL? { request.source.url }
    /// The task of the pipeline, for its progress and priority; nil before the size of the view is known, and without a
    /// URL.
    public nonisolated var task: ImageTask? { sharedState.task }

    /// Ends the load with `.cancelled`. The slot keeps its content. No effect after the end.
    public func cancel() { endCancelled() }

    // MARK: The slot

    /// Ends the load because the slot was reassigned or cancelled.
    public func didLeaveSlot(_ reason: SlotRemovalReason) { endCancelled() }

    /// Cancels the task and ends the load for its callers, because the view was released.
    public nonisolated func viewWasReleased() { sharedState.cancel() }

    func endCancelled() {
        sharedState.cancel()
        perform(state.cancel())
    }

    /// Lets the load continue without its view. A load that still waits for a size is cancelled.
    func detach() {
        if task == nil { endCancelled() } else { perform(state.removeFromSlot()) }
    }

    /// Whether the view and the closures may get the results of the load.
    var isCurrent: Bool { sharedState.result == nil && registration?.isCurrent ?? false }

    /// The view that shows the load; nil for a load that is only stored by its key.
    var imageView: (any ImageViewModel)? { display == nil ? nil : view as? any ImageViewModel }

    /// Whether the view, and not a closure of the caller, shows the image.
    var setsView: Bool { receiver == nil && display?.setsImage ?? false }

    // MARK: The beginning

    /// Takes the slot, unless code that was notified of the replaced load has already started another load in it.
    func register(_ registration: ViewBindings.Registration) {
        self.registration = registration
        guard isCurrent else { return }
        view?.imageSlots.change(slot) { $0.begin(registration.generation, url: url) }
    }

    func begin() {
        guard isCurrent else { return }
        let refusal = request.refusal
        let needsSize = refusal == nil && display?.decodesToViewSize ?? false && request.targetSize == nil
        let size = needsSize ? viewSize : nil
        if let size { request.targetSize = size }
        perform(state.begin(isValid: refusal == nil, hasSize: !needsSize || size != nil))
    }

    /// Begins with a task that is already running.
    func begin(_ task: ImageTask) {
        guard isCurrent else { return task.cancel() }
        if state.begin(isValid: true, hasSize: true) == .load { follow(task) }
    }

    /// Begins a load that waits for the size of the view, if the view has one now.
    func viewSizeMayHaveChanged() {
        guard isCurrent, let size = viewSize else { return }
        let action = state.receiveSize()
        if action == .load { request.targetSize = size }
        perform(action)
    }

    private var viewSize: PixelSize? {
        imageView?.imageSize(for: slot).flatMap { $0.width > 0 && $0.height > 0 ? $0 : nil }
    }

    func perform(_ action: ImageLoadState.Action) {
        switch action {
        case .none, .awaitTransition: break
        case .failWithoutURL: failWithoutURL()
        case .awaitSize: showSubstitute(isWaiting: true) { $0.wait($1, $2) }
        case .load:
            if let pipeline { follow(pipeline.task(for: request)) }
        case .beginActivity: imageView?.beginImageActivity(in: slot)
        case .endActivity: imageView?.endImageActivity(in: slot)
        case .end(let endsActivity):
            registration?.remove()
            if endsActivity { imageView?.endImageActivity(in: slot) }
        }
    }
}

/// Holds the part of a view's load that is not confined to the main actor: its task, its one result, and its callers. A
/// view may be released on any thread.
final class ImageLoadSharedState: Sendable {
    private struct State {
        var result: Result<ImageResponse, ImageError>?
        var task: ImageTask?
        var tasks: [Task<Void, Never>] = []
        var waiters = WaiterList()
    }

    private let state = Lock(State())

    var result: Result<ImageResponse, ImageError>? { state.withLock { $0.result } }
    var task: ImageTask? { state.withLock { $0.task } }

    func begin(_ task: ImageTask) {
        let isOver = state.withLock { state in
            state.task = task
            return state.result != nil
        }
        if isOver { task.cancel() }
    }

    /// Runs work in a Swift task that ends with the load.
    @MainActor
    func runUntilEnd(_ work: @escaping @MainActor () async -> Void) {
        // Owned by this object, which cancels it at the end.
        let task = Task { await work() }
        let isOver = state.withLock { state in
            if state.result == nil { state.tasks.append(task) }
            return state.result != nil
        }
        if isOver { task.cancel() }
    }

    /// Ends the load with a result. Returns false if the load has already ended.
    @discardableResult
    func finish(_ result: Result<ImageResponse, ImageError>) -> Bool {
        let ended = state.withLock { state -> (tasks: [Task<Void, Never>], waiters: [Waiter<Void>])? in
            guard state.result == nil else { return nil }
            state.result = result
            defer { state.tasks = [] }
            return (state.tasks, state.waiters.removeAll())
        }
        guard let ended else { return false }
        for task in ended.tasks { task.cancel() }
        for waiter in ended.waiters { waiter.resume() }
        return true
    }

    /// Ends the load with `.cancelled`, and cancels the task.
    @discardableResult
    func cancel() -> Bool {
        let isFirst = finish(.failure(Self.cancellation))
        if isFirst { task?.cancel() }
        return isFirst
    }

    func value() async throws(ImageError) -> ImageResponse {
        let waiter = state.withLock { state in state.result == nil ? state.waiters.add() : nil }
        if let waiter {
            await waiter.wait()
            state.withLock { $0.waiters.remove(waiter) }
        }
        guard let result else {
            throw ImageError(.cancelled, "the wait for the image was cancelled; the load continues")
        }
        return try result.get()
    }

    private static let cancellation = ImageError(
        .cancelled, "the view's load was cancelled or replaced, or the view was released")
}
