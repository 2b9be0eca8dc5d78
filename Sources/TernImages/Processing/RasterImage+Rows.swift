import CTernCodecs

extension RasterImage {
    /// The picture as the C effects take it. The pointer is good within the caller's closure only.
    @unsafe
    func picture(_ first: UnsafePointer<UInt8>) -> tern_picture {
        unsafe tern_picture(
            pixels: first, stride: bytesPerRow, width: UInt32(size.width), height: UInt32(size.height))
    }

    /// Checks the memory of a result. Throws if the size is not valid for a picture, or if the picture and `work`, both
    /// in bytes, exceed the limit of a processor.
    func checkMemory(_ target: PixelSize, work: Int) throws(ImageError) {
        guard target.width > 0, target.height > 0, target.pixelCount <= Int(Int32.max) else {
            throw ImageError(.invalidArgument, format: format, "cannot make \(target) pixels of \(size)")
        }
        let limit = ImageDecodingOptions.Limits.fullSizeMemory
        guard target.pixelCount <= limit / 4, work <= limit - target.pixelCount * 4 else {
            throw ImageError(
                .limitExceeded, format: format,
                "making \(target) pixels of \(size) takes more than \(limit >> 20) MiB of memory")
        }
    }

    /// Returns a picture of the size with this one's scale, format and metadata. The closure writes its pixels and
    /// takes `work` bytes of memory.
    func made(
        _ target: PixelSize, work: Int = 0,
        by fill: (tern_picture, UnsafeMutablePointer<UInt8>) throws(ImageError) -> Void
    ) throws(ImageError) -> RasterImage {
        try checkMemory(target, work: work)
        return try unsafe filled(target, by: fill)
    }

    /// Does the same as `made` for a size that was already checked.
    private func filled(
        _ target: PixelSize,
        by fill: (tern_picture, UnsafeMutablePointer<UInt8>) throws(ImageError) -> Void
    ) throws(ImageError) -> RasterImage {
        let buffer = try unsafe PixelBuffer(count: target.pixelCount * 4) { (base) throws(ImageError) in
            let outcome: Result<Void, ImageError> = unsafe pixels.bytes.withUnsafeBufferPointer { source in
                guard let first = source.baseAddress else { return .success(()) }
                do throws(ImageError) {
                    return .success(try unsafe fill(picture(first), base))
                } catch {
                    return .failure(error)
                }
            }
            try outcome.get()
        }
        return RasterImage(pixels: buffer, size: target, format: format, metadata: metadata, scale: scale)
    }

    /// A picture of the size whose rows the closure makes, some at a time: the first of them, and how many. It says
    /// whether there was memory.
    func rows(
        _ target: PixelSize, work: Int = 0,
        by draw: (tern_picture, UnsafeMutablePointer<UInt8>, UInt32, UInt32) -> Bool
    ) throws(ImageError) -> RasterImage {
        try checkMemory(target, work: work)
        return try unsafe drawn(target, by: draw)
    }

    /// Does the same as `rows` for a size that was already checked.
    func drawn(
        _ target: PixelSize,
        by draw: (tern_picture, UnsafeMutablePointer<UInt8>, UInt32, UInt32) -> Bool
    ) throws(ImageError) -> RasterImage {
        try unsafe filled(target) { (source, base) throws(ImageError) in
            try inGroups(of: target.height) { unsafe draw(source, base, $0, $1) }
        }
    }

    /// A picture of the same size whose pixels the closure makes from as many of this one's.
    func mapped(
        _ change: (UnsafePointer<UInt8>, UnsafeMutablePointer<UInt8>, Int) -> Void
    ) throws(ImageError) -> RasterImage {
        try unsafe rows(size) { source, base, first, count in
            guard let pixels = unsafe source.pixels else { return true }
            let offset = Int(first) * bytesPerRow
            unsafe change(pixels + offset, base + offset, Int(count) * size.width)
            return true
        }
    }

    /// Calls the closure for 64 of the rows or columns after the other: the first of them, and how many. In between it
    /// looks at the task's cancellation.
    func inGroups(of total: Int, _ body: (UInt32, UInt32) -> Bool) throws(ImageError) {
        for first in stride(from: 0, to: total, by: 64) {
            if Task.isCancelled { throw ImageError(.cancelled, format: format, "the task was cancelled") }
            guard body(UInt32(first), UInt32(min(64, total - first))) else {
                throw ImageError(.outOfMemory, format: format, "no memory to process \(size) pixels")
            }
        }
    }
}
