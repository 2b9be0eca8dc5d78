import CTernCodecs

extension RasterImage {
    /// Returns the image in sRGB or Display P3 with 8 bits a component, or with another component in its own space.
    ///
    /// An image that is already as wanted is returned itself. Colors outside the space are clipped, and so is light
    /// brighter than white, except that of PQ and HLG images, which is mapped below it by ITU-R BT.2390. Checks the task's
    /// cancellation every 64 rows.
    ///
    /// - Throws: The kinds `.cancelled`, `.outOfMemory`, `.limitExceeded` if the result takes more than 512 MiB, and
    ///   `.unsupported` for a space that cannot be converted: unknown numbers, a damaged profile, or one of tables
    ///   without lcms2.
    public func converted(to color: ImageDecodingOptions.Color) throws(ImageError) -> RasterImage {
        switch color {
        case .asStored(let component): try with(component)
        case .sRGB: try inSpace(.sRGB)
        case .displayP3: try inSpace(.displayP3)
        }
    }

    private func with(_ component: Component) throws(ImageError) -> RasterImage {
        if component == self.component { return self }
        let form = PixelForm(component: component, space: colorSpace)
        try checkMemory(size, bytesPerPixel: component.bytesPerPixel, work: 0)
        let made = try unsafe PixelBuffer(count: size.pixelCount * component.bytesPerPixel, form: form) {
            (base) throws(ImageError) in
            try unsafe forEachRows { source, first, count in
                let place = first * size.width
                // Premultiplied components keep their proportions to alpha.
                unsafe tern_convert_samples(
                    source, self.component.samples, base + place * component.bytesPerPixel, component.samples,
                    count * size.width * 4)
            }
        }
        return with(made, size)
    }

    /// Calls the closure with the bytes of groups of 64 rows. Checks the cancellation of the task between the groups.
    private func forEachRows(
        _ body: (_ source: UnsafePointer<UInt8>, _ first: Int, _ count: Int) -> Void
    ) throws(ImageError) {
        let outcome: Result<Void, ImageError> = unsafe pixels.bytes.withUnsafeBufferPointer { source in
            guard let start = source.baseAddress else { return .success(()) }
            return Result { () throws(ImageError) in
                try forEachGroup(of: size.height) { first, count in
                    unsafe body(start + Int(first) * bytesPerRow, Int(first), Int(count))
                    return true
                }
            }
        }
        try outcome.get()
    }
}

#if os(Linux)
#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension RasterImage {
    /// Returns the image in sRGB or Display P3 with 8 bits a component.
    private func inSpace(_ space: ImageColorSpace) throws(ImageError) -> RasterImage {
        let form = PixelForm(space: space)
        if pixels.form == form { return self }
        var made = self
        if metadata.colorProfile == .kept { made.metadata.colorProfile = .converted }
        if colorSpace == space { return try made.converted(to: .asStored(.uint8)) }
        let conversion: ColorConversion
        switch ColorConversion.from(colorSpace, to: space, isFine: component != .uint8) {
        case .none: return try made.converted(to: .asStored(.uint8)).labeled(form)
        case .unknown:
            throw ImageError(
                .unsupported, format: format, "an image in \(colorSpace.words) cannot be converted to \(space.words)")
        case .some(let found): conversion = found
        }
        try checkMemory(size, bytesPerPixel: 4, work: 0)
        let buffer = try unsafe PixelBuffer(count: size.pixelCount * 4, form: form) { (base) throws(ImageError) in
            try unsafe forEachRows { source, first, count in
                let (target, width) = unsafe (base + first * size.width * 4, UInt32(size.width))
                if component == .uint8 {
                    unsafe tern_unpremultiply(source, target, count * size.width)
                    unsafe tern_icc_convert(conversion.handle, target, size.width * 4, width, UInt32(count))
                } else {
                    unsafe tern_icc_convert_deep(
                        conversion.handle, source, component.samples, true, target, count * size.width)
                }
                unsafe tern_premultiply(target, size.width * 4, width, UInt32(count))
            }
        }
        return made.with(buffer, size)
    }

    /// Returns the same bytes with another meaning.
    private func labeled(_ form: PixelForm) -> RasterImage { with(pixels.labeled(form), size) }
}

extension ColorConversion {
    /// A conversion between two spaces: none if they are the same, unknown if it is not supported.
    enum Found {
        case none
        case unknown
        case some(ColorConversion)

        var isSome: Bool { if case .some = self { true } else { false } }
    }

    /// Finds the conversion from a space to sRGB or Display P3.
    static func from(_ space: ImageColorSpace, to target: ImageColorSpace, isFine: Bool) -> Found {
        let target = tern_color_target(isP3: target == .displayP3, isFine: isFine)
        var isPlain = false
        let handle: OpaquePointer?
        if case .profile(let data) = space {
            unsafe handle = data.withUnsafeBytes { bytes in
                unsafe tern_icc_open(
                    bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count, Int32(TERN_CHANNELS_RGB),
                    target, &isPlain)
            }
        } else {
            var numbers = space.codeNumbers
            unsafe handle = tern_color_open(&numbers, target, &isPlain)
        }
        if isPlain { return .none }
        return unsafe handle.map { .some(unsafe ColorConversion($0)) } ?? .unknown
    }
}

extension ImageColorSpace {
    /// The numbers of a space for the C functions; those of sRGB for a profile.
    var codeNumbers: tern_color_numbers {
        var numbers = tern_color_numbers()
        (numbers.primaries, numbers.transfer) = (1, 13)
        switch self {
        case .sRGB, .profile: break
        case .displayP3: numbers.primaries = 12
        case .numbers(let stated):
            // A number beyond those of the standard is not supported.
            numbers.primaries = UInt16(clamping: stated.primaries < 0 ? .max : stated.primaries)
            numbers.transfer = UInt16(clamping: stated.transfer < 0 ? .max : stated.transfer)
            numbers.peak = stated.peak.map { $0.isFinite ? max(0, $0) : 0 } ?? 0
        }
        return numbers
    }

    /// The numbers that a PNG states for the space; zeros if it has none.
    var stated: (primaries: UInt8, transfer: UInt8) {
        switch self {
        case .sRGB, .profile: (0, 0)
        case .displayP3: (12, 13)
        case .numbers(let numbers):
            if let primaries = UInt8(exactly: numbers.primaries), let transfer = UInt8(exactly: numbers.transfer) {
                (primaries, transfer)
            } else {
                (0, 0)
            }
        }
    }

    /// The profile that a file states for the space; nil for sRGB, and for a space without a profile.
    var profile: [UInt8]? {
        switch self {
        case .sRGB: return nil
        case .profile(let data): return [UInt8](data)
        case .displayP3, .numbers:
            var (numbers, count) = (codeNumbers, 0)
            guard let bytes = unsafe tern_color_profile(&numbers, &count) else { return nil }
            defer { unsafe tern_codec_free(bytes) }
            return unsafe [UInt8](UnsafeBufferPointer(start: bytes, count: count))
        }
    }
}
#endif
