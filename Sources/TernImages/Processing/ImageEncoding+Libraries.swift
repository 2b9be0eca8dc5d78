#if os(Linux)
import CTernCodecs

extension ImageEncoding {
    /// The reason why the library of the format cannot be used, with the name of its package; nil if it can.
    var obstacle: String? {
        switch self {
        case .jpeg, .png, .webp, .losslessWebP: nil
        case .avif: LoadedLibrary.avifEncoder.obstacle
        case .heic: LoadedLibrary.heifEncoder.obstacle
        case .jpegXL, .losslessJPEGXL: LoadedLibrary.jpegXLEncoder.obstacle
        }
    }
}

extension RasterImage {
    /// Returns the bytes of a HEIC file, which the caller frees; nil with a text, or without one when memory is short.
    ///
    /// - Parameter straight: The pixels without premultiplication; nil only for no pixels.
    func heic(
        _ straight: UnsafePointer<UInt8>?, quality: Int, speed: Int, count: inout Int, message: inout [CChar]
    ) -> UnsafeMutablePointer<UInt8>? {
        let settings = tern_heif_settings(
            width: UInt32(size.width), height: UInt32(size.height), quality: Int32(clamping: min(100, max(0, quality))),
            speed: Int32(clamping: min(10, max(0, speed))), isOpaque: isOpaque)
        return unsafe tern_heif_encode(straight, bytesPerRow, settings, &count, &message)
    }

    /// Returns the bytes of an AVIF file as `heic` does.
    func avif(
        _ straight: UnsafePointer<UInt8>?, quality: Int, speed: Int, count: inout Int, message: inout [CChar]
    ) -> UnsafeMutablePointer<UInt8>? {
        let settings = tern_avif_writer_settings(
            width: UInt32(size.width), height: UInt32(size.height), loops: 0,
            quality: Int32(clamping: min(100, max(0, quality))), speed: Int32(clamping: min(10, max(0, speed))),
            isOpaque: isOpaque, isStill: true)
        guard let writer = unsafe tern_avif_writer_open(settings, &message) else { return nil }
        defer { unsafe tern_avif_writer_close(writer) }
        guard unsafe tern_avif_writer_add(writer, straight, bytesPerRow, 0, &message) == TERN_CODEC_OK else {
            return nil
        }
        return unsafe tern_avif_writer_finish(writer, &count, &message)
    }

    /// Returns the bytes of a JPEG XL file as `heic` does.
    ///
    /// - Parameter quality: nil for a file without loss.
    func jpegXL(
        _ straight: UnsafePointer<UInt8>?, quality: Double?, speed: Int, count: inout Int,
        message: inout [CChar]
    ) -> UnsafeMutablePointer<UInt8>? {
        let settings = tern_jxl_settings(
            width: UInt32(size.width), height: UInt32(size.height), loops: 0,
            quality: Float(min(100, max(0, quality ?? 100))), speed: Int32(clamping: min(10, max(0, speed))),
            isLossless: quality == nil, isOpaque: isOpaque, isStill: true)
        guard let writer = unsafe tern_jxl_writer_open(settings, &message) else { return nil }
        defer { unsafe tern_jxl_writer_close(writer) }
        guard unsafe tern_jxl_writer_add(writer, straight, bytesPerRow, 0, &message) == TERN_CODEC_OK else {
            return nil
        }
        return unsafe tern_jxl_writer_finish(writer, &count, &message)
    }
}
#endif
