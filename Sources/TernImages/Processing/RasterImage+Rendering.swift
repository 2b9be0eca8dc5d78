import CTernCodecs

extension RasterImage {
    /// Returns the image for the C functions. The pointer is valid only inside the caller's closure.
    @unsafe
    func picture(_ first: UnsafePointer<UInt8>) -> tern_picture {
        unsafe tern_picture(
            pixels: first, stride: bytesPerRow, width: UInt32(size.width), height: UInt32(size.height))
    }

    /// The components of the images that an operation takes.
    enum Components {
        /// Those of 8 bits, in any color space.
        case bytes
        /// All.
        case all
    }

    /// Throws if the operation takes images of 8 bits, and this is another one.
    func check(_ components: Components) throws(ImageError) {
        guard components == .bytes, component != .uint8 else { return }
        throw ImageError(
            .unsupported, format: format,
            "this effect takes images of 8 bits a component, and the image has \(component.words): convert it first")
    }

    /// Returns a color, which is in sRGB, in the color space of the image. A clear one is the same in all.
    func inOwnSpace(_ color: ImageColor) throws(ImageError) -> tern_color {
        if color.alpha == 0 { return ImageColor.clear.codec }
        switch colorSpace {
        case .sRGB: return color.codec
        case .displayP3: return tern_color_in_p3(color.codec)
        case .profile, .numbers: throw needsKnownSpace
        }
    }

    /// The error of an effect that needs the meaning of colors.
    var needsKnownSpace: ImageError {
        ImageError(
            .unsupported, format: format,
            "this effect takes images in sRGB or Display P3, and the image is in \(colorSpace.words): convert it first")
    }

    /// Checks the memory of a result. Throws if the size is invalid for an image, or if the image and `work`, both in
    /// bytes, exceed the limit of a processor.
    ///
    /// - Parameter bytesPerPixel: The bytes of a pixel of the result; nil for those of this image.
    func checkMemory(_ target: PixelSize, bytesPerPixel: Int? = nil, work: Int) throws(ImageError) {
        let each = bytesPerPixel ?? self.bytesPerPixel
        guard target.width > 0, target.height > 0, target.pixelCount <= Int(Int32.max) else {
            throw ImageError(.invalidArgument, format: format, "cannot make \(target) pixels of \(size)")
        }
        let limit = ImageDecodingOptions.Limits.fullSizeMemory
        guard target.pixelCount <= limit / each, work <= limit - target.pixelCount * each else {
            throw ImageError(
                .limitExceeded, format: format,
                "making \(target) pixels of \(size) takes more than \(limit >> 20) MiB of memory")
        }
    }

    /// Returns an image of the size with this image's components, color space, scale, format and metadata. The closure
    /// writes its pixels and takes `work` bytes of memory.
    func rendered(
        _ target: PixelSize, of components: Components = .bytes, work: Int = 0,
        by fill: (tern_picture, UnsafeMutablePointer<UInt8>) throws(ImageError) -> Void
    ) throws(ImageError) -> RasterImage {
        try check(components)
        try checkMemory(target, work: work)
        return try unsafe renderedUnchecked(target, by: fill)
    }

    /// Does the same as `rendered` for a size that was already checked.
    private func renderedUnchecked(
        _ target: PixelSize,
        by fill: (tern_picture, UnsafeMutablePointer<UInt8>) throws(ImageError) -> Void
    ) throws(ImageError) -> RasterImage {
        let count = target.pixelCount * bytesPerPixel
        let buffer = try unsafe PixelBuffer(count: count, form: pixels.form) { (base) throws(ImageError) in
            let outcome: Result<Void, ImageError> = unsafe pixels.bytes.withUnsafeBufferPointer { source in
                guard let first = source.baseAddress else { return .success(()) }
                return Result { () throws(ImageError) in try unsafe fill(picture(first), base) }
            }
            try outcome.get()
        }
        return with(buffer, target)
    }

    /// Returns an image of the size, rendered in groups of rows. The closure returns false if there is no memory.
    func renderedByRows(
        _ target: PixelSize, of components: Components = .bytes, work: Int = 0,
        by draw: (_ source: tern_picture, _ result: UnsafeMutablePointer<UInt8>, _ first: UInt32, _ count: UInt32) ->
            Bool
    ) throws(ImageError) -> RasterImage {
        try check(components)
        try checkMemory(target, work: work)
        return try unsafe renderedByRowsUnchecked(target, by: draw)
    }

    /// Does the same as `renderedByRows` for a size that was already checked.
    func renderedByRowsUnchecked(
        _ target: PixelSize,
        by draw: (_ source: tern_picture, _ result: UnsafeMutablePointer<UInt8>, _ first: UInt32, _ count: UInt32) ->
            Bool
    ) throws(ImageError) -> RasterImage {
        try unsafe renderedUnchecked(target) { (source, base) throws(ImageError) in
            try forEachGroup(of: target.height) { unsafe draw(source, base, $0, $1) }
        }
    }

    /// Returns an image of the same size. The closure converts a number of pixels.
    func mappingPixels(
        _ convert: (_ source: UnsafePointer<UInt8>, _ result: UnsafeMutablePointer<UInt8>, _ count: Int) -> Void
    ) throws(ImageError) -> RasterImage {
        try unsafe renderedByRows(size) { source, base, first, count in
            guard let pixels = unsafe source.pixels else { return true }
            let offset = Int(first) * bytesPerRow
            unsafe convert(pixels + offset, base + offset, Int(count) * size.width)
            return true
        }
    }

    /// Calls the closure for groups of 64 rows or columns. Checks the cancellation of the task between the groups.
    func forEachGroup(of total: Int, _ body: (_ first: UInt32, _ count: UInt32) -> Bool) throws(ImageError) {
        for first in stride(from: 0, to: total, by: 64) {
            if Task.isCancelled { throw ImageError(.cancelled, format: format, "the task was cancelled") }
            guard body(UInt32(first), UInt32(min(64, total - first))) else {
                throw ImageError(.outOfMemory, format: format, "no memory to process \(size) pixels")
            }
        }
    }
}
