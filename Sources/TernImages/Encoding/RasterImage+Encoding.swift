#if os(Linux)
import CTernCodecs

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension RasterImage {
    /// The picture as a file of the encoding. Synchronous, and not to be cancelled once it has begun.
    ///
    /// Throws the kind `.encodingFailed`: no format holds every size (JPEG to 65,500 pixels a side, WebP to 16,383).
    public func encoded(as encoding: ImageEncoding) throws(ImageError) -> Data {
        let (width, height, row) = (UInt32(size.width), UInt32(size.height), bytesPerRow)
        // JPEG takes premultiplied pixels: that is the picture laid on black.
        let straight =
            if isOpaque || encoding.format == .jpeg { pixels } else {
                try unsafe PixelBuffer(count: byteCount) { base in
                    unsafe pixels.bytes.withUnsafeBufferPointer { source in
                        unsafe tern_unpremultiply(source.baseAddress, base, size.pixelCount)
                    }
                }
            }
        var count = 0
        var message = [CChar](repeating: 0, count: 200)
        let bytes = unsafe straight.bytes.withUnsafeBufferPointer { source in
            let base = source.baseAddress
            return switch encoding {
            case .jpeg(let quality, let progressive):
                unsafe tern_jpeg_encode(
                    base, row, width, height, Int32(clamping: min(100, max(1, quality))), progressive, &count,
                    &message)
            case .png(let level):
                unsafe tern_png_encode(
                    base, row, width, height, Int32(clamping: min(9, max(1, level))), &count, &message)
            case .webp(let quality):
                unsafe tern_webp_encode(
                    base, row, width, height, Float(min(100, max(0, quality))), false, &count, &message)
            case .losslessWebP:
                unsafe tern_webp_encode(base, row, width, height, 100, true, &count, &message)
            }
        }
        guard let bytes = unsafe bytes else {
            let text = String(decoding: message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            throw ImageError(
                .encodingFailed, format: encoding.format, "\(size) pixels: \(text.isEmpty ? "no memory" : text)")
        }
        defer { unsafe tern_codec_free(bytes) }
        return unsafe Data(bytes: bytes, count: count)
    }
}
#endif
