public import TernImages

extension ImageViewModel {
    /// Loads several pictures and plays them one after another, each in its place by its index: what has come plays, from
    /// the first again with each that comes. Cancels what was loaded into the slot.
    ///
    /// - Parameters:
    ///   - frameDuration: how long each shows; a thirtieth of a second by default.
    ///   - display: the placeholder is shown until the first picture comes, the failure once all have failed.
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
            let load = ImageLoad(request, in: slot, of: self, pipeline, ImageDisplay()) { [weak self] response in
                guard let self else { return }
                let frames = sequence.adding(response.image, at: index)
                let executor = pipeline.configuration.executor
                self.play(AnimatedImage(frames, executor: executor), in: slot, display)
            }
            load.fillsSlot = false
            load.completions.append { [weak self] result in
                guard case .failure(let error) = result, sequence.failed() else { return }
                self?.stand(display.failure, in: slot, .failure(error))
            }
            return load
        }
        for load in loads { enter(load, adds: true) }
        for load in loads { load.begin() }
        if sequence.isWaiting { stand(display.placeholder, in: slot, .placeholder) }
        return loads
    }

    private func stand(_ content: ImageContent?, in slot: ImageSlot, _ phase: ImagePhase) {
        imageSlots.change(slot) { $0.stand(phase) }
        if let content { present(content, in: slot) }
    }
}

/// The pictures of one call, as they come.
@MainActor
private final class ImageSequence {
    private var images: [Int: RasterImage] = [:]
    private var failures = 0
    private let count: Int
    private let duration: Duration

    /// Whether nothing has come, and something may.
    var isWaiting: Bool { images.isEmpty && failures < count }

    init(_ count: Int, _ duration: Duration) {
        self.count = count
        self.duration = duration
    }

    func adding(_ image: RasterImage, at index: Int) -> any ImageFrames {
        images[index] = image
        return StillFrames(
            images.sorted { $0.key < $1.key }.map { ImageFrame(image: $0.value, duration: duration) })
    }

    /// Whether all have failed now.
    func failed() -> Bool {
        failures += 1
        return failures == count
    }
}

/// Decoded pictures as the frames of an animation that plays for ever.
private struct StillFrames: ImageFrames {
    let frames: [ImageFrame]

    init(_ frames: [ImageFrame]) { self.frames = frames }

    var count: Int { frames.count }
    var loopCount: Int { 0 }
    var size: PixelSize { frames.first?.image.size ?? PixelSize(width: 0, height: 0) }

    func frame(at index: Int) throws(ImageError) -> ImageFrame {
        guard frames.indices.contains(index) else {
            throw ImageError(.invalidArgument, "picture \(index) of \(frames.count)")
        }
        return frames[index]
    }
}
