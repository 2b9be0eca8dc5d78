import Tern
import TernTesting
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Tests the texts of errors, and that they contain no secrets.
@Suite(.timeLimit(.minutes(1))) struct ImageErrorTests {
    private struct Chatty: Error, CustomStringConvertible {
        var description: String { "s3cret" }
    }

    private func failure(of source: ImageRequest.Source) async throws -> ImageError {
        try #require(await PipelineKit(picture: Data()).pipeline.failure(of: ImageRequest(source)))
    }

    @Test func aFileThatCannotBeReadIsNamedWithTheSystemsReason() async throws {
        let folder = try ScratchFolder()
        let missing = try await failure(of: .file(folder.url.appending(path: "1.png")))
        #expect(missing.kind == .source && missing.message == "the file cannot be read: No such file or directory")
        #expect(missing.description.hasSuffix("loading file \(folder.url.path)/1.png"))
        let isFolder = try await failure(of: .file(folder.url))
        #expect(isFolder.message == "the file cannot be read: Is a directory" && isFolder.underlying != nil)
    }

    @Test func filesWithoutAnEndAreReadUpToTheLimit() async throws {
        var request = ImageRequest(.file(try url("file:///dev/zero")))
        request.options.responseByteLimit = 1_000_000
        let error = await PipelineKit(picture: Data()).pipeline.failure(of: request)
        #expect(error?.kind == .limitExceeded)
    }

    @Test func aFileThatGrowsIsReadInPieces() {
        func count(after count: Int, of size: Int, limit: Int = 1 << 20) -> Int {
            ImageFetcher.readCount(after: count, of: size, limit: limit)
        }
        #expect(count(after: 0, of: 1_000) == 1_001 && count(after: 600, of: 1_000) == 401)
        #expect(count(after: 1_000, of: 1_000) == 1)
        // The first byte beyond the size shows that the file has grown.
        #expect(count(after: 1_001, of: 1_000) == 65_537)
        #expect(count(after: 0, of: 0) == 65_537)
        #expect(count(after: 1_001, of: 1_000, limit: 1_100) == 100 && count(after: 1_100, of: 5, limit: 1_100) == 1)
    }

    /// Returns the writing end of a pipe as soon as the pipeline has opened the other end.
    private func writer(of pipe: URL) async -> Int32 {
        while true {
            let descriptor = unsafe open(pipe.path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
            if descriptor >= 0 { return descriptor }
            await Task.yield()
        }
    }

    @Test func pipesAreReadToTheirEndAndCanBeCancelled() async throws {
        let (folder, picture) = (try ScratchFolder(), try Pictures.png())
        let pipes = ["1", "2", "3"].map { folder.url.appending(path: $0) }
        for pipe in pipes { try #require(unsafe mkfifo(pipe.path, 0o600) == 0) }
        let pipeline = PipelineKit(picture: Data()).pipeline
        // Without a writer, and with one that writes nothing.
        for (index, pipe) in pipes.dropLast().enumerated() {
            let waiting = Task { await pipeline.failure(of: ImageRequest(.file(pipe))) }
            let descriptor = index == 0 ? -1 : await writer(of: pipe)
            waiting.cancel()
            #expect(await waiting.value?.kind == .cancelled)
            if descriptor >= 0 { close(descriptor) }
        }
        async let image = pipeline.image(from: ImageRequest(.file(pipes[2])))
        let descriptor = await writer(of: pipes[2])
        let count = unsafe picture.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
        close(descriptor)
        #expect(try await image.size.width > 0 && count == picture.count)
    }

    @Test func closureErrorsAreDescribedByTypeOnly() async throws {
        let error = try await failure(of: .data("1") { throw Chatty() })
        #expect(error.message == "the data closure of the request failed: Chatty" && error.underlying is Chatty)
        // The library's own errors contain no secrets.
        let refused = try await failure(of: .data("2") { throw ImageError(.corrupt, "not to my taste") })
        #expect(refused.message == "the data closure of the request failed: image error corrupt: not to my taste")
        let client = Client(session: Session(stub: StubTransport { _ in .status(404) }))
        let network = try await failure(of: .data("3") { try await client.get("http://h/") })
        #expect(network.message.contains("failed: status: GET http://h/: "))
    }

    @Test func hookErrorsAreDescribedByTypeOnly() async throws {
        let picture = try Pictures.png()
        let changes: [(String, @Sendable (inout ImagePipeline.Configuration) -> Void)] = [
            ("prepare", { $0.hooks.prepare = { _ in throw Chatty() } }),
            ("transform", { $0.hooks.transform = { _, _ in throw Chatty() } }),
            ("decrypt", { $0.hooks.decrypt = { _ in throw Chatty() } }),
        ]
        for (name, change) in changes {
            let kit = PipelineKit(picture: picture, change: change)
            let error = await kit.pipeline.failure(of: ImageRequest(try url("https://a.example/1.png")))
            #expect(error?.kind == .hook && error?.message == "the `\(name)` hook failed: Chatty")
        }
    }

    @Test func dumpedErrorsAndRequestsShowNoSecret() async throws {
        var headers: Headers = ["Authorization": "Bearer s3cret", "X-Plain": "shown"]
        headers.append(name: "Cookie", value: "a=s3cret")
        let request = try Request(
            .get, "https://u:s3cret@a.example/1.png?token=s3cret", headers: headers, body: .text("s3cret"))
        let kit = PipelineKit(StubTransport { _ in .status(404, headers: ["Set-Cookie": "a=s3cret"]) })
        var plain = request
        plain.body = .none
        let error = try #require(await kit.pipeline.failure(of: ImageRequest(.request(plain))))
        #expect(error.network?.kind == .status)
        #expect(error.message.hasPrefix("status 404"), "\(error)")
        for value in [error, ImageRequest(.request(request)), request] as [Any] {
            var text = ""
            dump(value, to: &text)
            #expect(!text.contains("s3cret"), "\(text)")
            #expect(text.contains("https://a.example/1.png?token=<redacted>") || text.contains("a.example"), "\(text)")
        }
    }

    @Test func itsTextIsItsLocalizedDescription() {
        let error = ImageError(.corrupt, format: .png, "a bad byte").from("file 1.png")
        let text = "image error corrupt (image/png): a bad byte, loading file 1.png"
        #expect((error as any LocalizedError).errorDescription == text)
    }

    @Test(arguments: [Double.nan, .infinity, 0, -2])
    func anInvalidScaleCountsAsNil(scale: Double) async throws {
        let kit = PipelineKit(picture: try Pictures.png())
        var request = ImageRequest(try url("https://a.example/photo@2x.png"))
        request.scale = scale
        #expect(try await kit.pipeline.image(from: request).scale == 2)
        // A key with NaN would never be found again.
        #expect(try await kit.pipeline.response(for: request).source == .memory)
    }

    @Test(arguments: [PixelSize(width: 0, height: 10), PixelSize(width: -3, height: .max)])
    func aSizeWithoutPixelsCountsAsNil(size: PixelSize) async throws {
        let kit = PipelineKit(picture: try Pictures.png())
        let request = ImageRequest(try url("https://a.example/1.png"), targetSize: size)
        #expect(try await kit.pipeline.image(from: request).size == PixelSize(width: 40, height: 30))
    }
}
