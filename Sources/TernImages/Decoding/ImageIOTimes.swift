#if canImport(ImageIO)
import CoreGraphics
import Foundation
import ImageIO

/// Where ImageIO keeps the times of an animation's frames, which differs from format to format.
struct ImageIOTimes {
    private let dictionary: CFString
    /// The delay as the file has it, and the one that ImageIO would rather have.
    private let delays: [CFString]
    private let loops: CFString
    /// Whether the file's number is of repetitions after the first round, as a GIF's.
    private let countsRepetitions: Bool

    /// Nil for a type that has no frames in time: pages and sizes are not an animation.
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
            // The names within are the same for both.
            dictionary = type == "public.avis" ? kCGImagePropertyAVISDictionary : kCGImagePropertyHEICSDictionary
            delays = [kCGImagePropertyHEICSUnclampedDelayTime, kCGImagePropertyHEICSDelayTime]
            loops = kCGImagePropertyHEICSLoopCount
        default:
            return nil
        }
        countsRepetitions = type == "com.compuserve.gif"
    }

    /// How often it plays, 0 for ever, by the properties of the file as a whole; 1 if they do not say.
    func loopCount(_ properties: NSDictionary?) -> Int {
        guard let count = number(loops, properties)?.intValue, count >= 0 else { return 1 }
        return count > 0 && countsRepetitions ? count + 1 : count
    }

    /// How long a frame shows, by its properties.
    func duration(_ properties: NSDictionary?) -> Duration {
        let seconds = delays.lazy.compactMap { number($0, properties)?.doubleValue }.first { $0.isFinite && $0 > 0 }
        return ImageFrame.duration(microseconds: UInt64(min(seconds ?? 0, 1_000_000) * 1_000_000))
    }

    private func number(_ key: CFString, _ properties: NSDictionary?) -> NSNumber? {
        (properties?.object(forKey: dictionary) as? NSDictionary)?.object(forKey: key) as? NSNumber
    }
}
#endif
