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

@Suite(.timeLimit(.minutes(1))) struct CoalescingTests {
    /// A stub that answers once it is released.
    private func held(
        _ answer: @escaping @Sendable () throws -> StubTransport.Answer
    ) -> (LoopbackServer.Gate, StubTransport) {
        let gate = LoopbackServer.Gate()
        return (
            gate,
            StubTransport { _ in
                try await gate.wait()
                return try answer()
            }
        )
    }

    /// Waits until this number of loads wait for the one fetch.
    private func loads(
        _ count: Int, of request: ImageRequest, _ kit: PipelineKit, _ stub: StubTransport
    ) async throws -> [ImageTask] {
        let tasks = (0..<count).map { _ in kit.pipeline.task(for: request) }
        try await stub.waitForCalls(1)
        await kit.pipeline.waitForMessages()
        return tasks
    }

    /// Returns the number of fetches for a hundred loads of one image whose server always answers with a status.
    private func fetches(ofWhatIs status: Int) async throws -> Int {
        let (gate, stub) = held { .status(status) }
        let request = ImageRequest(try url("https://a.example/1.png"))
        let tasks = try await loads(100, of: request, PipelineKit(stub), stub)
        gate.open()
        for task in tasks { await #expect(throws: ImageError.self) { _ = try await task.image } }
        return stub.calls.count
    }

    @Test func tenThousandEqualLoadsAreOneFetchOneDecodeAndOneProcess() async throws {
        let picture = try Pictures.jpeg(60, 40)
        let (gate, stub) = held { .data(picture) }
        let kit = PipelineKit(stub)
        let counter = Counter()
        var request = ImageRequest(try url("https://a.example/1.jpg"), targetSize: PixelSize(width: 20, height: 20))
        request.processors = [CountingProcessor(name: "count", counter: counter)]
        let tasks = try await loads(10_000, of: request, kit, stub)
        gate.open()
        for task in tasks { #expect(try await task.image.size == PixelSize(width: 20, height: 13)) }
        #expect(stub.calls.count == 1)
        #expect(kit.decoder.decodes == 1)
        #expect(counter.value == 1)
    }

    @Test func variantsShareTheStepsThatTheyHaveInCommon() async throws {
        let picture = try Pictures.png()
        let (gate, stub) = held { .data(picture) }
        let kit = PipelineKit(stub)
        let (a, b, c) = (Counter(), Counter(), Counter())
        let address = try url("https://a.example/1.png")
        func task(_ processors: [any ImageProcessor]) -> ImageTask {
            kit.pipeline.task(for: ImageRequest(address, processors: processors))
        }
        let first = CountingProcessor(name: "a", counter: a)
        let tasks = [
            task([]), task([first]), task([first, CountingProcessor(name: "b", counter: b)]),
            task([first, CountingProcessor(name: "c", counter: c)]),
        ]
        await kit.pipeline.waitForMessages()
        gate.open()
        for task in tasks { _ = try await task.image }
        #expect(stub.calls.count == 1)
        #expect(kit.decoder.decodes == 1)
        #expect([a.value, b.value, c.value] == [1, 1, 1])
    }

    @Test func differentCredentialsMethodsAndBodiesNeverShare() async throws {
        let picture = try Pictures.png()
        let (gate, stub) = held { .data(picture) }
        let kit = PipelineKit(stub)
        let base = try Request(.get, "https://a.example/1.png")
        var (ada, grace, traced) = (base, base, base)
        ada.headers["Authorization"] = "Bearer ada"
        grace.headers["Authorization"] = "Bearer grace"
        traced.headers["X-Request-ID"] = "7"
        var (post, other) = (base, base)
        post.method = .post
        post.body = .data(Data("a".utf8))
        other.method = .post
        other.body = .data(Data("b".utf8))
        let tasks = [base, traced, ada, ada, grace, post, post, other].map {
            kit.pipeline.task(for: ImageRequest(.request($0)))
        }
        await kit.pipeline.waitForMessages()
        gate.open()
        for task in tasks { _ = try await task.image }
        #expect(stub.calls.count == 5)
        // Neither is found in memory under the key of the other.
        var mallory = base
        mallory.headers["Authorization"] = "Bearer mallory"
        #expect(kit.pipeline.cachedImage(for: ImageRequest(.request(mallory))) == nil)
        #expect(kit.pipeline.cachedImage(for: ImageRequest(.request(ada))) != nil)
        #expect(!SourceKey(ada).text.contains("ada"))
    }

    @Test func loadsThatAcceptAnyCertificateAreNeverShared() async throws {
        let picture = try Pictures.png()
        let (gate, stub) = held { .data(picture) }
        let kit = PipelineKit(stub)
        let plain = ImageRequest(try url("https://a.example/1.png"))
        var reckless = plain
        reckless.options.allowsInvalidCertificates = true
        let tasks = [plain, reckless, reckless].map { kit.pipeline.task(for: $0) }
        await kit.pipeline.waitForMessages()
        gate.open()
        for task in tasks { _ = try await task.image }
        #expect(stub.calls.count == 3)
    }

    @Test func aWaiterThatIsCancelledLeavesAlone() async throws {
        let picture = try Pictures.png()
        let (gate, stub) = held { .data(picture) }
        let kit = PipelineKit(stub)
        let request = ImageRequest(try url("https://a.example/1.png"))
        let (cancelled, remaining) = (kit.pipeline.task(for: request), kit.pipeline.task(for: request))
        try await stub.waitForCalls(1)
        cancelled.cancel()
        let error = await #expect(throws: ImageError.self) { _ = try await cancelled.image }
        #expect(error?.kind == .cancelled)
        await kit.pipeline.waitForMessages()
        gate.open()
        _ = try await remaining.image
        #expect(stub.calls.count == 1)
    }

    @Test func aFailureOfTheFirstSubscriberIsRetriedForTheOthers() async throws {
        let picture = try Pictures.png()
        let gate = LoopbackServer.Gate()
        let stub = StubTransport { call in
            try await gate.wait()
            return call.index == 0 ? .status(503) : .data(picture)
        }
        let kit = PipelineKit(stub)
        let request = ImageRequest(try url("https://a.example/1.png"))
        let tasks = try await loads(100, of: request, kit, stub)
        gate.open()
        let error = await #expect(throws: ImageError.self) { _ = try await tasks[0].image }
        #expect(error?.network?.status == 503)
        for task in tasks[1...] { _ = try await task.image }
        #expect(stub.calls.count == 2)
    }

    @Test func aRepeatedFailureReachesAllAfterTheSecondAttempt() async throws {
        #expect(try await fetches(ofWhatIs: 503) == 2)
    }

    @Test func aDefiniteRefusalIsNotTriedAgain() async throws {
        #expect(try await fetches(ofWhatIs: 404) == 1)
    }

    @Test func theLastToLeaveStopsTheFetchAndALaterOneBeginsAnew() async throws {
        let picture = try Pictures.png()
        let (gate, stub) = held { .data(picture) }
        let kit = PipelineKit(stub)
        let request = ImageRequest(try url("https://a.example/1.png"))
        let tasks = (0..<5).map { _ in kit.pipeline.task(for: request) }
        try await stub.waitForCalls(1)
        for task in tasks { task.cancel() }
        let fresh = kit.pipeline.task(for: request)
        try await stub.waitForCalls(2)
        await kit.pipeline.waitForMessages()
        gate.open()
        _ = try await fresh.image
        for task in tasks {
            let error = await #expect(throws: ImageError.self) { _ = try await task.image }
            #expect(error?.kind == .cancelled)
        }
        #expect(kit.decoder.decodes == 1)
    }
}
