#if canImport(ImageIO)
import Foundation
import TernConcurrency

/// The frames of an animation, which ImageIO composes behind a lock: one decodes at a time.
final class ImageIOFrames: ImageFrames {
    let count: Int
    let loopCount: Int
    let size: PixelSize
    let byteCount: Int
    private let format: ImageFormat
    private let file: Lock<ImageIOFile>

    init(_ file: sending ImageIOFile, byteCount: Int) throws(ImageError) {
        count = file.count
        loopCount = file.loopCount
        size = try file.header(at: 0).plan(file.options).cropped
        format = file.format
        self.byteCount = byteCount
        self.file = Lock(file)
    }

    func frame(at index: Int) throws(ImageError) -> ImageFrame {
        guard index >= 0, index < count else {
            throw ImageError(.invalidArgument, format: format, "frame \(index) of \(count)")
        }
        let outcome: Result<ImageFrame, ImageError> = file.withLock { file in
            do throws(ImageError) {
                return .success(ImageFrame(image: try file.image(at: index), duration: file.duration(at: index)))
            } catch {
                return .failure(error)
            }
        }
        return try outcome.get()
    }
}
#endif
