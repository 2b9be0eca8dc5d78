import TernImages

// Not all of Foundation, whose memory would be measured with ours.
#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Tern's side of the image benchmark, through the public interface. Reads lines and answers each with the processor
/// time of one turn in nanoseconds:
///
///     full FORMAT PATH REPEATS    decodes the whole picture
///     thumb FORMAT PATH REPEATS   decodes it to 400 by 300 pixels
///     frames FORMAT PATH REPEATS  decodes each frame of an animation
///     thumbHash FORMAT PATH REPEATS, blurHash FORMAT PATH REPEATS
///                                 makes the placeholder of the picture's hash
///     resize FORMAT PATH REPEATS  makes 400 by 300 pixels of the decoded picture
///     save FORMAT PATH TARGET     writes the thumbnail's RGBA
@main enum Main {
    static func main() throws {
        while let line = readLine() {
            let words = line.split(separator: " ").map(String.init)
            guard words.count == 4 else { throw Failure("not a task: \(line)") }
            let data = try Data(contentsOf: URL(filePath: words[2]))
            if words[0] == "save" {
                let picture = try thumbnail(data)
                try picture.withPixels { span in
                    try unsafe span.withUnsafeBytes { try unsafe Data($0).write(to: URL(filePath: words[3])) }
                }
                print(0)
            } else {
                guard let repeats = Int(words[3]), repeats > 0 else { throw Failure("no count: \(words[3])") }
                print(try measure(words[0], data, repeats) / repeats)
            }
            // Each answer is waited for.
            fflush(nil)
        }
    }

    private static func thumbnail(_ data: Data) throws -> RasterImage {
        let target = PixelSize(width: 400, height: 300)
        return try CodecImageDecoder().image(from: data, options: ImageDecodingOptions(targetSize: target))
    }

    private static func measure(_ task: String, _ data: Data, _ repeats: Int) throws -> Int {
        let decoder = CodecImageDecoder()
        let whole = ImageDecodingOptions()
        switch task {
        case "full": return try spent(repeats) { try decoder.image(from: data, options: whole) }
        case "thumb": return try spent(repeats) { try thumbnail(data) }
        case "frames":
            return try spent(repeats) {
                guard let frames = try decoder.animation(from: data, options: whole) else {
                    throw Failure("no animation")
                }
                for index in 0..<frames.count - 1 { _ = try frames.frame(at: index) }
                return try frames.frame(at: frames.count - 1).image
            }
        case "thumbHash":
            let hash = try ThumbHash(thumbnail(data))
            return try spent(repeats) { hash.image() }
        case "blurHash":
            let hash = try BlurHash(thumbnail(data))
            return try spent(repeats) { hash.image() }
        case "resize":
            let picture = try decoder.image(from: data, options: whole)
            return try spent(repeats) { try picture.resized(to: PixelSize(width: 400, height: 300)) }
        default: throw Failure("no such task: \(task)")
        }
    }

    private static func spent(_ repeats: Int, _ body: () throws -> RasterImage) throws -> Int {
        let start = processorTime()
        var bytes = 0
        for _ in 0..<repeats { bytes += try body().byteCount }
        guard bytes > 0 else { throw Failure("an empty picture") }
        return processorTime() - start
    }

    private static func processorTime() -> Int {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}

struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
