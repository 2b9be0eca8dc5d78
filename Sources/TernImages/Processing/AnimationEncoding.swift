import CTernCodecs

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The format of an encoded animation, with its settings.
public enum AnimationEncoding: Sendable, Hashable {
    /// GIF. Each frame has the colors of its pixels, or the 256 that represent them best, with dithering. Pixels less
    /// than half opaque are transparent, and the others opaque. Times are in hundredths of a second, at least two, and
    /// do not drift. On Apple's systems ImageIO chooses the colors.
    case gif
    /// AVIF with a quality from 0 to 100, and a speed from 0, for the smallest file, to 10. It has no alpha if all
    /// frames are opaque. Times are in milliseconds.
    ///
    /// Needs a libavif with an encoder of AV1 when the program runs. Files of libavif before 1.0 do not state the number
    /// of loops. Not available on Apple's systems.
    case avif(quality: Int = 60, speed: Int = 8)
    /// Lossy WebP with a quality from 0 to 100. It has no alpha if all frames are opaque. A frame holds what has changed:
    /// equal frames become one, and if all of them are equal, the file is a still picture. Times are in milliseconds, at most 16,777,215.
    ///
    /// Needs libwebpmux when the program runs. Not available on Apple's systems.
    case webp(quality: Double = 80)
    /// Lossless WebP. The color of fully transparent pixels is lost. Otherwise as `webp`.
    case losslessWebP
    /// Lossy JPEG XL with a quality from 0 to 100, and a speed from 0, for the smallest file, to 10. It has no alpha if all
    /// frames are opaque. Each frame is whole. Times are in milliseconds.
    ///
    /// Needs libjxl when the program runs. Not available on Apple's systems.
    case jpegXL(quality: Double = 90, speed: Int = 5)

    /// The format of the result.
    public var format: ImageFormat {
        switch self {
        case .gif: .gif
        case .avif: .avif
        case .webp, .losslessWebP: .webp
        case .jpegXL: .jpegXL
        }
    }
}

extension ImageFrames {
    /// Encodes all frames with their times, and the number of loops. One frame makes a still image. Frames are converted
    /// to sRGB with 8 bits a component.
    ///
    /// Synchronous. It decodes one frame at a time, and all of them twice for AVIF and JPEG XL, to know whether they are
    /// opaque. Checks the current task's cancellation between frames.
    ///
    /// - Throws: The kinds `.cancelled`, `.invalidArgument` if there are no frames or their sizes differ, `.unsupported`
    ///   without an encoder, `.encodingFailed` if the format does not support the size (GIF up to 65,535 pixels a side
    ///   and 268 million in all, WebP up to 16,383 a side), and the errors of `frame(at:)`.
    public func encoded(as encoding: AnimationEncoding) throws(ImageError) -> Data {
        guard count > 0 else {
            throw ImageError(.invalidArgument, format: encoding.format, "an animation without frames")
        }
        var isOpaque = true
        if encoding.format == .avif || encoding.format == .jpegXL {
            for index in 0..<count where isOpaque { isOpaque = try checkedFrame(at: index, encoding).image.isOpaque }
        }
        let writer = try AnimationWriter(
            encoding, size: size, count: count, loopCount: max(0, loopCount), isOpaque: isOpaque)
        for index in 0..<count { try writer.add(checkedFrame(at: index, encoding)) }
        return try writer.finish()
    }

    /// Returns a frame of the animation's size.
    private func checkedFrame(at index: Int, _ encoding: AnimationEncoding) throws(ImageError) -> ImageFrame {
        if Task.isCancelled { throw .cancelled }
        var frame = try frame(at: index)
        frame.image = try frame.image.converted(to: .sRGB)
        guard frame.image.size == size else {
            throw ImageError(
                .invalidArgument, format: encoding.format,
                "frame \(index) has \(frame.image.size) pixels, and the animation \(size)")
        }
        return frame
    }
}

/// Rounds the times of frames to the units of a format, so that their sum does not drift. Pure.
struct FrameTimes {
    /// The unit of the format in microseconds.
    let unit: Int64
    /// The least time of a frame in units.
    let least: Int64
    /// The greatest time of a frame in units.
    let most: Int64
    /// The sum of the exact times in microseconds, and that of the rounded ones in units.
    private var (exact, rounded): (Int64, Int64) = (0, 0)

    init(unit: Duration, least: Int64, most: Int64) {
        self.unit = Self.microseconds(unit)
        self.least = least
        self.most = most
    }

    /// Returns the time of the next frame in units.
    mutating func next(_ duration: Duration) -> Int64 {
        exact += Self.microseconds(duration)
        let wanted = (exact + unit / 2) / unit - rounded
        let time = min(most, max(least, wanted))
        // A time beyond a limit is not made up for by the next frames.
        if time == wanted { rounded += time } else { (exact, rounded) = (0, 0) }
        return time
    }

    /// Returns a duration in microseconds, from 0 to about a day.
    private static func microseconds(_ duration: Duration) -> Int64 {
        let limited = min(max(duration, .zero), .seconds(100_000))
        return limited.components.seconds * 1_000_000 + limited.components.attoseconds / 1_000_000_000_000
    }
}

#if os(Linux)
/// Writes the frames of one file with a codec. For one caller.
@safe
private final class AnimationWriter {
    /// The encoder in C, which this object closes once.
    @unsafe
    private enum Codec {
        case gif(OpaquePointer)
        case avif(OpaquePointer)
        case webp(OpaquePointer)
        case jpegXL(OpaquePointer)
    }

    private let codec: Codec
    private let encoding: AnimationEncoding
    private let size: PixelSize
    private var times: FrameTimes
    private var message = [CChar](repeating: 0, count: 200)

    init(
        _ encoding: AnimationEncoding, size: PixelSize, count: Int, loopCount: Int, isOpaque: Bool
    ) throws(ImageError) {
        self.encoding = encoding
        self.size = size
        var message = [CChar](repeating: 0, count: 200)
        let (width, height) = (UInt32(clamping: size.width), UInt32(clamping: size.height))
        let writer: OpaquePointer?
        switch encoding {
        case .gif:
            times = FrameTimes(unit: .milliseconds(10), least: 2, most: 65_535)
            unsafe writer = tern_gif_writer_open(width, height, UInt32(clamping: loopCount), &message)
        case .avif(let quality, let speed):
            if let obstacle = LoadedLibrary.avifEncoder.obstacle {
                throw ImageError(.unsupported, format: .avif, obstacle)
            }
            times = FrameTimes(unit: .milliseconds(1), least: 1, most: 100_000_000)
            let settings = tern_avif_writer_settings(
                width: width, height: height, loops: UInt32(clamping: loopCount),
                quality: Int32(clamping: min(100, max(0, quality))), speed: Int32(clamping: min(10, max(0, speed))),
                isOpaque: isOpaque, isStill: count == 1)
            unsafe writer = tern_avif_writer_open(settings, &message)
        case .webp, .losslessWebP:
            if let obstacle = LoadedLibrary.webPWriter.obstacle {
                throw ImageError(.unsupported, format: .webp, obstacle)
            }
            times = FrameTimes(unit: .milliseconds(1), least: 1, most: 16_777_215)
            var settings = tern_webp_settings(
                width: width, height: height, loops: UInt32(clamping: loopCount), quality: 75, isLossless: true)
            if case .webp(let quality) = encoding {
                (settings.quality, settings.isLossless) = (Float(min(100, max(0, quality))), false)
            }
            unsafe writer = tern_webp_writer_open(settings, &message)
        case .jpegXL(let quality, let speed):
            if let obstacle = LoadedLibrary.jpegXLEncoder.obstacle {
                throw ImageError(.unsupported, format: .jpegXL, obstacle)
            }
            times = FrameTimes(unit: .milliseconds(1), least: 1, most: 100_000_000)
            let settings = tern_jxl_settings(
                width: width, height: height, loops: UInt32(clamping: loopCount),
                quality: Float(min(100, max(0, quality))), speed: Int32(clamping: min(10, max(0, speed))),
                isLossless: false, isOpaque: isOpaque, isStill: count == 1)
            unsafe writer = tern_jxl_writer_open(settings, &message)
        }
        guard let writer = unsafe writer else { throw Self.error(encoding, size, message: message) }
        switch encoding {
        case .gif: unsafe codec = .gif(writer)
        case .avif: unsafe codec = .avif(writer)
        case .webp, .losslessWebP: unsafe codec = .webp(writer)
        case .jpegXL: unsafe codec = .jpegXL(writer)
        }
    }

    deinit {
        switch unsafe codec {
        case .gif(let writer): unsafe tern_gif_writer_close(writer)
        case .avif(let writer): unsafe tern_avif_writer_close(writer)
        case .webp(let writer): unsafe tern_webp_writer_close(writer)
        case .jpegXL(let writer): unsafe tern_jxl_writer_close(writer)
        }
    }

    func add(_ frame: ImageFrame) throws(ImageError) {
        let (row, time) = (frame.image.bytesPerRow, UInt32(clamping: times.next(frame.duration)))
        let result = unsafe try frame.image.straightPixels().bytes.withUnsafeBufferPointer { source in
            guard let base = source.baseAddress else { return TERN_CODEC_MEMORY }
            return switch unsafe codec {
            case .gif(let writer): unsafe tern_gif_writer_add(writer, base, row, time, &message)
            case .avif(let writer): unsafe tern_avif_writer_add(writer, base, row, time, &message)
            case .webp(let writer): unsafe tern_webp_writer_add(writer, base, row, time, &message)
            case .jpegXL(let writer): unsafe tern_jxl_writer_add(writer, base, row, time, &message)
            }
        }
        if result != TERN_CODEC_OK { throw Self.error(encoding, size, message: message) }
    }

    func finish() throws(ImageError) -> Data {
        var count = 0
        let bytes =
            switch unsafe codec {
            case .gif(let writer): unsafe tern_gif_writer_finish(writer, &count, &message)
            case .avif(let writer): unsafe tern_avif_writer_finish(writer, &count, &message)
            case .webp(let writer): unsafe tern_webp_writer_finish(writer, &count, &message)
            case .jpegXL(let writer): unsafe tern_jxl_writer_finish(writer, &count, &message)
            }
        guard let bytes = unsafe bytes else { throw Self.error(encoding, size, message: message) }
        defer { unsafe tern_codec_free(bytes) }
        return unsafe Data(bytes: bytes, count: count)
    }

    private static func error(
        _ encoding: AnimationEncoding, _ size: PixelSize, message: [CChar]
    ) -> ImageError {
        let text = String(decoding: message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return ImageError(
            .encodingFailed, format: encoding.format, "\(size) pixels: \(text.isEmpty ? "no memory" : text)")
    }
}
#endif

#if canImport(ImageIO)
import CoreGraphics
import Foundation
import ImageIO
import UniformTypeIdentifiers

/// Writes the frames of one GIF with ImageIO. For one caller.
private final class AnimationWriter {
    private let data = NSMutableData()
    private let destination: CGImageDestination
    private let size: PixelSize
    private var times = FrameTimes(unit: .milliseconds(10), least: 2, most: 65_535)

    init(
        _ encoding: AnimationEncoding, size: PixelSize, count: Int, loopCount: Int, isOpaque: Bool
    ) throws(ImageError) {
        self.size = size
        guard encoding == .gif else {
            throw ImageError(
                .unsupported, format: encoding.format, "animations are encoded as GIF on Apple's systems")
        }
        let type = NSString(string: UTType.gif.identifier) as CFString
        guard let destination = CGImageDestinationCreateWithData(data as CFMutableData, type, count, nil) else {
            throw ImageError(.encodingFailed, format: .gif, "\(size) pixels: ImageIO could not create the file")
        }
        self.destination = destination
        // The number is that of the repetitions. Without it, the file plays once.
        guard loopCount != 1 else { return }
        let loops = imageIODictionary([kCGImagePropertyGIFLoopCount: max(0, loopCount - 1)])
        CGImageDestinationSetProperties(destination, imageIODictionary([kCGImagePropertyGIFDictionary: loops]))
    }

    func add(_ frame: ImageFrame) throws(ImageError) {
        let alpha: CGImageAlphaInfo = frame.image.isOpaque ? .noneSkipLast : .last
        guard let image = try frame.image.straightPixels().image(size, alpha) else {
            throw ImageError(.encodingFailed, format: .gif, "\(size) pixels: ImageIO could not read a frame")
        }
        let seconds = Double(times.next(frame.duration)) / 100
        let time = imageIODictionary([
            kCGImagePropertyGIFDelayTime: seconds, kCGImagePropertyGIFUnclampedDelayTime: seconds,
        ])
        CGImageDestinationAddImage(destination, image, imageIODictionary([kCGImagePropertyGIFDictionary: time]))
    }

    func finish() throws(ImageError) -> Data {
        guard CGImageDestinationFinalize(destination) else {
            throw ImageError(.encodingFailed, format: .gif, "\(size) pixels: ImageIO could not finish the file")
        }
        return Data(referencing: data)
    }
}
#endif
