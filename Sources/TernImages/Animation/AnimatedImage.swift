/// An animation that any number of players show: they share its decoded frames.
///
/// Keep one value for all views that show the same animation, in a cache for example: sharing is by identity.
public final class AnimatedImage: Sendable {
    /// The frames as the decoder gives them.
    public let frames: any ImageFrames
    let store: FrameStore

    /// An animation of frames that are not decoded yet.
    /// - Parameter executor: where frames are decoded; each takes it for milliseconds at a time.
    /// - Parameter budget: how many bytes of decoded frames are kept, together with those of other animations.
    public init(_ frames: any ImageFrames, executor: any TaskExecutor, budget: FrameBudget = .shared) {
        self.frames = frames
        store = FrameStore(frames, budget: budget, executor: executor)
    }

    /// How many frames there are, at least 1.
    public var count: Int { max(1, frames.count) }

    /// How often the file says it plays, 0 for ever.
    public var loopCount: Int { frames.loopCount }

    /// The size of every frame in pixels.
    public var size: PixelSize { frames.size }

    /// One frame, of those decoded already or decoded now on the executor.
    ///
    /// Throws the decoder's error, `.invalidArgument` past the last frame, `.cancelled` when the task is cancelled.
    public func frame(at index: Int) async throws(ImageError) -> ImageFrame {
        guard index >= 0, index < count else {
            throw ImageError(.invalidArgument, "frame \(index) of \(count)")
        }
        let reader = store.join()
        defer { store.leave(reader) }
        return try await store.frame(for: FrameDemands.Window(indices: [index]), of: reader)
    }
}
