/// An animation that any number of players show. The players share its decoded frames.
///
/// Keep one value for all views that show the same animation, for example in a cache: sharing is by identity.
public final class AnimatedImage: Sendable {
    /// The frames of the decoder.
    public let frames: any ImageFrames
    let store: FrameStore

    /// Creates an animation whose frames are decoded on demand.
    /// - Parameters:
    ///   - executor: The executor that decodes frames, each for milliseconds at a time.
    ///   - budget: The limit for the bytes of decoded frames, shared with other animations.
    public init(_ frames: any ImageFrames, executor: any TaskExecutor, budget: FrameBudget = .shared) {
        self.frames = frames
        store = FrameStore(frames, budget: budget, executor: executor)
    }

    /// The number of frames, at least 1.
    public var count: Int { max(1, frames.count) }

    /// The number of loops that the file states; 0 for endless.
    public var loopCount: Int { frames.loopCount }

    /// The size of every frame in pixels.
    public var size: PixelSize { frames.size }

    /// Returns one frame, decoded on the executor if it is not decoded yet.
    ///
    /// Throws the decoder's error, `.invalidArgument` past the last frame, and `.cancelled` when the task is cancelled.
    public func frame(at index: Int) async throws(ImageError) -> ImageFrame {
        guard index >= 0, index < count else {
            throw ImageError(.invalidArgument, "frame \(index) of \(count)")
        }
        let reader = store.join()
        defer { store.leave(reader) }
        return try await store.frame(for: FrameDecodingQueue.Window(indices: [index]), of: reader)
    }
}

/// The frames of an animation, processed on demand. Durations and loops are unchanged.
public struct ProcessedFrames: ImageFrames {
    private let frames: any ImageFrames
    private let processor: any ImageProcessor
    private let scale: Double?
    private let first: ImageFrame

    /// Creates the processed frames. The first frame is processed at once: it determines the size, and is shown without
    /// a wait.
    ///
    /// With a scale, in pixels per point, each frame gets that scale before processors that measure in points are
    /// applied. With nil, the default, each frame keeps its own. Throws the error of decoding or processing the first
    /// frame.
    public init(
        _ frames: any ImageFrames, processor: any ImageProcessor, scale: Double? = nil
    ) throws(ImageError) {
        // One wrapper for all steps, because each wrapper holds a first frame.
        if let inner = frames as? ProcessedFrames, scale == nil || scale == inner.first.image.scale {
            self.frames = inner.frames
            self.processor = ImageProcessors.Composition([inner.processor, processor])
            self.scale = inner.scale
            first = ImageFrame(image: try processor.process(inner.first.image), duration: inner.first.duration)
            return
        }
        self.frames = frames
        self.processor = processor
        self.scale = scale
        first = try Self.frame(at: 0, of: frames, processor: processor, scale: scale)
    }

    /// The bytes held: those of the source, and of the first frame.
    public var byteCount: Int { frames.byteCount + first.image.byteCount }

    /// The bytes of a pixel of the first frame after processing.
    public var bytesPerPixel: Int { first.image.bytesPerPixel }

    /// The number of frames.
    public var count: Int { frames.count }

    /// The number of loops; 0 for endless.
    public var loopCount: Int { frames.loopCount }

    /// The size of the first frame after processing, in pixels.
    public var size: PixelSize { first.image.size }

    /// Returns the frame at an index from 0, decoded and then processed. The first frame is kept.
    ///
    /// Throws the error of decoding or processing, and `.cancelled` if the task was cancelled.
    public func frame(at index: Int) throws(ImageError) -> ImageFrame {
        index == 0 ? first : try Self.frame(at: index, of: frames, processor: processor, scale: scale)
    }

    private static func frame(
        at index: Int, of frames: any ImageFrames, processor: any ImageProcessor, scale: Double?
    ) throws(ImageError) -> ImageFrame {
        var frame = try frames.frame(at: index)
        if let scale { frame.image.scale = scale }
        frame.image = try processor.process(frame.image)
        return frame
    }
}

/// The frames of an animation, all decoded in advance, if they fit into a limit.
struct PreloadedFrames: ImageFrames {
    let loopCount: Int
    let size: PixelSize
    let byteCount: Int
    let bytesPerPixel: Int
    private let frames: [ImageFrame]

    var count: Int { frames.count }

    /// Decodes all frames. Returns nil if they take more bytes than `memoryLimit`, usually before the first one is
    /// decoded.
    init?(_ source: any ImageFrames, memoryLimit: Int) throws(ImageError) {
        let count = max(0, source.count)
        guard Self.byteCount(of: source, count: count) <= memoryLimit else { return nil }
        loopCount = source.loopCount
        size = source.size
        bytesPerPixel = source.bytesPerPixel
        var frames: [ImageFrame] = []
        var bytes = 0
        frames.reserveCapacity(min(count, 1_024))
        for index in 0..<count {
            let frame = try source.frame(at: index)
            // A decoder of the program's own can state a smaller size than its frames have.
            guard frame.image.byteCount <= memoryLimit - bytes else { return nil }
            bytes += frame.image.byteCount
            frames.append(frame)
        }
        self.frames = frames
        byteCount = bytes
    }

    /// Returns the bytes of frames of one size, or `Int.max` if they are more.
    private static func byteCount(of frames: any ImageFrames, count: Int) -> Int {
        let (bytes, isLarge) = frames.size.pixelCount.multipliedReportingOverflow(by: frames.bytesPerPixel)
        let (all, isTooLarge) = bytes.multipliedReportingOverflow(by: count)
        return isLarge || isTooLarge ? .max : all
    }

    func frame(at index: Int) throws(ImageError) -> ImageFrame {
        guard frames.indices.contains(index) else {
            throw ImageError(.invalidArgument, "frame \(index) of \(frames.count)")
        }
        return frames[index]
    }
}
