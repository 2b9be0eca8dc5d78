/// The frames of an animation with processors applied to each as it is asked for. Durations and loops stay.
public struct ProcessedFrames: ImageFrames {
    private let frames: any ImageFrames
    private let processor: any ImageProcessor
    private let scale: Double?
    private let first: ImageFrame

    /// Frames that a processor works on. The first is made at once: it says the size, and shows without a wait.
    ///
    /// With a scale, in pixels per point, frames get it before they are processed: processors that measure in points
    /// go by it. Nil, the default, leaves each with its own. Throws what decoding or processing the first frame throws.
    public init(
        _ frames: any ImageFrames, processor: any ImageProcessor, scale: Double? = nil
    ) throws(ImageError) {
        // One wrapper for all steps: each would hold a first frame.
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
        first = try Self.frame(at: 0, of: frames, processor, scale)
    }

    /// Bytes held: those of the source, and the first frame's.
    public var byteCount: Int { frames.byteCount + first.image.byteCount }

    /// How many frames there are.
    public var count: Int { frames.count }

    /// How often the animation plays, 0 for ever.
    public var loopCount: Int { frames.loopCount }

    /// The size of the first frame after processing, in pixels.
    public var size: PixelSize { first.image.size }

    /// The frame of an index from 0, decoded and then processed; the first is kept.
    ///
    /// Throws what decoding or processing it throws, `.cancelled` if the task was cancelled in between.
    public func frame(at index: Int) throws(ImageError) -> ImageFrame {
        index == 0 ? first : try Self.frame(at: index, of: frames, processor, scale)
    }

    private static func frame(
        at index: Int, of frames: any ImageFrames, _ processor: any ImageProcessor, _ scale: Double?
    ) throws(ImageError) -> ImageFrame {
        var frame = try frames.frame(at: index)
        if let scale { frame.image.scale = scale }
        frame.image = try processor.process(frame.image)
        return frame
    }
}
