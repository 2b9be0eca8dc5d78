import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Decodes images from bytes. Its methods are synchronous: the caller runs them on an executor that they may occupy.
public protocol ImageDecoder: Sendable {
    /// Returns whether this decoder decodes files of the format.
    func decodes(_ format: ImageFormat) -> Bool

    /// Returns the format of a file from its first bytes; nil if this decoder does not know it. Implement it for
    /// formats that Tern does not know. By default, it returns the result of `ImageFormat(sniffing:)`.
    func format(of bytes: Data) -> ImageFormat?

    /// Returns the image, or the first frame of an animation, upright and at the size of the options.
    ///
    /// Checks the current task's cancellation between groups of rows, and then throws the kind `.cancelled`.
    func image(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> RasterImage

    /// Returns the frames of an animation, not yet decoded; nil for a still image.
    func animation(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> (any ImageFrames)?
}

extension ImageDecoder {
    /// Returns the result of `ImageFormat(sniffing:)`.
    public func format(of bytes: Data) -> ImageFormat? { ImageFormat(sniffing: bytes) }
}

/// The composed frames of an animation. They can be shared: one caller decodes at a time, and others wait.
public protocol ImageFrames: Sendable {
    /// The number of frames, at least 1.
    var count: Int { get }
    /// The number of times that the animation plays; 0 for no limit.
    var loopCount: Int { get }
    /// The size of every frame in pixels, after scaling to the options' target.
    var size: PixelSize { get }

    /// The number of bytes in memory for the frames, usually those of the file. 0 by default.
    var byteCount: Int { get }

    /// The number of bytes of each pixel of a frame: 4 by default, and 8 for frames of 16 bits or half floats.
    var bytesPerPixel: Int { get }

    /// Returns the frame at an index, which starts at 0. In order, each frame costs one decode. An earlier frame starts
    /// again from the first.
    ///
    /// - Throws: The kind `.invalidArgument` for an index beyond the last frame, `.cancelled` if the task was cancelled
    ///   between two frames.
    func frame(at index: Int) throws(ImageError) -> ImageFrame
}

extension ImageFrames {
    /// Zero.
    public var byteCount: Int { 0 }

    /// Four.
    public var bytesPerPixel: Int { 4 }
}

/// One frame of an animation.
public struct ImageFrame: Sendable {
    /// The whole image as it is shown during this frame.
    public var image: RasterImage
    /// The time that the frame is shown. A delay under 11 ms in the file counts as 100 ms, as in browsers.
    public var duration: Duration

    /// Creates a frame from an image and its time.
    public init(image: RasterImage, duration: Duration) {
        self.image = image
        self.duration = duration
    }

    /// The time for a delay in milliseconds as the file says it.
    static func duration(milliseconds: UInt32) -> Duration {
        .milliseconds(milliseconds < 11 ? 100 : Int(milliseconds))
    }

    /// Returns the time for a delay in microseconds, by the same rule as for milliseconds.
    static func duration(microseconds: UInt64) -> Duration {
        microseconds < 11_000 ? .milliseconds(100) : .microseconds(Int64(clamping: microseconds))
    }
}

/// The decoders of a pipeline: the registered ones, the latest first, then those of the system.
public final class ImageDecoders: Sendable {
    /// Identifies a registered decoder, to remove it.
    public struct Registration: Sendable, Hashable {
        fileprivate let number: UInt64
    }

    /// The decoders of pipelines that have none of their own.
    public static let shared = ImageDecoders()

    private let registered = Lock<[(Registration, any ImageDecoder)]>([])
    private let numbers = SerialNumbers()
    private let system: [any ImageDecoder]
    private let isSystem: Bool

    /// Creates the system's decoders.
    public convenience init() {
        #if os(Linux)
        self.init([CodecImageDecoder()])
        #else
        self.init([ImageIODecoder()])
        #endif
    }

    /// Creates a list of these decoders only. The first one that accepts a file decodes it.
    public init(_ decoders: [any ImageDecoder]) {
        system = decoders
        let others = decoders.filter { !Self.leavesPreviews($0) }
        #if os(Linux)
        isSystem = others.count == 1 && others[0] is CodecImageDecoder
        #else
        isSystem = others.count == 1 && others[0] is ImageIODecoder
        #endif
    }

    /// Adds a decoder before all others.
    ///
    /// While a decoder of your own is registered, new loads of the pipelines that use this list show no previews, of any
    /// format, because only the system's decoders decode previews.
    @discardableResult
    public func register(_ decoder: any ImageDecoder) -> Registration {
        let registration = Registration(number: numbers.next())
        registered.withLock { $0.insert((registration, decoder), at: 0) }
        return registration
    }

    /// Removes a registered decoder. Images that it is decoding are completed.
    public func remove(_ registration: Registration) {
        registered.withLock { $0.removeAll { $0.0 == registration } }
    }

    /// Whether all formats with previews are decoded by the system's decoders.
    var areSystem: Bool { isSystem && registered.withLock { $0.allSatisfy { Self.leavesPreviews($0.1) } } }

    /// Returns whether a decoder takes no file that has previews.
    private static func leavesPreviews(_ decoder: any ImageDecoder) -> Bool {
        #if os(Linux)
        decoder is SVGImageDecoder
        #else
        false
        #endif
    }

    /// Returns the decoder for these bytes.
    ///
    /// - Throws: The kind `.unsupported` if their format has a name and no decoder accepts it, otherwise
    ///   `.unknownFormat`.
    func decoder(for data: Data) throws(ImageError) -> any ImageDecoder {
        if data.isEmpty { throw ImageError(.truncated, "there are no bytes") }
        for (_, decoder) in registered.withLock({ $0 }) where Self.accepts(data, decoder) { return decoder }
        for decoder in system where Self.accepts(data, decoder) { return decoder }
        throw ForeignContent.error(for: data)
    }

    private static func accepts(_ data: Data, _ decoder: any ImageDecoder) -> Bool {
        decoder.format(of: data).map { decoder.decodes($0) } ?? false
    }
}

/// The target size, the colors, the limits, and the treatment of incomplete files in decoding.
public struct ImageDecodingOptions: Sendable, Hashable {
    /// The color space and the components of decoded pixels.
    public enum Color: Sendable, Hashable {
        /// sRGB with 8 bits a component. Colors outside it are clipped, and light brighter than white is mapped below it.
        case sRGB
        /// Display P3 with 8 bits a component. Colors outside it are clipped, and light brighter than white is mapped
        /// below it.
        case displayP3
        /// The levels of the file in its own color space, which `RasterImage.colorSpace` states, with 8 bits a component
        /// by default. Levels of fewer bits are widened. Inks are mixed without their profile. On Linux, TIFF, HEIC and
        /// the frames of an animated PNG give 8 bits of a file that has more.
        case asStored(RasterImage.Component = .uint8)

        /// The kind of number of each component.
        public var component: RasterImage.Component {
            if case .asStored(let component) = self { component } else { .uint8 }
        }
    }

    /// The way in which a target size is reached. The proportions are kept, and no mode makes an image larger than its
    /// file, except for a drawing, which has no size of its own: `SVGImageDecoder` draws it at the target size.
    public enum ContentMode: Sendable, Hashable {
        /// The whole image fits within the target.
        case fit
        /// The image covers the target and is cropped evenly on both sides to exactly the target, unless the file is
        /// smaller.
        case fill
        /// The image covers the target and is not cropped.
        case atLeast
    }

    /// The treatment of a gain map: a second picture in a file that states how much brighter a display with light above
    /// white (HDR) shows each place of the first.
    public enum GainMap: Sendable, Hashable {
        /// The first picture, for displays without light above white.
        case ignored
        /// Linear light in half floats, of which 1 is white, for a display whose brightest light is `headroom` times white.
        /// The color space has the transfer 8 of H.273. A headroom of 1 or less leaves the picture as bright as it is.
        ///
        /// For Ultra HDR JPEG on Linux, and for `asStored(.float16)` only: with other colors, decoding throws
        /// `.invalidArgument`. A file without a gain map, or with a damaged one, is decoded as without this option.
        case applied(headroom: Double)
    }

    /// The limits on the cost of a file. They are checked against the header, before memory for pixels is allocated.
    public struct Limits: Sendable, Hashable {
        /// The number of pixels of the file. 100 million by default. On Linux, a JPEG may have four times as many if the
        /// target size lets the decoder scale it to a quarter of the limit or less: a photo of 200 megapixels is decoded
        /// to 400×300 within the default limits.
        public var pixels: Int
        /// The number of bytes of the file. 256 MiB by default.
        public var bytes: Int
        /// The number of frames of an animation. 10,000 by default.
        public var frames: Int
        /// The number of scans of a progressive JPEG, each of which costs a pass over the whole image. 30 by default.
        public var scans: Int
        /// The maximum number of bytes of memory that decoding takes at its peak: the picture, and what the codec and
        /// the resize need to make it. nil, the default, stands for 512 MiB at the file's own size and 256 MiB when
        /// decoding to a target size.
        ///
        /// The need is estimated from the header. A file that needs more fails with the kind `.limitExceeded`. The
        /// file's own bytes do not count. Image processors do not use this option: each of them can take 512 MiB for
        /// its result and its work.
        public var memory: Int?

        /// Creates limits. Each has its stated default.
        public init(
            pixels: Int = 100_000_000, bytes: Int = 256 << 20, frames: Int = 10_000, scans: Int = 30,
            memory: Int? = nil
        ) {
            self.pixels = pixels
            self.bytes = bytes
            self.frames = frames
            self.scans = scans
            self.memory = memory
        }

        /// The default limit in bytes at the file's own size, and the limit of each processor.
        static let fullSizeMemory = 512 << 20
        /// The default limit in bytes when decoding to a target size.
        static let targetSizeMemory = 256 << 20
    }

    /// The target size in pixels, upright; nil, the default, for the file's own size, as for a size without pixels.
    public var targetSize: PixelSize?
    /// The way in which the target is reached. `.fit` by default. It has no effect without a target.
    public var contentMode: ContentMode
    /// The maximum number of bytes of the image, at four or eight a pixel. A larger image is decoded to a smaller size.
    /// nil, the default, for no such limit.
    public var byteLimit: Int?
    /// The limits on the cost of the file.
    public var limits: Limits
    /// A Boolean value that indicates whether an incomplete or damaged file gives the part that could be decoded,
    /// marked `isPartial`, in place of an error. False by default. An incomplete header is always an error.
    public var allowsPartial: Bool
    /// The color space and the components of the pixels. sRGB by default.
    ///
    /// Pixels are converted by the file's ICC profile, or by the numbers that it states instead (ITU-T H.273; `gAMA` and
    /// `cHRM` of PNG). Profiles of primaries and curves, as of cameras and displays, are always supported; those of
    /// tables, as of presses, need lcms2. `metadata.colorProfile` states the result. Colors of the wanted space cost
    /// nothing. A decoder of the program's own can give others: `RasterImage.colorSpace` states them.
    public var color: Color
    /// A Boolean value that indicates whether a target size is reached by averaging the light of pixels instead of their
    /// levels, as `RasterImage.resized(to:inLinearLight:)` does. False by default. All pixels of the file are then
    /// decoded, which takes more time and memory. If an image stays in the space of an ICC profile, or in PQ or HLG, its
    /// levels are averaged.
    public var resizesInLinearLight: Bool
    /// The treatment of a gain map. `.ignored` by default.
    public var gainMap: GainMap
    /// Keeps the codec's own pixels without premultiplication, for tests that compare them exactly at the file's own
    /// size.
    var keepsStraightAlpha = false

    /// The maximum number of bytes of memory that decoding takes.
    var memoryLimit: Int {
        limits.memory ?? (targetSize == nil ? Limits.fullSizeMemory : Limits.targetSizeMemory)
    }

    /// Creates options. The defaults are the file's own size, the default limits, no partial images, and sRGB.
    public init(
        targetSize: PixelSize? = nil, contentMode: ContentMode = .fit, limits: Limits = Limits(),
        allowsPartial: Bool = false, byteLimit: Int? = nil, color: Color = .sRGB,
        resizesInLinearLight: Bool = false, gainMap: GainMap = .ignored
    ) {
        self.targetSize = targetSize
        self.contentMode = contentMode
        self.limits = limits
        self.allowsPartial = allowsPartial
        self.byteLimit = byteLimit
        self.color = color
        self.resizesInLinearLight = resizesInLinearLight
        self.gainMap = gainMap
    }
}
