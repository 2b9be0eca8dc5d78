#if os(Linux)
import CTernCodecs

/// The C decoder of one file that is still arriving.
///
/// It is safe to use, because it owns its handle and frees it in deinit, and bytes are copied before a call returns.
@safe
final class IncrementalFeed {
    enum Step {
        /// All bytes are used.
        case starved
        /// A scan or pass that is not the last is complete.
        case boundary
        case complete
    }

    let call: CodecCall
    private let showsRows: Bool
    private let handle: OpaquePointer
    /// The header, the plan made from it, and the picture that the codec makes; nil until the header has arrived.
    private(set) var header: (info: tern_codec_info, plan: DecodingPlan, extent: tern_extent)?
    private var color = ColorUse(metadata: .none)
    /// The conversion of CMYK rows, which lives as long as the decoder.
    private var ink: ColorConversion?
    /// The image of a file that was decoded when its end had arrived.
    private var wholeImage: RasterImage?

    init(call: CodecCall, showsRows: Bool) throws(ImageError) {
        let kind: tern_feed_kind? =
            switch call.format {
            case .jpeg: TERN_FEED_JPEG
            case .png: TERN_FEED_PNG
            case .webp: TERN_FEED_WEBP
            case .gif: TERN_FEED_GIF
            case .jpegXL: TERN_FEED_JXL
            default: nil
            }
        guard let kind else {
            throw ImageError(.unsupported, format: call.format, "it cannot be decoded while it comes")
        }
        guard let handle = unsafe tern_feed_open(kind, call.feedLimits) else {
            throw ImageError(.outOfMemory, format: call.format, "no memory for a decoder")
        }
        self.call = call
        self.showsRows = showsRows
        unsafe self.handle = handle
    }

    deinit { unsafe tern_feed_close(handle) }

    /// Whether all bytes are decoded together at the end, because the codec needs all of them. A codec can still make
    /// previews of those that have arrived.
    var isGathering: Bool { state.isGathering }

    /// Whether the decoder of whole files may produce a different result from these bytes.
    var isDoubtful: Bool { state.isDoubtful }

    var state: tern_feed_state { unsafe tern_feed_progress(handle) }

    func append(_ bytes: UnsafeRawBufferPointer) throws(ImageError) {
        let base = unsafe bytes.bindMemory(to: UInt8.self).baseAddress
        _ = try unsafe result { unsafe tern_feed_append(handle, base, bytes.count, $0) }
    }

    func end() { unsafe tern_feed_end(handle) }

    /// Decodes up to the next boundary and checks the task's cancellation in between.
    func advance() throws(ImageError) -> Step {
        while true {
            try call.checkCancellation()
            switch try unsafe result({ unsafe tern_feed_step(handle, $0) }) {
            case TERN_CODEC_STARVED: return .starved
            case TERN_CODEC_BOUNDARY: return .boundary
            case TERN_CODEC_OK:
                if header != nil, isGathering { wholeImage = try whole() }
                return .complete
            case TERN_CODEC_HEADER: try start()
            default: continue
            }
        }
    }

    /// Returns the image so far; nil if a codec that gathers bytes can make none of them.
    func preview() throws(ImageError) -> RasterImage? {
        guard isGathering, let header else { return try render(isLast: false) }
        do throws(ImageError) {
            // The decoder of whole files checks the memory for the image itself.
            try call.check(call.memory(for: header.info, plan: header.plan, color: color), header.info)
            return try render(isLast: false)
        } catch {
            // The bytes are judged when all of them are there.
            if error.kind == .cancelled { throw error }
            return nil
        }
    }

    /// Returns the image so far. The last image is returned only if the codec reports no fault.
    func render(isLast: Bool) throws(ImageError) -> RasterImage {
        guard let header else {
            throw ImageError(.truncated, format: call.format, "the bytes end within the header")
        }
        let size = PixelSize(width: Int(state.width), height: Int(state.height))
        var color = color
        let form = call.codecForm(header.info, color)
        let pixels = try unsafe PixelBuffer(count: size.pixelCount * 4, form: form) { (base) throws(ImageError) in
            let canvas = unsafe call.canvas(base, size)
            try unsafe call.run { unsafe tern_feed_render(handle, canvas, 64, $0) }
            if isLast { _ = try unsafe call.step { unsafe tern_feed_verdict(handle, $0) } }
            // A preview of scans has every row. Like a whole image, it is converted last, when it is small.
            let hasGaps = !isLast && !state.isInterlaced
            if unsafe tern_feed_info(handle).pointee.hasAlpha || hasGaps {
                try unsafe call.premultiply(base, size: size, color: &color)
            }
        }
        return try call.finish(
            DecodedPixels(
                pixels: pixels, extent: header.extent, info: header.info, plan: header.plan, isPartial: !isLast,
                isComplete: isLast && state.hasEnd, color: color))
    }

    private func start() throws(ImageError) {
        let info = unsafe tern_feed_info(handle).pointee
        try call.check(info)
        color = unsafe call.color(info) { unsafe tern_feed_profile(handle, $0, $1) }
        let plan = call.plan(info)
        var memory = call.memory(for: info, plan: plan, color: color, isInterlaced: state.isInterlaced)
        // Only the decoder of whole files makes components of other kinds than bytes.
        if call.options.color.component != .uint8 { unsafe tern_feed_gather(handle) }
        if !state.isGathering {
            // Files that the decoder of whole files refuses are refused here, too. A file that takes more memory only
            // because it is decoded incrementally is left to that decoder.
            try call.check(memory, info)
            memory.isResizedInRows = false
            memory.keepsCodec = true
            memory.isCopied = !info.hasScans
            memory.hasPreview = showsRows || state.isInterlaced || info.hasScans
            if memory.peak > call.options.memoryLimit {
                unsafe tern_feed_gather(handle)
            } else if call.format == .png, !state.isInterlaced, !showsRows {
                // There is nothing to show of it before its end, and a whole file is decoded in half the time.
                unsafe tern_feed_await(handle)
            }
        }
        header = (info, plan, memory.made)
        if state.isGathering { return }
        ink = color.takeInk()
        if let ink { unsafe tern_feed_ink(handle, ink.handle) }
        let least = call.stored(plan.codecSize(of: call.upright(info)), info)
        _ = try unsafe result {
            unsafe tern_feed_start(handle, UInt32(least.width), UInt32(least.height), $0)
        }
    }

    /// Decodes all bytes at once, for a feed that gathers them.
    func whole() throws(ImageError) -> RasterImage {
        if let wholeImage { return wholeImage }
        var count = 0
        guard let bytes = unsafe tern_feed_bytes(handle, &count) else {
            throw ImageError(.truncated, format: call.format, "no bytes")
        }
        return try unsafe call.image(bytes, count)
    }

    private func result(
        _ body: (UnsafeMutablePointer<CChar>) -> tern_codec_result
    ) throws(ImageError) -> tern_codec_result {
        var result = TERN_CODEC_OK
        _ = try unsafe call.step { text in
            unsafe result = body(text)
            return result.rawValue > 0 ? TERN_CODEC_MORE : result
        }
        return result
    }
}
#endif
