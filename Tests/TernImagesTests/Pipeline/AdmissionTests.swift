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

/// Slots that are given and cancelled at the same moment, and the time until a cancelled load has left.
@Suite(.timeLimit(.minutes(1))) struct AdmissionTests {
    /// One load at a time at each stage; the second is cancelled while the first leaves, with a different delay each
    /// time.
    @Test func aSlotOfACancelledLoadGoesToTheNext() async throws {
        let picture = try Pictures.png()
        for round in 0..<150 {
            let gate = LoopbackServer.Gate()
            let kit = PipelineKit(
                StubTransport { call in
                    if call.path == "/0" { try await gate.wait() }
                    return .data(picture)
                }
            ) { configuration in
                configuration.maximumFetches = 1
                configuration.maximumDecodes = 1
                configuration.maximumProcesses = 1
            }
            let tasks = try (0..<4).map { number in
                kit.pipeline.task(
                    for: ImageRequest(try url("https://a.example/\(number)"), processors: [.rotate(degrees: 90)]))
            }
            try await kit.stub.waitForCalls(1)
            await kit.pipeline.waitForMessages()
            let canceller = Task {
                for _ in 0..<round % 30 { await Task.yield() }
                tasks[1].cancel()
                tasks[2].cancel()
            }
            gate.open()
            _ = try await tasks[0].image
            _ = try await tasks[3].image
            await canceller.value
            for task in tasks[1...2] {
                do {
                    _ = try await task.image
                } catch {
                    #expect(error.kind == .cancelled)
                }
            }
            await kit.expectNothingLeft()
        }
    }

    @Test func twelveImagesAreFetchedAtATimeByDefault() async throws {
        let picture = try Pictures.png()
        let gate = LoopbackServer.Gate()
        let kit = PipelineKit(
            StubTransport { _ in
                try await gate.wait()
                return .data(picture)
            })
        let tasks = try (0..<30).map { kit.pipeline.task(for: ImageRequest(try url("https://a.example/\($0)"))) }
        func queue() async -> (running: Int, waiting: Int) { await kit.pipeline.counts(at: .fetch) }
        while await queue().running + queue().waiting < 30 { await Task.yield() }
        try await kit.stub.waitForCalls(12)
        #expect(await queue() == (12, 18))
        #expect(kit.stub.calls.count == 12)
        gate.open()
        for task in tasks { _ = try await task.image }
        #expect(kit.stub.calls.count == 30)
        await kit.expectNothingLeft()
    }

    @Test func cancelledLoadsLeaveALongQueueWithinAMillisecond() async throws {
        let gate = LoopbackServer.Gate()
        let kit = PipelineKit(
            StubTransport { _ in
                try await gate.wait()
                return .status(404)
            }
        ) { $0.maximumFetches = 1 }
        let tasks = try (0..<3_000).map { kit.pipeline.task(for: ImageRequest(try url("https://a.example/\($0)"))) }
        while await kit.pipeline.waitingCount(at: .fetch) != 2_999 { await Task.yield() }
        let clock = ContinuousClock()
        var times: [Duration] = []
        for (count, task) in tasks.dropFirst(1_000).prefix(50).enumerated() {
            let start = clock.now
            task.cancel()
            await kit.pipeline.waitForMessages()
            times.append(clock.now - start)
            #expect(await kit.pipeline.waitingCount(at: .fetch) == 2_998 - count)
        }
        // The machine is shared, so the best time counts. A linear search would be slow for each load.
        #expect(try #require(times.min()) < .milliseconds(1))
        for task in tasks { task.cancel() }
        await kit.expectNothingLeft()
        gate.open()
    }

    @Test func loadsThatAreNeverSharedDoNotSlowEachOtherDown() async throws {
        let picture = try Pictures.png()
        let kit = PipelineKit(picture: picture)
        var request = ImageRequest(try url("https://a.example/1.png"))
        request.options.allowsInvalidCertificates = true
        request.caching = .none
        let tasks = (0..<2_000).map { _ in kit.pipeline.task(for: request) }
        for task in tasks { task.cancel() }
        await kit.expectNothingLeft()
        // Their hash values differ, although their keys are equal in all else.
        let keys = (0..<100).map { _ in ImageLoadKey(kit.pipeline.key(of: request), request) }
        #expect(Set(keys.map(\.hashValue)).count > 90)
    }
}
