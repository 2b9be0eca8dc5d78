#if os(Linux)
import CTernCodecs
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The frames of a GIF, an animated WebP or PNG, an AVIF file or a JPEG XL file. The C decoder composes them in order,
/// behind a lock.
final class CodecFrames: ImageFrames {
    let count: Int
    let loopCount: Int
    let size: PixelSize
    let byteCount: Int
    var bytesPerPixel: Int { call.options.color.component.bytesPerPixel }
    /// Whether the bytes end before the file does.
    var isCut: Bool { info.isCut }
    private let call: CodecCall
    private let info: tern_codec_info
    private let plan: DecodingPlan
    private let color: (metadata: RasterImage.Metadata.ColorProfile, space: ImageColorSpace)
    /// Whether the bytes reach the end of the file.
    private let isComplete: Bool
    private let cursor: Lock<Cursor>

    convenience init(_ data: Data, call: CodecCall) throws(ImageError) {
        let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: max(1, data.count))
        _ = unsafe data.copyBytes(to: copy)
        try unsafe self.init(owning: copy, data.count, call: call)
    }

    convenience init(copying bytes: UnsafePointer<UInt8>, _ count: Int, call: CodecCall) throws(ImageError) {
        let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: max(1, count))
        _ = unsafe copy.update(fromContentsOf: UnsafeBufferPointer(start: bytes, count: count))
        try unsafe self.init(owning: copy, count, call: call)
    }

    private init(
        owning bytes: UnsafeMutableBufferPointer<UInt8>, _ byteCount: Int, call: CodecCall
    ) throws(ImageError) {
        var info = tern_codec_info()
        let cursor = try unsafe Cursor(bytes, byteCount, call: call, info: &info)
        if info.isCut, !call.options.allowsPartial { throw call.cutError }
        self.call = call
        self.info = info
        color = (cursor.color.metadata, cursor.color.space)
        isComplete = cursor.isComplete
        self.cursor = Lock(cursor)
        plan = call.plan(info)
        self.byteCount = byteCount
        count = Int(info.frameCount)
        loopCount = Int(info.loopCount)
        size = plan.cropped
    }

    func frame(at index: Int) throws(ImageError) -> ImageFrame {
        guard index >= 0, index < count else {
            throw ImageError(.invalidArgument, format: call.format, "frame \(index) of \(count)")
        }
        let outcome = cursor.withLock { cursor in
            Result { () throws(ImageError) in try cursor.frame(at: index) }
        }
        let (pixels, duration, isPartial, hasEnd) = try outcome.get()
        let canvas = PixelSize(width: Int(info.width), height: Int(info.height))
        let image = try call.finish(
            DecodedPixels(
                pixels: pixels, extent: tern_extent(canvas), info: info, plan: plan,
                isPartial: isPartial || info.isCut, isComplete: isComplete && hasEnd,
                color: ColorUse(metadata: color.metadata, space: color.space), isSettled: true))
        return ImageFrame(image: image, duration: duration)
    }
}

extension CodecFrames {
    /// A C decoder with its bytes, and the index of the next frame.
    ///
    /// It is safe to use, because it owns its bytes and handles and frees them in deinit.
    @safe
    // Unchecked: it is read and written only under the lock that holds it.
    private final class Cursor: @unchecked Sendable {
        private let bytes: UnsafeMutableBufferPointer<UInt8>
        private let byteCount: Int
        private let call: CodecCall
        private let size: PixelSize
        private let info: tern_codec_info
        private let source: FrameSource
        /// The treatment of the color profile, the same for every frame.
        let color: ColorUse
        let isComplete: Bool
        private var next = 0
        /// The frame at which the decoder stops, with its duration; nil while none is known. Those behind it are not
        /// there.
        private var damaged: (index: Int, pixels: PixelBuffer, duration: Duration, hasEnd: Bool)?

        /// Takes ownership of the bytes, also when it throws.
        init(
            _ bytes: UnsafeMutableBufferPointer<UInt8>, _ byteCount: Int, call: CodecCall, info: inout tern_codec_info
        ) throws(ImageError) {
            unsafe self.bytes = bytes
            self.byteCount = byteCount
            self.call = call
            do throws(ImageError) {
                guard let base = bytes.baseAddress else {
                    throw ImageError(.truncated, format: call.format, "no bytes")
                }
                unsafe (source, info, color) = try FrameSource.open(base, byteCount, call: call)
            } catch {
                unsafe bytes.deallocate()
                throw error
            }
            size = PixelSize(width: Int(info.width), height: Int(info.height))
            self.info = info
            let all = unsafe UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[..<byteCount])
            isComplete = unsafe FileEnd.isReached(by: all, call.format)
        }

        deinit {
            unsafe source.close()
            unsafe bytes.deallocate()
        }

        /// Returns the pixels of a frame, its time, and whether it is a part, and whether the frames reach their end.
        func frame(at index: Int) throws(ImageError) -> (PixelBuffer, Duration, Bool, Bool) {
            if let damaged, index >= damaged.index {
                return (damaged.pixels, damaged.duration, true, damaged.hasEnd)
            }
            if index < next { try rewind() }
            var duration = ImageFrame.duration(milliseconds: 0)
            var isPartial = false
            var last = 0
            var color = color
            let (bytes, form) = (call.codecBytes(info), call.codecForm(info, color))
            let canvas = try unsafe PixelBuffer(count: size.pixelCount * bytes, form: form, cleared: true) {
                (base) throws(ImageError) in
                while next <= index {
                    try call.checkCancellation()
                    last = next
                    do throws(ImageError) {
                        duration = try unsafe source.next(call.canvas(base, size, bytes: bytes), call: call)
                        next += 1
                    } catch {
                        // The decoder has stopped inside a frame. The next call starts from the first frame.
                        next = .max
                        guard call.tolerates(error) else { throw error }
                        isPartial = true
                    }
                }
                if !info.isDeep { try unsafe call.premultiply(base, size: size, color: &color) }
            }
            let hasEnd = unsafe source.hasEnd
            let pixels = try call.settled(canvas, size: size, info: info, color: &color)
            if isPartial { damaged = (last, pixels, duration, hasEnd) }
            return (pixels, duration, isPartial, hasEnd)
        }

        private func rewind() throws(ImageError) {
            try unsafe source.rewind(call)
            next = 0
        }
    }
}

/// The C decoder of an animation. The caller that opened it closes it once, before the bytes are freed.
@unsafe
enum FrameSource {
    case gif(OpaquePointer)
    case webp(OpaquePointer)
    case apng(OpaquePointer)
    case avif(OpaquePointer)
    case jpegXL(OpaquePointer)

    /// Opens the decoder of the call's format, checks the header against the limits, and reads the color profile.
    static func open(
        _ bytes: UnsafePointer<UInt8>, _ count: Int, call: CodecCall
    ) throws(ImageError) -> (FrameSource, tern_codec_info, ColorUse) {
        var info = tern_codec_info()
        let limit = UInt32(clamping: call.options.limits.frames)
        let source: FrameSource
        let color: ColorUse
        switch call.format {
        case .gif:
            unsafe source = .gif(try call.open { unsafe tern_gif_open(bytes, count, limit, &info, $0, $1) })
            color = call.plainColor(info)
        case .png:
            unsafe source = .apng(try call.open { unsafe tern_apng_open(bytes, count, limit, &info, $0, $1) })
            color = unsafe Self.color(ofPNG: bytes, count: count, info: info, call: call)
        case .avif:
            let limits = call.feedLimits
            let isWhole = unsafe FileEnd.isReached(by: UnsafeRawBufferPointer(start: bytes, count: count), .avif)
            let avif: OpaquePointer
            do throws(ImageError) {
                unsafe avif = try call.open { unsafe tern_avif_open(bytes, count, limits, &info, $0, $1) }
            } catch {
                // libavif reports missing boxes as faulty ones.
                guard error.kind == .corrupt, !isWhole else { throw error }
                throw ImageError(.truncated, format: .avif, error.message)
            }
            // libavif finds out that bytes of a still picture are missing, and reads the frames of a sequence one by
            // one.
            info.isCut = !isWhole && info.frameCount > 1
            color = unsafe call.color(info) { unsafe tern_avif_profile(avif, $0, $1) }
            unsafe source = .avif(avif)
        case .jpegXL:
            let limits = call.feedLimits
            let jxl = try unsafe call.open { unsafe tern_jxl_open(bytes, count, limits, &info, $0, $1) }
            color = unsafe call.color(info) { unsafe tern_jxl_profile(jxl, $0, $1) }
            unsafe source = .jpegXL(jxl)
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
        var memory = call.memory(for: info, plan: call.plan(info), color: ColorUse(metadata: .none))
        memory.made = tern_extent_whole(info.width, info.height)
        memory.keepsCodec = true
        memory.isResizedInRows = false
        try call.check(memory, info)
    }

    /// Returns the color profile of the file, which the animation's decoder does not read.
    private static func color(
        ofPNG bytes: UnsafePointer<UInt8>, count: Int, info: tern_codec_info, call: CodecCall
    ) -> ColorUse {
        var still = tern_codec_info()
        // A head that libpng cannot read has no usable profile. The frames report the error.
        let limits = call.feedLimits
        guard let png = try? unsafe call.open({ unsafe tern_png_open(bytes, count, limits, &still, $0, $1) }) else {
            return call.plainColor(info)
        }
        defer { unsafe tern_png_close(png) }
        return unsafe call.color(still) { unsafe tern_png_profile(png, $0, $1) }
    }

    /// Writes the next composed frame as straight RGBA and returns its time.
    func next(
        _ canvas: tern_canvas, call: CodecCall
    ) throws(ImageError) -> Duration {
        var milliseconds: UInt32 = 0
        var microseconds: UInt64 = 0
        try unsafe call.run {
            switch unsafe self {
            case .gif(let gif): unsafe tern_gif_next(gif, canvas, rowGroup, &milliseconds, $0)
            case .webp(let webp): unsafe tern_webp_frames_next(webp, canvas, &milliseconds, $0)
            case .apng(let apng): unsafe tern_apng_next(apng, canvas, rowGroup, &microseconds, $0)
            case .avif(let avif): unsafe tern_avif_next(avif, canvas, &microseconds, $0)
            case .jpegXL(let jxl): unsafe tern_jxl_next(jxl, canvas, &microseconds, $0)
            }
        }
        return ImageFrame.duration(microseconds: microseconds + UInt64(milliseconds) * 1000)
    }

    /// Whether the frames reach their end, if the bytes reach that of the file's structure.
    var hasEnd: Bool {
        guard case .jpegXL(let jxl) = unsafe self else { return true }
        return unsafe tern_jxl_has_end(jxl)
    }

    /// Makes the first frame the next one.
    func rewind(_ call: CodecCall) throws(ImageError) {
        switch unsafe self {
        case .gif(let gif): _ = try unsafe call.step { unsafe tern_gif_rewind(gif, $0) }
        case .webp(let webp): unsafe tern_webp_frames_rewind(webp)
        case .apng(let apng): unsafe tern_apng_rewind(apng)
        case .avif(let avif): _ = try unsafe call.step { unsafe tern_avif_rewind(avif, $0) }
        case .jpegXL(let jxl): _ = try unsafe call.step { unsafe tern_jxl_rewind(jxl, $0) }
        }
    }

    func close() {
        switch unsafe self {
        case .gif(let gif): unsafe tern_gif_close(gif)
        case .webp(let webp): unsafe tern_webp_frames_close(webp)
        case .apng(let apng): unsafe tern_apng_close(apng)
        case .avif(let avif): unsafe tern_avif_close(avif)
        case .jpegXL(let jxl): unsafe tern_jxl_close(jxl)
        }
    }
}
#endif
