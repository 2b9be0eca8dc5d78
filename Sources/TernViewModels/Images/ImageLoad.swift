import TernConcurrency
public import TernImages

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// One load in a slot of a view: a handle to watch, await and cancel it.
///
/// It belongs to its slot: dropping the handle changes nothing, another load of the slot ends this one, and so does the
/// view's end. Each has one end.
@MainActor
public final class ImageLoad: BindingContent {
    /// What becomes of a load, said to whoever asked for it.
    public typealias Completion = @MainActor (Result<ImageResponse, ImageError>) -> Void
    /// Who takes the pictures in place of the view.
    public typealias Receiver = @MainActor (ImageResponse) -> Void

    /// What is loaded, as it is asked of the pipeline.
    public internal(set) var request: ImageRequest
    /// As it was before the view's size was known.
    let asked: ImageRequest
    /// The slot that it was begun in.
    public let slot: ImageSlot
    let pipeline: ImagePipeline?
    /// nil for a load that is kept by its key alone, and not shown.
    let display: ImageDisplay?
    let receiver: Receiver?
    /// Whether its placeholder and its failure are shown; false for one of several that stand in the slot together.
    var fillsSlot = true
    let core = ImageLoadCore()
    weak var view: (any BindableView)?
    var receipt: ViewBindings.Receipt?
    var state = ImageLoadState()
    var completions: [Completion] = []
    /// The picture that came last.
    var last: ImageResponse?
    /// Where the picture came from that was there before the events were followed: they tell it once more.
    var known: ImageResponse.Source?
    /// Resumed when the last transition has ended, where the end waits for it.
    var transition: Waiter<Void>?

    init(
        _ request: ImageRequest, in slot: ImageSlot, of view: any BindableView, _ pipeline: ImagePipeline?,
        _ display: ImageDisplay?, receiver: Receiver? = nil
    ) {
        self.request = request
        asked = request
        self.slot = slot
        self.view = view
        self.pipeline = pipeline
        self.display = display
        self.receiver = receiver
    }

    /// The picture, once the load has ended; awaited by any number of callers. Cancelling the caller ends its wait alone.
    ///
    /// - Throws: `ImageError`; of kind `.cancelled` when the load was cancelled, when another took its place, and when the
    ///   view has ended; of kind `.invalidURL` when there was none.
    public var value: ImageResponse {
        get async throws(ImageError) { try await core.value() }
    }

    /// How it ended; nil while it has not.
    public var result: Result<ImageResponse, ImageError>? { core.result }
    /// Whether it has not ended.
    public var isActive: Bool { core.result == nil }
    /// Where it is loaded from; nil for bytes that a closure gives, and without a URL.
    public var url: URL? { request.source.url }
    /// The pipeline's task, for its progress and its priority; nil before the view has a size, and without a URL.
    public nonisolated var task: ImageTask? { core.task }

    /// Ends the load with `.cancelled`; the slot keeps what it shows. No effect on one that has ended.
    public func cancel() { lose() }

    // MARK: The slot

    /// Another load of the slot, or a cancellation of it.
    public func slotWasLost(_ cause: SlotLoss) { lose() }

    /// The load ends for whoever awaits it, and its task with it.
    public nonisolated func viewIsGone() { core.cancel() }

    func lose() {
        core.cancel()
        perform(state.lost())
    }

    /// It goes on, and its view waits for it no more. Without a size there is nothing to go on with.
    func wasRemoved() {
        if task == nil { lose() } else { perform(state.removed()) }
    }

    /// Whether the view and the closures may hear of it.
    var isCurrent: Bool { core.result == nil && receipt?.isCurrent ?? false }

    /// Who shows it; nil for a load that is kept by its key alone.
    var shower: (any ImageViewModel)? { display == nil ? nil : view as? any ImageViewModel }

    /// Whether the view is set, and not the caller's closure.
    var isSet: Bool { display != nil && receiver == nil && request.options.presentation.setsAutomatically }

    // MARK: The beginning

    /// The slot is this load's, unless whoever was told of its loss has given it to another already.
    func enter(_ receipt: ViewBindings.Receipt) {
        self.receipt = receipt
        guard isCurrent else { return }
        view?.imageSlots.change(slot) { $0.begin(receipt.generation, url: url) }
    }

    func begin() {
        guard isCurrent else { return }
        let refusal = request.source.refusal
        let needsSize = refusal == nil && display?.fitsView ?? false && request.targetSize == nil
        let size = needsSize ? viewSize : nil
        if let size { request.targetSize = size }
        perform(state.begin(isValid: refusal == nil, hasSize: !needsSize || size != nil))
    }

    /// Begins with a task that runs already.
    func begin(_ task: ImageTask) {
        guard isCurrent else { return task.cancel() }
        if state.begin(isValid: true, hasSize: true) == .load { follow(task) }
    }

    /// The view may know its size now.
    func sizeMayBeKnown() {
        guard isCurrent, let size = viewSize else { return }
        let action = state.sized()
        if action == .load { request.targetSize = size }
        perform(action)
    }

    private var viewSize: PixelSize? {
        shower?.imageSize(for: slot).flatMap { $0.width > 0 && $0.height > 0 ? $0 : nil }
    }

    func perform(_ action: ImageLoadState.Action) {
        switch action {
        case .none, .awaitTransition: break
        case .refuse: refuse()
        case .awaitSize: fill(isWaiting: true) { $0.wait($1, $2) }
        case .load:
            if let pipeline { follow(pipeline.task(for: request)) }
        case .beginActivity: shower?.beginImageActivity(in: slot)
        case .endActivity: shower?.endImageActivity(in: slot)
        case .end(let endsActivity):
            receipt?.remove()
            if endsActivity { shower?.endImageActivity(in: slot) }
        }
    }
}
