#if os(Linux)
import CTernCodecs

extension CodecCall {
    func bmp(_ bytes: UnsafePointer<UInt8>, _ count: Int) throws(ImageError) -> DecodedPixels {
        var info = tern_codec_info()
        let handle = try unsafe open { unsafe tern_bmp_open(bytes, count, &info, $0, $1) }
        defer { unsafe tern_bmp_close(handle) }
        try check(info)
        let color = unsafe color(info) { unsafe tern_bmp_profile(handle, $0, $1) }
        var decoded = try unsafe picture(info, color) { unsafe tern_bmp_rows(handle, $0, rowGroup, $1) }
        decoded.isComplete = unsafe tern_bmp_has_end(handle)
        return decoded
    }

    func qoi(_ bytes: UnsafePointer<UInt8>, _ count: Int) throws(ImageError) -> DecodedPixels {
        var info = tern_codec_info()
        let handle = try unsafe open { unsafe tern_qoi_open(bytes, count, &info, $0, $1) }
        defer { unsafe tern_qoi_close(handle) }
        try check(info)
        var decoded = try unsafe picture(info, plainColor(info)) { unsafe tern_qoi_rows(handle, $0, rowGroup, $1) }
        decoded.isComplete = unsafe tern_qoi_has_end(handle)
        return decoded
    }

    /// Decodes the first picture of a file.
    func tiff(_ bytes: UnsafePointer<UInt8>, _ count: Int) throws(ImageError) -> DecodedPixels {
        var info = tern_codec_info()
        let limits = feedLimits
        let handle = try unsafe open { unsafe tern_tiff_open(bytes, count, limits, &info, $0, $1) }
        defer { unsafe tern_tiff_close(handle) }
        try check(info)
        if info.isCut, !options.allowsPartial { throw cutError }
        let color = unsafe color(info) { unsafe tern_tiff_profile(handle, $0, $1) }
        var decoded = try unsafe picture(info, color) { unsafe tern_tiff_rows(handle, $0, rowGroup, $1) }
        decoded.isComplete = unsafe tern_tiff_has_end(handle)
        return decoded
    }

    /// Decodes the primary image of a file. libheif cannot be interrupted, so that the task's cancellation counts until
    /// the pixels are decoded.
    func heif(_ bytes: UnsafePointer<UInt8>, _ count: Int) throws(ImageError) -> DecodedPixels {
        var info = tern_codec_info()
        let limits = feedLimits
        do throws(ImageError) {
            let handle = try unsafe open { unsafe tern_heif_open(bytes, count, limits, &info, $0, $1) }
            defer { unsafe tern_heif_close(handle) }
            try check(info)
            let color = unsafe color(info) { unsafe tern_heif_profile(handle, $0, $1) }
            return try unsafe picture(info, color) { unsafe tern_heif_decode(handle, $0, $1) }
        } catch {
            // A box that is cut looks like a faulty one.
            let isWhole = unsafe FileEnd.isReached(by: UnsafeRawBufferPointer(start: bytes, count: count), format)
            guard error.kind == .corrupt, !isWhole else { throw error }
            throw ImageError(.truncated, format: format, error.message)
        }
    }

    /// Decodes the entry that fits the target; without a target the largest one. Errors name the entry.
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
        do throws(ImageError) {
            try check(info)
            if info.isCut, !options.allowsPartial { throw cutError }
            return try unsafe picture(info, plainColor(info)) { unsafe tern_ico_rows(handle, $0, rowGroup, $1) }
        } catch {
            if error.kind == .cancelled { throw error }
            let entry = unsafe tern_ico_entry(handle)
            throw ImageError(error.kind, format: format, "entry \(entry): \(error.message)")
        }
    }

    /// Decodes an image of a codec that writes rows of straight RGBA at the file's own size.
    func picture(
        _ info: tern_codec_info, _ color: ColorUse,
        rows: (tern_canvas, UnsafeMutablePointer<CChar>) -> tern_codec_result
    ) throws(ImageError) -> DecodedPixels {
        let size = PixelSize(width: Int(info.width), height: Int(info.height))
        var (isPartial, color) = (info.isCut, color)
        let plan = plan(info)
        try check(memory(for: info, plan: plan, color: color), info)
        let (bytes, form) = (codecBytes(info), codecForm(info, color))
        let pixels = try unsafe PixelBuffer(
            count: size.pixelCount * bytes, form: form, cleared: options.allowsPartial
        ) { (base) throws(ImageError) in
            let canvas = unsafe canvas(base, size, bytes: bytes)
            do throws(ImageError) {
                try unsafe run { unsafe rows(canvas, $0) }
            } catch {
                guard tolerates(error) else { throw error }
                isPartial = true
            }
            if !info.isDeep, info.hasAlpha || isPartial { try unsafe premultiply(base, size: size, color: &color) }
        }
        return DecodedPixels(
            pixels: pixels, extent: tern_extent(size), info: info, plan: plan, isPartial: isPartial, color: color)
    }
}
#endif
