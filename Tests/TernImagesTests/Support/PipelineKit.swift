import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A pipeline over a stub, without a disk by default, and a decoder that counts.
struct PipelineKit {
    let stub: StubTransport
    let pipeline: ImagePipeline
    let decoder = CountingDecoder()

    init(
        _ stub: StubTransport, disk: ImagePipeline.Disk = .none,
        change: (inout ImagePipeline.Configuration) -> Void = { _ in }
    ) {
        self.stub = stub
        var configuration = ImagePipeline.Configuration()
        configuration.session = Session(stub: stub)
        configuration.disk = disk
        configuration.memoryLimit = 64 << 20
        configuration.reachability = nil
        configuration.pressure = nil
        configuration.decoders = ImageDecoders([decoder])
        change(&configuration)
        pipeline = ImagePipeline(configuration: configuration)
    }

    /// Answers every path with the same image.
    init(
        picture: Data, headers: Headers = [:], disk: ImagePipeline.Disk = .none,
        change: (inout ImagePipeline.Configuration) -> Void = { _ in }
    ) {
        self.init(StubTransport { _ in .data(picture, headers: headers) }, disk: disk, change: change)
    }
}

extension ImagePipeline {
    /// Returns the error of a load; nil if it succeeds.
    func failure(of request: ImageRequest) async -> ImageError? {
        do throws(ImageError) {
            _ = try await image(from: request)
            return nil
        } catch {
            return error
        }
    }
}

/// The system's decoder, with a count of its calls.
final class CountingDecoder: ImageDecoder {
    private let count = Lock(0)
    private let decoder = CodecImageDecoder()

    var decodes: Int { count.withLock { $0 } }

    func decodes(_ format: ImageFormat) -> Bool { decoder.decodes(format) }

    func image(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> RasterImage {
        count.withLock { $0 += 1 }
        return try decoder.image(from: data, options: options)
    }

    func animation(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> (any ImageFrames)? {
        try decoder.animation(from: data, options: options)
    }
}

/// A processor that only counts its calls.
struct CountingProcessor: ImageProcessor {
    let name: String
    let counter: Counter
    var identifier: ProcessorIdentity { ProcessorIdentity(name) }

    func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
        counter.add()
        return image
    }
}

final class Counter: Sendable {
    private let count = Lock(0)

    var value: Int { count.withLock { $0 } }

    func add() { count.withLock { $0 += 1 } }
}

enum Pictures {
    static func png(_ width: Int = 40, _ height: Int = 30) throws -> Data {
        try gradient(width, height).encoded(as: .png())
    }

    static func jpeg(_ width: Int = 40, _ height: Int = 30, progressive: Bool = false) throws -> Data {
        try gradient(width, height).encoded(as: .jpeg(progressive: progressive))
    }
}

/// Returns a URL from a valid string.
func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

/// A temporary folder that is removed with this object.
final class ScratchFolder: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: "tern-images-\(UInt64.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }
}

/// A number that a test changes while a server reads it.
final class Setting: Sendable {
    private let number: Lock<Int>

    init(_ value: Int) { number = Lock(value) }

    var value: Int {
        get { number.withLock { $0 } }
        set { number.withLock { $0 = newValue } }
    }
}

extension ResponseHead {
    /// Returns a response head.
    init(status: Int = 200, headers: Headers) {
        do {
            let target = try Target(absolute: "https://a.example/1.png")
            self.init(status: status, version: .http11, target: target, headers: headers)
        } catch {
            preconditionFailure("\(error)")
        }
    }
}
