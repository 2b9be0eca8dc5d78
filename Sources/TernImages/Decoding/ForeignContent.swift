#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The names of bytes that no decoder takes, for the errors about them.
enum ForeignContent {
    /// Returns the error for bytes that no decoder takes: `.unsupported` if their format has a name, otherwise
    /// `.unknownFormat`.
    ///
    /// - Parameters:
    ///   - first: The first bytes.
    ///   - byteCount: The number of all bytes.
    static func error(first: borrowing RawSpan, byteCount: Int) -> ImageError {
        let count = "\(byteCount) bytes"
        if let format = ImageFormat(sniffing: first) {
            return ImageError(.unsupported, format: format, "\(count) of \(name(of: format)), \(obstacle(to: format))")
        }
        if let content = content(first) {
            let format = ImageFormat(rawValue: content.type)
            return ImageError(.unsupported, format: format, "the \(count) are \(content.name), and no picture")
        }
        return ImageError(.unknownFormat, "the first of \(count) are of no known format")
    }

    static func error(for data: Data) -> ImageError {
        let first = [UInt8](data.prefix(ImageFormat.sniffedByteCount))
        return unsafe error(first: first.span.bytes, byteCount: data.count)
    }

    /// Whether a format is that of a picture. Other types name what was received in place of one.
    static func isPicture(_ format: ImageFormat) -> Bool { format.rawValue.hasPrefix("image/") }

    private static func name(of format: ImageFormat) -> String {
        switch format {
        case .jpeg: "JPEG"
        case .png: "PNG"
        case .webp: "WebP"
        case .gif: "GIF"
        case .bmp: "a Windows bitmap"
        case .ico: "a Windows icon"
        case .avif: "AVIF"
        case .heic: "HEIC"
        case .jpegXL: "JPEG XL"
        case .jpeg2000: "JPEG 2000"
        case .tiff: "TIFF"
        case .svg: "SVG"
        case .psd: "a Photoshop document"
        case .qoi: "QOI"
        case .cur: "a Windows cursor"
        default: format.rawValue
        }
    }

    /// The reason why a format is not decoded, and the remedy.
    private static func obstacle(to format: ImageFormat) -> String {
        let remedy = "register an ImageDecoder for it"
        #if os(Linux)
        switch format {
        case .svg:
            return "which SVGImageDecoder decodes on Linux once it is registered in ImageDecoders, and not by default"
        case .jpeg2000, .psd:
            return "which Tern decodes on Apple's systems only: \(remedy), or ask the server for another format"
        default: return "for which there is no decoder: \(remedy)"
        }
        #else
        return "for which there is no decoder on this system: \(remedy)"
        #endif
    }

    private static func content(_ first: borrowing RawSpan) -> (name: String, type: String)? {
        func begins(_ signature: [UInt8], at offset: Int = 0) -> Bool {
            guard first.byteCount >= offset + signature.count else { return false }
            return signature.indices.allSatisfy { index in
                unsafe first.unsafeLoad(fromByteOffset: offset + index, as: UInt8.self) == signature[index]
            }
        }
        if begins(Array("%PDF-".utf8)) { return ("a PDF document", "application/pdf") }
        // A later brand could be that of a picture.
        if begins(Array("ftyp".utf8), at: 4) {
            guard first.byteCount >= ImageFormat.sniffedByteCount(of: first) else { return nil }
            return ("a video of the MP4 family", "video/mp4")
        }
        if begins([0x1A, 0x45, 0xDF, 0xA3]) { return ("a WebM or Matroska video", "video/webm") }
        if begins([0x1F, 0x8B]) { return ("compressed by gzip once more than the response says", "application/gzip") }
        if begins([0x50, 0x4B, 0x03, 0x04]) { return ("a ZIP archive", "application/zip") }
        let text = FirstText(first)
        if text.isHTML { return ("a page of HTML", "text/html") }
        if text.isJSON { return ("JSON", "application/json") }
        if text.isXML { return ("XML", "application/xml") }
        // The first bytes of a format can be letters.
        return text.isText && first.byteCount >= 16 ? ("text", "text/plain") : nil
    }
}
