#if os(Linux)
import CTernCodecs

/// Calls the C codecs for one file and converts their results to errors.
struct CodecCall {
    let format: ImageFormat
    let options: ImageDecodingOptions

    /// Opens a decoder. Returns its handle or throws the error that it reports.
    func open(
        _ body: (UnsafeMutablePointer<Int32>, UnsafeMutablePointer<CChar>) -> OpaquePointer?
    ) throws(ImageError) -> OpaquePointer {
        var result: Int32 = 0
        var message = [CChar](repeating: 0, count: 200)
        let handle = unsafe message.withUnsafeMutableBufferPointer { buffer in
            unsafe buffer.baseAddress.flatMap { text in unsafe body(&result, text) }
        }
        guard let handle = unsafe handle else {
            throw error(tern_codec_result(result), Self.text(message))
        }
        return unsafe handle
    }

    /// Calls a codec once. Returns whether it must be called again, or throws the error that it reports.
    func step(_ body: (UnsafeMutablePointer<CChar>) -> tern_codec_result) throws(ImageError) -> Bool {
        var message = [CChar](repeating: 0, count: 200)
        let result = unsafe message.withUnsafeMutableBufferPointer { buffer in
            unsafe buffer.baseAddress.map { text in unsafe body(text) } ?? TERN_CODEC_MEMORY
        }
        if result == TERN_CODEC_OK { return false }
        if result == TERN_CODEC_MORE { return true }
        throw error(result, Self.text(message))
    }

    /// Returns a canvas for the C decoders: a buffer, the size that it was allocated for, and the bytes of a pixel.
    @unsafe
    func canvas(_ pixels: UnsafeMutablePointer<UInt8>, _ size: PixelSize, bytes: Int = 4) -> tern_canvas {
        unsafe tern_canvas(
            pixels: pixels, stride: size.width * bytes, width: UInt32(clamping: size.width),
            height: UInt32(clamping: size.height))
    }

    /// Calls a codec until it is done, and checks the task's cancellation in between.
    func run(_ body: (UnsafeMutablePointer<CChar>) -> tern_codec_result) throws(ImageError) {
        repeat { try checkCancellation() } while try unsafe step(body)
    }

    func checkCancellation() throws(ImageError) {
        if Task.isCancelled { throw ImageError(.cancelled, format: format, "the task was cancelled") }
    }

    /// Refuses a decode that takes more memory than the options allow.
    func check(_ memory: DecodingMemory, _ info: tern_codec_info) throws(ImageError) {
        try check(memory, of: upright(info))
    }

    func check(_ memory: DecodingMemory, of size: PixelSize) throws(ImageError) {
        let (peak, limit) = (memory.peak, options.memoryLimit)
        guard peak > limit else { return }
        throw ImageError(
            .limitExceeded, format: format,
            "decoding \(size) pixels takes \(peak >> 20) MiB of memory, the limit is \(limit >> 20) MiB")
    }

    /// The limits that a C decoder checks itself, before its library takes memory, and the form of its pixels.
    var feedLimits: tern_feed_limits {
        tern_feed_limits(
            pixels: UInt64(clamping: min(options.limits.pixels, Int(Int32.max))),
            frames: UInt32(clamping: options.limits.frames), scans: Int32(clamping: options.limits.scans),
            memory: UInt64(clamping: options.memoryLimit), deep: deep, colors: colors)
    }

    /// The pictures whose samples a decoder writes with 16 bits.
    private var deep: tern_deep {
        switch options.color {
        case .sRGB, .displayP3: TERN_DEEP_TONED
        case .asStored(.uint8): TERN_DEEP_NONE
        case .asStored: TERN_DEEP_ALL
        }
    }

    /// The colors of a decoder that chooses some.
    private var colors: tern_colors {
        switch options.color {
        case .sRGB: TERN_COLORS_SRGB
        case .displayP3: TERN_COLORS_P3
        case .asStored: TERN_COLORS_STORED
        }
    }

    /// Checks the limits of sizes and counts against the header.
    func check(_ info: tern_codec_info) throws(ImageError) {
        try checkGainMap()
        let size = PixelSize(width: Int(info.width), height: Int(info.height))
        guard size.width > 0, size.height > 0 else {
            throw ImageError(.corrupt, format: format, "the header says \(size) pixels")
        }
        // A JPEG that is scaled costs what the codec makes of it, and otherwise little more than its bytes.
        let limit = min(options.limits.pixels, Int(Int32.max))
        let isScaled = format == .jpeg && codecExtent(info, plan(info)).size.pixelCount <= limit / 4
        guard size.pixelCount / (isScaled ? 4 : 1) <= limit else {
            throw ImageError(
                .limitExceeded, format: format, "\(size) pixels, limits.pixels is \(options.limits.pixels)")
        }
        guard Int(info.frameCount) <= options.limits.frames else {
            throw ImageError(.limitExceeded, format: format, "more than \(options.limits.frames) frames")
        }
    }

    /// Returns whether an error after the first pixels leaves a partial image.
    func tolerates(_ error: ImageError) -> Bool {
        options.allowsPartial && (error.kind == .truncated || error.kind == .corrupt)
    }

    private func error(_ result: tern_codec_result, _ message: String) -> ImageError {
        let kind: ImageError.Kind =
            switch result {
            case TERN_CODEC_TRUNCATED: .truncated
            case TERN_CODEC_UNSUPPORTED: .unsupported
            case TERN_CODEC_MEMORY: .outOfMemory
            case TERN_CODEC_SCANS: .limitExceeded
            default: .corrupt
            }
        return ImageError(kind, format: format, message.isEmpty ? "the decoder gave up" : message)
    }

    private static func text(_ message: [CChar]) -> String {
        String(decoding: message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
#endif
