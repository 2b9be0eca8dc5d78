#if canImport(ImageIO)
import CTernCodecs
import CoreGraphics
import Foundation
import ImageIO

/// A file that ImageIO has open: headers judged by the limits before anything is decoded, pictures at the size wanted.
struct ImageIOFile {
    let format: ImageFormat
    let options: ImageDecodingOptions
    /// Pictures in it: frames, pages, or sizes of an icon.
    let count: Int
    /// Nil if they are no animation.
    let times: ImageIOTimes?
    let source: CGImageSource
    /// Whether the bytes reach the end that their format has: ImageIO fills up what is missing without a word.
    let isWhole: Bool

    init(_ data: Data, _ format: ImageFormat, _ options: ImageDecodingOptions) throws(ImageError) {
        let whole = imageIODictionary([kCGImageSourceShouldCache: false])
        guard let source = CGImageSourceCreateWithData(NSData(data: data) as CFData, whole) else {
            throw ImageError(.corrupt, format: format, "ImageIO does not open it")
        }
        self.format = format
        self.options = options
        self.source = source
        count = CGImageSourceGetCount(source)
        times = CGImageSourceGetType(source).flatMap { ImageIOTimes(type: ($0 as NSString).description) }
        isWhole = FileEnd.isReached(by: data, format)
        guard times == nil || count <= options.limits.frames else {
            throw ImageError(.limitExceeded, format: format, "more than \(options.limits.frames) frames")
        }
        if format == .jpeg { try surveyScans(data, header(at: 0).stored) }
    }

    /// A bomb of repeated scans is known by its markers: ImageIO would decode them all.
    private func surveyScans(_ data: Data, _ size: PixelSize) throws(ImageError) {
        var message = [CChar](repeating: 0, count: 200)
        let result = unsafe data.withUnsafeBytes { bytes in
            unsafe tern_jpeg_survey(
                bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count, UInt32(size.width), UInt32(size.height),
                Int32(clamping: options.limits.scans), &message)
        }
        guard result != TERN_CODEC_OK else { return }
        let text = String(decoding: message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        throw ImageError(.limitExceeded, format: format, text)
    }

    // MARK: What it says

    /// How often the animation plays, 0 for ever.
    var loopCount: Int { times?.loopCount(CGImageSourceCopyProperties(source, nil) as NSDictionary?) ?? 1 }

    func duration(at index: Int) -> Duration {
        let properties = CGImageSourceCopyPropertiesAtIndex(source, index, nil) as NSDictionary?
        return times?.duration(properties) ?? ImageFrame.duration(milliseconds: 0)
    }

    /// The header of a picture; an error if there is none, or its size passes the limits.
    func header(at index: Int) throws(ImageError) -> ImageIOHeader {
        guard let properties = CGImageSourceCopyPropertiesAtIndex(source, index, nil) as NSDictionary?,
            let header = ImageIOHeader(properties)
        else {
            throw failure(at: index) ?? ImageError(.corrupt, format: format, "the header says no size")
        }
        guard header.stored.width > 0, header.stored.height > 0 else {
            throw ImageError(.corrupt, format: format, "the header says \(header.stored) pixels")
        }
        guard header.stored.pixelCount <= min(options.limits.pixels, Int(Int32.max)) else {
            throw ImageError(
                .limitExceeded, format: format,
                "\(header.stored) pixels, the limit is \(options.limits.pixels) in all")
        }
        return header
    }

    /// The picture that stands for the file: the first frame, the one that the file names as its own; of an icon the
    /// smallest that the target needs, else the largest.
    func bestIndex() throws(ImageError) -> Int {
        guard times == nil, count > 1 else { return 0 }
        guard format == .ico else { return CGImageSourceGetPrimaryImageIndex(source) }
        var sizes: [(index: Int, size: PixelSize)] = []
        for index in 0..<count { sizes.append((index, try header(at: index).upright)) }
        sizes.sort { $0.size.pixelCount < $1.size.pixelCount }
        guard let largest = sizes.last else { return 0 }
        let wanted = DecodingPlan(size: largest.size, options).scaled
        return (sizes.first { $0.size.width >= wanted.width && $0.size.height >= wanted.height } ?? largest).index
    }
}
#endif
