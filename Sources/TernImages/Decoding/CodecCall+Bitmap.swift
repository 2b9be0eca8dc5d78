#if os(Linux)
import CTernCodecs

/// Rows between two looks at the task's cancellation.
private let rowGroup: UInt32 = 64

extension CodecCall {
    func bmp(_ bytes: UnsafePointer<UInt8>, _ count: Int) throws(ImageError) -> DecodedPixels {
        var info = tern_codec_info()
        let handle = try unsafe open { unsafe tern_bmp_open(bytes, count, &info, $0, $1) }
        defer { unsafe tern_bmp_close(handle) }
        try check(info)
        let color = unsafe color(info) { unsafe tern_bmp_profile(handle, $0, $1) }
        return try unsafe picture(info, color) { unsafe tern_bmp_rows(handle, $0, rowGroup, $1) }
    }

    /// The entry that the target needs, the largest without one.
    func ico(_ bytes: UnsafePointer<UInt8>, _ count: Int) throws(ImageError) -> DecodedPixels {
        var info = tern_codec_info()
        let handle = try unsafe open { unsafe tern_ico_open(bytes, count, &info, $0, $1) }
        defer { unsafe tern_ico_close(handle) }
        if options.targetSize != nil {
            let least = plan(info).scaled
            _ = try unsafe step {
                unsafe tern_ico_choose(handle, UInt32(least.width), UInt32(least.height), &info, $0)
            }
        }
        try check(info)
        if info.isCut, !options.allowsPartial { throw cutError }
        return try unsafe picture(info, .none) { unsafe tern_ico_rows(handle, $0, rowGroup, $1) }
    }

    /// A picture of a codec that writes rows of straight RGBA at the file's own size.
    private func picture(
        _ info: tern_codec_info, _ color: ColorUse,
        rows: (tern_canvas, UnsafeMutablePointer<CChar>) -> tern_codec_result
    ) throws(ImageError) -> DecodedPixels {
        let size = PixelSize(width: Int(info.width), height: Int(info.height))
        var (isPartial, color) = (info.isCut, color)
        let plan = plan(info)
        try check(memory(info, plan, color), info)
        let pixels = try unsafe PixelBuffer(count: size.pixelCount * 4, cleared: options.allowsPartial) {
            (base) throws(ImageError) in
            let canvas = unsafe canvas(base, size)
            do throws(ImageError) {
                try unsafe run { unsafe rows(canvas, $0) }
            } catch {
                guard tolerates(error) else { throw error }
                isPartial = true
            }
            if info.hasAlpha || isPartial { try unsafe premultiply(base, size, &color) }
        }
        return DecodedPixels(
            pixels: pixels, extent: tern_extent(size), info: info, plan: plan, isPartial: isPartial, color: color)
    }
}
#endif
