import CTernCodecs

/// A decoded image: RGBA, premultiplied, rows from the top without padding.
///
/// Copies share the pixels and cost a reference count. The pixels never change and never move. They have 8 bits a
/// component and are in sRGB, unless a request asks for others: see `component` and `colorSpace`.
public struct RasterImage: Sendable {
    /// The properties of the file besides its pixels.
    public struct Metadata: Sendable, Hashable {
        /// The treatment of the file's color profile: an ICC profile, or numbers that the file states instead.
        public enum ColorProfile: Sendable, Hashable {
            /// The file has no profile, and its colors count as sRGB.
            case none
            /// The file has a profile that was not applied. Colors can be wrong.
            case notApplied
            /// The file has a profile, and the pixels are in sRGB or Display P3: converted, or unchanged if the profile
            /// is that of the space.
            case converted
            /// The file has a profile, and the pixels are in its color space, which `RasterImage.colorSpace` holds.
            case kept
        }

        /// The EXIF orientation of the file, 1 to 8. It is already applied.
        public var orientation: Int
        /// The treatment of the color profile.
        public var colorProfile: ColorProfile
        /// The displayed size of the file before scaling.
        public var originalSize: PixelSize
        /// A Boolean value that indicates whether rows are missing or estimated, because the file is incomplete or
        /// damaged. Such an image must not be stored in a cache.
        public var isPartial: Bool
        /// A Boolean value that indicates whether the file has the end that its structure states, such as an end marker
        /// or a length. If it has not, and `isPartial` is false, every pixel is there all the same.
        public var isComplete: Bool

        /// Creates metadata. The defaults are upright, without a profile, complete.
        public init(
            originalSize: PixelSize, orientation: Int = 1, colorProfile: ColorProfile = .none, isPartial: Bool = false,
            isComplete: Bool = true
        ) {
            self.originalSize = originalSize
            self.orientation = orientation
            self.colorProfile = colorProfile
            self.isPartial = isPartial
            self.isComplete = isComplete
        }
    }

    let pixels: PixelBuffer
    /// The size in pixels, upright.
    public let size: PixelSize
    /// The number of pixels for each point. 1 by default.
    public var scale: Double
    /// The format of the decoded file; nil for a computed image.
    public var format: ImageFormat?
    /// The properties of the file besides its pixels.
    public var metadata: Metadata

    init(pixels: PixelBuffer, size: PixelSize, format: ImageFormat?, metadata: Metadata, scale: Double = 1) {
        self.pixels = pixels
        self.size = size
        self.scale = scale
        self.format = format
        self.metadata = metadata
    }

    /// Creates an image from the bytes of premultiplied RGBA; nil if their number does not fit the size and the
    /// component, which is 8 bits in sRGB by default.
    public init?(
        size: PixelSize, premultiplied bytes: [UInt8], scale: Double = 1, component: Component = .uint8,
        colorSpace: ImageColorSpace = .sRGB
    ) {
        guard size.width > 0, size.height > 0, size.pixelCount <= Int.max / 8,
            bytes.count == size.pixelCount * component.bytesPerPixel
        else { return nil }
        self.init(
            pixels: PixelBuffer(bytes, form: PixelForm(component: component, space: colorSpace)), size: size,
            format: nil, metadata: Metadata(originalSize: size), scale: scale)
    }

    /// Creates an image of one color, for example a placeholder. A width or height below 1 counts as 1, and one above
    /// 16,384 as 16,384; an image of both takes 1 GiB.
    public init(color: ImageColor, size: PixelSize = PixelSize(width: 1, height: 1), scale: Double = 1) {
        let size = PixelSize(
            width: min(max(1, size.width), Self.longestSide), height: min(max(1, size.height), Self.longestSide))
        let channels = [color.red, color.green, color.blue].map { channel in
            UInt8((Int(channel) * Int(color.alpha) + 127) / 255)
        }
        let row = [UInt8](repeatElement(channels + [color.alpha], count: size.width).joined())
        var bytes: [UInt8] = []
        bytes.reserveCapacity(size.pixelCount * 4)
        for _ in 0..<size.height { bytes += row }
        self.init(
            pixels: PixelBuffer(bytes), size: size, format: nil, metadata: Metadata(originalSize: size), scale: scale)
    }

    /// The most pixels of a side of an image of one color.
    private static let longestSide = 16_384

    /// The kind of number of each component of a pixel.
    public var component: Component { pixels.form.component }

    /// The color space of the pixels.
    public var colorSpace: ImageColorSpace { pixels.form.space }

    /// The number of bytes of a pixel: 4, or 8 for other components than bytes.
    public var bytesPerPixel: Int { component.bytesPerPixel }

    /// The number of bytes from one row to the next: the width times the bytes of a pixel.
    public var bytesPerRow: Int { size.width * bytesPerPixel }

    /// The number of bytes of the pixels, which is the cost of the image in a memory cache.
    public var byteCount: Int { pixels.bytes.count }

    /// A Boolean value that indicates whether all pixels are opaque. Reads pixels up to the first that is not.
    public var isOpaque: Bool {
        unsafe pixels.bytes.withUnsafeBufferPointer { source in
            unsafe tern_is_opaque(source.baseAddress, component.samples, size.pixelCount)
        }
    }

    /// Calls the closure with the bytes of the pixels, which must not be used after the call.
    public func withPixels<Result, Failure: Error>(
        _ body: (borrowing RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let bytes = pixels.bytes
        return try unsafe body(bytes.span.bytes)
    }
}

/// A width and a height in whole pixels.
public struct PixelSize: Sendable, Hashable, CustomStringConvertible {
    /// Pixels from left to right.
    public var width: Int
    /// Pixels from top to bottom.
    public var height: Int

    /// Creates a size in pixels.
    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    /// The size as `400×300`.
    public var description: String { "\(width)×\(height)" }

    /// Width times height; `Int.max` if that does not fit.
    public var pixelCount: Int {
        let (product, overflow) = width.multipliedReportingOverflow(by: height)
        return overflow ? .max : product
    }

    /// The size with width and height exchanged.
    var turned: PixelSize { PixelSize(width: height, height: width) }
}

extension RasterImage {
    /// Returns the image at another size, resized with Lanczos3 on premultiplied pixels: at least 54 dB against an
    /// exact result.
    ///
    /// Component, color space, scale, format and metadata are kept. The caller is responsible for the proportions.
    /// Checks the task's cancellation every 64 rows.
    ///
    /// - Parameters:
    ///   - target: The size of the result in pixels.
    ///   - inLinearLight: Pass true to average the light of pixels instead of their levels: fine patterns keep their
    ///     brightness, and edges are darker on light grounds. It takes several times as long. False by default.
    /// - Throws: The kinds `.cancelled`, `.outOfMemory`, `.invalidArgument` for a size without pixels, `.limitExceeded`
    ///   if the result and the work on it take more than 512 MiB, and `.unsupported` in linear light for a color space
    ///   that has neither the curve of sRGB nor linear light.
    public func resized(to target: PixelSize, inLinearLight: Bool = false) throws(ImageError) -> RasterImage {
        if target == size { return self }
        let isFine = inLinearLight || component != .uint8
        let work =
            target.width > 0 && target.height > 0
            ? DecodingMemory.resize(size, to: target, isFine: isFine) : 0
        try checkMemory(target, work: work)
        return try resized(to: target, showing: tern_extent(size), inLinearLight: inLinearLight)
    }

    /// Whether the light of the levels is known, so that it can be averaged.
    var hasKnownLight: Bool { colorSpace.transfer != .other }

    /// Resizes the visible part of the picture. The caller has already checked the memory that this takes.
    func resized(
        to target: PixelSize, showing extent: tern_extent, inLinearLight: Bool
    ) throws(ImageError) -> RasterImage {
        if target == size { return self }
        if inLinearLight || component != .uint8 {
            return try finelyResized(to: target, showing: extent, inLinearLight: inLinearLight)
        }
        let (width, height) = (UInt32(target.width), UInt32(target.height))
        guard let kernel = unsafe tern_resize_open(extent, width, height) else {
            throw ImageError(.outOfMemory, format: format, "no memory to resize \(size) to \(target) pixels")
        }
        defer { unsafe tern_resize_close(kernel) }
        return try unsafe renderedByRowsUnchecked(target) { source, base, first, count in
            let canvas = unsafe tern_canvas(pixels: base, stride: target.width * 4, width: width, height: height)
            return unsafe tern_resize_rows(kernel, source, canvas, first, count)
        }
    }

    private func finelyResized(
        to target: PixelSize, showing extent: tern_extent, inLinearLight: Bool
    ) throws(ImageError) -> RasterImage {
        guard !inLinearLight || hasKnownLight else {
            throw ImageError(
                .unsupported, format: format,
                "an image in \(colorSpace.words) is not resized in linear light: convert it to sRGB or Display P3")
        }
        let isInLight = inLinearLight && colorSpace.transfer == .usual
        let (width, height) = (UInt32(target.width), UInt32(target.height))
        let opened = unsafe tern_fine_resize_open(extent, width, height, component.samples, isInLight)
        guard let kernel = unsafe opened else {
            throw ImageError(.outOfMemory, format: format, "no memory to resize \(size) to \(target) pixels")
        }
        defer { unsafe tern_fine_resize_close(kernel) }
        let stride = target.width * bytesPerPixel
        return try unsafe renderedByRowsUnchecked(target) { source, base, first, count in
            let canvas = unsafe tern_canvas(pixels: base, stride: stride, width: width, height: height)
            return unsafe tern_fine_resize_rows(kernel, source, canvas, first, count)
        }
    }

    /// Returns the image rotated and mirrored from an EXIF orientation (1 to 8) to upright.
    func oriented(_ orientation: Int) throws(ImageError) -> RasterImage {
        guard (2...8).contains(orientation) else { return self }
        let target = orientation >= 5 ? size.turned : size
        let made = try unsafe PixelBuffer(count: byteCount, form: pixels.form) { base in
            unsafe pixels.bytes.withUnsafeBufferPointer { source in
                guard let first = source.baseAddress else { return }
                unsafe tern_orient(
                    first, bytesPerRow, bytesPerPixel, UInt32(size.width), UInt32(size.height), Int32(orientation),
                    base,
                    target.width * bytesPerPixel)
            }
        }
        return with(made, target)
    }

    /// Returns the center of the image at a size no larger than its own.
    func cropped(to target: PixelSize) throws(ImageError) -> RasterImage {
        if target == size { return self }
        let (left, top) = ((size.width - target.width) / 2, (size.height - target.height) / 2)
        let length = target.width * bytesPerPixel
        let made = try unsafe PixelBuffer(count: length * target.height, form: pixels.form) { base in
            unsafe pixels.bytes.withUnsafeBufferPointer { source in
                guard let first = source.baseAddress else { return }
                for row in 0..<target.height {
                    unsafe (base + row * length).initialize(
                        from: first + (top + row) * bytesPerRow + left * bytesPerPixel, count: length)
                }
            }
        }
        return with(made, target)
    }

    /// Returns an image of other pixels with the scale, the format and the metadata of this one.
    func with(_ pixels: PixelBuffer, _ size: PixelSize) -> RasterImage {
        RasterImage(pixels: pixels, size: size, format: format, metadata: metadata, scale: scale)
    }
}
