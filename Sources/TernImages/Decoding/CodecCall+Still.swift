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
        var color = unsafe color(info) { unsafe tern_jpeg_profile(handle, $0, $1) }
        let plan = plan(info)
        let least = stored(plan.codecSize(of: upright(info)), info)
        var (width, height): (UInt32, UInt32) = (0, 0)
        let scans = Int32(clamping: options.limits.scans)
        _ = try unsafe step {
            unsafe tern_jpeg_start(
                handle, UInt32(least.width), UInt32(least.height), scans, &width, &height, $0)
        }
        let size = PixelSize(width: Int(width), height: Int(height))
        // Inks are converted as they are read, there is no way from their mixture.
        let ink = info.isInk ? color.conversion : nil
        if let ink { unsafe tern_jpeg_ink(handle, ink.handle) }
        defer { withExtendedLifetime(ink) {} }
        if info.isInk { color.conversion = nil }
        var isPartial = false
        let (target, window) = try unsafe window(size, stored(plan.scaled, info))
        defer { unsafe tern_resize_close(window) }
        let pixels = try unsafe PixelBuffer(count: target.pixelCount * 4, cleared: options.allowsPartial) {
            (base) throws(ImageError) in
            let canvas = unsafe canvas(base, target)
            do throws(ImageError) {
                try unsafe run { unsafe tern_jpeg_prepare(handle, $0) }
                try unsafe run { text in
                    unsafe window == nil
                        ? tern_jpeg_rows(handle, canvas, rowGroup, text)
                        : tern_jpeg_resized(handle, window, canvas, rowGroup, text)
                }
                _ = try unsafe step { unsafe tern_jpeg_verdict(handle, $0) }
            } catch {
                guard tolerates(error) else { throw error }
                isPartial = true
            }
            if isPartial { try unsafe end(base, target, window, &color) }
        }
        return try finish(pixels, target, info, plan, isPartial, color)
    }

    func png(_ bytes: UnsafePointer<UInt8>, _ count: Int) throws(ImageError) -> RasterImage {
        var info = tern_codec_info()
        let handle = try unsafe open { unsafe tern_png_open(bytes, count, &info, $0, $1) }
        defer { unsafe tern_png_close(handle) }
        try check(info)
        var color = unsafe color(info) { unsafe tern_png_profile(handle, $0, $1) }
        let size = PixelSize(width: Int(info.width), height: Int(info.height))
        var isPartial = false
        let plan = plan(info)
        // Passes go over the whole picture, and straight colours are converted before they are premultiplied.
        let isWhole = unsafe tern_png_interlaced(handle) || (info.hasAlpha && color.conversion != nil)
        let (target, window) = try unsafe window(size, isWhole ? size : stored(plan.scaled, info))
        defer { unsafe tern_resize_close(window) }
        let pixels = try unsafe PixelBuffer(count: target.pixelCount * 4, cleared: options.allowsPartial) {
            (base) throws(ImageError) in
            let canvas = unsafe canvas(base, target)
            do throws(ImageError) {
                try unsafe run { text in
                    unsafe window == nil
                        ? tern_png_rows(handle, canvas, rowGroup, text)
                        : tern_png_resized(handle, window, canvas, rowGroup, text)
                }
            } catch {
                guard tolerates(error) else { throw error }
                isPartial = true
            }
            if info.hasAlpha || isPartial { try unsafe end(base, target, window, &color) }
        }
        return try finish(pixels, target, info, plan, isPartial, color)
    }

    func webp(_ bytes: UnsafePointer<UInt8>, _ count: Int) throws(ImageError) -> RasterImage {
        var info = tern_codec_info()
        let handle = try unsafe open { unsafe tern_webp_open(bytes, count, &info, $0, $1) }
        defer { unsafe tern_webp_close(handle) }
        try check(info)
        if info.frameCount > 1 {
            return try unsafe CodecFrames(copying: bytes, count, call: self).frame(at: 0).image
        }
        var color = unsafe color(info) { unsafe tern_webp_profile(handle, $0, $1) }
        let plan = plan(info)
        let size = stored(plan.codecSize(of: upright(info)), info)
        var isPartial = false
        let pixels = try unsafe PixelBuffer(count: size.pixelCount * 4, cleared: options.allowsPartial) {
            (base) throws(ImageError) in
            let canvas = unsafe canvas(base, size)
            _ = try unsafe step { unsafe tern_webp_start(handle, canvas, $0) }
            do throws(ImageError) {
                try unsafe run { unsafe tern_webp_step(handle, $0) }
            } catch {
                guard tolerates(error) else { throw error }
                isPartial = true
            }
            if info.hasAlpha || isPartial { try unsafe premultiply(base, size, &color) }
        }
        return try finish(pixels, size, info, plan, isPartial, color)
    }

    /// What resizes rows while a codec writes them, so that no more of the picture is kept than a few: nil if the size
    /// is the target already.
    private func window(_ size: PixelSize, _ target: PixelSize) throws(ImageError) -> (PixelSize, OpaquePointer?) {
        if size == target { return (size, nil) }
        let window = unsafe tern_resize_open(
            UInt32(size.width), UInt32(size.height), UInt32(target.width), UInt32(target.height))
        guard let window = unsafe window else {
            throw ImageError(.outOfMemory, format: format, "no memory to resize \(size) to \(target) pixels")
        }
        return unsafe (target, window)
    }

    /// Settles pixels that are not opaque: a window has done so, and takes the rows that never came as empty.
    private func end(
        _ pixels: UnsafeMutablePointer<UInt8>, _ size: PixelSize, _ window: OpaquePointer?, _ color: inout ColorUse
    ) throws(ImageError) {
        guard let window = unsafe window else { return try unsafe premultiply(pixels, size, &color) }
        unsafe tern_resize_finish(window, canvas(pixels, size))
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

    /// Resizes, turns upright, crops and converts what a codec gave, in that order: the fewest pixels are turned and
    /// converted.
    func finish(
        _ pixels: PixelBuffer, _ size: PixelSize, _ info: tern_codec_info, _ plan: DecodingPlan, _ isPartial: Bool,
        _ color: ColorUse? = nil
    ) throws(ImageError) -> RasterImage {
        let metadata = RasterImage.Metadata(
            originalSize: upright(info), orientation: Int(info.orientation),
            colorProfile: color?.metadata ?? (info.hasProfile ? .notApplied : .none), isPartial: isPartial)
        var image = RasterImage(pixels: pixels, size: size, format: format, metadata: metadata)
        image = try image.resized(to: stored(plan.scaled, info))
        image = try image.oriented(Int(info.orientation))
        image = try image.cropped(to: plan.cropped)
        guard let conversion = color?.conversion else { return image }
        return try converted(image, conversion)
    }
}
#endif
