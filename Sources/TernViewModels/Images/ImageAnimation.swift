public import TernImages

/// An animation that plays in a slot of a view.
///
/// It ends after its last loop, when other content is shown in the slot, and when the view is released.
@MainActor
public final class ImagePlayback: BindingContent {
    /// The player, for pause, rate, direction and seeking.
    public nonisolated let player: AnimationPlayer
    private var registration: ViewBindings.Registration?
    private var driver: Task<Void, Never>?
    /// Whether the animation is paused because the view is not on the screen, and not by a caller.
    private var isHidden = false

    init(_ player: AnimationPlayer) { self.player = player }

    deinit {
        driver?.cancel()
        player.stop()
    }

    /// Ends the animation because other content is in the slot.
    public func didLeaveSlot(_ reason: SlotRemovalReason) { end() }

    /// Stops the player because the view was released.
    public nonisolated func viewWasReleased() { player.stop() }

    func begin(
        _ registration: ViewBindings.Registration, in slot: ImageSlot, of view: any ImageViewModel, isVisible: Bool
    ) {
        self.registration = registration
        setVisible(isVisible)
        let frames = player.frames
        // Owned by this object, which cancels it at the end.
        driver = Task { [weak self, weak view] in
            for await frame in frames {
                guard let self, let view, self.registration?.isCurrent ?? false else { break }
                let update = ImageUpdate(.image(frame.image), phase: view.imagePhase(of: slot), isFrame: true)
                view.showImage(update, in: slot)
            }
            self?.end()
        }
    }

    /// Pauses the animation while the view is not visible, and continues it at the same place after that.
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
        registration?.remove()
    }
}

extension BindingKey<ImagePlayback> {
    static func playback(_ slot: ImageSlot) -> Self { Self("playback", value: slot) }
}

extension ImageViewModel {
    /// Loads several images and plays them in sequence, in the order of the requests. The images that have arrived
    /// play, from the start again with each new one. Cancels the previous loads of the slot.
    ///
    /// - Parameters:
    ///   - frameDuration: The duration of each image; a thirtieth of a second by default.
    ///   - display: The placeholder is shown until the first image arrives, and the failure after all loads have
    ///     failed.
    /// - Returns: The loads, in the order of the requests; all are in the slot.
    @discardableResult
    public func loadAnimationImages(
        _ requests: [ImageRequest], into slot: ImageSlot = .animation, frameDuration: Duration = .seconds(1) / 30,
        display: ImageDisplay = ImageDisplay()
    ) -> [ImageLoad] {
        bindings.cancel(slot)
        let pipeline = currentImagePipeline
        let sequence = ImageSequence(requests.count, frameDuration)
        let loads = requests.enumerated().map { index, request in
            let load = ImageLoad(request, in: slot, of: self, pipeline: pipeline, display: ImageDisplay()) {
                [weak self] response in
                guard let self else { return }
                let frames = sequence.insert(response.image, at: index)
                let executor = pipeline.configuration.executor
                self.play(AnimatedImage(frames, executor: executor), in: slot, display: display)
            }
            load.showsSubstitutes = false
            load.completions.append { [weak self] result in
                guard case .failure(let error) = result, sequence.recordFailure() else { return }
                self?.showSubstitute(display.failure, in: slot, phase: .failure(error))
            }
            return load
        }
        for load in loads { register(load, adds: true) }
        for load in loads { load.begin() }
        if sequence.isWaiting { showSubstitute(display.placeholder, in: slot, phase: .placeholder) }
        return loads
    }

    private func showSubstitute(_ content: ImageContent?, in slot: ImageSlot, phase: ImagePhase) {
        imageSlots.change(slot) { $0.setPhase(phase) }
        if let content { present(content, in: slot) }
    }
}

/// Collects the images of one call.
@MainActor
private final class ImageSequence {
    private var images: [Int: RasterImage] = [:]
    private var failures = 0
    private let count: Int
    private let duration: Duration

    /// Whether no image has arrived, and one still may.
    var isWaiting: Bool { images.isEmpty && failures < count }

    init(_ count: Int, _ duration: Duration) {
        self.count = count
        self.duration = duration
    }

    func insert(_ image: RasterImage, at index: Int) -> any ImageFrames {
        images[index] = image
        return StillFrames(
            images.sorted { $0.key < $1.key }.map { ImageFrame(image: $0.value, duration: duration) })
    }

    /// Records a failed load. Returns a Boolean value that indicates whether all loads have failed.
    func recordFailure() -> Bool {
        failures += 1
        return failures == count
    }
}

/// Presents decoded images as the frames of an animation that repeats without end.
private struct StillFrames: ImageFrames {
    let frames: [ImageFrame]

    init(_ frames: [ImageFrame]) { self.frames = frames }

    var count: Int { frames.count }
    var loopCount: Int { 0 }
    var size: PixelSize { frames.first?.image.size ?? PixelSize(width: 0, height: 0) }

    func frame(at index: Int) throws(ImageError) -> ImageFrame {
        guard frames.indices.contains(index) else {
            throw ImageError(.invalidArgument, "there is no frame \(index) in \(frames.count) frames")
        }
        return frames[index]
    }
}
