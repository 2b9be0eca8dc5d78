import TernConcurrency

extension ImagePipeline {
    /// The pipeline of whoever names no other: the built-in one, or the one that `setShared` was given.
    public static var shared: ImagePipeline { replacement.withLock { $0 } ?? builtIn }

    /// Replaces the shared pipeline; nil brings the built-in one back. Loads that run go on where they began.
    public static func setShared(_ pipeline: ImagePipeline?) { replacement.withLock { $0 = pipeline } }

    private static let replacement = Lock<ImagePipeline?>(nil)
    private static let builtIn = ImagePipeline()
}
