#if os(Linux)
import CTernCodecs

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// JPEG, PNG, WebP and GIF by libjpeg-turbo, libpng, libwebp and giflib; BMP and ICO by our own C; AVIF by libavif,
/// which is looked for when the first such file comes.
///
/// JPEG and WebP are scaled while they are decoded, to at least twice the target, the rest is Lanczos3.
public struct CodecImageDecoder: ImageDecoder {
    /// A decoder; it holds nothing.
    public init() {}

    /// True for JPEG, PNG, WebP, GIF, BMP, ICO and AVIF. Where libavif is missing, or of a version whose structures are
    /// not known, an AVIF file ends in an error of the kind `.unsupported` that names the package.
    public func decodes(_ format: ImageFormat) -> Bool { Self.formats.contains(format) }

    private static let formats: Set<ImageFormat> = [.jpeg, .png, .webp, .gif, .bmp, .ico, .avif]

    /// Decodes the picture, or the first frame of an animation. For an animated PNG, that is the first frame of the
    /// animation rather than the still picture for programs that do not animate, unless the animation chunks are damaged
    /// or contradict each other. Throws the errors of `ImageDecoder`, and `.unknownFormat`.
    ///
    /// An animation that is cut short fails with `.truncated`, also when the cut lies between two frames. With
    /// `allowsPartial`, the result is the frames that are present, each marked `isPartial`. A GIF of one frame, without
    /// a loop and a delay, is complete without its last byte, the trailer, because some files lack it.
    public func image(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> RasterImage {
        let format = try sniff(data, options)
        let call = CodecCall(format: format, options: options)
        try call.checkCancellation()
        let outcome: Result<RasterImage, ImageError> = unsafe data.withUnsafeBytes { bytes in
            guard let base = unsafe bytes.bindMemory(to: UInt8.self).baseAddress else {
                return .failure(ImageError(.truncated, format: format, "no bytes"))
            }
            do throws(ImageError) {
                return .success(try unsafe call.image(base, bytes.count))
            } catch {
                return .failure(error)
            }
        }
        return try outcome.get()
    }

    /// Returns the frames of a GIF, WebP, PNG or AVIF with more than one frame. Returns nil for a PNG whose animation
    /// chunks are damaged or contradict each other; its still picture is shown instead.
    public func animation(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> (any ImageFrames)? {
        let format = try sniff(data, options)
        switch format {
        case .gif, .avif: break
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
        guard let format = ImageFormat(sniffing: data) else {
            throw ImageError(.unknownFormat, "the first of \(data.count) bytes are of no known format")
        }
        guard decodes(format) else { throw ImageError(.unsupported, format: format, "no decoder for it here") }
        return format
    }
}
#endif
