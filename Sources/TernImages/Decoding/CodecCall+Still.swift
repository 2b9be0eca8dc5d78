#if os(Linux)
import CTernCodecs

/// Rows between two looks at the task's cancellation.
private let rowGroup: UInt32 = 64

extension CodecCall {
    func jpeg(_ bytes: UnsafePointer<UInt8>, _ count: Int) throws(ImageError) -> RasterImage {
        var info = tern_codec_info()
        let handle = try unsafe open { unsafe tern_jpeg_open(bytes, count, &info, $0, $1) }
        defer { unsafe tern_jpeg_close(handle) }
        try check(info)
        let plan = plan(info)
        let least = stored(plan.codecSize(of: upright(info)), info)
        var (width, height): (UInt32, UInt32) = (0, 0)
        let scans = Int32(clamping: options.limits.scans)
        _ = try unsafe step {
            unsafe tern_jpeg_start(
                handle, UInt32(least.width), UInt32(least.height), scans, &width, &height, $0)
        }
        let size = PixelSize(width: Int(width), height: Int(height))
        var isPartial = false
        let pixels = try unsafe PixelBuffer(count: size.pixelCount * 4, cleared: options.allowsPartial) {
            (base) throws(ImageError) in
            do throws(ImageError) {
                try unsafe run { unsafe tern_jpeg_prepare(handle, $0) }
                try unsafe run { unsafe tern_jpeg_rows(handle, base, size.width * 4, rowGroup, $0) }
                _ = try unsafe step { unsafe tern_jpeg_verdict(handle, $0) }
            } catch {
                guard tolerates(error) else { throw error }
                isPartial = true
            }
        }
        return try finish(pixels, size, info, plan, isPartial)
    }

    func png(_ bytes: UnsafePointer<UInt8>, _ count: Int) throws(ImageError) -> RasterImage {
        var info = tern_codec_info()
        let handle = try unsafe open { unsafe tern_png_open(bytes, count, &info, $0, $1) }
        defer { unsafe tern_png_close(handle) }
        try check(info)
        let size = PixelSize(width: Int(info.width), height: Int(info.height))
        var isPartial = false
        let pixels = try unsafe PixelBuffer(count: size.pixelCount * 4, cleared: options.allowsPartial) {
            (base) throws(ImageError) in
            do throws(ImageError) {
                try unsafe run { unsafe tern_png_rows(handle, base, size.width * 4, rowGroup, $0) }
            } catch {
                guard tolerates(error) else { throw error }
                isPartial = true
            }
            if info.hasAlpha || isPartial { unsafe tern_premultiply(base, size.width * 4, info.width, info.height) }
        }
        return try finish(pixels, size, info, plan(info), isPartial)
    }

    func webp(_ bytes: UnsafePointer<UInt8>, _ count: Int) throws(ImageError) -> RasterImage {
        var info = tern_codec_info()
        let handle = try unsafe open { unsafe tern_webp_open(bytes, count, &info, $0, $1) }
        defer { unsafe tern_webp_close(handle) }
        try check(info)
        if info.frameCount > 1 {
            return try unsafe CodecFrames(copying: bytes, count, call: self).frame(at: 0).image
        }
        let plan = plan(info)
        let size = stored(plan.codecSize(of: upright(info)), info)
        var isPartial = false
        let pixels = try unsafe PixelBuffer(count: size.pixelCount * 4, cleared: options.allowsPartial) {
            (base) throws(ImageError) in
            let (width, height) = (UInt32(size.width), UInt32(size.height))
            _ = try unsafe step { unsafe tern_webp_start(handle, base, size.width * 4, width, height, $0) }
            do throws(ImageError) {
                try unsafe run { unsafe tern_webp_step(handle, $0) }
            } catch {
                guard tolerates(error) else { throw error }
                isPartial = true
            }
            if info.hasAlpha || isPartial { unsafe tern_premultiply(base, size.width * 4, width, height) }
        }
        return try finish(pixels, size, info, plan, isPartial)
    }

    /// The size as shown.
    func upright(_ info: tern_codec_info) -> PixelSize {
        stored(PixelSize(width: Int(info.width), height: Int(info.height)), info)
    }

    /// Between the size as shown and as stored, either way.
    func stored(_ size: PixelSize, _ info: tern_codec_info) -> PixelSize { info.orientation >= 5 ? size.turned : size }

    func plan(_ info: tern_codec_info) -> DecodingPlan {
        DecodingPlan(size: upright(info), options)
    }

    /// Resizes, turns upright and crops what a codec gave, in that order: the fewest pixels are turned.
    func finish(
        _ pixels: PixelBuffer, _ size: PixelSize, _ info: tern_codec_info, _ plan: DecodingPlan, _ isPartial: Bool
    ) throws(ImageError) -> RasterImage {
        let metadata = RasterImage.Metadata(
            originalSize: upright(info), orientation: Int(info.orientation),
            colorProfile: info.hasProfile ? .notApplied : .none, isPartial: isPartial)
        var image = RasterImage(pixels: pixels, size: size, format: format, metadata: metadata)
        image = try image.resized(to: stored(plan.scaled, info))
        image = try image.oriented(Int(info.orientation))
        return try image.cropped(to: plan.cropped)
    }
}
#endif
