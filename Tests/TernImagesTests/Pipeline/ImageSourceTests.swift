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

/// Tests closures that give decoded images or bytes.
@Suite(.timeLimit(.minutes(1))) struct ImageSourceTests {
    private final class Calls: Sendable {
        private let recorded = Lock<[PixelSize?]>([])

        var sizes: [PixelSize?] { recorded.withLock { $0 } }

        func add(_ size: PixelSize?) { recorded.withLock { $0.append(size) } }
    }

    private let calls = Calls()

    /// A library that has every picture in 400×300, and gives it at twice the size that it is asked for.
    private func library(_ name: String = "1") -> ImageRequest.Source {
        .image(name) { [calls] options in
            calls.add(options.targetSize)
            let width = options.targetSize.map { min(400, $0.width * 2) } ?? 400
            return RasterImage(
                color: ImageColor(red: 1, green: 2, blue: 3), size: PixelSize(width: width, height: width * 3 / 4))
        }
    }

    private func kit(_ change: (inout ImagePipeline.Configuration) -> Void = { _ in }) -> PipelineKit {
        PipelineKit(picture: Data(), change: change)
    }

    @Test func theClosureGetsTheSizeAndItsImageIsMadeToFit() async throws {
        let kit = kit()
        let size = PixelSize(width: 80, height: 80)
        let request = ImageRequest(library(), targetSize: size, contentMode: .fill)
        let response = try await kit.pipeline.response(for: request)
        #expect(response.image.size == size && response.source == .network && response.alternative == nil)
        // A second load is answered by memory, and a larger size by the closure: it has more than it gave.
        #expect(try await kit.pipeline.response(for: request).source == .memory)
        #expect(try await kit.pipeline.image(from: ImageRequest(library())).size.width == 400)
        #expect(calls.sizes == [size, nil])
        await kit.expectNothingLeft()
    }

    @Test func simultaneousLoadsOfOneSizeShareACall() async throws {
        let kit = kit()
        let gate = LoopbackServer.Gate()
        let count = Counter()
        let source = ImageRequest.Source.image("1") { options in
            count.add()
            try await gate.wait()
            return try gradient(options.targetSize?.width ?? 1, 1)
        }
        let sizes = [10, 10, 20].map { PixelSize(width: $0, height: $0) }
        let tasks = sizes.map { kit.pipeline.task(for: ImageRequest(source, targetSize: $0)) }
        await kit.pipeline.waitForMessages()
        gate.open()
        for (task, size) in zip(tasks, sizes) { #expect(try await task.image.size.width == size.width) }
        #expect(count.value == 2)
    }

    @Test func itIsProcessedAndStoredLikeAnyOther() async throws {
        let folder = try ScratchFolder()
        let kit = kit {
            $0.disk = .folder(folder.url)
            $0.diskContent = .all
        }
        var request = ImageRequest(library("a b"), targetSize: PixelSize(width: 40, height: 40))
        request.processors = [.rotate(degrees: 90)]
        request.options.waitsForStore = true
        #expect(try await kit.pipeline.image(from: request).size == PixelSize(width: 30, height: 40))
        request.caching.memory = []
        let again = try await kit.pipeline.response(for: request)
        #expect(again.source == .processed && calls.sizes.count == 1)
        // With the default, the library alone has its pictures.
        let own = PipelineKit(picture: Data(), disk: .folder(folder.url))
        request.caching.memory = .all
        #expect(try await own.pipeline.response(for: request).source == .network)
    }

    @Test func errorsSayWhatFailed() async throws {
        struct Missing: Error {}
        let kit = kit()
        let error = await kit.pipeline.failure(of: ImageRequest(.image("7") { _ in throw Missing() }))
        #expect(error?.kind == .source && error?.underlying is Missing && error?.origin == "image of 7")
        #expect(error?.message == "the image closure of the request failed: Missing")
        do throws(ImageError) {
            _ = try await kit.pipeline.data(for: ImageRequest(library()))
            Issue.record("there are bytes")
        } catch {
            #expect(error.kind == .source && error.message.contains("no encoded bytes"))
        }
        var cached = ImageRequest(library())
        cached.caching = .cacheOnly
        #expect(await kit.pipeline.failure(of: cached)?.kind == .notCached)
    }

    @Test(arguments: [true, false]) func cancellingTheLoadCancelsTheClosure(_ isImage: Bool) async throws {
        let kit = kit()
        let (started, held, cancelled) = (Waiter<Void>(), Waiter<Void>(), Waiter<Void>())
        @Sendable func hold() async {
            started.resume()
            await withTaskCancellationHandler {
                await held.wait()
            } onCancel: {
                held.resume()
            }
            if Task.isCancelled { cancelled.resume() }
        }
        let source: ImageRequest.Source =
            isImage
            ? .image("1") { _ in
                await hold()
                return try gradient(1, 1)
            }
            : .data("1") {
                await hold()
                return Data()
            }
        let task = kit.pipeline.task(for: ImageRequest(source))
        await started.wait()
        task.cancel()
        await cancelled.wait()
        await kit.expectNothingLeft()
    }

    @Test func anImageCanBeTheAlternativeOfAURL() async throws {
        let kit = PipelineKit(StubTransport { _ in .status(404) })
        var request = ImageRequest(try url("https://a.example/1.png"), targetSize: PixelSize(width: 40, height: 40))
        request.alternatives = [.init(library())]
        let response = try await kit.pipeline.response(for: request)
        #expect(response.image.size == PixelSize(width: 40, height: 30) && response.alternative == 0)
    }
}
