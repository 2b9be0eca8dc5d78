import CTernCodecs

/// The format of an encoded image, with its settings.
public enum ImageEncoding: Sendable, Hashable {
    /// JPEG with a quality from 1 to 100, without alpha: transparent pixels are laid over black. 8 bits a component, with
    /// the profile of another color space than sRGB; PQ, HLG and linear light are converted to sRGB.
    case jpeg(quality: Int = 85, progressive: Bool = false)
    /// PNG with a compression level from 1 (fast) to 9 (small), without loss. An opaque image has no alpha channel, and
    /// a grey one no colors. 8 or 16 bits a component, with the profile of another color space than sRGB, the numbers of
    /// one that has them (`cICP`), or both. On Apple's systems ImageIO chooses the level, and a grey image has colors.
    case png(level: Int = 6)
    /// Lossy WebP with a quality from 0 to 100, with alpha unless the image is opaque. 8 bits and colors as in JPEG. Not
    /// available on Apple's systems: ImageIO reads WebP and does not write it.
    case webp(quality: Double = 80)
    /// Lossless WebP of 8 bits, with colors as in JPEG. The colour of fully transparent pixels is lost. Not available on
    /// Apple's systems.
    case losslessWebP
    /// AVIF with a quality from 0 to 100, and a speed from 0, for the smallest file, to 10. It has no alpha if the image is
    /// opaque. 8 bits a component in sRGB, to which other colors are converted.
    ///
    /// Needs a libavif with an encoder of AV1 when the program runs. Not available on Apple's systems.
    case avif(quality: Int = 60, speed: Int = 8)
    /// HEIC with a quality from 0 to 100, and a speed from 0, for the smallest file, to 10. It has no alpha if the image is
    /// opaque. 8 bits a component in sRGB, to which other colors are converted. A megapixel takes about 3 s of one
    /// processor at speed 0, 1.4 s at 8 and 0.5 s at 10.
    ///
    /// Needs a libheif with an encoder of HEVC when the program runs. Not available on Apple's systems.
    case heic(quality: Int = 60, speed: Int = 8)
    /// Lossy JPEG XL with a quality from 0 to 100, and a speed from 0, for the smallest file, to 10. It has no alpha if the
    /// image is opaque; alpha is without loss. 8 bits a component in sRGB, to which other colors are converted. A megapixel
    /// takes about 0.5 s of one processor at speed 5, and 0.2 s at 8.
    ///
    /// Needs libjxl when the program runs. Not available on Apple's systems.
    case jpegXL(quality: Double = 90, speed: Int = 5)
    /// Lossless JPEG XL with a speed from 0 to 10. A megapixel takes about 2 s of one processor at speed 5, and 0.4 s at 8.
    /// Otherwise as `jpegXL`.
    case losslessJPEGXL(speed: Int = 5)

    /// The format of the result.
    public var format: ImageFormat {
        switch self {
        case .jpeg: .jpeg
        case .png: .png
        case .webp, .losslessWebP: .webp
        case .avif: .avif
        case .heic: .heic
        case .jpegXL, .losslessJPEGXL: .jpegXL
        }
    }
}

extension RasterImage {
    /// Returns the pixels without premultiplication.
    func straightPixels() throws(ImageError) -> PixelBuffer {
        if isOpaque { return pixels }
        return try unsafe PixelBuffer(count: byteCount, form: pixels.form) { base in
            unsafe pixels.bytes.withUnsafeBufferPointer { source in
                guard let first = source.baseAddress else { return }
                if component == .uint8 {
                    unsafe tern_unpremultiply(first, base, size.pixelCount)
                } else {
                    unsafe base.initialize(from: first, count: source.count)
                    unsafe tern_unpremultiply_deep(base, component.samples, size.pixelCount)
                }
            }
        }
    }

    /// Returns the image with components and a color space that a file of the encoding can state.
    func encodable(as encoding: ImageEncoding) throws(ImageError) -> RasterImage {
        switch encoding {
        case .png:
            guard component == .float16 else { return self }
            throw ImageError(
                .unsupported, format: .png, "PNG has no half floats: convert the image to 16 bits, which clips it")
        case .jpeg, .webp, .losslessWebP:
            // Eight bits are too few for PQ, HLG and linear light.
            if case .numbers(let numbers) = colorSpace,
                numbers.transfer == 8 || tern_is_toned(UInt32(clamping: numbers.transfer))
            {
                return try converted(to: .sRGB)
            }
            return try converted(to: .asStored(.uint8))
        case .avif, .heic, .jpegXL, .losslessJPEGXL: return try converted(to: .sRGB)
        }
    }
}

#if os(Linux)
#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension RasterImage {
    /// Encodes the image. Synchronous; it cannot be cancelled.
    ///
    /// Throws `.encodingFailed` if the format does not support the size (JPEG up to 65,500 pixels a side, WebP up to
    /// 16,383), and `.unsupported` without an encoder of AVIF, HEIC or JPEG XL, for half floats as PNG, and for a color space
    /// that a file cannot state.
    public func encoded(as encoding: ImageEncoding) throws(ImageError) -> Data {
        try encoded(as: encoding, pngChannels: nil)
    }

    /// - Parameter pngChannels: The number of channels of a PNG; nil for the least that hold the pixels.
    func encoded(as encoding: ImageEncoding, pngChannels: Int32?) throws(ImageError) -> Data {
        if let obstacle = encoding.obstacle { throw ImageError(.unsupported, format: encoding.format, obstacle) }
        let image = try encodable(as: encoding)
        let (profile, numbers) = (image.colorSpace.profile, image.colorSpace.stated)
        if image.colorSpace != .sRGB, profile == nil, encoding.format != .png || numbers == (0, 0) {
            throw ImageError(
                .unsupported, format: encoding.format,
                "\(encoding.format) does not state \(image.colorSpace.words): convert the image first")
        }
        return try unsafe (profile ?? []).withUnsafeBufferPointer { bytes throws(ImageError) in
            let describes = unsafe bytes.baseAddress.map { unsafe tern_icc_describes_colors($0, bytes.count) } ?? false
            guard profile == nil || describes else {
                throw ImageError(
                    .unsupported, format: encoding.format, "the image's ICC profile is none of red, green and blue")
            }
            let colors = unsafe tern_stated_colors(
                profile: profile == nil ? nil : bytes.baseAddress, profileCount: bytes.count,
                primaries: numbers.primaries, transfer: numbers.transfer)
            return try unsafe image.encoded(as: encoding, pngChannels: pngChannels, colors: colors)
        }
    }

    private func encoded(
        as encoding: ImageEncoding, pngChannels: Int32?, colors: tern_stated_colors
    ) throws(ImageError) -> Data {
        let (width, height, row) = (UInt32(size.width), UInt32(size.height), bytesPerRow)
        let bits: Int32 = component == .uint8 ? 8 : 16
        // Premultiplied pixels without alpha are the image over black, as JPEG needs it.
        let straight = encoding.format == .jpeg ? pixels : try straightPixels()
        var count = 0
        var message = [CChar](repeating: 0, count: 200)
        let bytes = unsafe straight.bytes.withUnsafeBufferPointer { source in
            let base = source.baseAddress
            return switch encoding {
            case .jpeg(let quality, let progressive):
                unsafe tern_jpeg_encode(
                    base, row, width, height, Int32(clamping: min(100, max(1, quality))), progressive, colors,
                    &count, &message)
            case .png(let level):
                unsafe tern_png_encode(
                    base, row, width, height, bits,
                    // A profile of colors is not for greys.
                    max(
                        pngChannels ?? tern_png_channels(base, row, width, height, bits),
                        colors.profile == nil ? 1 : isOpaque ? 3 : 4),
                    Int32(clamping: min(9, max(1, level))), colors, &count, &message)
            case .webp(let quality):
                unsafe tern_webp_encode(
                    base, row, width, height, Float(min(100, max(0, quality))), false, colors, &count,
                    &message)
            case .losslessWebP:
                unsafe tern_webp_encode(base, row, width, height, 100, true, colors, &count, &message)
            case .avif(let quality, let speed):
                unsafe avif(base, quality: quality, speed: speed, count: &count, message: &message)
            case .heic(let quality, let speed):
                unsafe heic(base, quality: quality, speed: speed, count: &count, message: &message)
            case .jpegXL(let quality, let speed):
                unsafe jpegXL(base, quality: quality, speed: speed, count: &count, message: &message)
            case .losslessJPEGXL(let speed):
                unsafe jpegXL(base, quality: nil, speed: speed, count: &count, message: &message)
            }
        }
        guard let bytes = unsafe bytes else {
            let text = String(decoding: message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            throw ImageError(
                .encodingFailed, format: encoding.format, "\(size) pixels: \(text.isEmpty ? "no memory" : text)")
        }
        defer { unsafe tern_codec_free(bytes) }
        return unsafe Data(bytes: bytes, count: count)
    }
}
#endif

#if canImport(ImageIO)
import CoreGraphics
public import Foundation
import ImageIO
import UniformTypeIdentifiers

extension RasterImage {
    /// Encodes the image. Synchronous; it cannot be cancelled.
    ///
    /// Throws `.unsupported` for other formats than JPEG and PNG, and `.encodingFailed` if ImageIO refuses, for example a
    /// JPEG with more than 65,500 pixels a side.
    public func encoded(as encoding: ImageEncoding) throws(ImageError) -> Data {
        try encodable(as: encoding).written(as: encoding)
    }

    private func written(as encoding: ImageEncoding) throws(ImageError) -> Data {
        let data = NSMutableData()
        let type: UTType
        let image: CGImage?
        var properties: [CFString: Any] = [:]
        switch encoding {
        case .jpeg(let quality, let progressive):
            type = .jpeg
            // Premultiplied pixels without alpha are the image over black.
            image = pixels.image(size, .noneSkipLast)
            properties[kCGImageDestinationLossyCompressionQuality] = Double(min(100, max(1, quality))) / 100
            properties[kCGImagePropertyJFIFDictionary] = imageIODictionary([
                kCGImagePropertyJFIFIsProgressive: progressive
            ])
        case .png:
            type = .png
            image = isOpaque ? pixels.image(size, .noneSkipLast) : try straightPixels().image(size, .last)
        case .webp, .losslessWebP, .avif, .heic, .jpegXL, .losslessJPEGXL:
            throw ImageError(
                .unsupported, format: encoding.format,
                "Tern writes PNG, JPEG and GIF on Apple's systems: encode as one of these")
        }
        let identifier = NSString(string: type.identifier)
        guard let image,
            let destination = CGImageDestinationCreateWithData(
                data as CFMutableData, identifier as CFString, 1, nil)
        else {
            throw ImageError(
                .encodingFailed, format: encoding.format, "\(size) pixels: ImageIO could not create the file")
        }
        CGImageDestinationAddImage(destination, image, imageIODictionary(properties))
        guard CGImageDestinationFinalize(destination) else {
            throw ImageError(
                .encodingFailed, format: encoding.format, "\(size) pixels: ImageIO could not finish the file")
        }
        return Data(referencing: data)
    }
}

/// Returns options or properties in the form that ImageIO takes.
func imageIODictionary(_ values: [CFString: Any]) -> CFDictionary { NSDictionary(dictionary: values) as CFDictionary }
#endif
