#if canImport(ImageIO)
import CoreGraphics
import Foundation
import ImageIO
import TernConcurrency

/// The frames of an animation. ImageIO composes them behind a lock, one at a time.
final class ImageIOFrames: ImageFrames {
    let count: Int
    let loopCount: Int
    let size: PixelSize
    let byteCount: Int
    let bytesPerPixel: Int
    private let format: ImageFormat
    private let file: Lock<ImageIOFile>

    init(_ file: sending ImageIOFile, byteCount: Int) throws(ImageError) {
        count = file.count
        loopCount = file.loopCount
        size = try file.header(at: 0).plan(file.options).cropped
        format = file.format
        self.byteCount = byteCount
        bytesPerPixel = file.options.color.component.bytesPerPixel
        self.file = Lock(file)
    }

    func frame(at index: Int) throws(ImageError) -> ImageFrame {
        guard index >= 0, index < count else {
            throw ImageError(.invalidArgument, format: format, "frame \(index) of \(count)")
        }
        let outcome = file.withLock { file in
            Result { () throws(ImageError) in
                ImageFrame(image: try file.image(at: index), duration: file.duration(at: index))
            }
        }
        return try outcome.get()
    }
}

/// The keys under which ImageIO keeps the times of an animation's frames. They differ by format.
struct ImageIOTimes {
    private let dictionary: CFString
    /// The keys of the file's own delay, and of the delay that ImageIO recommends.
    private let delays: [CFString]
    private let loops: CFString
    /// Whether the file counts the repetitions after the first play, as GIF does.
    private let countsRepetitions: Bool

    /// Creates the keys; nil for a type whose images are not frames, such as pages and sizes.
    init?(type: String) {
        switch type {
        case "com.compuserve.gif":
            dictionary = kCGImagePropertyGIFDictionary
            delays = [kCGImagePropertyGIFUnclampedDelayTime, kCGImagePropertyGIFDelayTime]
            loops = kCGImagePropertyGIFLoopCount
        case "public.png":
            dictionary = kCGImagePropertyPNGDictionary
            delays = [kCGImagePropertyAPNGUnclampedDelayTime, kCGImagePropertyAPNGDelayTime]
            loops = kCGImagePropertyAPNGLoopCount
        case "org.webmproject.webp":
            dictionary = kCGImagePropertyWebPDictionary
            delays = [kCGImagePropertyWebPUnclampedDelayTime, kCGImagePropertyWebPDelayTime]
            loops = kCGImagePropertyWebPLoopCount
        case "public.heics", "public.avis":
            // The keys within are the same for both.
            dictionary = type == "public.avis" ? kCGImagePropertyAVISDictionary : kCGImagePropertyHEICSDictionary
            delays = [kCGImagePropertyHEICSUnclampedDelayTime, kCGImagePropertyHEICSDelayTime]
            loops = kCGImagePropertyHEICSLoopCount
        default:
            return nil
        }
        countsRepetitions = type == "com.compuserve.gif"
    }

    /// Returns the number of times that the animation plays, from the properties of the file; 0 for no limit, 1 if they
    /// do not say.
    func loopCount(_ properties: NSDictionary?) -> Int {
        guard let count = number(loops, properties)?.intValue, count >= 0 else { return 1 }
        return count > 0 && countsRepetitions ? count + 1 : count
    }

    /// Returns the time that a frame is shown, from its properties.
    func duration(_ properties: NSDictionary?) -> Duration {
        let seconds = delays.lazy.compactMap { number($0, properties)?.doubleValue }.first { $0.isFinite && $0 > 0 }
        return ImageFrame.duration(microseconds: UInt64(min(seconds ?? 0, 1_000_000) * 1_000_000))
    }

    private func number(_ key: CFString, _ properties: NSDictionary?) -> NSNumber? {
        (properties?.object(forKey: dictionary) as? NSDictionary)?.object(forKey: key) as? NSNumber
    }
}
#endif
