import Tern
import TernConcurrency
import TernImages

// From the pipeline's task to the view. Whatever calls out may come back with another load: who goes on looks first whether
// the slot is still this one's.

extension ImageLoad {
    func follow(_ task: ImageTask) {
        core.begin(task)
        if let isVisible = view?.imageSlots.isVisible { task.isVisible = isVisible }
        // Asked first: what is there after the end is the last.
        let wasFinished = task.isFinished
        switch task.current {
        case .success(let response)?:
            known = response.source
            receive(response)
            if wasFinished { return finish() }
        case .failure(let error)?:
            return fail(error)
        case nil:
            fill(isWaiting: true) { $0.wait($1, $2) }
            if isCurrent { shower?.showImageProgress(Session.Progress(), in: slot) }
            if isCurrent { perform(state.waits()) }
        }
        guard isActive else { return }
        let events = task.events
        // It holds the load until the end: one that was taken out of its slot goes on.
        core.drive {
            for await event in events {
                guard self.isActive else { return }
                self.receive(event)
            }
        }
    }

    private func receive(_ event: ImageTask.Event) {
        guard view != nil else {
            receipt?.viewWasGone()
            return lose()
        }
        switch event {
        case .progress(let progress):
            if isCurrent { shower?.showImageProgress(progress, in: slot) }
        case .preview(let image): preview(image)
        case .response(let response):
            let isKnown = known == response.source
            known = nil
            guard !isKnown else { return }
            receive(response)
            // With the last picture, not a turn of the main actor later.
            if isLast(response), task?.isFinished ?? false { finish() }
        case .finished(nil): finish()
        case .finished(let error?): fail(error)
        }
    }

    /// Whether no changed picture can be on its way: what came from the network is asked for no more.
    private func isLast(_ response: ImageResponse) -> Bool {
        switch response.source {
        case .network, .revalidated: true
        case .memory, .disk, .original: !response.isStale && request.options.revalidation != .always
        }
    }

    private func preview(_ image: RasterImage) {
        guard isCurrent, let view, let receipt else { return }
        let action = view.imageSlots.change(slot) { $0.preview(receipt.generation, isSet: isSet) }
        if case .picture = action { shower?.present(.image(image), in: slot) }
    }

    private func receive(_ response: ImageResponse) {
        last = response
        perform(state.arrived())
        guard isCurrent, let view, let receipt else { return }
        let presentation = request.options.presentation
        let action = view.imageSlots.change(slot) {
            $0.succeed(receipt.generation, response.source, isSet: isSet, presentation.transition)
        }
        receiver?(response)
        guard isCurrent, case .picture(let hasTransition) = action, let shower else { return }
        // Not held beyond this call: a view that does not look at it ends it.
        let gradual = hasTransition ? ImageTransition() : nil
        transition = presentation.waitsForTransition ? gradual?.waiter : nil
        shower.present(.image(response.image), in: slot, transition: gradual, animation: response.animation)
        guard isCurrent, let animation = response.animation, let display else { return }
        shower.play(animation, in: slot, display)
    }

    /// What stands in for the picture.
    func fill(
        isWaiting: Bool = false,
        _ decide: (inout ImageSlotState, UInt64, ImageSlotState.Fillings) -> ImageSlotState.Action
    ) {
        guard isCurrent, let view, let receipt else { return }
        let variant =
            isWaiting && display?.usesCachedVariant ?? false ? pipeline?.cachedVariant(of: request) : nil
        var fillings = ImageSlotState.Fillings()
        if variant != nil { fillings.isThere.insert(.variant) }
        if display?.placeholder != nil { fillings.isThere.insert(.placeholder) }
        if display?.failure != nil { fillings.isThere.insert(.failure) }
        if display?.fallback != nil { fillings.isThere.insert(.fallback) }
        fillings.clears = display?.current == .cleared
        fillings.delaysPlaceholder = request.options.presentation.delaysPlaceholder
        let action = view.imageSlots.change(slot) { decide(&$0, receipt.generation, fillings) }
        guard fillsSlot, case .fill(let filling) = action else { return }
        let content: ImageContent? =
            switch filling {
            case .nothing: ImageContent.none
            case .variant: variant.map { .image($0) }
            case .placeholder: display?.placeholder
            case .failure: display?.failure
            case .fallback: display?.fallback
            }
        if let content { shower?.present(content, in: slot) }
    }

    // MARK: The end

    func refuse() {
        let error = request.source.refusal ?? ImageError(.invalidURL, "there is no URL")
        fill { $0.refuse($1, error, $2) }
        end(.failure(error), state.lost())
    }

    private func fail(_ error: ImageError) {
        guard isActive else { return }
        // Cancelled by somebody who holds the task: the slot keeps what it shows, and nobody has asked to hear of it.
        if error.kind == .cancelled { return lose() }
        perform(state.arrived())
        fill { $0.fail($1, error, $2) }
        end(.failure(error), state.lost())
    }

    private func finish() {
        guard isActive else { return }
        guard let last else { return fail(ImageError(.source, "the load ended without a picture")) }
        let awaited = isCurrent ? transition : nil
        let action = state.finished(awaitsTransition: awaited != nil)
        // Told of the end twice, by the task and by its events: the second time there is nothing to do.
        if action == .none { return }
        guard action == .awaitTransition, let awaited else { return end(.success(last), action) }
        core.drive {
            await awaited.wait()
            guard self.isActive else { return }
            self.end(.success(last), self.state.transitionEnded())
        }
    }

    private func end(_ result: Result<ImageResponse, ImageError>, _ action: ImageLoadState.Action) {
        let isHeard = isCurrent
        let isFirst = core.finish(result)
        perform(action)
        guard isFirst, isHeard else { return }
        shower?.imageLoadEnded(self)
        let completions = completions
        self.completions = []
        for completion in completions { completion(result) }
    }
}
