#if os(Linux)
import CTernCodecs

/// What is done about a file's colour profile.
struct ColorUse {
    let metadata: RasterImage.Metadata.ColorProfile
    /// The conversion that is still to be made; nil if there is none, or it has been made.
    var conversion: ColorConversion?

    static var none: ColorUse { ColorUse(metadata: .none) }
    static var notApplied: ColorUse { ColorUse(metadata: .notApplied) }
}

/// A conversion to sRGB by the profile of one file.
///
/// Safe to use: the handle is its own and freed in deinit.
@safe
final class ColorConversion {
    let handle: OpaquePointer

    /// Whether lcms2 is there to convert.
    static var isAvailable: Bool { tern_icc_available() }

    init(_ handle: OpaquePointer) { unsafe self.handle = handle }

    deinit { unsafe tern_icc_close(handle) }
}

extension CodecCall {
    /// Looks at the profile that a codec gives: its bytes, their count and what the samples are.
    func color(
        _ info: tern_codec_info,
        profile: (UnsafeMutablePointer<Int>, UnsafeMutablePointer<Int32>) -> UnsafePointer<UInt8>?
    ) -> ColorUse {
        guard info.hasProfile else { return .none }
        var count = 0
        var channels: Int32 = 0
        guard options.colorConversion, let bytes = unsafe profile(&count, &channels) else { return .notApplied }
        var isPlain = false
        guard let handle = unsafe tern_icc_open(bytes, count, channels, &isPlain) else {
            return isPlain ? ColorUse(metadata: .converted) : .notApplied
        }
        return ColorUse(metadata: .converted, conversion: unsafe ColorConversion(handle))
    }

    /// Converts straight pixels in place, looking for cancellation in between.
    func convert(
        _ pixels: UnsafeMutablePointer<UInt8>, _ size: PixelSize, _ conversion: ColorConversion
    ) throws(ImageError) {
        let stride = size.width * 4
        for row in Swift.stride(from: 0, to: size.height, by: 64) {
            try checkCancellation()
            let rows = UInt32(min(64, size.height - row))
            unsafe tern_icc_convert(
                conversion.handle, pixels + row * stride, stride, UInt32(size.width), rows)
        }
    }

    /// Premultiplies what a codec gave, in place. Colours are converted before, which has to be.
    func premultiply(
        _ pixels: UnsafeMutablePointer<UInt8>, _ size: PixelSize, _ color: inout ColorUse
    ) throws(ImageError) {
        if let conversion = color.conversion { try unsafe convert(pixels, size, conversion) }
        color.conversion = nil
        if options.keepsStraightAlpha { return }
        unsafe tern_premultiply(pixels, size.width * 4, UInt32(size.width), UInt32(size.height))
    }

    /// An opaque picture in sRGB: converted last, when its pixels are fewest.
    func converted(_ image: RasterImage, _ conversion: ColorConversion) throws(ImageError) -> RasterImage {
        let pixels = try unsafe PixelBuffer(count: image.byteCount) { (base) throws(ImageError) in
            unsafe image.pixels.bytes.withUnsafeBufferPointer { source in
                if let from = source.baseAddress { unsafe base.initialize(from: from, count: source.count) }
            }
            try unsafe convert(base, image.size, conversion)
        }
        return RasterImage(
            pixels: pixels, size: image.size, format: image.format, metadata: image.metadata, scale: image.scale)
    }
}
#endif
