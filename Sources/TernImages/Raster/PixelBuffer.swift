#if canImport(ImageIO)
import CoreGraphics
#endif

/// Pixels that never change and never move: an array that nobody can mutate, held by a class.
final class PixelBuffer: Sendable {
    let bytes: [UInt8]
    #if canImport(ImageIO)
    /// Made for the first view that shows the picture, and shared by all. It holds the bytes, and not this buffer.
    @MainActor var shared: CGImage?
    #endif

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// A buffer that the closure fills; what it leaves unwritten is undefined unless `cleared`.
    init(
        count: Int, cleared: Bool = false, fill: (UnsafeMutablePointer<UInt8>) throws(ImageError) -> Void
    ) throws(ImageError) {
        var failure: ImageError?
        bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            guard let base = buffer.baseAddress else { return }
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
}
