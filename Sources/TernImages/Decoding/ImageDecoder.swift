#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Something that makes pictures of bytes. Synchronous: the caller puts it on an executor where it may take its time.
public protocol ImageDecoder: Sendable {
    /// Whether this decoder takes files of the format.
    func decodes(_ format: ImageFormat) -> Bool

    /// The format that the first bytes of a file say; nil if this decoder does not know it. For formats that Tern does not
    /// know by itself; by default what `ImageFormat(sniffing:)` says.
    func format(of bytes: Data) -> ImageFormat?

    /// The picture, the first frame of an animation, upright and at the size that the options ask for.
    ///
    /// Looks at the current task's cancellation between groups of rows, and then throws the kind `.cancelled`.
    func image(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> RasterImage

    /// The frames of an animation, not yet decoded; nil for a still picture.
    func animation(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> (any ImageFrames)?
}

extension ImageDecoder {
    /// What `ImageFormat(sniffing:)` says.
    public func format(of bytes: Data) -> ImageFormat? { ImageFormat(sniffing: bytes) }
}

/// The frames of an animation, each composed as it is to be shown. Safe to share: one decodes at a time, others wait.
public protocol ImageFrames: Sendable {
    /// How many frames there are, at least 1.
    var count: Int { get }
    /// How often the animation plays, 0 for ever.
    var loopCount: Int { get }
    /// The size of every frame in pixels, after scaling to the options' target.
    var size: PixelSize { get }

    /// Bytes that are held for the frames: the file's, as a rule. 0 by default.
    var byteCount: Int { get }

    /// The frame of an index from 0. In order each costs one decode; a step back starts again from the first.
    ///
    /// Throws the kind `.invalidArgument` past the last, `.cancelled` if the task was cancelled between two frames.
    func frame(at index: Int) throws(ImageError) -> ImageFrame
}

extension ImageFrames {
    /// None that count.
    public var byteCount: Int { 0 }
}

/// One frame of an animation.
public struct ImageFrame: Sendable {
    /// The whole picture as it shows during this frame.
    public var image: RasterImage
    /// How long it shows. A delay under 11 ms in the file counts as 100 ms, as in browsers.
    public var duration: Duration

    /// A frame of a picture and its time.
    public init(image: RasterImage, duration: Duration) {
        self.image = image
        self.duration = duration
    }

    /// The time for a delay in milliseconds as the file says it.
    static func duration(milliseconds: UInt32) -> Duration {
        .milliseconds(milliseconds < 11 ? 100 : Int(milliseconds))
    }

    /// The time for a delay as a file of finer time says it, by the same rule as for milliseconds.
    static func duration(microseconds: UInt64) -> Duration {
        microseconds < 11_000 ? .milliseconds(100) : .microseconds(Int64(clamping: microseconds))
    }
}
