/// How a picture is to be decoded: to which size, within which limits, and what a file cut short gives.
public struct ImageDecodingOptions: Sendable, Hashable {
    /// How a target size is to be met. The proportions are kept, and no mode makes a picture larger than its file.
    public enum ContentMode: Sendable, Hashable {
        /// The whole picture within the target.
        case fit
        /// The target covered and the rest cut off evenly on both sides: exactly the target, unless the file is smaller.
        case fill
        /// The target covered, nothing cut off.
        case atLeast
    }

    /// What a file may cost. Checked from the header, before memory for its pixels is taken.
    public struct Limits: Sendable, Hashable {
        /// Pixels of the file, 100 million by default.
        public var pixels: Int
        /// Bytes of the file, 256 MiB by default.
        public var bytes: Int
        /// Frames of an animation, 10,000 by default.
        public var frames: Int
        /// Scans of a progressive JPEG, 30 by default: each costs a pass over the whole picture.
        public var scans: Int
        /// The maximum number of bytes of memory that decoding takes at its peak: the picture, and what the codec and
        /// the resize need to make it. nil, the default, stands for 512 MiB at the file's own size and 256 MiB when
        /// decoding to a target size.
        ///
        /// The need is estimated from the header. A file that needs more fails with the kind `.limitExceeded`. The
        /// file's own bytes do not count. Image processors do not use this option: each of them can take 512 MiB for
        /// its result and its work.
        public var memory: Int?

        /// The stated limits, each with its default.
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

    /// The size wanted in pixels, upright; nil, the default, for the file's own.
    public var targetSize: PixelSize?
    /// How the target is met, `.fit` by default. Without a target it has no effect.
    public var contentMode: ContentMode
    /// The most bytes that the picture may take, at four a pixel: a larger one is decoded to a smaller size. Nil, the
    /// default, for no such limit.
    public var byteLimit: Int?
    /// What the file may cost.
    public var limits: Limits
    /// Whether a file that is cut short or damaged gives what could be decoded, marked `isPartial`, in place of an
    /// error. False by default. If not even the header is whole, it is an error all the same.
    public var allowsPartial: Bool
    /// Whether pixels are converted to sRGB by the file's ICC profile: by one of primaries and curves, as of cameras and
    /// displays, always; by one of tables, as of presses, where lcms2 is there to do so. True by default;
    /// `metadata.colorProfile` tells what was done. A profile that is sRGB itself costs nothing.
    public var colorConversion: Bool
    /// The codecs' own pixels, not premultiplied: for tests that compare them exactly, at the file's own size.
    var keepsStraightAlpha = false

    /// The maximum number of bytes of memory that decoding takes.
    var memoryLimit: Int {
        limits.memory ?? (targetSize == nil ? Limits.fullSizeMemory : Limits.targetSizeMemory)
    }

    /// Options; by default the file's own size, the default limits, no partial pictures, in sRGB.
    public init(
        targetSize: PixelSize? = nil, contentMode: ContentMode = .fit, limits: Limits = Limits(),
        allowsPartial: Bool = false, byteLimit: Int? = nil, colorConversion: Bool = true
    ) {
        self.targetSize = targetSize
        self.contentMode = contentMode
        self.limits = limits
        self.allowsPartial = allowsPartial
        self.byteLimit = byteLimit
        self.colorConversion = colorConversion
    }
}
