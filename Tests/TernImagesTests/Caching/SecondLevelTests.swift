import CacheTestSupport
import Tern
import TernCache
import TernTesting
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Pipelines stand for the processes that share a second level.
@Suite("Image pipeline: second level", .timeLimit(.minutes(1))) struct SecondLevelTests {
    private let headers: Headers = ["Cache-Control": "max-age=60", "ETag": "\"v\""]

    private func request() throws -> ImageRequest { ImageRequest(try url("https://a.example/1.png")) }

    /// Returns a pipeline with a second level, and a stub that answers with an image.
    private func kit(
        _ store: TestStore, headers: Headers? = nil, disk: ImagePipeline.Disk = .none,
        change: (inout ImagePipeline.Configuration) -> Void = { _ in }
    ) throws -> PipelineKit {
        PipelineKit(picture: try Pictures.png(), headers: headers ?? self.headers, disk: disk) { configuration in
            configuration.secondLevel = SecondLevelCache(store)
            // No test depends on the speed of the machine.
            configuration.secondLevel?.timeLimit = .seconds(60)
            configuration.secondLevel?.waitLimit = .seconds(60)
            change(&configuration)
        }
    }

    /// Replaces the stub's session by one with other settings over the same stub.
    private func session(
        _ configuration: inout ImagePipeline.Configuration, _ change: (inout Session.Configuration) -> Void
    ) throws {
        let picture = try Pictures.png()
        let headers = headers
        var own = Session.Configuration()
        change(&own)
        configuration.session = Session(
            configuration: own, stub: StubTransport { _ in .data(picture, headers: headers) })
    }

    @Test func anImageOfOnePipelineIsFoundByAnother() async throws {
        let store = TestStore()
        let first = try kit(store)
        let fetched = try await first.pipeline.response(for: try request())
        #expect(fetched.trace[.secondLevel] == .stored)
        #expect(fetched.trace.description.contains("original: second level miss"))
        try await first.pipeline.flush()
        #expect(store.values.count == 1 && store.reservations.isEmpty)
        let folder = try ScratchFolder()
        let second = try kit(store, disk: .folder(folder.url))
        let found = try await second.pipeline.response(for: try request())
        #expect(found.source == .original)
        #expect(found.trace[.secondLevel] == .hit)
        #expect(!found.isStale)
        #expect(second.stub.calls.isEmpty)
        // The disk has it now.
        second.pipeline.memory.removeAll()
        let again = try await second.pipeline.response(for: try request())
        #expect(again.trace[.originals] == .hit && again.trace[.secondLevel] == nil)
    }

    @Test func pipelinesThatMissAnImageAtOnceFetchItOnce() async throws {
        let store = TestStore()
        let kits = try (0..<4).map { _ in try kit(store) }
        let request = try request()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for kit in kits { group.addTask { _ = try await kit.pipeline.image(from: request) } }
            try await group.waitForAll()
        }
        #expect(kits.reduce(0) { $0 + $1.stub.calls.count } == 1)
    }

    @Test func aFailedFetchEndsItsReservation() async throws {
        let store = TestStore()
        let kit = PipelineKit(StubTransport { _ in .status(404) }) { $0.secondLevel = SecondLevelCache(store) }
        #expect(await kit.pipeline.failure(of: try request())?.kind == .network)
        try await kit.pipeline.flush()
        #expect(store.reserveCount == 1 && store.reservations.isEmpty && store.values.isEmpty)
    }

    @Test func aLoadThatIsCancelledBeforeItsFetchEndsItsReservation() async throws {
        let store = TestStore()
        let kit = try kit(store)
        kit.pipeline.setScrolling(true)
        var request = try request()
        request.options.waitsForScrolling = true
        let task = kit.pipeline.task(for: request)
        while await kit.pipeline.scrollingCount == 0 { await Task.yield() }
        #expect(store.reservations.count == 1)
        task.cancel()
        await kit.expectNothingLeft()
        try await kit.pipeline.flush()
        #expect(store.reservations.isEmpty)
    }

    @Test func aReservationThatNobodyTakesEnds() async throws {
        let store = TestStore()
        let kit = try kit(store)
        let request = try request()
        let key = EncodedLoadKey(ImageLoadKey(kit.pipeline.key(of: request), request), revalidating: nil)
        var trace = ImageTrace()
        var found: SharedTier.LookUp? = await kit.pipeline.secondLevel.lookUp(key, request: request, trace: &trace)
        guard case .missing(.some) = found else { return #expect(Bool(false), "no reservation") }
        #expect(store.reservations.count == 1)
        found = nil
        try await kit.pipeline.flush()
        #expect(store.reservations.isEmpty)
    }

    @Test func anUnstorableImageStaysInItsProcess() async throws {
        let store = TestStore()
        let kit = try kit(store, headers: ["Cache-Control": "no-store"])
        #expect(try await kit.pipeline.response(for: try request()).trace[.secondLevel] == .notStored)
        try await kit.pipeline.flush()
        #expect(store.values.isEmpty && store.reservations.isEmpty)
    }

    @Test func imagesOfRequestsWithSecretsStayInTheirProcess() async throws {
        let store = TestStore()
        let kit = try kit(store)
        let address = "https://a.example/1.png"
        var authorized = try Request(.get, address)
        authorized.headers["Authorization"] = "Bearer secret"
        var withCookies = try request()
        withCookies.options.handlesCookies = true
        var unchecked = try request()
        unchecked.options.allowsInvalidCertificates = true
        let secrets = [
            ImageRequest(.request(authorized)),
            ImageRequest(.request(try Request(.get, "https://ada:secret@a.example/1.png"))), withCookies, unchecked,
        ]
        for request in secrets {
            #expect(try await kit.pipeline.response(for: request).trace[.secondLevel] == nil, "\(request)")
        }
        try await kit.pipeline.flush()
        #expect(store.values.isEmpty && store.reserveCount == 0)
    }

    @Test func imagesOfSessionsWithSecretsStayInTheirProcess() async throws {
        let store = TestStore()
        let fixed = try FixedCredentials(["https://a.example": .user("ada", password: "secret")])
        let changes: [(inout Session.Configuration) -> Void] = [
            {
                $0.headers["X-API-Key"] = "secret"
                $0.secretHeaderOrigins = ["https://a.example"]
            },
            { $0.credentials = fixed },
            { $0.interceptors = [AddsToken()] },
            { $0.hostAddresses = ["a.example": ["127.0.0.1"]] },
        ]
        for change in changes {
            let kit = try kit(store) { configuration in try? session(&configuration, change) }
            #expect(try await kit.pipeline.response(for: try request()).trace[.secondLevel] == nil)
        }
        let hooked = try kit(store) { $0.hooks.prepare = { $0 } }
        #expect(try await hooked.pipeline.response(for: try request()).trace[.secondLevel] == nil)
        #expect(store.values.isEmpty && store.reserveCount == 0)
    }

    @Test func partitionsAreKeptApart() async throws {
        let store = TestStore()
        for name in ["a", "b", "a"] {
            let kit = try kit(store) { configuration in try? session(&configuration) { $0.partition = name } }
            _ = try await kit.pipeline.image(from: try request())
            try await kit.pipeline.flush()
        }
        #expect(Set(store.values.keys.map(\.group)).count == 2)
        #expect(Set(store.values.keys.map(\.name)).count == 2)
        // The pipeline removes its own partition.
        let kit = try kit(store) { configuration in try? session(&configuration) { $0.partition = "a" } }
        try await kit.pipeline.removeAll()
        #expect(store.values.count == 1)
    }

    @Test func aFailingStoreFailsNoLoad() async throws {
        let kit = try kit(TestStore(.error))
        let response = try await kit.pipeline.response(for: try request())
        #expect(response.source == .network)
        #expect(response.trace.steps.contains { $0.stage == .secondLevel && $0.outcome == .failed })
        await #expect(throws: ImageError.self) { try await kit.pipeline.remove(try request()) }
        await #expect(throws: ImageError.self) { try await kit.pipeline.removeAll() }
    }

    @Test func aSilentStoreCostsItsTimeLimit() async throws {
        let (store, clock) = (TestStore(.silence), ManualClock())
        let kit = try kit(store) {
            $0.secondLevel = SecondLevelCache(store)
            $0.secondLevel?.clock = clock
        }
        let request = try request()
        let load = Task { try await kit.pipeline.response(for: request) }
        try await clock.waitForSleepers(1)
        clock.advance(by: .milliseconds(250))
        #expect(try await load.value.source == .network)
        store.answer()
    }

    @Test func anAlteredEntryIsAMiss() async throws {
        let store = TestStore()
        _ = try await filled(store)
        for (key, value) in store.values {
            var altered = value
            altered[altered.count - 1] ^= 1
            store.values[key] = altered
        }
        let kit = try kit(store)
        let response = try await kit.pipeline.response(for: try request())
        #expect(response.source == .network && response.trace.description.contains("second level miss"))
    }

    @Test func bytesThatDoNotDecodeAreFetchedAnewAndReplaced() async throws {
        let store = TestStore()
        let key = try await filled(store)
        let metadata = ImageFreshness(received: Date().timeIntervalSince1970, lifetime: 60).encoded
        store.values[key] =
            SharedValue(received: Date(), metadata: metadata, value: Data("no picture".utf8)).encoded(for: key)
        let kit = try kit(store)
        #expect(try await kit.pipeline.response(for: try request()).source == .network)
        try await kit.pipeline.flush()
        #expect(SharedValue(store.values[key] ?? Data(), for: key)?.value == (try Pictures.png()))
    }

    @Test(arguments: [
        "1\nnan\n60.0\n\n", "1\ninf\n60.0\n\n", "1\n0.0\ninf\n\n", "1\n0.0\n-1.0\n\n", "1\n0.0\n60.0\na\rb: c\n",
        "2\n\n", "",
    ])
    func anImpossibleFreshnessIsAMiss(text: String) async throws {
        let store = TestStore()
        let key = try await filled(store)
        store.values[key] =
            SharedValue(received: Date(), metadata: Data(text.utf8), value: try Pictures.png()).encoded(for: key)
        let kit = try kit(store)
        #expect(try await kit.pipeline.response(for: try request()).source == .network)
    }

    @Test func aClockThatIsAheadMakesNothingFresher() async throws {
        let store = TestStore()
        let key = try await filled(store)
        let ahead = Date().addingTimeInterval(86_400)
        let metadata = ImageFreshness(received: ahead.timeIntervalSince1970, lifetime: 60).encoded
        store.values[key] =
            SharedValue(received: ahead, metadata: metadata, value: try Pictures.png()).encoded(for: key)
        store.setAge(.seconds(59))
        var request = try request()
        request.options.revalidation = .never
        let fresh = try await kit(store).pipeline.response(for: request)
        #expect(fresh.trace[.secondLevel] == .hit && !fresh.isStale)
        store.setAge(.seconds(61))
        let stale = try await kit(store).pipeline.response(for: request)
        #expect(stale.trace[.secondLevel] == .stale && stale.isStale)
    }

    @Test func removingARequestRemovesItFromTheSecondLevel() async throws {
        let store = TestStore()
        _ = try await filled(store)
        try await kit(store).pipeline.remove(try request())
        #expect(store.values.isEmpty)
    }

    @Test func theSerializeHookDecidesWhatIsShared() async throws {
        let store = TestStore()
        let kit = try kit(store) { $0.hooks.serialize = { _, _ in nil } }
        _ = try await kit.pipeline.image(from: try request())
        try await kit.pipeline.flush()
        #expect(store.values.isEmpty && store.reservations.isEmpty)
    }

    /// Stores the image of the request. Returns its key.
    private func filled(_ store: TestStore) async throws -> CacheStoreKey {
        let kit = try kit(store)
        _ = try await kit.pipeline.image(from: try request())
        try await kit.pipeline.flush()
        return try #require(store.values.keys.first)
    }
}

/// An interceptor that may add the credentials of a user.
private struct AddsToken: Interceptor {
    @concurrent
    func intercept(_ request: Request, next: Next) async throws -> Reply { try await next(request) }
}
