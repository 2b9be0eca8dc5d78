/// A decoded picture: RGBA, 8 bits a channel, premultiplied, rows from the top, no padding between them.
///
/// A value over shared pixels: a copy costs a reference count. The pixels never change and never move. They are in
/// sRGB unless `metadata.colorProfile` says that a profile was left unapplied.
public struct RasterImage: Sendable {
    /// What the file said beside its pixels.
    public struct Metadata: Sendable, Hashable {
        /// What became of the file's ICC colour profile.
        public enum ColorProfile: Sendable, Hashable {
            /// The file has none: its colours are taken for sRGB.
            case none
            /// The file has one, which was not applied: colours may look off.
            case notApplied
            /// The file has one, and the pixels are in sRGB by it: converted, or as they were if it is sRGB itself.
            case converted
        }

        /// The EXIF orientation, 1 to 8, that the file asked for; it is applied already.
        public var orientation: Int
        /// What became of the colour profile.
        public var colorProfile: ColorProfile
        /// The size in the file as shown, before any scaling to a target.
        public var originalSize: PixelSize
        /// Whether rows are missing or invented because the file is cut short or damaged. Such an image is not to be
        /// stored in a cache.
        public var isPartial: Bool

        /// Metadata of a picture; by default upright, without a profile, whole.
        public init(
            originalSize: PixelSize, orientation: Int = 1, colorProfile: ColorProfile = .none, isPartial: Bool = false
        ) {
            self.originalSize = originalSize
            self.orientation = orientation
            self.colorProfile = colorProfile
            self.isPartial = isPartial
        }
    }

    let pixels: PixelBuffer
    /// The size in pixels, upright.
    public let size: PixelSize
    /// Pixels per point, 1 by default.
    public var scale: Double
    /// The format it was decoded from, nil for a picture that was computed.
    public var format: ImageFormat?
    /// What the file said beside its pixels.
    public var metadata: Metadata

    init(pixels: PixelBuffer, size: PixelSize, format: ImageFormat?, metadata: Metadata, scale: Double = 1) {
        self.pixels = pixels
        self.size = size
        self.scale = scale
        self.format = format
        self.metadata = metadata
    }

    /// A picture of the given premultiplied RGBA bytes, four for each pixel; nil unless there are exactly so many.
    public init?(size: PixelSize, premultiplied bytes: [UInt8], scale: Double = 1) {
        guard size.width > 0, size.height > 0, size.pixelCount <= Int.max / 4, bytes.count == size.pixelCount * 4
        else { return nil }
        self.init(
            pixels: PixelBuffer(bytes), size: size, format: nil, metadata: Metadata(originalSize: size), scale: scale)
    }

    /// Bytes from one row to the next: four times the width.
    public var bytesPerRow: Int { size.width * 4 }

    /// Bytes that the pixels take, the cost of this picture in a memory cache.
    public var byteCount: Int { pixels.bytes.count }

    /// Whether no pixel lets anything through. Looks at them all, until one does.
    public var isOpaque: Bool {
        unsafe pixels.bytes.withUnsafeBufferPointer { source in
            stride(from: 3, to: source.count, by: 4).allSatisfy { index in unsafe source[index] == 255 }
        }
    }

    /// Calls the closure with the pixels' bytes, which it must not keep beyond the call.
    public func withPixels<Result, Failure: Error>(
        _ body: (borrowing RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let bytes = pixels.bytes
        return try unsafe body(bytes.span.bytes)
    }
}
