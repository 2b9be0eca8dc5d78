#if canImport(ImageIO)
public import Foundation
import ImageIO
import UniformTypeIdentifiers

/// Whatever ImageIO reads, on Apple's systems: JPEG, PNG, WebP, GIF, BMP, ICO and AVIF, and beyond them HEIC, TIFF and
/// what else the system knows.
///
/// ImageIO scales while it decodes, to at least twice the target, the rest is Lanczos3. Animated are GIF, PNG, WebP and
/// the sequences of HEIC and AVIF.
public struct ImageIODecoder: ImageDecoder {
    /// A decoder; it holds nothing.
    public init() {}

    /// Whether this system's ImageIO reads files of the format.
    public func decodes(_ format: ImageFormat) -> Bool {
        UTType(mimeType: format.rawValue).map { Self.types.contains($0.identifier) } ?? false
    }

    private static let types: Set<String> = Set(
        (CGImageSourceCopyTypeIdentifiers() as NSArray).compactMap { $0 as? String })

    /// What `ImageFormat(sniffing:)` says, else the media type that ImageIO finds, as `image/heic`.
    public func format(of bytes: Data) -> ImageFormat? {
        if let format = ImageFormat(sniffing: bytes) { return format }
        guard let source = CGImageSourceCreateWithData(NSData(data: bytes) as CFData, nil),
            let type = CGImageSourceGetType(source)
        else { return nil }
        return UTType((type as NSString).description)?.preferredMIMEType.map(ImageFormat.init(rawValue:))
    }

    /// The picture, or the first frame; of an icon the smallest entry that the target needs, or the largest.
    ///
    /// Looks at the current task's cancellation before ImageIO decodes, and between groups of rows after it. A file that
    /// is cut short is an error of the kind `.truncated`, unless the options allow a part.
    public func image(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> RasterImage {
        let file = try open(data, options)
        return try file.image(at: file.bestIndex())
    }

    /// The frames of a GIF, PNG, WebP, HEIC or AVIF sequence of more than one frame.
    public func animation(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> (any ImageFrames)? {
        let file = try open(data, options)
        guard file.times != nil, file.count > 1 else { return nil }
        return try ImageIOFrames(file, byteCount: data.count)
    }

    private func open(_ data: Data, _ options: ImageDecodingOptions) throws(ImageError) -> sending ImageIOFile {
        guard data.count <= options.limits.bytes else {
            throw ImageError(.limitExceeded, "\(data.count) bytes, the limit is \(options.limits.bytes)")
        }
        guard let format = format(of: data) else {
            throw ImageError(.unknownFormat, "the first of \(data.count) bytes are of no known format")
        }
        guard decodes(format) else { throw ImageError(.unsupported, format: format, "no decoder for it here") }
        return try ImageIOFile(data, format, options)
    }
}
#endif
