import Tern
import TernConcurrency
import TernImages

// Delivery from the pipeline's task to the view. A call to the view or to a closure may start another load, so check
// after each call that the slot still holds this load.

extension ImageLoad {
    func follow(_ task: ImageTask) {
        sharedState.begin(task)
        if let isVisible = view?.imageSlots.isVisible { task.isVisible = isVisible }
        // Read this first: a result that is there after the end is the last one.
        let wasFinished = task.isFinished
        switch task.current {
        case .success(let response)?:
            deliveredSource = response.source
            receive(response)
            if wasFinished { return finish() }
        case .failure(let error)?:
            return fail(error)
        case nil:
            showSubstitute(isWaiting: true) { $0.wait($1, $2) }
            if isCurrent { imageView?.showImageProgress(Session.Progress(), in: slot) }
            if isCurrent { perform(state.startWaiting()) }
        }
        guard isActive else { return }
        let events = task.events
        // The Swift task holds the load until its end, because a load that was removed from its slot continues.
        sharedState.runUntilEnd {
            for await event in events {
                guard self.isActive else { return }
                self.receive(event)
            }
        }
    }

    private func receive(_ event: ImageTask.Event) {
        guard view != nil else {
            registration?.sweepReleasedViews()
            return endCancelled()
        }
        switch event {
        case .progress(let progress):
            // The last element belongs to an image, and precedes it.
            if isCurrent, !progress.isFinished { imageView?.showImageProgress(progress, in: slot) }
        case .preview(let image): preview(image)
        case .response(let response):
            let isDelivered = deliveredSource == response.source
            deliveredSource = nil
            guard !isDelivered else { return }
            receive(response)
            // End together with the last image, rather than a turn of the main actor later.
            if isLast(response), task?.isFinished ?? false { finish() }
        case .finished(nil): finish()
        case .finished(let error?): fail(error)
        }
    }

    /// Returns a Boolean value that indicates whether no changed image can follow. An image from the network is not
    /// asked for again.
    private func isLast(_ response: ImageResponse) -> Bool {
        switch response.source {
        case .network, .revalidated: true
        case .memory, .processed, .original: !response.isStale && request.options.revalidation != .always
        }
    }

    private func preview(_ image: RasterImage) {
        guard isCurrent, let view, let registration else { return }
        let action = view.imageSlots.change(slot) { $0.preview(registration.generation, setsView: setsView) }
        if case .showImage = action { imageView?.present(.image(image), in: slot) }
    }

    private func receive(_ response: ImageResponse) {
        showLastProgress()
        lastResponse = response
        perform(state.receiveImage())
        guard isCurrent, let view, let registration else { return }
        let action = view.imageSlots.change(slot) {
            $0.succeed(
                registration.generation, source: response.source, setsView: setsView,
                transition: display?.transition ?? .whenLoaded)
        }
        receiver?(response)
        guard isCurrent, case .showImage(let hasTransition) = action, let imageView else { return }
        // Not held beyond this call: if the view ignores the transition, its release ends it.
        let newTransition = hasTransition ? ImageTransition() : nil
        transition = display?.waitsForTransition ?? false ? newTransition?.waiter : nil
        imageView.present(.image(response.image), in: slot, transition: newTransition, animation: response.animation)
        guard isCurrent, let animation = response.animation, let display else { return }
        imageView.play(animation, in: slot, display: display)
    }

    /// Shows the whole progress before the image of a load that has waited. The events may have dropped all progress,
    /// because a slow reader of them gets the newest state, and the image of a joined load or of a cache has no fetch.
    /// The state of the load changes after this call: a view that starts another load now ends the activity first.
    private func showLastProgress() {
        guard isCurrent, state.isActive, let task else { return }
        imageView?.showImageProgress(task.wholeProgress, in: slot)
    }

    /// Shows a substitute for the image.
    func showSubstitute(
        isWaiting: Bool = false,
        decide: (
            _ state: inout ImageSlotState, _ generation: UInt64, _ substitutes: ImageSlotState.Substitutes
        ) -> ImageSlotState.Action
    ) {
        guard isCurrent, let view, let registration else { return }
        let variant =
            isWaiting && display?.usesCachedVariant ?? false ? pipeline?.cachedVariant(of: request) : nil
        var substitutes = ImageSlotState.Substitutes()
        if variant != nil { substitutes.available.insert(.variant) }
        if display?.placeholder != nil { substitutes.available.insert(.placeholder) }
        if display?.failure != nil { substitutes.available.insert(.failure) }
        if display?.fallback != nil { substitutes.available.insert(.fallback) }
        substitutes.clearsContent = display?.current == .cleared
        substitutes.showsPlaceholderOnlyOnFailure = display?.showsPlaceholderOnlyOnFailure ?? false
        let action = view.imageSlots.change(slot) { decide(&$0, registration.generation, substitutes) }
        guard showsSubstitutes, case .showSubstitute(let substitute) = action else { return }
        let content: ImageContent? =
            switch substitute {
            case .nothing: ImageContent.none
            case .variant: variant.map { .image($0) }
            case .placeholder: display?.placeholder
            case .failure: display?.failure
            case .fallback: display?.fallback
            }
        if let content { imageView?.present(content, in: slot) }
    }

    // MARK: The end

    func failWithoutURL() {
        let error = request.refusal ?? ImageError(.invalidURL, "there is no URL")
        showSubstitute { $0.failWithoutURL($1, error: error, substitutes: $2) }
        end(.failure(error), state.cancel())
    }

    private func fail(_ error: ImageError) {
        guard isActive else { return }
        // A holder of the task cancelled it: the slot keeps its content, and no completion is called.
        if error.kind == .cancelled { return endCancelled() }
        perform(state.receiveImage())
        showSubstitute { $0.fail($1, error: error, substitutes: $2) }
        end(.failure(error), state.cancel())
    }

    private func finish() {
        guard isActive else { return }
        guard let lastResponse else { return fail(ImageError(.source, "the load ended without an image")) }
        let awaited = isCurrent ? transition : nil
        let action = state.finish(awaitsTransition: awaited != nil)
        // Both the task and its events report the end; the second report has no effect.
        if action == .none { return }
        guard action == .awaitTransition, let awaited else { return end(.success(lastResponse), action) }
        sharedState.runUntilEnd {
            await awaited.wait()
            guard self.isActive else { return }
            self.end(.success(lastResponse), self.state.endTransition())
        }
    }

    private func end(_ result: Result<ImageResponse, ImageError>, _ action: ImageLoadState.Action) {
        let shouldReport = isCurrent
        let isFirst = sharedState.finish(result)
        perform(action)
        guard isFirst, shouldReport else { return }
        imageView?.imageLoadEnded(self)
        let completions = completions
        self.completions = []
        for completion in completions { completion(result) }
    }
}
