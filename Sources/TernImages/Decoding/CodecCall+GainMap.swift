#if os(Linux)
import CTernCodecs

extension CodecCall {
    /// Decodes a JPEG with its gain map to linear light; nil if the options do not ask for it, or the file has none.
    func applyingGainMap(_ bytes: UnsafePointer<UInt8>, _ count: Int) throws(ImageError) -> RasterImage? {
        guard case .applied(let headroom) = options.gainMap, options.color == .asStored(.float16) else { return nil }
        var map = tern_gain_map()
        guard format == .jpeg, unsafe tern_gain_map_find(bytes, count, &map) else { return nil }
        var base = options
        base.gainMap = .ignored
        base.color = .asStored()
        base.byteLimit = options.byteLimit.map { $0 / 2 }
        var image = try unsafe CodecCall(format: format, options: base).image(bytes, count)
        if image.metadata.isPartial { return nil }
        if image.colorSpace != .sRGB, image.colorSpace != .displayP3 {
            base.color = .displayP3
            image = try unsafe CodecCall(format: format, options: base).image(bytes, count)
        }
        guard let gains = try unsafe gains(bytes + map.at, map.count, beside: image) else { return nil }
        try checkMemory(of: image, gains)
        let plan = DecodingPlan(size: image.metadata.originalSize, base)
        return try apply(map, gains, to: image, scaledTo: plan.scaled, headroom: headroom)
    }

    /// Decodes the levels of a gain map; nil if they are damaged. The map is stored in the orientation of the picture, and
    /// states none of its own.
    private func gains(
        _ bytes: UnsafePointer<UInt8>, _ count: Int, beside image: RasterImage
    ) throws(ImageError) -> RasterImage? {
        var limits = options.limits
        limits.memory = max(0, options.memoryLimit - image.byteCount)
        let call = CodecCall(format: format, options: ImageDecodingOptions(limits: limits, color: .asStored()))
        do throws(ImageError) {
            return try unsafe call.image(bytes, count).oriented(image.metadata.orientation)
        } catch {
            guard error.kind == .corrupt || error.kind == .truncated || error.kind == .unsupported else { throw error }
            return nil
        }
    }

    /// Refuses a gain map for components that have no light above white.
    func checkGainMap() throws(ImageError) {
        guard case .applied = options.gainMap, options.color != .asStored(.float16) else { return }
        throw ImageError(
            .invalidArgument, format: format, "a gain map is applied to half floats only: options.color decides")
    }

    private func checkMemory(of image: RasterImage, _ gains: RasterImage) throws(ImageError) {
        guard image.byteCount * 3 > options.memoryLimit - gains.byteCount else { return }
        throw ImageError(
            .limitExceeded, format: format,
            "applying a gain map of \(gains.size) pixels to \(image.size) pixels takes more than "
                + "\(options.memoryLimit >> 20) MiB of memory")
    }

    private func apply(
        _ map: tern_gain_map, _ gains: RasterImage, to image: RasterImage, scaledTo scaled: PixelSize, headroom: Double
    ) throws(ImageError) -> RasterImage {
        let size = image.size
        let place = tern_gain_place(
            left: UInt32(max(0, scaled.width - size.width) / 2), top: UInt32(max(0, scaled.height - size.height) / 2),
            width: UInt32(scaled.width), height: UInt32(scaled.height))
        let primaries = image.colorSpace == .displayP3 ? 12 : 1
        let space = ImageColorSpace.numbers(.init(primaries: primaries, transfer: 8))
        let form = PixelForm(component: .float16, space: space)
        let pixels = try unsafe PixelBuffer(count: size.pixelCount * 8, form: form) { (base) throws(ImageError) in
            var map = map
            for first in stride(from: 0, to: size.height, by: 64) {
                try checkCancellation()
                unsafe image.pixels.bytes.withUnsafeBufferPointer { source in
                    unsafe gains.pixels.bytes.withUnsafeBufferPointer { levels in
                        guard let from = source.baseAddress, let gain = levels.baseAddress else { return }
                        unsafe tern_gain_map_apply(
                            &map, image.picture(from), gains.picture(gain), place, headroom, base, UInt32(first), 64)
                    }
                }
            }
        }
        return image.with(pixels, size)
    }
}
#endif
