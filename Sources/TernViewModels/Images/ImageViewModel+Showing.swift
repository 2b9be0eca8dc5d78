import TernImages

extension ImageViewModel {
    /// How far a slot is.
    public func imagePhase(of slot: ImageSlot = .image) -> ImagePhase { imageLoads.phase(of: slot) }

    /// Cancels what is loaded into a slot and plays in it, and clears it.
    public func clearImage(in slot: ImageSlot = .image) {
        bindings.cancel(slot)
        existingImageSlots?.change(slot) { $0.clear() }
        present(.none, in: slot)
    }

    /// The animation that plays in a slot; nil for none.
    public func imagePlayback(in slot: ImageSlot = .image) -> ImagePlayback? { bindings[.playback(slot)] }

    /// Says whether the view is on the screen. While it is not, animations stand, and loads go behind those of views that
    /// are. A view that never says so is taken to be.
    public func setImagesVisible(_ isVisible: Bool) {
        let slots = imageSlots
        slots.isVisible = isVisible
        for slot in slots.keys {
            for load in bindings.contents(of: slot) { load.task?.isVisible = isVisible }
            imagePlayback(in: slot)?.setVisible(isVisible)
        }
    }

    /// Shows something in place of what is there, an animation included.
    func present(
        _ content: ImageContent, in slot: ImageSlot, transition: ImageTransition? = nil,
        animation: AnimatedImage? = nil
    ) {
        bindings.cancel(.playback(slot))
        let phase = imagePhase(of: slot)
        showImage(ShownImage(content, phase: phase, transition: transition, animation: animation), in: slot)
    }

    /// Plays an animation in a slot, from its first frame.
    func play(_ animation: AnimatedImage, in slot: ImageSlot, _ display: ImageDisplay) {
        guard let options = display.playback else { return }
        let playback = ImagePlayback(AnimationPlayer(animation, options: options, clock: display.clock))
        let receipt = bindings.set(playback, for: .playback(slot))
        playback.begin(receipt, in: slot, of: self, isVisible: imageSlots.isVisible ?? true)
    }
}
