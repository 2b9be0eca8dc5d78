#if os(Linux)
import CTernCodecs

/// Rows between two looks at the task's cancellation.
private let rowGroup: UInt32 = 64

/// The C decoder of an animation. Whoever opened it closes it, once; the bytes outlive it.
@unsafe
enum FrameSource {
    case gif(OpaquePointer)
    case webp(OpaquePointer)
    case apng(OpaquePointer)
    case avif(OpaquePointer)

    /// Opens the decoder of the call's format, checks what the header says against the limits, looks at its profile.
    static func open(
        _ bytes: UnsafePointer<UInt8>, _ count: Int, call: CodecCall
    ) throws(ImageError) -> (FrameSource, tern_codec_info, ColorUse) {
        var info = tern_codec_info()
        let limit = UInt32(clamping: call.options.limits.frames)
        let source: FrameSource
        var color = ColorUse.none
        switch call.format {
        case .gif:
            unsafe source = .gif(try call.open { unsafe tern_gif_open(bytes, count, limit, &info, $0, $1) })
        case .png:
            unsafe source = .apng(try call.open { unsafe tern_apng_open(bytes, count, limit, &info, $0, $1) })
            color = unsafe Self.color(ofPNG: bytes, count, info, call)
        case .avif:
            let pixels = UInt32(clamping: call.options.limits.pixels)
            let isWhole = unsafe FileEnd.isReached(by: UnsafeRawBufferPointer(start: bytes, count: count), .avif)
            let avif: OpaquePointer
            do throws(ImageError) {
                unsafe avif = try call.open { unsafe tern_avif_open(bytes, count, pixels, limit, &info, $0, $1) }
            } catch {
                // libavif reports missing boxes as faulty ones.
                guard error.kind == .corrupt, !isWhole else { throw error }
                throw ImageError(.truncated, format: .avif, error.message)
            }
            info.isCut = !isWhole
            color = unsafe call.color(info) { unsafe tern_avif_profile(avif, $0, $1) }
            unsafe source = .avif(avif)
        default:
            let still = try unsafe call.open { unsafe tern_webp_open(bytes, count, &info, $0, $1) }
            color = unsafe call.color(info) { unsafe tern_webp_profile(still, $0, $1) }
            unsafe tern_webp_close(still)
            // libwebp takes memory for the canvas when it opens an animation.
            try unsafe check(info, call)
            unsafe source = .webp(try call.open { unsafe tern_webp_frames_open(bytes, count, $0, $1) })
        }
        do throws(ImageError) {
            try unsafe check(info, call)
        } catch {
            unsafe source.close()
            throw error
        }
        return unsafe (source, info, color)
    }

    /// Checks the limits against the header. Frames are composed at the file's own size and resized afterwards.
    private static func check(_ info: tern_codec_info, _ call: CodecCall) throws(ImageError) {
        try call.check(info)
        var memory = call.memory(info, call.plan(info), .none)
        memory.made = tern_extent_whole(info.width, info.height)
        memory.keepsCodec = true
        memory.isResizedInRows = false
        try call.check(memory, info)
    }

    /// The profile of the file as a whole, which the animation's decoder passes over.
    private static func color(
        ofPNG bytes: UnsafePointer<UInt8>, _ count: Int, _ info: tern_codec_info, _ call: CodecCall
    ) -> ColorUse {
        guard info.hasProfile, call.options.colorConversion else { return unsafe call.color(info) { _, _ in nil } }
        var still = tern_codec_info()
        // A head that libpng does not read has no profile that could be used; its frames will say what is wrong.
        guard let png = try? unsafe call.open({ unsafe tern_png_open(bytes, count, &still, $0, $1) }) else {
            return .notApplied
        }
        defer { unsafe tern_png_close(png) }
        return unsafe call.color(info) { unsafe tern_png_profile(png, $0, $1) }
    }

    /// Writes the next frame as it shows, straight RGBA: its time.
    func next(
        _ canvas: tern_canvas, call: CodecCall
    ) throws(ImageError) -> Duration {
        var milliseconds: UInt32 = 0
        var microseconds: UInt64 = 0
        try unsafe call.run {
            switch unsafe self {
            case .gif(let gif): unsafe tern_gif_next(gif, canvas, &milliseconds, $0)
            case .webp(let webp): unsafe tern_webp_frames_next(webp, canvas, &milliseconds, $0)
            case .apng(let apng): unsafe tern_apng_next(apng, canvas, rowGroup, &microseconds, $0)
            case .avif(let avif): unsafe tern_avif_next(avif, canvas, &microseconds, $0)
            }
        }
        return ImageFrame.duration(microseconds: microseconds + UInt64(milliseconds) * 1000)
    }

    /// Makes the first frame the next one.
    func rewind(_ call: CodecCall) throws(ImageError) {
        switch unsafe self {
        case .gif(let gif): _ = try unsafe call.step { unsafe tern_gif_rewind(gif, $0) }
        case .webp(let webp): unsafe tern_webp_frames_rewind(webp)
        case .apng(let apng): unsafe tern_apng_rewind(apng)
        case .avif(let avif): _ = try unsafe call.step { unsafe tern_avif_rewind(avif, $0) }
        }
    }

    func close() {
        switch unsafe self {
        case .gif(let gif): unsafe tern_gif_close(gif)
        case .webp(let webp): unsafe tern_webp_frames_close(webp)
        case .apng(let apng): unsafe tern_apng_close(apng)
        case .avif(let avif): unsafe tern_avif_close(avif)
        }
    }
}
#endif
