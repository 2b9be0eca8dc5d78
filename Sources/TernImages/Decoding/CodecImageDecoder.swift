#if os(Linux)
import CTernCodecs

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Decodes JPEG, PNG and WebP with libjpeg-turbo, libpng and libwebp, GIF, BMP, ICO, CUR and QOI with C code of Tern,
/// and AVIF, TIFF, HEIC and JPEG XL with libavif, libtiff, libheif and libjxl, each of which is loaded when the first
/// file of its format is decoded.
///
/// JPEG and WebP are scaled while they are decoded, to at least twice the target size. Lanczos3 does the rest.
public struct CodecImageDecoder: ImageDecoder {
    /// Creates a decoder. It has no state.
    public init() {}

    /// Returns true for JPEG, PNG, WebP, GIF, BMP, ICO, CUR, QOI, AVIF, TIFF, HEIC and JPEG XL. If the library of one of
    /// the last four is missing, or is of an unknown version, a file causes an error of kind `.unsupported` that names the
    /// package.
    public func decodes(_ format: ImageFormat) -> Bool { Self.formats.contains(format) }

    private static let formats: Set<ImageFormat> = [
        .jpeg, .png, .webp, .gif, .bmp, .ico, .cur, .qoi, .avif, .tiff, .heic, .jpegXL,
    ]

    /// Decodes the picture, or the first frame of an animation. For an animated PNG, that is the first frame of the
    /// animation rather than the still picture for programs that do not animate, unless the animation chunks are
    /// damaged or contradict each other. Throws the errors of `ImageDecoder`, and `.unknownFormat`.
    ///
    /// A picture whose end is missing is returned if every pixel is there, with `metadata.isComplete` false. If pixels
    /// or frames are missing, or can be missing, decoding fails with `.truncated`; with `allowsPartial`, the result is
    /// the part or the frames that are present, each marked `isPartial`. The article on images has a table of all
    /// formats.
    public func image(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> RasterImage {
        let format = try sniff(data, options)
        let call = CodecCall(format: format, options: options)
        try call.checkCancellation()
        let outcome: Result<RasterImage, ImageError> = unsafe data.withUnsafeBytes { bytes in
            guard let base = unsafe bytes.bindMemory(to: UInt8.self).baseAddress else {
                return .failure(ImageError(.truncated, format: format, "no bytes"))
            }
            return Result { () throws(ImageError) in try unsafe call.image(base, bytes.count) }
        }
        return try outcome.get()
    }

    /// Returns the frames of a GIF, WebP, PNG, AVIF or JPEG XL with more than one frame. Returns nil for a PNG whose
    /// animation chunks are damaged or contradict each other; its still picture is shown instead.
    public func animation(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> (any ImageFrames)? {
        let format = try sniff(data, options)
        switch format {
        case .gif, .avif, .jpegXL: break
        case .webp where isAnimated(webp: data): break
        case .png where isAnimated(png: data): break
        default: return nil
        }
        let call = CodecCall(format: format, options: options)
        do throws(ImageError) {
            let frames = try CodecFrames(data, call: call)
            return frames.count > 1 ? frames : nil
        } catch {
            guard format == .png, call.leavesStill(error) else { throw error }
            return nil
        }
    }

    /// Returns whether the extended header declares an animation. Composing frames takes memory for a still picture,
    /// too.
    private func isAnimated(webp data: Data) -> Bool {
        let head = [UInt8](data.prefix(21))
        return head.count == 21 && head[12..<16].elementsEqual("VP8X".utf8) && head[20] & 2 != 0
    }

    private func isAnimated(png data: Data) -> Bool {
        unsafe data.withUnsafeBytes { bytes in
            guard let base = unsafe bytes.bindMemory(to: UInt8.self).baseAddress else { return false }
            return unsafe tern_png_animation(base, bytes.count) != 0
        }
    }

    private func sniff(_ data: Data, _ options: ImageDecodingOptions) throws(ImageError) -> ImageFormat {
        guard data.count <= options.limits.bytes else {
            throw ImageError(.limitExceeded, "\(data.count) bytes, the limit is \(options.limits.bytes)")
        }
        guard let format = ImageFormat(sniffing: data), decodes(format) else { throw ForeignContent.error(for: data) }
        return format
    }
}
#endif

/// The sizes between a file and the requested image. Touches no pixels.
struct DecodingPlan: Equatable {
    /// The size to resize to before cropping, upright, and the size to crop to.
    let scaled: PixelSize
    let cropped: PixelSize
    /// Whether a codec must not scale, because it averages levels where light is wanted.
    var needsAllPixels = false

    init(scaled: PixelSize, cropped: PixelSize) {
        self.scaled = scaled
        self.cropped = cropped
    }

    init(size: PixelSize, _ options: ImageDecodingOptions) {
        self = DecodingPlan(size: size, target: options.targetSize, mode: options.contentMode)
            .limited(to: options.byteLimit, bytesPerPixel: options.color.component.bytesPerPixel)
        needsAllPixels = options.resizesInLinearLight
    }

    /// Returns the plan at a smaller scale if the image has more bytes than the limit.
    func limited(to byteLimit: Int?, bytesPerPixel: Int = 4) -> DecodingPlan {
        guard let byteLimit else { return self }
        let most = max(1, byteLimit / bytesPerPixel)
        guard cropped.pixelCount > most else { return self }
        let factor = (Double(most) / Double(cropped.pixelCount)).squareRoot()
        func length(_ of: Int) -> Int { max(1, Int((Double(of) * factor).rounded(.down))) }
        return DecodingPlan(
            scaled: PixelSize(width: length(scaled.width), height: length(scaled.height)),
            cropped: PixelSize(width: length(cropped.width), height: length(cropped.height)))
    }

    init(size: PixelSize, target: PixelSize?, mode: ImageDecodingOptions.ContentMode) {
        guard let target, target.width > 0, target.height > 0 else {
            scaled = size
            cropped = size
            return
        }
        let across = Double(target.width) / Double(size.width)
        let down = Double(target.height) / Double(size.height)
        let factor = min(1, mode == .fit ? min(across, down) : max(across, down))
        func length(_ of: Int) -> Int { max(1, min(of, Int((Double(of) * factor).rounded()))) }
        scaled = PixelSize(width: length(size.width), height: length(size.height))
        cropped =
            mode == .fill
            ? PixelSize(width: min(target.width, scaled.width), height: min(target.height, scaled.height)) : scaled
    }

    /// Returns the smallest size, upright, that a codec's own scaling should give: twice the result, so that Lanczos3
    /// decides the quality (54–57 dB, against 40 if the codec scales all the way).
    func codecSize(of size: PixelSize) -> PixelSize {
        scaled == size || needsAllPixels
            ? size
            : PixelSize(width: min(size.width, scaled.width * 2), height: min(size.height, scaled.height * 2))
    }
}
