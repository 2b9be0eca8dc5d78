import Dispatch
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

/// The time in the background that a system grants a load, with a fake of the system.
@Suite(.timeLimit(.minutes(1))) struct BackgroundActivityTests {
    /// Grants the time on a thread of its own, as Apple's systems do, and takes it back on request.
    private final class FakeSystem: Sendable {
        private let bodies = Lock<[@Sendable (Bool) -> Void]>([])
        /// Receives a value when a granted time was given back.
        let returns: AsyncStream<Void>
        private let didReturn: AsyncStream<Void>.Continuation

        init() { (returns, didReturn) = AsyncStream.makeStream() }

        var count: Int { bodies.withLock { $0.count } }

        var system: BackgroundActivity.System {
            { _, body in
                self.bodies.withLock { $0.append(body) }
                DispatchQueue.global().async {
                    body(false)
                    self.didReturn.yield()
                }
            }
        }

        func expire() { for body in bodies.withLock({ $0 }) { body(true) } }
    }

    private func kit(_ system: FakeSystem, _ gate: LoopbackServer.Gate) throws -> PipelineKit {
        let picture = try Pictures.png()
        return PipelineKit(
            StubTransport { _ in
                // The gate is opened by each test.
                try? await gate.wait()
                return .data(picture)
            }
        ) { $0.backgroundTime = system.system }
    }

    private func request(_ isContinued: Bool = true) throws -> ImageRequest {
        var request = ImageRequest(try url("https://a.example/1.png"))
        request.options.continuesInBackground = isContinued
        return request
    }

    @Test func theTimeIsHeldUntilTheLoadEnds() async throws {
        let (system, gate) = (FakeSystem(), LoopbackServer.Gate())
        let task = try kit(system, gate).pipeline.task(for: request())
        #expect(system.count == 1)
        gate.open()
        _ = try await task.image
        var returns = system.returns.makeAsyncIterator()
        await returns.next()
    }

    @Test func aCancelledLoadGivesTheTimeBack() async throws {
        let (system, gate) = (FakeSystem(), LoopbackServer.Gate())
        let task = try kit(system, gate).pipeline.task(for: request())
        task.cancel()
        var returns = system.returns.makeAsyncIterator()
        await returns.next()
        gate.open()
    }

    @Test func theSystemTakesTheTimeBack() async throws {
        let (system, gate) = (FakeSystem(), LoopbackServer.Gate())
        let task = try kit(system, gate).pipeline.task(for: request())
        system.expire()
        var returns = system.returns.makeAsyncIterator()
        await returns.next()
        #expect(!task.isFinished)
        // The load continues as far as the system lets it.
        gate.open()
        _ = try await task.image
    }

    @Test func onlyALoadThatAsksForTimeGetsIt() async throws {
        let (system, gate) = (FakeSystem(), LoopbackServer.Gate())
        let kit = try kit(system, gate)
        gate.open()
        _ = try await kit.pipeline.image(from: request(false))
        // An image in memory needs no time.
        _ = try await kit.pipeline.image(from: request())
        #expect(system.count == 0)
    }
}
