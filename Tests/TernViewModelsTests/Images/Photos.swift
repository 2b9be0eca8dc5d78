import Tern
import TernConcurrency
import TernImages
import TernTesting
import TernViewModels
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// Images whose width identifies them, and views that record their calls.

/// A file that states its width and number of frames. The widths of the frames count up from that width.
struct PhotoDecoder: ImageDecoder {
    static func file(_ width: Int, frames: Int = 1) -> Data { Data("GIF89a \(width) \(frames)".utf8) }

    static func image(_ width: Int) throws(ImageError) -> RasterImage {
        let bytes = [UInt8](repeating: 255, count: width * 4)
        guard let image = RasterImage(size: PixelSize(width: width, height: 1), premultiplied: bytes) else {
            throw ImageError(.corrupt, "no width")
        }
        return image
    }

    func decodes(_ format: ImageFormat) -> Bool { format == .gif }

    func image(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> RasterImage {
        try Self.image(min(numbers(data)[0], options.targetSize?.width ?? .max))
    }

    func animation(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> (any ImageFrames)? {
        let numbers = numbers(data)
        return numbers[1] > 1 ? PhotoFrames(first: numbers[0], count: numbers[1]) : nil
    }

    private func numbers(_ data: Data) -> [Int] {
        let words = String(decoding: data, as: UTF8.self).split(separator: " ").compactMap { Int($0) }
        return words.count == 2 ? words : [0, 0]
    }
}

/// Frames of 100 milliseconds each.
final class PhotoFrames: ImageFrames {
    let first: Int
    let count: Int
    let loopCount = 0
    private let decoded = Lock(0)

    init(first: Int, count: Int) {
        self.first = first
        self.count = count
    }

    var size: PixelSize { PixelSize(width: first, height: 1) }
    var decodes: Int { decoded.withLock { $0 } }

    func frame(at index: Int) throws(ImageError) -> ImageFrame {
        decoded.withLock { $0 += 1 }
        return ImageFrame(image: try PhotoDecoder.image(first + index), duration: .milliseconds(100))
    }
}

/// A pipeline over a stub: `/40` is an image of that width, and `/40/3` an animation of three frames; all others do not
/// exist. Responses to `/slow…` arrive a second later.
struct Photos {
    let clock = ManualClock()
    let stub: StubTransport
    let pipeline: ImagePipeline

    init(headers: Headers = [:], change: (inout ImagePipeline.Configuration) -> Void = { _ in }) {
        stub = StubTransport(clock: clock) { call in
            let words = call.path.split(separator: "/")
            let numbers = words.compactMap { Int($0) }
            var answer = StubTransport.Answer.status(404)
            if let width = numbers.first {
                let file = PhotoDecoder.file(width, frames: numbers.count > 1 ? numbers[1] : 1)
                answer = .data(file, headers: headers)
            }
            return words.first == "slow" ? answer.delayed(by: .seconds(1)) : answer
        }
        pipeline = Self.pipeline(stub, change)
    }

    static func pipeline(
        _ stub: StubTransport, _ change: (inout ImagePipeline.Configuration) -> Void = { _ in }
    ) -> ImagePipeline {
        var configuration = ImagePipeline.Configuration()
        configuration.session = Session(stub: stub)
        configuration.disk = .none
        configuration.memoryLimit = 64 << 20
        configuration.reachability = nil
        configuration.pressure = nil
        configuration.decoders = ImageDecoders([PhotoDecoder()])
        change(&configuration)
        return ImagePipeline(configuration: configuration)
    }

    func url(_ path: String) -> URL? { URL(string: "https://a.example\(path)") }

    func request(_ path: String) -> ImageRequest { ImageRequest(url(path)) }

    /// Loads the image into memory.
    func load(_ path: String) async throws { _ = try await pipeline.image(from: request(path)) }

    /// Delivers slow responses. Requires one running call and no call that was cancelled just before and may still
    /// sleep.
    func advance() async throws {
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(1))
    }

    /// Delivers slow responses while `work` waits, regardless of other calls.
    func whileSlowOnesCome<Value>(_ work: () async throws -> Value) async rethrows -> Value {
        let passing = Task { while true { try await advance() } }
        defer { passing.cancel() }
        return try await work()
    }
}

/// A view with any slots. Its log has a line for each call: the width or name of the content, and its phase.
@MainActor
class Photo: ImageViewModel {
    let log = Log<String>()
    let bindings = ViewBindings()
    var size: PixelSize?

    init(_ pipeline: ImagePipeline? = nil) { imagePipeline = pipeline }

    var lines: [String] { log.events }

    func showImage(_ update: ImageUpdate, in slot: ImageSlot) { log.append(Self.line(update, slot)) }
    func imageSize(for slot: ImageSlot) -> PixelSize? { size }
    func beginImageActivity(in slot: ImageSlot) { log.append("begin") }
    func endImageActivity(in slot: ImageSlot) { log.append("end") }

    func imageLoadEnded(_ load: ImageLoad) {
        switch load.result {
        case .success?: log.append("ended")
        case .failure(let error)?: log.append("failed \(error.kind)")
        case nil: log.append("not ended")
        }
    }

    static func line(_ update: ImageUpdate, _ slot: ImageSlot) -> String {
        let content =
            switch update.content {
            case .none: "nothing"
            case .image(let image): "\(image.size.width)"
            case .custom(let name): "\(name)"
            }
        let phase =
            switch update.phase {
            case .idle: "idle"
            case .placeholder: "placeholder"
            case .preview(let number): "preview \(number)"
            case .success(let source): source.rawValue
            case .failure(let error): "failure \(error.kind)"
            }
        let kind = update.isFrame ? " frame" : update.transition == nil ? "" : " slowly"
        return "\(slot == .image ? "" : slot.name + ": ")\(content) \(phase)\(kind)"
    }
}

/// Records the results that a completion gets.
@MainActor
final class CompletionRecorder {
    private(set) var results: [Result<ImageResponse, ImageError>] = []

    var widths: [Int] {
        results.compactMap { if case .success(let response) = $0 { response.image.size.width } else { nil } }
    }
    var failures: [ImageError.Kind] {
        results.compactMap { if case .failure(let error) = $0 { error.kind } else { nil } }
    }

    func record(_ result: Result<ImageResponse, ImageError>) { results.append(result) }
    func take(_ response: ImageResponse) { results.append(.success(response)) }
}

extension ImageLoad {
    /// Returns the kind of the error; nil for a success.
    func failure() async -> ImageError.Kind? {
        do throws(ImageError) {
            _ = try await value
            return nil
        } catch {
            return error.kind
        }
    }
}
