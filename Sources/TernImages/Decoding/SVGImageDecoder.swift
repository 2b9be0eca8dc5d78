#if os(Linux)
import CTernCodecs

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Decodes SVG on Linux with `rsvg-convert`, the program of librsvg, which draws the picture at the target size.
///
/// Register it, because starting a program is a decision of the host:
///
///     ImageDecoders.shared.register(SVGImageDecoder())
///
/// Each picture is drawn by a process of its own, because librsvg cannot be interrupted, and a file of a few bytes can
/// take any time. The process has limits on time and memory, and ends with the load, also if that is cancelled. It gets
/// the bytes of the file and nothing else: references to other files and to the network are not followed, scripts do not
/// run, and the fonts are those of the system. Where the kernel can (Linux 5.13), the process can also write no file, open
/// no connection, and read no file outside the folders of programs, libraries, fonts and settings.
///
/// A process takes about 20 milliseconds besides the drawing. A decode occupies a thread of the pipeline's executor, so
/// that as many processes run as it has threads.
public struct SVGImageDecoder: ImageDecoder {
    /// The time that drawing a picture may take. A picture that takes more fails with the kind `.limitExceeded`.
    public let timeLimit: Duration
    /// The program; nil for `/usr/bin/rsvg-convert`, or else `/usr/local/bin/rsvg-convert`. `PATH` has no effect.
    public let program: URL?

    /// Creates a decoder.
    ///
    /// - Parameters:
    ///   - timeLimit: The time that drawing a picture may take, 5 seconds by default.
    ///   - program: The file URL of `rsvg-convert`, 2.48 or later; nil, the default, for that of the system. The folder
    ///     above that of the program must have its libraries, unless they are those of the system.
    public init(timeLimit: Duration = .seconds(5), program: URL? = nil) {
        self.timeLimit = timeLimit
        self.program = program
    }

    /// Returns true for SVG.
    public func decodes(_ format: ImageFormat) -> Bool { format == .svg }

    /// Returns SVG if that is the first element of the bytes, in UTF-8, UTF-16 or an extension of ASCII, and also within
    /// a stream of gzip. The element can follow 1 MiB of comments and declarations, and its name can have a prefix.
    public func format(of bytes: Data) -> ImageFormat? {
        do throws(ImageError) {
            _ = try Self.size(of: bytes)
            return .svg
        } catch {
            return error.kind == .unsupported ? nil : .svg
        }
    }

    /// Draws the picture. The size of the file is `width` and `height` of its first element, of which one that is missing
    /// or relative follows from the shape of its `viewBox`; without either, 300 by 150 pixels. An inch has 96 pixels.
    /// Rules of style have no effect on it. With a target, the picture is drawn at that size, larger or smaller than the
    /// file's.
    ///
    /// Throws the errors of `ImageDecoder`: `.unsupported` if `rsvg-convert` is missing, and `.limitExceeded` for a picture
    /// beyond the limits on pixels, memory and time, or of more than 32,767 pixels on a side. `limits.memory` includes the
    /// process, which needs 64 MiB and more. No part is drawn of a file that is cut short.
    public func image(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> RasterImage {
        guard data.count <= options.limits.bytes else {
            throw ImageError(
                .limitExceeded, format: .svg, "\(data.count) bytes, the limit is \(options.limits.bytes)")
        }
        let outcome: Result<RasterImage, ImageError> = unsafe data.withUnsafeBytes { bytes in
            guard let base = unsafe bytes.bindMemory(to: UInt8.self).baseAddress, !data.isEmpty else {
                return .failure(ImageError(.truncated, format: .svg, "no bytes"))
            }
            return Result { () throws(ImageError) in try unsafe draw(base, count: bytes.count, options) }
        }
        return try outcome.get()
    }

    /// Returns nil: the first moment of an animation is shown.
    public func animation(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> (any ImageFrames)? {
        nil
    }

    /// The memory that the process needs besides the picture: measured 48 MiB with text in fonts.
    private static let processMemory = 64 << 20
    /// The most pixels of a side that librsvg draws.
    private static let longestSide = 32_767

    private func draw(
        _ bytes: UnsafePointer<UInt8>, count: Int, _ options: ImageDecodingOptions
    ) throws(ImageError) -> RasterImage {
        let call = CodecCall(format: .svg, options: options)
        try call.checkCancellation()
        try call.checkGainMap()
        let size = try unsafe Self.size(of: bytes, count)
        let plan = DecodingPlan(drawing: size, target: options.targetSize, mode: options.contentMode)
            .limited(to: options.byteLimit, bytesPerPixel: options.color.component.bytesPerPixel)
        let drawn = plan.scaled
        guard drawn.pixelCount <= min(options.limits.pixels, Int(Int32.max)) else {
            throw ImageError(
                .limitExceeded, format: .svg, "\(drawn) pixels, limits.pixels is \(options.limits.pixels)")
        }
        guard max(drawn.width, drawn.height) <= Self.longestSide else {
            throw ImageError(.limitExceeded, format: .svg, "\(drawn) pixels, librsvg draws 32767 on a side")
        }
        // The process has the picture, while this one receives it as a file that can be as large.
        let picture = drawn.pixelCount * 4
        var memory = DecodingMemory(
            codec: Self.processMemory + picture, size: drawn, scaled: drawn, cropped: plan.cropped)
        memory.isDeep.image = options.color.component != .uint8
        try call.check(memory, of: drawn)
        var settings = unsafe tern_svg_settings()
        unsafe settings.width = UInt32(drawn.width)
        unsafe settings.height = UInt32(drawn.height)
        unsafe settings.size = tern_svg_size(width: size.width, height: size.height)
        unsafe settings.memory = UInt64(options.memoryLimit - picture)
        unsafe settings.nanoseconds = nanoseconds
        let path = try path
        let process = try unsafe call.open { result, text in
            unsafe path.withCString { path in
                unsafe settings.program = path
                return unsafe tern_svg_open(bytes, count, settings, result, text)
            }
        }
        defer { unsafe tern_svg_close(process) }
        try unsafe call.run { unsafe tern_svg_step(process, $0) }
        var image = try unsafe Self.read(process, options)
        guard image.size == drawn else {
            throw ImageError(.corrupt, format: .svg, "rsvg-convert gave \(image.size) pixels in place of \(drawn)")
        }
        image.format = .svg
        image.metadata = RasterImage.Metadata(originalSize: PixelSize(size))
        return try image.cropped(to: plan.cropped)
    }

    /// Reads the PNG that the process has written.
    private static func read(
        _ process: OpaquePointer, _ options: ImageDecodingOptions
    ) throws(ImageError) -> RasterImage {
        var count = 0
        guard let bytes = unsafe tern_svg_picture(process, &count) else {
            throw ImageError(.corrupt, format: .svg, "rsvg-convert gave no picture")
        }
        var limits = options.limits
        limits.memory = max(0, options.memoryLimit - count)
        var reading = ImageDecodingOptions(limits: limits)
        reading.keepsStraightAlpha = options.keepsStraightAlpha
        reading.color = options.color
        do throws(ImageError) {
            return try unsafe CodecCall(format: .png, options: reading).image(bytes, count)
        } catch {
            throw ImageError(error.kind, format: .svg, "the picture of rsvg-convert: \(error.message)")
        }
    }

    private var nanoseconds: UInt64 {
        let (seconds, attoseconds) = timeLimit.components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        // 30 years, so that the product fits.
        return UInt64(min(seconds, 1_000_000_000)) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000)
    }

    /// The number of processes that run now.
    static var processCount: Int { Int(tern_svg_process_count()) }

    /// Whether the kernel keeps a process from files outside the system's folders.
    static var confinesFiles: Bool { tern_svg_confines_files() }

    // MARK: The program

    /// The path of the system's program; nil if it is not installed.
    static var systemPath: String? {
        ["/usr/bin/rsvg-convert", "/usr/local/bin/rsvg-convert"].first {
            FileManager.default.isExecutableFile(atPath: $0)
        }
    }

    private var path: String {
        get throws(ImageError) {
            if let program {
                // A path that is not of a program fails when it is started.
                guard program.isFileURL else {
                    throw ImageError(.unsupported, format: .svg, "the program of the decoder is no file")
                }
                return program.path
            }
            guard let path = Self.systemPath else {
                throw ImageError(
                    .unsupported, format: .svg,
                    """
                    SVG needs the program rsvg-convert: install the package librsvg2-bin (Debian, Ubuntu), librsvg2-tools \
                    (Fedora) or rsvg-convert (Alpine)
                    """)
            }
            return path
        }
    }

    // MARK: The size of a file

    /// Reads the size of a file. Throws the kind `.unsupported` if it is not SVG.
    package static func size(of data: Data) throws(ImageError) -> DrawingSize {
        let outcome: Result<DrawingSize, ImageError> = unsafe data.withUnsafeBytes { bytes in
            guard let base = unsafe bytes.bindMemory(to: UInt8.self).baseAddress else {
                return .failure(ForeignContent.error(for: data))
            }
            return Result { () throws(ImageError) in try unsafe size(of: base, bytes.count) }
        }
        return try outcome.get()
    }

    private static func size(of bytes: UnsafePointer<UInt8>, _ count: Int) throws(ImageError) -> DrawingSize {
        var size = tern_svg_size()
        let call = CodecCall(format: .svg, options: ImageDecodingOptions())
        do throws(ImageError) {
            _ = try unsafe call.step { unsafe tern_svg_measure(bytes, count, &size, $0) }
        } catch  where error.kind == .unsupported {
            let first = unsafe [UInt8](
                UnsafeBufferPointer(start: bytes, count: min(count, ImageFormat.sniffedByteCount)))
            let foreign = unsafe ForeignContent.error(first: first.span.bytes, byteCount: count)
            throw ImageError(.unsupported, format: foreign.format, foreign.message)
        }
        return DrawingSize(width: size.width, height: size.height)
    }
}

/// The size of a drawing in pixels of CSS, of which 96 are an inch. They need not be whole.
package struct DrawingSize: Equatable {
    package var width: Double
    package var height: Double

    package init(width: Double, height: Double) {
        self.width = width
        self.height = height
    }

    init(_ size: PixelSize) { self.init(width: Double(size.width), height: Double(size.height)) }
}

extension PixelSize {
    /// The size in whole pixels of a drawing. A hundredth of a pixel, as from a length in millimeters, counts for nothing.
    init(_ size: DrawingSize) {
        func length(_ of: Double) -> Int { max(1, Int((of - 0.01).rounded(.up))) }
        self.init(width: length(size.width), height: length(size.height))
    }
}

extension DecodingPlan {
    /// Creates the plan of a drawing, which a target also enlarges.
    init(drawing size: DrawingSize, target: PixelSize?, mode: ImageDecodingOptions.ContentMode) {
        guard let target, target.width > 0, target.height > 0 else {
            self.init(scaled: PixelSize(size), cropped: PixelSize(size))
            return
        }
        let across = Double(target.width) / size.width
        let down = Double(target.height) / size.height
        let factor = mode == .fit ? min(across, down) : max(across, down)
        func length(_ of: Double) -> Int { max(1, Int(min(Double(Int32.max), (of * factor).rounded()))) }
        let scaled = PixelSize(width: length(size.width), height: length(size.height))
        let cropped =
            mode == .fill
            ? PixelSize(width: min(target.width, scaled.width), height: min(target.height, scaled.height)) : scaled
        self.init(scaled: scaled, cropped: cropped)
    }
}
#endif
