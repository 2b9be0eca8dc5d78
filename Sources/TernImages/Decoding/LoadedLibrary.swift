#if os(Linux)
import CTernCodecs

/// A library that is loaded when the first file of its format arrives, if it is installed. For libdeflate, which
/// decompresses the data of PNG in less time than zlib, these are PNG files.
enum LoadedLibrary {
    case avif
    case avifEncoder
    case tiff
    /// libheif and libde265.
    case heif
    /// libheif with an encoder of HEVC.
    case heifEncoder
    case jpegXL
    case deflate
    case jpegXLEncoder
    /// libwebpmux, for animated WebP.
    case webPWriter

    /// The reason why the library cannot be used, with the name of its package; nil if it can.
    var obstacle: String? {
        let text =
            switch self {
            case .avif: unsafe tern_avif_obstacle()
            case .avifEncoder: unsafe tern_avif_writer_obstacle()
            case .tiff: unsafe tern_tiff_obstacle()
            case .heif: unsafe tern_heif_obstacle()
            case .heifEncoder: unsafe tern_heif_writer_obstacle()
            case .jpegXL: unsafe tern_jxl_obstacle()
            case .deflate: unsafe tern_deflate_obstacle()
            case .jpegXLEncoder: unsafe tern_jxl_writer_obstacle()
            case .webPWriter: unsafe tern_webp_writer_obstacle()
            }
        guard let text = unsafe text else { return nil }
        return unsafe String(cString: text)
    }

    /// Returns the reason why a file cannot be used as libavif; nil if it can.
    static func obstacle(ofAVIF name: String) -> String? {
        var text = [CChar](repeating: 0, count: 160)
        unsafe tern_avif_look(name, &text)
        let bytes = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
    }
}
#endif
