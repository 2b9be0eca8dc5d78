#if canImport(ImageIO)
import CTernCodecs
import CoreGraphics
public import Foundation
import ImageIO
import UniformTypeIdentifiers

/// Decodes the formats that ImageIO reads on Apple's systems: JPEG, PNG, WebP, GIF, BMP, ICO, AVIF, HEIC, TIFF and
/// others that the system knows.
///
/// ImageIO scales while it decodes, to at least twice the target size. Lanczos3 does the rest. GIF, PNG, WebP, and
/// sequences of HEIC and AVIF can be animated.
public struct ImageIODecoder: ImageDecoder {
    /// Creates a decoder. It has no state.
    public init() {}

    /// Returns whether this system's ImageIO reads files of the format.
    public func decodes(_ format: ImageFormat) -> Bool {
        UTType(mimeType: format.rawValue).map { Self.types.contains($0.identifier) } ?? false
    }

    private static let types: Set<String> = Set(
        (CGImageSourceCopyTypeIdentifiers() as NSArray).compactMap { $0 as? String })

    /// Returns the result of `ImageFormat(sniffing:)`, otherwise the media type that ImageIO finds, such as
    /// `image/heic`.
    public func format(of bytes: Data) -> ImageFormat? {
        if let format = ImageFormat(sniffing: bytes) { return format }
        guard let source = CGImageSourceCreateWithData(NSData(data: bytes) as CFData, nil),
            let type = CGImageSourceGetType(source)
        else { return nil }
        return UTType((type as NSString).description)?.preferredMIMEType.map(ImageFormat.init(rawValue:))
    }

    /// Returns the image, or the first frame. For an icon, returns the smallest entry that covers the target, otherwise
    /// the largest.
    ///
    /// Checks the current task's cancellation before ImageIO decodes, and between groups of rows afterwards. An
    /// incomplete file is an error of kind `.truncated`, unless the options allow a part.
    public func image(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> RasterImage {
        let file = try open(data, options)
        return try file.image(at: file.bestIndex())
    }

    /// Returns the frames of a GIF, PNG, WebP, HEIC or AVIF sequence with more than one frame.
    public func animation(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> (any ImageFrames)? {
        let file = try open(data, options)
        guard file.times != nil, file.count > 1 else { return nil }
        return try ImageIOFrames(file, byteCount: data.count)
    }

    private func open(_ data: Data, _ options: ImageDecodingOptions) throws(ImageError) -> sending ImageIOFile {
        guard data.count <= options.limits.bytes else {
            throw ImageError(.limitExceeded, "\(data.count) bytes, the limit is \(options.limits.bytes)")
        }
        guard let format = format(of: data), decodes(format) else { throw ForeignContent.error(for: data) }
        return try ImageIOFile(data, format: format, options: options)
    }
}

/// A file that ImageIO has opened. Headers are checked against the limits before anything is decoded.
struct ImageIOFile {
    let format: ImageFormat
    let options: ImageDecodingOptions
    /// The number of images in the file: frames, pages, or sizes of an icon.
    let count: Int
    /// The times of the frames; nil if the file is not an animation.
    let times: ImageIOTimes?
    let source: CGImageSource
    /// Whether the bytes reach the end that their format states. ImageIO replaces missing data without an error.
    let isWhole: Bool
    /// Whether the bytes have that end. A still GIF is whole without it.
    let isComplete: Bool

    init(_ data: Data, format: ImageFormat, options: ImageDecodingOptions) throws(ImageError) {
        let whole = imageIODictionary([kCGImageSourceShouldCache: false])
        guard let source = CGImageSourceCreateWithData(NSData(data: data) as CFData, whole) else {
            throw ImageError(.corrupt, format: format, "ImageIO does not open it")
        }
        self.format = format
        self.options = options
        self.source = source
        count = CGImageSourceGetCount(source)
        times = CGImageSourceGetType(source).flatMap { ImageIOTimes(type: ($0 as NSString).description) }
        isWhole = FileEnd.isWhole(data, format)
        isComplete = FileEnd.isReached(by: data, format)
        guard times == nil || count <= options.limits.frames else {
            throw ImageError(.limitExceeded, format: format, "more than \(options.limits.frames) frames")
        }
        if format == .jpeg { try surveyScans(data, header(at: 0).stored) }
    }

    /// Creates the part of a file that has arrived.
    init(_ source: CGImageSource, format: ImageFormat, options: ImageDecodingOptions) {
        self.format = format
        self.source = source
        self.options = options
        count = CGImageSourceGetCount(source)
        times = CGImageSourceGetType(source).flatMap { ImageIOTimes(type: ($0 as NSString).description) }
        isWhole = false
        isComplete = false
    }

    /// Counts the scans by their markers, because ImageIO would decode any number of them.
    private func surveyScans(_ data: Data, _ size: PixelSize) throws(ImageError) {
        var message = [CChar](repeating: 0, count: 200)
        let result = unsafe data.withUnsafeBytes { bytes in
            unsafe tern_jpeg_survey(
                bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count, UInt32(size.width), UInt32(size.height),
                Int32(clamping: options.limits.scans), &message)
        }
        guard result != TERN_CODEC_OK else { return }
        let text = String(decoding: message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        throw ImageError(.limitExceeded, format: format, text)
    }

    // MARK: Properties

    /// The number of times that the animation plays; 0 for no limit.
    var loopCount: Int { times?.loopCount(CGImageSourceCopyProperties(source, nil) as NSDictionary?) ?? 1 }

    func duration(at index: Int) -> Duration {
        let properties = CGImageSourceCopyPropertiesAtIndex(source, index, nil) as NSDictionary?
        return times?.duration(properties) ?? ImageFrame.duration(milliseconds: 0)
    }

    /// Returns the header of an image. Throws if there is none, or its size exceeds the limits.
    func header(at index: Int) throws(ImageError) -> ImageIOHeader {
        guard let properties = CGImageSourceCopyPropertiesAtIndex(source, index, nil) as NSDictionary?,
            let header = ImageIOHeader(properties)
        else {
            throw failure(at: index) ?? ImageError(.corrupt, format: format, "the header says no size")
        }
        guard header.stored.width > 0, header.stored.height > 0 else {
            throw ImageError(.corrupt, format: format, "the header says \(header.stored) pixels")
        }
        guard header.stored.pixelCount <= min(options.limits.pixels, Int(Int32.max)) else {
            throw ImageError(
                .limitExceeded, format: format,
                "\(header.stored) pixels, limits.pixels is \(options.limits.pixels)")
        }
        return header
    }

    /// Returns the index of the image that represents the file: the first frame, or the one that the file declares as
    /// primary; for an icon the smallest that covers the target, otherwise the largest.
    func bestIndex() throws(ImageError) -> Int {
        guard times == nil, count > 1 else { return 0 }
        guard format == .ico else { return CGImageSourceGetPrimaryImageIndex(source) }
        var sizes: [(index: Int, size: PixelSize)] = []
        for index in 0..<count { sizes.append((index, try header(at: index).upright)) }
        sizes.sort { $0.size.pixelCount < $1.size.pixelCount }
        guard let largest = sizes.last else { return 0 }
        let wanted = DecodingPlan(size: largest.size, options).scaled
        return (sizes.first { $0.size.width >= wanted.width && $0.size.height >= wanted.height } ?? largest).index
    }
}

extension ImageIOFile {
    /// Decodes, then resizes, rotates and crops, so that the fewest pixels are rotated.
    func image(at index: Int) throws(ImageError) -> RasterImage {
        try checkCancellation()
        let header = try header(at: index)
        guard isWhole || options.allowsPartial else {
            throw failure(at: index)
                ?? ImageError(.truncated, format: format, "the bytes end before the picture does")
        }
        let plan = header.plan(options)
        try checkMemory(header, plan)
        guard let decoded = decodedImage(at: index, header: header, plan: plan) else {
            throw failure(at: index) ?? ImageError(.corrupt, format: format, "ImageIO makes no picture of it")
        }
        try checkCancellation()
        let (space, form, profile) = try color(decoded, header)
        let pixels = try PixelBuffer(drawing: decoded, in: space, form: form)
        // The status is read last, because only now ImageIO has read the bytes.
        let failure = failure(at: index)
        if let failure, !tolerates(failure) { throw failure }
        let metadata = RasterImage.Metadata(
            originalSize: header.upright, orientation: header.orientation, colorProfile: profile,
            isPartial: !isWhole || failure != nil, isComplete: isComplete)
        let size = PixelSize(width: decoded.width, height: decoded.height)
        var image = RasterImage(pixels: pixels, size: size, format: format, metadata: metadata)
        let isInLight = options.resizesInLinearLight && image.hasKnownLight
        image = try image.resized(to: header.turned(plan.scaled), inLinearLight: isInLight)
        image = try image.oriented(header.orientation)
        return try image.cropped(to: plan.cropped)
    }

    /// Refuses an image that takes more memory than the options allow: the pixels of ImageIO, and those drawn from
    /// them.
    private func checkMemory(_ header: ImageIOHeader, _ plan: DecodingPlan) throws(ImageError) {
        let size = header.turned(plan.codecSize(of: header.upright))
        var memory = DecodingMemory(
            codec: size.pixelCount * 4, size: size, scaled: header.turned(plan.scaled),
            cropped: header.turned(plan.cropped))
        memory.isTurned = header.orientation > 1
        let isDeep = options.color.component != .uint8
        memory.isDeep = (isDeep, isDeep)
        memory.resizesInLight = options.resizesInLinearLight
        guard memory.peak > options.memoryLimit else { return }
        throw ImageError(
            .limitExceeded, format: format,
            "decoding \(header.upright) pixels takes \(memory.peak >> 20) MiB of memory, "
                + "the limit is \(options.memoryLimit >> 20) MiB")
    }

    /// Returns the image as stored, at its own size or at least twice the size that it is resized to.
    private func decodedImage(at index: Int, header: ImageIOHeader, plan: DecodingPlan) -> CGImage? {
        let least = plan.codecSize(of: header.upright)
        if least != header.upright {
            let thumbnail = CGImageSourceCreateThumbnailAtIndex(
                source, index,
                imageIODictionary([
                    kCGImageSourceCreateThumbnailFromImageAlways: true,
                    kCGImageSourceCreateThumbnailWithTransform: false,
                    kCGImageSourceThumbnailMaxPixelSize: max(least.width, least.height),
                    kCGImageSourceShouldCache: false,
                ]))
            // A size smaller than the target would have to be enlarged again, so the whole image is decoded.
            let wanted = header.turned(plan.scaled)
            if let thumbnail, thumbnail.width >= wanted.width, thumbnail.height >= wanted.height { return thumbnail }
        }
        return CGImageSourceCreateImageAtIndex(
            source, index, imageIODictionary([kCGImageSourceShouldCache: false]))
    }

    /// Returns the color space to draw in, the form of the pixels, and the result for the file's profile.
    private func color(
        _ image: CGImage, _ header: ImageIOHeader
    ) throws(ImageError) -> (CGColorSpace, PixelForm, RasterImage.Metadata.ColorProfile) {
        var form = PixelForm(component: options.color.component)
        // An image that is drawn in its own color space keeps its values. CMYK and gray have no RGB values.
        if case .asStored = options.color, let own = image.colorSpace, own.model == .rgb, own.supportsOutput,
            let profile = own.copyICCData()
        {
            form.space = .profile(Data(referencing: profile))
            return (own, form, header.hasProfile ? .kept : .none)
        }
        if options.color == .displayP3 { form.space = .displayP3 }
        guard let space = form.space.coreGraphics else {
            throw ImageError(.unsupported, format: format, "the system has no \(form.space.words)")
        }
        return (space, form, header.hasProfile ? .converted : .none)
    }

    // MARK: Errors

    /// Returns the error that ImageIO reports for an image.
    ///
    /// For the last image, only the status of the file as a whole is reliable. It takes precedence if the image's own
    /// status says only that the image was not read yet.
    func failure(at index: Int) -> ImageError? {
        let file = CGImageSourceGetStatus(source)
        let status = index == count - 1 ? file : CGImageSourceGetStatusAtIndex(source, index)
        switch status {
        case .statusComplete:
            return nil
        case .statusUnexpectedEOF:
            return ImageError(.truncated, format: format, "the bytes end before the picture does")
        case .statusInvalidData:
            return ImageError(.corrupt, format: format, "ImageIO says that its data is not valid")
        default:
            if file == .statusComplete { return nil }
            let isShort = status == .statusIncomplete || status == .statusReadingHeader
            return ImageError(
                isShort ? .truncated : .corrupt, format: format, "ImageIO gives up (status \(status.rawValue))")
        }
    }

    private func tolerates(_ error: ImageError) -> Bool {
        options.allowsPartial && (error.kind == .truncated || error.kind == .corrupt)
    }

    private func checkCancellation() throws(ImageError) {
        if Task.isCancelled { throw ImageError(.cancelled, format: format, "the task was cancelled") }
    }
}

/// The properties that ImageIO reads before it decodes an image.
struct ImageIOHeader {
    /// The size in pixels as stored, before orientation.
    let stored: PixelSize
    /// The EXIF orientation, 1 to 8.
    let orientation: Int
    let hasProfile: Bool

    /// Creates a header; nil if the properties contain no size.
    init?(_ properties: NSDictionary) {
        guard let width = properties.object(forKey: kCGImagePropertyPixelWidth) as? NSNumber,
            let height = properties.object(forKey: kCGImagePropertyPixelHeight) as? NSNumber
        else { return nil }
        stored = PixelSize(width: width.intValue, height: height.intValue)
        let turn = (properties.object(forKey: kCGImagePropertyOrientation) as? NSNumber)?.intValue ?? 1
        orientation = (1...8).contains(turn) ? turn : 1
        hasProfile = properties.object(forKey: kCGImagePropertyProfileName) != nil
    }

    /// The size after the orientation is applied.
    var upright: PixelSize { turned(stored) }

    /// Converts a size between the stored and the displayed orientation, in either direction.
    func turned(_ size: PixelSize) -> PixelSize { orientation >= 5 ? size.turned : size }

    func plan(_ options: ImageDecodingOptions) -> DecodingPlan { DecodingPlan(size: upright, options) }
}
#endif
