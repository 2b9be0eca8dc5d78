#if canImport(ImageIO) && !os(Linux)
public import Foundation
import ImageIO

/// Decodes an image while its bytes arrive, with ImageIO.
///
/// A preview is made of all bytes so far: after each scan of a progressive JPEG, and when an eighth more of an
/// interlaced PNG has arrived; with `showsRows`, also of other files. `finish()` decodes the file as a whole with
/// `ImageIODecoder`, so its result is that of that decoder for every file and every split of its bytes.
///
/// The type has one caller at a time and is not `Sendable`. Run it on an executor that it may occupy.
public final class IncrementalDecoder {
    /// The options of the final image and of the previews.
    public let options: ImageDecodingOptions
    /// A Boolean value that indicates whether an image without scans or passes gives previews of the rows that have
    /// arrived.
    public let showsRows: Bool
    /// The format of the file; nil until enough bytes have arrived.
    public private(set) var format: ImageFormat?
    /// A Boolean value that indicates whether the whole image is decoded.
    public private(set) var isComplete = false
    /// A Boolean value that indicates whether the file is known to be an animation, of which `finish()` returns the
    /// first frame. Known after `finish()`.
    public private(set) var isAnimation = false
    /// The number of bytes copied in memory so far.
    public private(set) var bytesCopied = 0

    private let source = CGImageSourceCreateIncremental(nil)
    private var points: PreviewPoints
    private var bytes = Data()
    private var isPreviewDue = false

    /// Creates a decoder without bytes. Rows are not shown by default.
    public convenience init(options: ImageDecodingOptions = ImageDecodingOptions(), showsRows: Bool = false) {
        self.init(options: options, showsRows: showsRows, keepsBytes: true)
    }

    /// ImageIO needs all bytes for each preview, so they are always kept.
    init(options: ImageDecodingOptions, showsRows: Bool, keepsBytes: Bool) {
        self.options = options
        self.showsRows = showsRows
        points = PreviewPoints(showsRows: showsRows)
    }

    /// Returns whether files of the format can be decoded incrementally: JPEG, PNG, WebP and GIF.
    public static func decodes(_ format: ImageFormat) -> Bool { [.jpeg, .png, .webp, .gif].contains(format) }

    /// The file's displayed size in pixels before scaling; nil until the header was read for a preview.
    public var originalSize: PixelSize? {
        guard let properties = CGImageSourceCopyPropertiesAtIndex(source, 0, nil) as NSDictionary? else { return nil }
        return ImageIOHeader(properties)?.upright
    }

    /// The number of complete scans of a JPEG.
    public var completedPasses: Int { points.scans }

    /// Appends bytes. Returns true if a preview is due.
    ///
    /// Throws when the bytes so far exceed a limit, but never because more bytes are needed.
    @discardableResult
    public func append(_ bytes: Data) throws(ImageError) -> Bool {
        self.bytes.append(bytes)
        bytesCopied += bytes.count
        guard self.bytes.count <= options.limits.bytes else {
            throw ImageError(
                .limitExceeded, format: format,
                "\(self.bytes.count) bytes so far, the limit is \(options.limits.bytes)")
        }
        if format == nil { format = ImageFormat(sniffing: self.bytes) }
        isPreviewDue = points.receive(bytes)
        guard points.scans <= options.limits.scans else {
            throw ImageError(.limitExceeded, format: format, "more than \(options.limits.scans) scans")
        }
        return isPreviewDue
    }

    /// Returns false: all bytes of a call belong to one preview.
    @discardableResult
    public func advance() throws(ImageError) -> Bool { false }

    /// Returns the image of all bytes so far; nil if none is due, or ImageIO makes none of them.
    ///
    /// The image is marked `isPartial` and must not be stored in a cache.
    public func preview() throws(ImageError) -> RasterImage? {
        guard isPreviewDue, let format, Self.decodes(format) else { return nil }
        isPreviewDue = false
        bytesCopied += bytes.count
        CGImageSourceUpdateData(source, NSData(data: bytes) as CFData, false)
        guard CGImageSourceGetCount(source) > 0 else { return nil }
        var options = options
        options.allowsPartial = true
        do throws(ImageError) {
            return try ImageIOFile(source, format: format, options: options).image(at: 0)
        } catch {
            // Bytes of which no image can be made yet are not an error. A limit and a cancellation are.
            if error.kind == .limitExceeded || error.kind == .cancelled { throw error }
            return nil
        }
    }

    /// Returns the picture after the last bytes, identical to the result of `ImageIODecoder`.
    public func finish() throws(ImageError) -> RasterImage {
        let decoder = ImageIODecoder()
        let image = try decoder.image(from: bytes, options: options)
        // An animation without usable frames after the first is not an animation.
        isAnimation = (try? decoder.animation(from: bytes, options: options)) != nil
        isComplete = true
        return image
    }
}
#endif
