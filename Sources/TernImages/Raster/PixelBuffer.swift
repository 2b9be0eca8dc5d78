import CTernCodecs

#if canImport(ImageIO)
import CoreGraphics
#endif

/// Pixels that never change and never move: an immutable array and its form, held by a class.
final class PixelBuffer: Sendable {
    let bytes: [UInt8]
    /// The meaning of the bytes. It is here, so that no image pairs these bytes with another form.
    let form: PixelForm
    #if canImport(ImageIO)
    /// The image that all views share, created for the first one. It holds the bytes and not this buffer.
    @MainActor var shared: CGImage?
    #endif

    init(_ bytes: [UInt8], form: PixelForm = .standard) {
        self.bytes = bytes
        self.form = form
    }

    /// Creates a buffer that the closure fills. Bytes that it does not write are undefined unless `cleared`. `room`
    /// more bytes behind them are scratch space of the closure.
    init(
        count: Int, room: Int = 0, form: PixelForm, cleared: Bool = false,
        fill: (UnsafeMutablePointer<UInt8>) throws(ImageError) -> Void
    ) throws(ImageError) {
        var failure: ImageError?
        self.form = form
        bytes = unsafe [UInt8](unsafeUninitializedCapacity: count + room) { buffer, filled in
            guard let base = buffer.baseAddress else { return }
            unsafe tern_prefer_large_pages(base, count + room)
            if cleared { unsafe base.initialize(repeating: 0, count: count) }
            do throws(ImageError) {
                try unsafe fill(base)
                filled = count
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
    }

    /// Returns the same bytes with another meaning.
    func labeled(_ form: PixelForm) -> PixelBuffer { form == self.form ? self : PixelBuffer(bytes, form: form) }
}

extension RasterImage.Component {
    /// The component for the C functions.
    var samples: tern_samples {
        switch self {
        case .uint8: TERN_SAMPLES_BYTES
        case .uint16: TERN_SAMPLES_WORDS
        case .float16: TERN_SAMPLES_HALVES
        }
    }
}
