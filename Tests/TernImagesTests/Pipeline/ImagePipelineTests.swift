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

@Suite(.timeLimit(.minutes(1))) struct ImagePipelineTests {
    @Test func aPictureIsFetchedDecodedAndThenInMemory() async throws {
        let kit = PipelineKit(picture: try Pictures.png())
        let request = ImageRequest(try url("https://a.example/1.png"))
        let first = try await kit.pipeline.response(for: request)
        #expect(first.image.size == PixelSize(width: 40, height: 30))
        #expect(first.source == .network)
        #expect(first.trace[.memory] == .stored)
        #expect(first.trace.steps.first?.description == "image: memory miss")
        #expect(try await kit.pipeline.response(for: try url("https://a.example/1.png")).source == .memory)
        // A memory hit is available before the call returns.
        let task = kit.pipeline.task(for: request)
        #expect(try task.current?.get().source == .memory)
        #expect(task.isFinished)
        #expect(kit.pipeline.cachedImage(for: request) != nil)
        #expect(kit.stub.calls.count == 1)
        #expect(kit.decoder.decodes == 1)
    }

    @Test func theDefaultSessionAsksTheServerForImages() async throws {
        let picture = try Pictures.png()
        let accepted = Lock<[String?]>([])
        let server = try LoopbackServer { exchange in
            accepted.withLock { $0.append(exchange.request["Accept"]) }
            try exchange.respond(headers: [("Content-Type", "image/png")], body: [UInt8](picture))
        }
        defer { server.stop() }
        var configuration = ImagePipeline.Configuration()
        #expect(configuration.session === Session.images)
        // The same configuration, independent of proxies in the environment.
        var session = configuration.session.configuration
        session.proxies = .none
        configuration.session = Session(configuration: session)
        configuration.disk = .none
        configuration.pressure = nil
        _ = try await ImagePipeline(configuration: configuration).image(from: server.url)
        #expect(accepted.withLock { $0 } == ["image/*,*/*;q=0.8"])
    }

    @Test func aTargetIsPartOfTheKeyAndNeverStandsForTheWhole() async throws {
        let kit = PipelineKit(picture: try Pictures.jpeg(200, 100))
        let whole = ImageRequest(try url("https://a.example/1.jpg"))
        let small = ImageRequest(try url("https://a.example/1.jpg"), targetSize: PixelSize(width: 20, height: 20))
        #expect(try await kit.pipeline.image(from: small).size == PixelSize(width: 20, height: 10))
        #expect(kit.pipeline.cachedImage(for: whole) == nil)
        #expect(kit.pipeline.cachedVariant(of: whole)?.size == PixelSize(width: 20, height: 10))
        #expect(try await kit.pipeline.image(from: whole).size == PixelSize(width: 200, height: 100))
        #expect(kit.pipeline.cachedVariant(of: small)?.size == PixelSize(width: 200, height: 100))
    }

    @Test func aSmallerSizeIsMadeOfALargerOneInMemory() async throws {
        let kit = PipelineKit(picture: try Pictures.jpeg(200, 100))
        let address = try url("https://a.example/1.jpg")
        _ = try await kit.pipeline.image(from: ImageRequest(address, targetSize: PixelSize(width: 100, height: 100)))
        let square = PixelSize(width: 30, height: 30)
        let derived = try await kit.pipeline.response(
            for: ImageRequest(address, targetSize: square, contentMode: .fill))
        #expect(derived.image.size == square)
        #expect(derived.source == .memory)
        #expect(derived.trace[.variant] == .hit)
        #expect(kit.stub.calls.count == 1)
        #expect(kit.decoder.decodes == 1)
        // A smaller or cropped image is never the source of a larger one.
        let larger = try await kit.pipeline.response(
            for: ImageRequest(address, targetSize: PixelSize(width: 150, height: 150)))
        #expect(larger.source == .network)
        #expect(kit.decoder.decodes == 2)
    }

    @Test func noURLFailsWithoutANetwork() async throws {
        let kit = PipelineKit(picture: try Pictures.png())
        let addresses = [nil, URL(string: "ftp://a.example/x"), URL(string: "nothing")]
        for address in addresses {
            let error = await #expect(throws: ImageError.self) {
                _ = try await kit.pipeline.image(from: ImageRequest(address))
            }
            #expect(error?.kind == .invalidURL)
        }
        #expect(kit.stub.calls.isEmpty)
    }

    @Test func filesAndClosuresAreSourcesToo() async throws {
        let folder = try ScratchFolder()
        let file = folder.url.appending(path: "photo@2x.png")
        try Pictures.png().write(to: file)
        let kit = PipelineKit(picture: Data())
        let fromFile = try await kit.pipeline.image(from: file)
        #expect(fromFile.size == PixelSize(width: 40, height: 30))
        #expect(fromFile.scale == 2)
        let data = try Pictures.jpeg(10, 10)
        let fromData = try await kit.pipeline.image(from: ImageRequest(.data("mine") { data }))
        #expect(fromData.size == PixelSize(width: 10, height: 10))
        let missing = await #expect(throws: ImageError.self) {
            _ = try await kit.pipeline.image(from: folder.url.appending(path: "none.png"))
        }
        #expect(missing?.kind == .source)
        #expect(missing?.description.contains("none.png") == true)
    }

    @Test func anErrorTellsWhatFailedOnWhatWithoutSecrets() async throws {
        let kit = PipelineKit(StubTransport(["GET /1.png": .status(404)]))
        let request = ImageRequest(try url("https://me:secret@a.example/1.png?token=hidden"))
        let error = await #expect(throws: ImageError.self) { _ = try await kit.pipeline.image(from: request) }
        #expect(error?.kind == .network)
        #expect(error?.network?.status == 404)
        let text = try #require(error).description
        #expect(text.contains("a.example/1.png"))
        #expect(!text.contains("secret") && !text.contains("hidden"))
    }

    @Test func aFailureThatWouldRepeatItselfIsRememberedForAWhile() async throws {
        let clock = ManualClock()
        let kit = PipelineKit(StubTransport(["GET /1.png": .status(404), "GET /2.png": .status(503)])) {
            configuration in
            configuration.clock = clock
            configuration.failureLifetime = .seconds(60)
        }
        let missing = ImageRequest(try url("https://a.example/1.png"))
        func kind(_ request: ImageRequest) async -> ImageError.Kind? {
            await #expect(throws: ImageError.self) { _ = try await kit.pipeline.image(from: request) }?.kind
        }
        #expect(await kind(missing) == .network)
        #expect(await kind(missing) == .failedBefore)
        #expect(kit.stub.calls.count == 1)
        // `retriesFailed` loads in spite of the failure. After the lifetime, and after failures are forgotten, all
        // requests load.
        var insisting = missing
        insisting.options.retriesFailed = true
        #expect(await kind(insisting) == .network)
        clock.advance(by: .seconds(61))
        #expect(await kind(missing) == .network)
        await kit.pipeline.forgetFailures()
        #expect(await kind(missing) == .network)
        #expect(kit.stub.calls.count == 4)
        // A server error is not remembered.
        let down = ImageRequest(try url("https://a.example/2.png"))
        #expect(await kind(down) == .network)
        #expect(await kind(down) == .network)
    }

    @Test func onlyWhatMayBeReadIsRead() async throws {
        let kit = PipelineKit(picture: try Pictures.png())
        var request = ImageRequest(try url("https://a.example/1.png"))
        request.caching = .cacheOnly
        let error = await kit.pipeline.failure(of: request)
        #expect(error?.kind == .notCached)
        #expect(kit.stub.calls.isEmpty)
        request.caching = .none
        _ = try await kit.pipeline.image(from: request)
        #expect(kit.pipeline.cachedImage(for: request) == nil)
        request.caching = .reload
        _ = try await kit.pipeline.image(from: request)
        _ = try await kit.pipeline.image(from: request)
        #expect(kit.stub.calls.count == 3)
        request.caching = .cacheOnly
        #expect(try await kit.pipeline.response(for: request).source == .memory)
    }

    @Test func theSharedPipelineCanBeReplacedAndComesBack() async throws {
        let builtIn = ImagePipeline.shared
        let mine = PipelineKit(picture: try Pictures.png()).pipeline
        ImagePipeline.setShared(mine)
        #expect(ImagePipeline.shared === mine)
        ImagePipeline.setShared(nil)
        #expect(ImagePipeline.shared === builtIn)
    }

    @Test func aCancelledCallerCancelsItsLoad() async throws {
        let gate = LoopbackServer.Gate()
        let picture = try Pictures.png()
        let kit = PipelineKit(
            StubTransport { _ in
                try await gate.wait()
                return .data(picture)
            })
        let request = ImageRequest(try url("https://a.example/1.png"))
        let waiting = Task { try await kit.pipeline.image(from: request) }
        try await kit.stub.waitForCalls(1)
        waiting.cancel()
        let error = await #expect(throws: ImageError.self) { _ = try await waiting.value }
        #expect(error?.kind == .cancelled)
        gate.open()
        // A load directly after a cancellation is a new one.
        _ = try await kit.pipeline.image(from: request)
        #expect(kit.stub.calls.count == 2)
    }

    @Test func theStreamsOfATaskEndAndTellTheEndOnce() async throws {
        let kit = PipelineKit(picture: try Pictures.png())
        let task = kit.pipeline.task(for: ImageRequest(try url("https://a.example/1.png")))
        var ends = 0
        var responses = 0
        for await event in task.events {
            switch event {
            case .finished(let error):
                ends += 1
                #expect(error == nil)
            case .response: responses += 1
            default: break
            }
        }
        #expect(ends == 1)
        #expect(responses == 1)
        // A late reader also gets the end.
        var late: [Session.Progress] = []
        for await progress in task.progress { late.append(progress) }
        #expect(late.map(\.isFinished) == [true])
        task.cancel()
        #expect(try await task.image.size == PixelSize(width: 40, height: 30))
    }

    @Test func aBodyThatComesAtOnceIsToldOfWhole() async throws {
        let picture = try Pictures.png()
        let kit = PipelineKit(picture: picture)
        let task = kit.pipeline.task(for: ImageRequest(try url("https://a.example/1.png?token=hidden")))
        var last: Session.Progress?
        for await progress in task.progress { last = progress }
        #expect(last?.fractionCompleted == 1)
        #expect(last?.completedBytes == Int64(picture.count))
        #expect(!"\(task.request)".contains("hidden"))
    }

    @Test func progressComesWhileTheBodyDoes() async throws {
        let picture = try Pictures.png(200, 200)
        let clock = ManualClock()
        let half = picture.count / 2
        let stub = StubTransport(clock: clock) { _ in
            .chunks(
                [picture.prefix(half), picture.suffix(from: half)], interval: .seconds(1),
                headers: ["Content-Length": "\(picture.count)"])
        }
        let kit = PipelineKit(stub)
        let task = kit.pipeline.task(for: ImageRequest(try url("https://a.example/1.png")))
        var seen: [Session.Progress] = []
        for await progress in task.progress {
            seen.append(progress)
            guard progress.completedBytes == half else { continue }
            // The first half was reported; the wait of the server comes after it.
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(1))
        }
        #expect(seen.contains { $0.completedBytes == half && $0.totalBytes == Int64(picture.count) })
        #expect(seen.last?.isFinished == true)
    }
}
