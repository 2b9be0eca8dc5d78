import Tern
import TernImages

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

/// Tern's side of the pipeline benchmark, through the public interface. Prints a line `NAME VALUE` for each figure.
///
///     bind | marks | miss | overhead [COUNT] | coalescing     costs of the pipeline itself
///     answers PATH | preview PATH | scroll            with pictures: JPEGs, the second a progressive one
///     serve PATH                                      answers every request with the file, until its input ends
///     thumbs                                          reads lines ADDRESS COUNT, answers each with ns of wall and processor
@main enum Main {
    static func main() async throws {
        let words = CommandLine.arguments.dropFirst()
        let path = words.dropFirst().first ?? ""
        switch words.first {
        case "bind": try Binding.run()
        case "marks": try Binding.runMarked()
        case "miss": try await Missing.run()
        case "overhead": try await Overhead.run(count: Int(path) ?? 20_000)
        case "coalescing": try await Coalescing.run()
        case "answers": try await Answers.run(try Data(contentsOf: URL(filePath: path)))
        case "preview": try await FirstPreview.run(try Data(contentsOf: URL(filePath: path)))
        case "scroll": try await ListScroll.run()
        case "serve": try Thumbnails.serve(Array(try Data(contentsOf: URL(filePath: path))))
        case "thumbs": try await Thumbnails.run()
        default: throw Failure("no such measurement: \(words.joined(separator: " "))")
        }
    }
}

struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// A figure as the runner reads it.
func say(_ name: String, _ value: Double) { print(name, value) }

extension Array where Element == Double {
    /// The least value that so large a part of all does not exceed.
    func percentile(_ part: Double) -> Double {
        let sorted = self.sorted()
        guard let last = sorted.last else { return .nan }
        let index = Int((Double(count) * part).rounded(.up)) - 1
        return index < count ? sorted[Swift.max(0, index)] : last
    }

    var median: Double { percentile(0.5) }
}

/// Nanoseconds of three clocks.
struct Moment {
    let wall = Self.read(CLOCK_MONOTONIC)
    /// Of all threads of the process.
    let process = Self.read(CLOCK_PROCESS_CPUTIME_ID)
    /// Of the calling thread.
    let thread = Self.read(CLOCK_THREAD_CPUTIME_ID)

    static func wall() -> Double { read(CLOCK_MONOTONIC) }

    private static func read(_ clock: clockid_t) -> Double {
        var time = timespec()
        _ = unsafe clock_gettime(clock, &time)
        return Double(time.tv_sec) * 1e9 + Double(time.tv_nsec)
    }
}

extension ImagePipeline {
    /// Without a disk, as the peers have none, and without others' sessions.
    static func bare(_ change: (inout Configuration) -> Void = { _ in }) -> ImagePipeline {
        var configuration = Configuration()
        configuration.disk = .none
        configuration.reachability = nil
        change(&configuration)
        return ImagePipeline(configuration: configuration)
    }
}

/// Gives the same picture of a pixel at once, whatever the bytes.
struct EmptyDecoder: ImageDecoder {
    let image: RasterImage

    init() throws {
        let pixel = RasterImage(size: PixelSize(width: 1, height: 1), premultiplied: [0, 0, 0, 255])
        guard let pixel else { throw Failure("no picture of a pixel") }
        image = pixel
    }

    func decodes(_ format: ImageFormat) -> Bool { true }
    func format(of bytes: Data) -> ImageFormat? { .png }
    func image(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> RasterImage { image }
    func animation(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> (any ImageFrames)? { nil }
}

func address(_ text: String) throws -> URL {
    guard let url = URL(string: text) else { throw Failure("not a URL: \(text)") }
    return url
}
