public import TernImages

/// An animation that is played in a slot of a view.
///
/// It ends with its last loop, when something else is shown in the slot, and with the view.
@MainActor
public final class ImagePlayback: BindingContent {
    /// The player: for pause, rate, direction and seeks.
    public nonisolated let player: AnimationPlayer
    private var receipt: ViewBindings.Receipt?
    private var driver: Task<Void, Never>?
    /// Whether it stands because the view is not on the screen, and not by somebody's wish.
    private var isHidden = false

    init(_ player: AnimationPlayer) { self.player = player }

    deinit {
        driver?.cancel()
        player.stop()
    }

    /// Something else is in the slot.
    public func slotWasLost(_ cause: SlotLoss) { end() }

    /// Nobody is there to be shown a frame.
    public nonisolated func viewIsGone() { player.stop() }

    func begin(_ receipt: ViewBindings.Receipt, in slot: ImageSlot, of view: any ImageViewModel, isVisible: Bool) {
        self.receipt = receipt
        setVisible(isVisible)
        let frames = player.frames
        // Owned here, cancelled at the end.
        driver = Task { [weak self, weak view] in
            for await frame in frames {
                guard let self, let view, self.receipt?.isCurrent ?? false else { break }
                let shown = ShownImage(.image(frame.image), phase: view.imagePhase(of: slot), isFrame: true)
                view.showImage(shown, in: slot)
            }
            self?.end()
        }
    }

    /// An animation that nobody sees stands, and goes on where it stood.
    func setVisible(_ isVisible: Bool) {
        if !isVisible, !isHidden, !player.isPaused {
            isHidden = true
            player.pause()
        } else if isVisible, isHidden {
            isHidden = false
            player.resume()
        }
    }

    private func end() {
        driver?.cancel()
        driver = nil
        player.stop()
        receipt?.remove()
    }
}

extension BindingKey<ImagePlayback> {
    static func playback(_ slot: ImageSlot) -> Self { Self(slot.name) }
}
