#if os(Linux)
import CTernCodecs
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The frames of a GIF, an animated WebP or an animated PNG: the C decoder composes them in order behind a lock.
final class CodecFrames: ImageFrames {
    let count: Int
    let loopCount: Int
    let size: PixelSize
    let byteCount: Int
    /// A Boolean value that indicates whether the bytes end before the file does.
    var isCut: Bool { info.isCut }
    private let call: CodecCall
    private let info: tern_codec_info
    private let plan: DecodingPlan
    private let profile: RasterImage.Metadata.ColorProfile
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
        profile = cursor.color.metadata
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
        let outcome: Result<(PixelBuffer, Duration, Bool), ImageError> = cursor.withLock { cursor in
            do throws(ImageError) { return .success(try cursor.frame(at: index)) } catch { return .failure(error) }
        }
        let (pixels, duration, isPartial) = try outcome.get()
        let canvas = PixelSize(width: Int(info.width), height: Int(info.height))
        let image = try call.finish(
            DecodedPixels(
                pixels: pixels, extent: tern_extent(canvas), info: info, plan: plan,
                isPartial: isPartial || info.isCut, color: ColorUse(metadata: profile)))
        return ImageFrame(image: image, duration: duration)
    }
}

extension CodecFrames {
    /// The C decoder, its bytes, and the index of the frame that it gives next.
    ///
    /// Safe to use: the bytes and handles are its own and freed in deinit.
    @safe
    // Unchecked: nothing reads or writes it but under the lock that holds it.
    private final class Cursor: @unchecked Sendable {
        private let bytes: UnsafeMutableBufferPointer<UInt8>
        private let byteCount: Int
        private let call: CodecCall
        private let size: PixelSize
        private let source: FrameSource
        /// What is done about the profile, the same for every frame.
        let color: ColorUse
        private var next = 0

        /// Takes the bytes over, also when it throws.
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
        }

        deinit {
            unsafe source.close()
            unsafe bytes.deallocate()
        }

        func frame(at index: Int) throws(ImageError) -> (PixelBuffer, Duration, Bool) {
            if index < next { try rewind() }
            var duration = ImageFrame.duration(milliseconds: 0)
            var isPartial = false
            let pixels = try unsafe PixelBuffer(count: size.pixelCount * 4, cleared: true) {
                (base) throws(ImageError) in
                while next <= index {
                    try call.checkCancellation()
                    do throws(ImageError) {
                        duration = try unsafe source.next(call.canvas(base, size), call: call)
                        next += 1
                    } catch {
                        // The decoder stands in the middle of a frame: whatever comes next starts anew.
                        next = .max
                        guard call.tolerates(error) else { throw error }
                        isPartial = true
                    }
                }
                var color = color
                try unsafe call.premultiply(base, size, &color)
            }
            return (pixels, duration, isPartial)
        }

        private func rewind() throws(ImageError) {
            try unsafe source.rewind(call)
            next = 0
        }
    }
}
#endif
