import CTernCodecs

extension RasterImage {
    /// The picture at another size, by Lanczos3 on premultiplied pixels: 54 dB and more against an exact one.
    ///
    /// Keeps scale, format and metadata. The caller is responsible for the proportions. Checks the task's cancellation
    /// every 64 rows. Throws the kinds `.cancelled`, `.outOfMemory`, `.invalidArgument` for a size without pixels, and
    /// `.limitExceeded` if the result and the work on it take more than 512 MiB.
    public func resized(to target: PixelSize) throws(ImageError) -> RasterImage {
        if target == size { return self }
        let work =
            target.width > 0 && target.height > 0
            ? DecodingMemory.resize(size, to: target) : 0
        try checkMemory(target, work: work)
        return try resized(to: target, showing: tern_extent(size))
    }

    /// Resizes the visible part of the picture. The caller has already checked the memory that this takes.
    func resized(to target: PixelSize, showing extent: tern_extent) throws(ImageError) -> RasterImage {
        if target == size { return self }
        let (width, height) = (UInt32(target.width), UInt32(target.height))
        guard let kernel = unsafe tern_resize_open(extent, width, height) else {
            throw ImageError(.outOfMemory, format: format, "no memory to resize \(size) to \(target) pixels")
        }
        defer { unsafe tern_resize_close(kernel) }
        return try unsafe drawn(target) { source, base, first, count in
            let canvas = unsafe tern_canvas(pixels: base, stride: target.width * 4, width: width, height: height)
            return unsafe tern_resize_rows(kernel, source, canvas, first, count)
        }
    }

    /// The picture turned and mirrored from an EXIF orientation (1 to 8) to upright.
    func oriented(_ orientation: Int) throws(ImageError) -> RasterImage {
        guard (2...8).contains(orientation) else { return self }
        let target = orientation >= 5 ? size.turned : size
        let made = try unsafe PixelBuffer(count: byteCount) { base in
            unsafe pixels.bytes.withUnsafeBufferPointer { source in
                guard let first = source.baseAddress else { return }
                unsafe tern_orient(
                    first, bytesPerRow, UInt32(size.width), UInt32(size.height), Int32(orientation), base,
                    target.width * 4)
            }
        }
        return with(made, target)
    }

    /// The middle of the picture, of a size no larger than its own.
    func cropped(to target: PixelSize) throws(ImageError) -> RasterImage {
        if target == size { return self }
        let (left, top) = ((size.width - target.width) / 2, (size.height - target.height) / 2)
        let made = try unsafe PixelBuffer(count: target.pixelCount * 4) { base in
            unsafe pixels.bytes.withUnsafeBufferPointer { source in
                guard let first = source.baseAddress else { return }
                for row in 0..<target.height {
                    unsafe (base + row * target.width * 4).initialize(
                        from: first + (top + row) * bytesPerRow + left * 4, count: target.width * 4)
                }
            }
        }
        return with(made, target)
    }

    private func with(_ pixels: PixelBuffer, _ size: PixelSize) -> RasterImage {
        RasterImage(pixels: pixels, size: size, format: format, metadata: metadata, scale: scale)
    }
}
