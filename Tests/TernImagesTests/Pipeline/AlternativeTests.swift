import Tern
import TernCache
import TernConcurrency
import TernTesting
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests requests with several sources.
@Suite(.timeLimit(.minutes(1))) struct AlternativeTests {
    private static let sizes = ["first": 10, "second": 20, "third": 30, "small": 5]

    /// Hosts whose pictures have a width of their own. Those that fail answer as the closure says.
    private func kit(
        disk: ImagePipeline.Disk = .none,
        failing: @escaping @Sendable (String) async throws -> StubTransport.Answer? = { _ in nil },
        change: (inout ImagePipeline.Configuration) -> Void = { _ in }
    ) -> PipelineKit {
        PipelineKit(
            StubTransport { call in
                let host = Self.host(call)
                if let answer = try await failing(host) { return answer }
                return .data(try Pictures.png(Self.sizes[host] ?? 1, 4), headers: ["Cache-Control": "max-age=60"])
            }, disk: disk, change: change)
    }

    private func source(_ host: String) throws -> ImageRequest.Source {
        ImageRequest.Source(try url("https://\(host).example/1.png"))
    }

    private func request(_ own: String, _ others: String...) throws -> ImageRequest {
        var request = ImageRequest(try source(own))
        request.alternatives = try others.map { .init(try source($0)) }
        return request
    }

    private static func host(_ call: StubTransport.Call) -> String {
        String(call.url?.host()?.split(separator: ".").first ?? "")
    }

    private func hosts(_ kit: PipelineKit) -> [String] {
        kit.stub.calls.map(Self.host)
    }

    // MARK: After a failure

    @Test(arguments: [404, 410, 401, 403, 429, 500, 503]) func anotherHostIsTriedAfterAStatus(
        _ status: Int
    ) async throws {
        let kit = kit { $0 == "first" ? .status(status) : nil }
        let response = try await kit.pipeline.response(for: try request("first", "second", "third"))
        #expect(response.image.size.width == 20 && response.alternative == 0)
        #expect(response.trace.description.hasPrefix("source: failed (image error network"))
        #expect(hosts(kit) == ["first", "second"])
        await kit.expectNothingLeft()
    }

    @Test func anotherHostIsTriedWithoutAConnectionAndAfterBytesThatAreNoPicture() async throws {
        let lost = StubTransport.Answer(steps: [.fail(StubTransport.Failure(.connectionLost))])
        for answer in [lost, .data(Data("<html>".utf8)), .data(Data())] {
            let kit = kit { $0 == "first" ? answer : nil }
            let response = try await kit.pipeline.response(for: try request("first", "second"))
            #expect(response.image.size.width == 20 && response.alternative == 0)
        }
    }

    @Test func theRequestsOwnSourceServesItselfWithoutTheOthers() async throws {
        let kit = kit()
        let response = try await kit.pipeline.response(for: try request("first", "second"))
        #expect(response.image.size.width == 10 && response.alternative == nil)
        #expect(hosts(kit) == ["first"] && response.trace[.source] == nil)
    }

    @Test func anyKindOfSourceCanBeTheNext() async throws {
        let folder = try ScratchFolder()
        let file = folder.url.appending(path: "1.png")
        try Pictures.png(7, 4).write(to: file)
        let kit = kit { _ in .status(404) }
        var request = ImageRequest(nil)
        request.alternatives = [
            .init(.data("none") { throw CancellationError() }), .init(try source("first")), .init(file),
        ]
        let response = try await kit.pipeline.response(for: request)
        #expect(response.image.size.width == 7 && response.alternative == 2)
    }

    @Test func manySourcesThatFailAtOnceDoNotNest() async throws {
        let kit = kit()
        var request = ImageRequest(nil)
        request.alternatives = Array(repeating: .init(nil), count: 1_000) + [.init(try source("first"))]
        #expect(try await kit.pipeline.response(for: request).alternative == 1_000)
    }

    @Test func theErrorIsThatOfTheFirstSourceWithThoseOfTheOthers() async throws {
        let kit = kit { $0 == "first" ? .status(503) : .status(404) }
        let request = try request("first", "second", "third")
        let error = try #require(await kit.pipeline.failure(of: request))
        #expect(error.network?.status == 503 && error.origin == "GET https://first.example/1.png")
        #expect(error.alternatives.map { $0.network?.status } == [404, 404])
        #expect(error.alternatives.map(\.origin) == ["second", "third"].map { "GET https://\($0).example/1.png" })
        #expect(error.description.components(separatedBy: "; then image error").count == 3)
        // A 404 is remembered for its own source, and a 503 is not.
        let again = try #require(await kit.pipeline.failure(of: request))
        #expect(again.kind == .network && again.alternatives.map(\.kind) == [.failedBefore, .failedBefore])
        #expect(hosts(kit) == ["first", "second", "third", "first"])
    }

    @Test func aProcessorThatFailsIsNotTriedOnAnotherSource() async throws {
        let kit = kit()
        var request = try request("first", "second")
        request.processors = [.custom(identifier: "no") { _ in throw ImageError(.processing, "no") }]
        #expect(await kit.pipeline.failure(of: request)?.kind == .processing)
        #expect(hosts(kit) == ["first"])
    }

    // MARK: Caches

    @Test func eachSourceHasItsOwnKey() async throws {
        let folder = try ScratchFolder()
        let isDown = Setting(1)
        let kit = kit(disk: .cache(try await DiskCache(folder: folder.url))) { host in
            host == "first" && isDown.value == 1 ? .status(503) : nil
        }
        let both = try request("first", "second")
        #expect(try await kit.pipeline.image(from: both).size.width == 20)
        isDown.value = 0
        // The request without alternatives finds nothing of the other host.
        #expect(kit.pipeline.cachedImage(for: try request("first")) == nil)
        #expect(await !kit.pipeline.isOnDisk(try request("first")))
        #expect(try await kit.pipeline.image(from: try request("first")).size.width == 10)
        #expect(hosts(kit) == ["first", "second", "first"])
        // Now memory has both: the first is shown.
        #expect(kit.pipeline.cachedImage(for: both)?.size.width == 10)
    }

    @Test func anImageInMemoryIsShownAtOnceWhateverItsSource() async throws {
        let kit = kit { $0 == "first" ? .status(503) : nil }
        let request = try request("first", "second")
        _ = try await kit.pipeline.image(from: request)
        let task = kit.pipeline.task(for: request)
        let response = try #require(try task.current?.get())
        #expect(response.alternative == 0 && response.source == .memory && task.isFinished)
        #expect(kit.pipeline.cachedImage(for: request)?.size.width == 20)
        #expect(hosts(kit) == ["first", "second"])
        try await kit.pipeline.remove(request)
        #expect(kit.pipeline.cachedImage(for: request) == nil)
    }

    @Test func bytesComeFromTheNextSource() async throws {
        let folder = try ScratchFolder()
        let kit = kit(disk: .cache(try await DiskCache(folder: folder.url))) { $0 == "first" ? .status(503) : nil }
        let request = try request("first", "second")
        let picture = try Pictures.png(20, 4)
        #expect(try await kit.pipeline.data(for: request) == picture)
        #expect(await kit.pipeline.isOnDisk(request))
        let failing = try self.request("first", "first")
        do throws(ImageError) {
            _ = try await kit.pipeline.data(for: failing)
            Issue.record("there are bytes")
        } catch {
            #expect(error.network?.status == 503 && error.alternatives.count == 1)
        }
    }

    @Test(arguments: [ImagePrefetcher.Destination.memory, .disk]) func prefetchingTriesTheSources(
        _ destination: ImagePrefetcher.Destination
    ) async throws {
        let folder = try ScratchFolder()
        let kit = kit(disk: .cache(try await DiskCache(folder: folder.url))) { $0 == "first" ? .status(503) : nil }
        let prefetcher = ImagePrefetcher(pipeline: kit.pipeline, destination: destination)
        let request = try request("first", "second")
        let progress = await prefetcher.prefetch([request]).finished()
        #expect(progress.failed == 0)
        #expect(await prefetcher.prefetch([request]).finished().skipped == 1)
        #expect(hosts(kit) == ["first", "second"])
    }

    // MARK: Sharing, cancellation and progress

    @Test func loadsOfOneSourceAreSharedWhateverTheirAlternatives() async throws {
        let gate = LoopbackServer.Gate()
        let kit = kit { host in
            try await gate.wait()
            return host == "first" ? .status(503) : nil
        }
        let tasks = try [request("first", "second"), request("first", "second", "third"), request("second")]
            .map(kit.pipeline.task(for:))
        let alone = kit.pipeline.task(for: try request("first"))
        await kit.pipeline.waitForMessages()
        gate.open()
        for task in tasks { #expect(try await task.image.size.width == 20) }
        await #expect(throws: ImageError.self) { try await alone.image }
        // A failure that may pass is tried once more for all but the first task.
        #expect(hosts(kit).count { $0 == "first" } <= 2 && hosts(kit).count { $0 == "second" } <= 2)
        await kit.expectNothingLeft()
    }

    @Test(arguments: ["first", "second"]) func aCancelledLoadTriesNoOtherSource(_ held: String) async throws {
        let gate = LoopbackServer.Gate()
        let kit = kit { host in
            if host == held { try await gate.wait() }
            return .status(503)
        }
        let task = kit.pipeline.task(for: try request("first", "second", "third"))
        try await kit.stub.waitForCalls(held == "first" ? 1 : 2)
        task.cancel()
        do throws(ImageError) {
            _ = try await task.image
            Issue.record("there is an image")
        } catch {
            #expect(error.kind == .cancelled)
        }
        gate.open()
        await kit.pipeline.waitForMessages()
        #expect(!hosts(kit).contains("third"))
        await kit.expectNothingLeft()
    }

    @Test func theProgressBeginsAgainWithTheNextSource() async throws {
        let clock = ManualClock()
        let picture = try Pictures.png(20, 4)
        let stub = StubTransport(clock: clock) { call in
            if Self.host(call) == "second" {
                return .chunks([picture.prefix(10), picture.dropFirst(10)], interval: .seconds(1))
            }
            return StubTransport.Answer(
                steps: [.chunk(Data(count: 5_000)), .wait(.seconds(1)), .fail(StubTransport.Failure(.connectionLost))])
        }
        let kit = PipelineKit(stub)
        let task = kit.pipeline.task(for: try request("first", "second"))
        let feeding = Task {
            while true {
                try await clock.waitForSleepers(1)
                clock.advance(by: .seconds(1))
            }
        }
        defer { feeding.cancel() }
        var counts: [Int64] = []
        for await progress in task.progress { counts.append(progress.completedBytes) }
        // A slow reader gets the newest state: not all of them are seen.
        #expect(try await task.response.alternative == 0)
        #expect(counts.last == Int64(picture.count))
        if let most = counts.firstIndex(of: 5_000) { #expect(counts[most...].contains { $0 < 5_000 }) }
    }

    @Test func aStaleImageOfAnAlternativeIsRevalidatedByItsOwnHost() async throws {
        let now = Setting(0)
        let kit = kit(
            failing: { $0 == "first" ? .status(503) : nil },
            change: { $0.now = { Date(timeIntervalSince1970: Double(now.value)) } })
        let request = try request("first", "second")
        _ = try await kit.pipeline.image(from: request)
        now.value = 1_000
        let task = kit.pipeline.task(for: request)
        let stale = try await task.response
        #expect(stale.isStale && stale.alternative == 0)
        for await _ in task.events {}
        #expect(hosts(kit) == ["first", "second", "second"])
    }

    // MARK: Low data

    private func lowData() throws -> ImageRequest {
        var request = try request("first", "second")
        request.alternatives.insert(.lowData(try source("small")), at: 0)
        return request
    }

    @Test func theSmallSourceIsPreferredWhileTheModeIsOn() async throws {
        let isOn = Setting(0)
        let kit = kit(change: { $0.lowDataMode = .init { isOn.value == 1 } })
        let request = try lowData()
        isOn.value = 1
        let small = try await kit.pipeline.response(for: request)
        #expect(small.image.size.width == 5 && small.alternative == 0 && small.trace[.source] == nil)
        // With enough data, the small image in memory is no answer.
        isOn.value = 0
        #expect(kit.pipeline.cachedImage(for: request) == nil)
        #expect(try await kit.pipeline.response(for: request).alternative == nil)
        // Memory has both: the larger one costs nothing.
        isOn.value = 1
        #expect(try await kit.pipeline.image(from: request).size.width == 10)
        #expect(hosts(kit) == ["small", "first"])
    }

    @Test func theLargeImageOnTheDiskIsBetterThanAFetchOfTheSmallOne() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let kit = kit(disk: .cache(cache), change: { $0.lowDataMode = .init { true } })
        var request = try lowData()
        _ = try await kit.pipeline.data(for: try self.request("second"))
        request.caching.memory = .write
        let response = try await kit.pipeline.response(for: request)
        #expect(response.image.size.width == 20 && response.alternative == 1 && response.source == .original)
        #expect(hosts(kit) == ["second"])
    }

    @Test func theSmallSourceIsTheLastResort() async throws {
        let kit = kit(failing: { $0 == "small" ? nil : .status(503) }, change: { $0.lowDataMode = .never })
        #expect(try await kit.pipeline.image(from: try lowData()).size.width == 5)
        #expect(hosts(kit) == ["first", "second", "small"])
    }

    @Test func withoutTheSmallImageTheOthersAreFetched() async throws {
        let kit = kit(
            failing: { $0 == "small" ? .status(404) : nil }, change: { $0.lowDataMode = .init { true } })
        let response = try await kit.pipeline.response(for: try lowData())
        #expect(response.image.size.width == 10 && response.alternative == nil)
        #expect(hosts(kit) == ["small", "first"])
        var cached = try lowData()
        cached.caching = .cacheOnly
        cached.caching.memory = []
        #expect(await kit.pipeline.failure(of: cached)?.kind == .notCached)
    }

    @Test func aFileOfThisMachineNeedsNoData() async throws {
        let folder = try ScratchFolder()
        let file = folder.url.appending(path: "1.png")
        try Pictures.png(7, 4).write(to: file)
        let kit = kit(change: { $0.lowDataMode = .init { true } })
        var request = ImageRequest(file)
        request.alternatives = [.lowData(try source("small"))]
        #expect(try await kit.pipeline.image(from: request).size.width == 7)
        #expect(hosts(kit).isEmpty)
    }

    @Test func theModesOfTheSystemAnswer() {
        #expect(!ImagePipeline.LowDataMode.never.isOn())
        #if os(Linux)
        #expect(!ImagePipeline.LowDataMode.system.isOn())
        #endif
        #expect(ImagePipeline.LowDataMode.cellular.isOn() == (Reachability.shared.status == .reachable(.cellular)))
    }
}
