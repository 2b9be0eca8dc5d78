#if os(Linux)
import CTernCodecs

/// The number of rows between two checks of the task's cancellation.
let rowGroup: UInt32 = 64

/// An image in the form that a codec produced, before it is resized, rotated and converted.
struct DecodedPixels {
    let pixels: PixelBuffer
    /// The visible extent of the pixels, as stored.
    let extent: tern_extent
    let info: tern_codec_info
    let plan: DecodingPlan
    var isPartial = false
    /// Whether the codec has read up to the file's end.
    var isComplete = true
    /// Whether the codec has lost the colors when it scaled the image.
    var hasLostColors = false
    /// The treatment of the color profile.
    var color: ColorUse
    /// Whether the pixels have the components of the options, premultiplied.
    var isSettled = false
}

extension CodecCall {
    /// Decodes the image of a whole file, or the first frame of an animation.
    func image(_ bytes: UnsafePointer<UInt8>, _ count: Int) throws(ImageError) -> RasterImage {
        let bright = try unsafe applyingGainMap(bytes, count)
        var image: RasterImage
        if let bright { image = bright } else { image = try unsafe decodedImage(bytes, count) }
        let isReached = unsafe FileEnd.isReached(by: UnsafeRawBufferPointer(start: bytes, count: count), format)
        image.metadata.isComplete = image.metadata.isComplete && isReached
        return image
    }

    private func decodedImage(_ bytes: UnsafePointer<UInt8>, _ count: Int) throws(ImageError) -> RasterImage {
        // The decoder is closed before the image is finished, because finishing takes memory, too.
        switch format {
        case .jpeg: try finish(try unsafe jpeg(bytes, count))
        case .png where unsafe tern_png_animation(bytes, count) == 2: try unsafe firstFrame(png: bytes, count)
        case .png: try finish(try unsafe png(bytes, count))
        case .webp: try unsafe webp(bytes, count)
        case .bmp: try finish(try unsafe bmp(bytes, count))
        case .ico, .cur: try finish(try unsafe ico(bytes, count))
        case .qoi: try finish(try unsafe qoi(bytes, count))
        case .tiff: try finish(try unsafe tiff(bytes, count))
        case .heic: try finish(try unsafe heif(bytes, count))
        default: try unsafe CodecFrames(copying: bytes, count, call: self).frame(at: 0).image
        }
    }

    /// Decodes the first frame of an animated PNG whose default image is not one of its frames.
    private func firstFrame(png bytes: UnsafePointer<UInt8>, _ count: Int) throws(ImageError) -> RasterImage {
        do throws(ImageError) {
            let frames = try unsafe CodecFrames(copying: bytes, count, call: self)
            let first = try frames.frame(at: 0).image
            if frames.isCut || !first.metadata.isPartial { return first }
        } catch {
            guard leavesStill(error) else { throw error }
        }
        return try finish(try unsafe png(bytes, count))
    }

    /// Returns whether an animated PNG shows its still picture after an error in the chunks of the animation (W3C PNG,
    /// third edition, §4.9). A file that is cut short is truncated instead, even if its still picture is complete.
    func leavesStill(_ error: ImageError) -> Bool { error.kind == .corrupt || tolerates(error) }

    /// The error of a file that ends between two frames.
    var cutError: ImageError { ImageError(.truncated, format: format, "the bytes end before the file does") }

    private func jpeg(_ bytes: UnsafePointer<UInt8>, _ count: Int) throws(ImageError) -> DecodedPixels {
        var info = tern_codec_info()
        let handle = try unsafe open { unsafe tern_jpeg_open(bytes, count, &info, $0, $1) }
        defer { unsafe tern_jpeg_close(handle) }
        try check(info)
        var color = unsafe color(info) { unsafe tern_jpeg_profile(handle, $0, $1) }
        let plan = plan(info)
        let memory = memory(for: info, plan: plan, color: color)
        try check(memory, info)
        let least = stored(plan.codecSize(of: upright(info)), info)
        let scans = Int32(clamping: options.limits.scans)
        _ = try unsafe step {
            unsafe tern_jpeg_start(handle, UInt32(least.width), UInt32(least.height), scans, $0)
        }
        // CMYK is converted row by row, because a blend of its rows cannot be converted afterwards.
        let ink = color.takeInk()
        if let ink { unsafe tern_jpeg_ink(handle, ink.handle) }
        defer { withExtendedLifetime(ink) {} }
        var isPartial = false
        let (target, window) = try unsafe window(memory)
        defer { unsafe tern_resize_close(window) }
        let form = codecForm(info, color)
        let pixels = try unsafe PixelBuffer(
            count: target.pixelCount * 4, form: form, cleared: options.allowsPartial
        ) { (base) throws(ImageError) in
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
            if isPartial { try unsafe finishRows(base, size: target, window: window, color: &color) }
        }
        return DecodedPixels(
            pixels: pixels, extent: unsafe window == nil ? memory.made : tern_extent(target), info: info, plan: plan,
            isPartial: isPartial, color: color)
    }

    private func png(_ file: UnsafePointer<UInt8>, _ count: Int) throws(ImageError) -> DecodedPixels {
        var info = tern_codec_info()
        let handle = try unsafe open { unsafe tern_png_open(file, count, feedLimits, &info, $0, $1) }
        defer { unsafe tern_png_close(handle) }
        try check(info)
        var color = unsafe color(info) { unsafe tern_png_profile(handle, $0, $1) }
        var isPartial = false
        let plan = plan(info)
        let memory = memory(for: info, plan: plan, color: color, isInterlaced: unsafe tern_png_interlaced(handle))
        try check(memory, info)
        let (target, window) = try unsafe window(memory)
        defer { unsafe tern_resize_close(window) }
        let (bytes, form) = (codecBytes(info), codecForm(info, color))
        let size = target.pixelCount * bytes
        let inflatesHere = unsafe window == nil && !info.isDeep
        let room = inflatesHere ? Int(clamping: tern_png_room(info.width, info.height)) : 0
        let isInflated = unsafe !info.isDeep && fits(tern_png_inflate_memory(handle, room), memory)
        let pixels = try unsafe PixelBuffer(
            count: size, room: isInflated ? max(0, room - size) : 0, form: form, cleared: options.allowsPartial
        ) { (base) throws(ImageError) in
            let canvas = unsafe canvas(base, target, bytes: bytes)
            do throws(ImageError) {
                try checkCancellation()
                if isInflated { _ = unsafe tern_png_inflate(handle, room > 0 ? base : nil, room) }
                try unsafe run { text in
                    unsafe window == nil
                        ? tern_png_rows(handle, canvas, rowGroup, text)
                        : tern_png_resized(handle, window, canvas, rowGroup, text)
                }
            } catch {
                guard tolerates(error) else { throw error }
                isPartial = true
            }
            if !info.isDeep, info.hasAlpha || isPartial {
                try unsafe finishRows(base, size: target, window: window, color: &color)
            }
        }
        return DecodedPixels(
            pixels: pixels, extent: tern_extent(target), info: info, plan: plan, isPartial: isPartial, color: color)
    }

    /// Returns whether bytes beside those of an estimate stay within the limit.
    private func fits(_ bytes: UInt64, _ memory: DecodingMemory) -> Bool {
        guard bytes <= UInt64(clamping: options.memoryLimit) else { return false }
        var memory = memory
        let (codec, overflow) = memory.codec.addingReportingOverflow(Int(clamping: bytes))
        memory.codec = codec
        return !overflow && memory.peak <= options.memoryLimit
    }

    private func webp(_ bytes: UnsafePointer<UInt8>, _ count: Int) throws(ImageError) -> RasterImage {
        var picture = try unsafe stillWebP(bytes, count, scales: true)
        if picture?.hasLostColors == true {
            picture = nil
            picture = try unsafe stillWebP(bytes, count, scales: false)
        }
        if let picture { return try finish(picture) }
        return try unsafe CodecFrames(copying: bytes, count, call: self).frame(at: 0).image
    }

    /// Decodes a still WebP image, scaled by libwebp or at its own size; nil for an animation.
    private func stillWebP(
        _ bytes: UnsafePointer<UInt8>, _ count: Int, scales: Bool
    ) throws(ImageError) -> DecodedPixels? {
        var info = tern_codec_info()
        let handle = try unsafe open { unsafe tern_webp_open(bytes, count, &info, $0, $1) }
        defer { unsafe tern_webp_close(handle) }
        try check(info)
        if info.isAnimation { return nil }
        // The orientation is at the end of the file. Without it, the image could have the wrong orientation.
        if info.isCut, !options.allowsPartial { throw cutError }
        var color = unsafe color(info) { unsafe tern_webp_profile(handle, $0, $1) }
        let plan = plan(info)
        var memory = memory(for: info, plan: plan, color: color)
        if !scales { memory.made = tern_extent_whole(info.width, info.height) }
        try check(memory, info)
        let size = memory.made.size
        var isPartial = info.isCut
        let form = codecForm(info, color)
        let pixels = try unsafe PixelBuffer(count: size.pixelCount * 4, form: form, cleared: options.allowsPartial) {
            (base) throws(ImageError) in
            let canvas = unsafe canvas(base, size)
            _ = try unsafe step { unsafe tern_webp_start(handle, canvas, $0) }
            do throws(ImageError) {
                try unsafe run { unsafe tern_webp_step(handle, $0) }
            } catch {
                guard tolerates(error) else { throw error }
                isPartial = true
            }
            if info.hasAlpha || isPartial { try unsafe premultiply(base, size: size, color: &color) }
        }
        return DecodedPixels(
            pixels: pixels, extent: memory.made, info: info, plan: plan, isPartial: isPartial,
            hasLostColors: unsafe tern_webp_has_lost_colors(handle), color: color)
    }

    /// Creates a resizer that works while a codec writes rows, so that only a few rows of the picture are kept. The
    /// resizer is nil if the rows need no resizing, or are resized when all of them are there.
    private func window(_ memory: DecodingMemory) throws(ImageError) -> (PixelSize, OpaquePointer?) {
        let (size, target) = (memory.made.size, memory.scaled)
        guard memory.isResizedInRows else { return (size, nil) }
        let window = unsafe tern_resize_open(memory.made, UInt32(target.width), UInt32(target.height))
        guard let window = unsafe window else {
            throw ImageError(.outOfMemory, format: format, "no memory to resize \(size) to \(target) pixels")
        }
        return unsafe (target, window)
    }

    /// Premultiplies the pixels of a whole image. A window has already done so, and treats missing rows as transparent.
    private func finishRows(
        _ pixels: UnsafeMutablePointer<UInt8>, size: PixelSize, window: OpaquePointer?, color: inout ColorUse
    ) throws(ImageError) {
        guard let window = unsafe window else { return try unsafe premultiply(pixels, size: size, color: &color) }
        unsafe tern_resize_finish(window, canvas(pixels, size))
    }

    /// Returns the size after the orientation is applied.
    func upright(_ info: tern_codec_info) -> PixelSize {
        stored(PixelSize(width: Int(info.width), height: Int(info.height)), info)
    }

    /// Converts a size between the stored and the displayed orientation, in either direction.
    func stored(_ size: PixelSize, _ info: tern_codec_info) -> PixelSize { info.orientation >= 5 ? size.turned : size }

    func plan(_ info: tern_codec_info) -> DecodingPlan {
        DecodingPlan(size: upright(info), options)
    }

    /// Returns the memory that a picture of a whole file needs, and whether it is resized row by row.
    func memory(
        for info: tern_codec_info, plan: DecodingPlan, color: ColorUse, isInterlaced: Bool = false
    ) -> DecodingMemory {
        var memory = DecodingMemory(
            codec: Int(clamping: info.memory), made: codecExtent(info, plan), scaled: stored(plan.scaled, info),
            cropped: stored(plan.cropped, info), isTurned: info.orientation > 1,
            isConverted: color.conversion.map { !$0.isInk } ?? false && !info.hasAlpha)
        memory.isDeep = (info.isDeep, options.color.component != .uint8)
        memory.resizesInLight = options.resizesInLinearLight
        let resizesInRows = memory.isDeep == (false, false) && !memory.resizesInLight
        switch format {
        case .jpeg: memory.isResizedInRows = resizesInRows && memory.made.size != memory.scaled
        case .png:
            // Interlaced passes cover the whole picture, and straight colours are converted before they are
            // premultiplied.
            let isWhole = isInterlaced || (info.hasAlpha && color.conversion != nil)
            memory.isResizedInRows = resizesInRows && !isWhole && memory.made.size != memory.scaled
        case .webp, .bmp, .ico, .cur, .qoi, .heic: break
        default: memory.keepsCodec = true
        }
        return memory
    }

    /// Returns the picture that the codec makes of a file. The decoders of JPEG and WebP scale it.
    func codecExtent(_ info: tern_codec_info, _ plan: DecodingPlan) -> tern_extent {
        let least = stored(plan.codecSize(of: upright(info)), info)
        switch format {
        case .jpeg: return tern_jpeg_scaled(info.width, info.height, UInt32(least.width), UInt32(least.height))
        case .webp where !info.isAnimation: return tern_extent(least)
        default: return tern_extent_whole(info.width, info.height)
        }
    }

    /// Resizes, rotates, crops and converts the result of a codec, in this order, so that the fewest pixels are rotated
    /// and converted. Colors are converted before a resize in their light.
    func finish(_ decoded: consuming DecodedPixels) throws(ImageError) -> RasterImage {
        let (info, plan) = (decoded.info, decoded.plan)
        var color = decoded.color
        let metadata = RasterImage.Metadata(
            originalSize: upright(info), orientation: Int(info.orientation), colorProfile: color.metadata,
            isPartial: decoded.isPartial, isComplete: decoded.isComplete)
        let (extent, isSettled) = (decoded.extent, decoded.isSettled)
        var image = RasterImage(pixels: decoded.pixels, size: extent.size, format: format, metadata: metadata)
        // Each step releases the pixels of the step before.
        _ = consume decoded
        if !isSettled {
            image = image.with(try settled(image.pixels, size: image.size, info: info, color: &color), image.size)
        }
        let isInLight = options.resizesInLinearLight
        if isInLight, let conversion = color.conversion.take() { image = try converted(image, conversion) }
        let target = stored(plan.scaled, info)
        image = try image.resized(to: target, showing: extent, inLinearLight: isInLight && image.hasKnownLight)
        image = try image.oriented(Int(info.orientation))
        image = try image.cropped(to: plan.cropped)
        guard let conversion = color.conversion else { return image }
        return try converted(image, conversion)
    }
}
#endif
