/// What pixels are made with, off the actor.
struct ImageTools: Sendable {
    let decoders: ImageDecoders
    let executor: ImageExecutor
    let budget: FrameBudget

    init(_ configuration: ImagePipeline.Configuration) {
        decoders = configuration.decoders
        executor = configuration.executor
        budget = configuration.frameBudget
    }

    /// The frames as one animation for all who show it.
    func animated(_ frames: any ImageFrames) -> AnimatedImage {
        AnimatedImage(frames, executor: executor, budget: budget)
    }
}
