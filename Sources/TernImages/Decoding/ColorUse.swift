#if os(Linux)
import CTernCodecs

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The treatment of a file's color profile.
struct ColorUse {
    let metadata: RasterImage.Metadata.ColorProfile
    /// The conversion that remains; nil if there is none, or it is done.
    var conversion: ColorConversion?
    /// The space of the pixels after the conversion.
    var space = ImageColorSpace.sRGB

    /// Takes the conversion if it is one of inks.
    mutating func takeInk() -> ColorConversion? { conversion?.isInk == true ? conversion.take() : nil }
}

/// A conversion from the profile of one file to sRGB or Display P3.
///
/// It is safe to use, because it owns its handle and frees it in deinit.
@safe
final class ColorConversion {
    let handle: OpaquePointer
    /// Whether it converts inks, row by row in the codec.
    let isInk: Bool

    /// Whether lcms2 is available.
    static var isAvailable: Bool { tern_icc_available() }

    init(_ handle: OpaquePointer, isInk: Bool = false) {
        unsafe self.handle = handle
        self.isInk = isInk
    }

    deinit { unsafe tern_icc_close(handle) }
}

extension CodecCall {
    /// Examines the colors that a file states by a profile, which the codec gives as its bytes, their count and the kind
    /// of the samples, or else by numbers.
    func color(
        _ info: tern_codec_info,
        profile: (UnsafeMutablePointer<Int>, UnsafeMutablePointer<Int32>) -> UnsafePointer<UInt8>?
    ) -> ColorUse {
        var (count, channels) = (0, Int32(0))
        let bytes = unsafe info.hasProfile ? profile(&count, &channels) : nil
        let file = unsafe UnsafeBufferPointer(start: bytes, count: bytes == nil ? 0 : count)
        if case .asStored = options.color { return unsafe storedColor(info, profile: file, channels: channels) }
        let space: ImageColorSpace = options.color == .displayP3 ? .displayP3 : .sRGB
        let isFine = info.isDeep
        switch unsafe conversion(of: info, profile: file, channels: channels, to: space, isFine: isFine) {
        case .none:
            // Numbers of sRGB say the same as none.
            let isStated = info.hasProfile || (info.hasColor && space != .sRGB)
            return ColorUse(metadata: isStated ? .converted : .none, space: space)
        case .some(let found): return ColorUse(metadata: .converted, conversion: found, space: space)
        case .unknown:
            // Pixels without a usable profile count as sRGB.
            var use = ColorUse(metadata: info.hasProfile || info.hasColor ? .notApplied : .none, space: space)
            guard space != .sRGB else { return use }
            if case .some(let found) = ColorConversion.from(.sRGB, to: space, isFine: isFine) {
                use.conversion = found
            }
            return use
        }
    }

    /// Examines the colors of a format that states none.
    func plainColor(_ info: tern_codec_info) -> ColorUse { unsafe color(info) { _, _ in nil } }

    /// Finds the conversion of a file's colors to a space. Unknown for a file without a profile and numbers.
    private func conversion(
        of info: tern_codec_info, profile: UnsafeBufferPointer<UInt8>, channels: Int32, to space: ImageColorSpace,
        isFine: Bool
    ) -> ColorConversion.Found {
        let target = tern_color_target(isP3: space == .displayP3, isFine: isFine)
        var isPlain = false
        var handle: OpaquePointer?
        if let base = profile.baseAddress {
            unsafe handle = tern_icc_open(base, profile.count, channels, target, &isPlain)
        } else if !info.hasProfile, info.hasColor {
            var color = info.color
            unsafe handle = tern_color_open(&color, target, &isPlain)
        }
        if isPlain { return .none }
        let isInk = channels == Int32(TERN_CHANNELS_INK)
        return unsafe handle.map { .some(unsafe ColorConversion($0, isInk: isInk)) } ?? .unknown
    }

    /// Examines the colors of a file whose pixels stay in its own space.
    private func storedColor(
        _ info: tern_codec_info, profile: UnsafeBufferPointer<UInt8>, channels: Int32
    ) -> ColorUse {
        guard info.hasProfile || info.hasColor else { return ColorUse(metadata: .none) }
        let profile = unsafe Self.unpadded(profile)
        // The codec mixes inks without their profile.
        if channels == Int32(TERN_CHANNELS_INK) { return ColorUse(metadata: .notApplied) }
        let usual = unsafe conversion(of: info, profile: profile, channels: channels, to: .sRGB, isFine: false)
        if case .none = usual { return ColorUse(metadata: info.hasProfile ? .converted : .none) }
        let wide = unsafe conversion(of: info, profile: profile, channels: channels, to: .displayP3, isFine: false)
        if case .none = wide { return ColorUse(metadata: .kept, space: .displayP3) }
        // Without lcms2, a profile of tables is kept unread.
        let describes = unsafe profile.baseAddress.map { unsafe tern_icc_describes_colors($0, profile.count) } ?? false
        guard usual.isSome || !ColorConversion.isAvailable && describes else {
            return ColorUse(metadata: .notApplied)
        }
        if let base = profile.baseAddress {
            let isGrey = unsafe profile[16..<20].elementsEqual("GRAY".utf8)
            guard isGrey else {
                return ColorUse(metadata: .kept, space: .profile(unsafe Data(buffer: profile)))
            }
            var made = 0
            // A profile of greys does not describe pixels of colors.
            let colored = unsafe tern_icc_from_grey(base, profile.count, &made)
            return unsafe kept(colored, made)
        }
        var color = info.color
        if color.power > 0 || color.points.7 > 0 {
            var made = 0
            let written = unsafe tern_color_profile(&color, &made)
            return unsafe kept(written, made)
        }
        let numbers = ImageColorSpace.Numbers(
            primaries: Int(color.primaries), transfer: Int(color.transfer), peak: color.peak > 0 ? color.peak : nil)
        return ColorUse(metadata: .kept, space: .numbers(numbers))
    }

    /// Returns the profile without bytes behind the number that it states.
    private static func unpadded(_ profile: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8> {
        guard profile.count >= 132 else { return unsafe profile }
        let stated = unsafe profile[..<4].reduce(0) { $0 << 8 | Int($1) }
        guard stated >= 132, stated < profile.count else { return unsafe profile }
        return unsafe UnsafeBufferPointer(rebasing: profile[..<stated])
    }

    /// Takes ownership of the bytes of a profile.
    private func kept(_ profile: UnsafeMutablePointer<UInt8>?, _ count: Int) -> ColorUse {
        guard let profile = unsafe profile else { return ColorUse(metadata: .notApplied) }
        defer { unsafe tern_codec_free(profile) }
        return ColorUse(metadata: .kept, space: .profile(unsafe Data(bytes: profile, count: count)))
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
        // Components of another kind are made of straight ones.
        if options.keepsStraightAlpha || options.color.component != .uint8 { return }
        unsafe tern_premultiply(pixels, size.width * 4, UInt32(size.width), UInt32(size.height))
    }

    /// Returns an opaque image with converted colors. It is converted last, when it has the fewest pixels.
    func converted(_ image: RasterImage, _ conversion: ColorConversion) throws(ImageError) -> RasterImage {
        let pixels = try unsafe PixelBuffer(count: image.byteCount, form: image.pixels.form) {
            (base) throws(ImageError) in
            unsafe image.pixels.bytes.withUnsafeBufferPointer { source in
                if let from = source.baseAddress { unsafe base.initialize(from: from, count: source.count) }
            }
            try unsafe convert(base, size: image.size, by: conversion)
        }
        return image.with(pixels, image.size)
    }

    /// The bytes of a pixel that a codec writes.
    func codecBytes(_ info: tern_codec_info) -> Int { info.isDeep ? 8 : 4 }

    /// The form of a codec's pixels, whose colors are converted later.
    func codecForm(_ info: tern_codec_info, _ color: ColorUse) -> PixelForm {
        PixelForm(component: info.isDeep ? .uint16 : .uint8, space: color.space)
    }

    /// Gives the pixels of a codec the components of the options, premultiplied. Pixels of 16 bits that are to have 8 are
    /// converted on the way.
    ///
    /// The codec's pixels are straight, except bytes that are wanted as bytes: those are premultiplied already, and returned
    /// unchanged.
    func settled(
        _ pixels: PixelBuffer, size: PixelSize, info: tern_codec_info, color: inout ColorUse
    ) throws(ImageError) -> PixelBuffer {
        let wanted = options.color.component
        guard info.isDeep || wanted != .uint8 else { return pixels }
        let (made, width) = (pixels.form.component, UInt32(size.width))
        let conversion = wanted == .uint8 ? color.conversion.take() : nil
        let form = PixelForm(component: wanted, space: color.space)
        let row = (source: size.width * made.bytesPerPixel, target: size.width * wanted.bytesPerPixel)
        return try unsafe PixelBuffer(count: row.target * size.height, form: form) { (base) throws(ImageError) in
            for first in Swift.stride(from: 0, to: size.height, by: 64) {
                try checkCancellation()
                let rows = min(64, size.height - first)
                let (count, target) = unsafe (rows * size.width, base + first * row.target)
                unsafe pixels.bytes.withUnsafeBufferPointer { bytes in
                    guard let start = bytes.baseAddress else { return }
                    let source = unsafe start + first * row.source
                    if wanted == .uint8 {
                        unsafe tern_icc_convert_deep(
                            conversion?.handle, source, made.samples, false, target, count)
                    } else {
                        unsafe tern_convert_samples(source, made.samples, target, wanted.samples, count * 4)
                    }
                }
                if options.keepsStraightAlpha { continue }
                if wanted == .uint8 {
                    unsafe tern_premultiply(target, row.target, width, UInt32(rows))
                } else {
                    unsafe tern_premultiply_deep(target, wanted.samples, count)
                }
            }
        }
    }
}
#endif
