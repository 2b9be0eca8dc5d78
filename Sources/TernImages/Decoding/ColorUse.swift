#if os(Linux)
import CTernCodecs

/// The treatment of a file's color profile.
struct ColorUse {
    let metadata: RasterImage.Metadata.ColorProfile
    /// The conversion that remains; nil if there is none, or it is done.
    var conversion: ColorConversion?

    static var none: ColorUse { ColorUse(metadata: .none) }
    static var notApplied: ColorUse { ColorUse(metadata: .notApplied) }
}

/// A conversion from the profile of one file to sRGB.
///
/// It is safe to use, because it owns its handle and frees it in deinit.
@safe
final class ColorConversion {
    let handle: OpaquePointer

    /// Whether lcms2 is available.
    static var isAvailable: Bool { tern_icc_available() }

    init(_ handle: OpaquePointer) { unsafe self.handle = handle }

    deinit { unsafe tern_icc_close(handle) }
}

extension CodecCall {
    /// Examines the colors that a file states by a profile, which the codec gives as its bytes, their count and the kind
    /// of the samples, or else by numbers.
    func color(
        _ info: tern_codec_info,
        profile: (UnsafeMutablePointer<Int>, UnsafeMutablePointer<Int32>) -> UnsafePointer<UInt8>?
    ) -> ColorUse {
        guard info.hasProfile || info.hasColor else { return .none }
        var isPlain = false
        let handle: OpaquePointer?
        if info.hasProfile {
            var count = 0
            var channels: Int32 = 0
            guard options.colorConversion, let bytes = unsafe profile(&count, &channels) else { return .notApplied }
            unsafe handle = tern_icc_open(bytes, count, channels, &isPlain)
            if isPlain { return ColorUse(metadata: .converted) }
        } else {
            var color = info.color
            unsafe handle = tern_color_open(&color, &isPlain)
            if isPlain { return .none }
        }
        guard options.colorConversion, let handle = unsafe handle else { return .notApplied }
        return ColorUse(metadata: .converted, conversion: unsafe ColorConversion(handle))
    }

    /// Converts straight pixels in place and checks the task's cancellation in between.
    func convert(
        _ pixels: UnsafeMutablePointer<UInt8>, size: PixelSize, by conversion: ColorConversion
    ) throws(ImageError) {
        let stride = size.width * 4
        for row in Swift.stride(from: 0, to: size.height, by: 64) {
            try checkCancellation()
            let rows = UInt32(min(64, size.height - row))
            unsafe tern_icc_convert(
                conversion.handle, pixels + row * stride, stride, UInt32(size.width), rows)
        }
    }

    /// Premultiplies the pixels of a codec in place. Colors are converted before, because conversion needs straight
    /// pixels.
    func premultiply(
        _ pixels: UnsafeMutablePointer<UInt8>, size: PixelSize, color: inout ColorUse
    ) throws(ImageError) {
        if let conversion = color.conversion { try unsafe convert(pixels, size: size, by: conversion) }
        color.conversion = nil
        if options.keepsStraightAlpha { return }
        unsafe tern_premultiply(pixels, size.width * 4, UInt32(size.width), UInt32(size.height))
    }

    /// Returns an opaque image in sRGB. It is converted last, when it has the fewest pixels.
    func converted(_ image: RasterImage, _ conversion: ColorConversion) throws(ImageError) -> RasterImage {
        let pixels = try unsafe PixelBuffer(count: image.byteCount) { (base) throws(ImageError) in
            unsafe image.pixels.bytes.withUnsafeBufferPointer { source in
                if let from = source.baseAddress { unsafe base.initialize(from: from, count: source.count) }
            }
            try unsafe convert(base, size: image.size, by: conversion)
        }
        return RasterImage(
            pixels: pixels, size: image.size, format: image.format, metadata: image.metadata, scale: image.scale)
    }
}
#endif
