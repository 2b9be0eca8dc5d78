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

/// The time in the background that a system grants loads, with a fake of the system.
@Suite(.timeLimit(.minutes(1))) struct BackgroundTimeTests {
    /// Grants the time on a thread of its own, as Apple's systems do, and refuses it or takes it back on request.
    private final class FakeSystem: Sendable {
        private struct State {
            var bodies: [@Sendable (Bool) -> Void] = []
            var refusals = 0
            var runningLoads: @Sendable () -> Int = { -1 }
        }

        private let state = Lock(State())
        /// Receives a value when a granted time begins.
        let begins: AsyncStream<Void>
        private let didBegin: AsyncStream<Void>.Continuation
        /// Receives the number of loads that run when a granted time was given back.
        let returns: AsyncStream<Int>
        private let didReturn: AsyncStream<Int>.Continuation

        /// - Parameter refusals: The number of requests for time to refuse before the first grant.
        init(refusals: Int = 0) {
            (begins, didBegin) = AsyncStream.makeStream()
            (returns, didReturn) = AsyncStream.makeStream()
            state.withLock { $0.refusals = refusals }
        }

        /// The number of times that the system was asked.
        var count: Int { state.withLock { $0.bodies.count } }

        func watch(_ tasks: [ImageTask]) {
            state.withLock { $0.runningLoads = { tasks.count { !$0.isFinished } } }
        }

        var time: BackgroundTime {
            BackgroundTime { _, body in
                let isRefused = self.state.withLock { state in
                    state.bodies.append(body)
                    state.refusals -= 1
                    return state.refusals >= 0
                }
                if isRefused { return body(true) }
                DispatchQueue.global().async {
                    self.didBegin.yield()
                    body(false)
                    self.didReturn.yield(self.state.withLock { $0.runningLoads }())
                }
            }
        }

        func expire() { for body in state.withLock({ $0.bodies }) { body(true) } }
    }

    /// Opens the gate named by the path of a request.
    private struct Gates {
        let gates = [LoopbackServer.Gate(), LoopbackServer.Gate(), LoopbackServer.Gate()]

        func open(_ number: Int) { gates[number].open() }
    }

    private func kit(_ system: FakeSystem, _ gates: Gates) throws -> PipelineKit {
        let picture = try Pictures.png()
        return PipelineKit(
            StubTransport { call in
                let number = Int(call.path.dropFirst()) ?? 0
                // The gate is opened by each test.
                try? await gates.gates[number].wait()
                return .data(picture)
            }
        ) { $0.backgroundTime = system.time }
    }

    private func request(_ number: Int = 0, isContinued: Bool = true) throws -> ImageRequest {
        var request = ImageRequest(try url("https://a.example/\(number)"))
        request.options.continuesInBackground = isContinued
        return request
    }

    @Test func theTimeIsHeldUntilTheLoadEnds() async throws {
        let (system, gates) = (FakeSystem(), Gates())
        let kit = try kit(system, gates)
        let task = try kit.pipeline.task(for: request())
        system.watch([task])
        #expect(system.count == 1)
        var begins = system.begins.makeAsyncIterator()
        await begins.next()
        try await kit.stub.waitForCalls(1)
        gates.open(0)
        _ = try await task.image
        var returns = system.returns.makeAsyncIterator()
        // A time that ended before the load would have found the load running.
        #expect(await returns.next() == 0)
    }

    @Test func oneGrantServesAllLoads() async throws {
        let (system, gates) = (FakeSystem(), Gates())
        let kit = try kit(system, gates)
        let tasks = try (0..<3).map { try kit.pipeline.task(for: request($0)) }
        system.watch(tasks)
        var begins = system.begins.makeAsyncIterator()
        await begins.next()
        for number in [2, 0, 1] {
            gates.open(number)
            _ = try await tasks[number].image
        }
        var returns = system.returns.makeAsyncIterator()
        #expect(await returns.next() == 0)
        #expect(system.count == 1)
        // The next load has a grant of its own.
        let next = try kit.pipeline.task(for: request(0).reloaded)
        #expect(system.count == 2)
        _ = try await next.image
        #expect(await returns.next() == 0)
    }

    @Test func aCancelledLoadGivesTheTimeBack() async throws {
        let (system, gates) = (FakeSystem(), Gates())
        let task = try kit(system, gates).pipeline.task(for: request())
        system.watch([task])
        var begins = system.begins.makeAsyncIterator()
        await begins.next()
        task.cancel()
        var returns = system.returns.makeAsyncIterator()
        #expect(await returns.next() == 0)
        gates.open(0)
    }

    /// The grant arrives after the load that asked for it has ended.
    @Test func aGrantThatComesTooLateEndsAtOnce() async {
        let bodies = Lock<[@Sendable (Bool) -> Void]>([])
        let time = BackgroundTime { _, body in bodies.withLock { $0.append(body) } }
        time.beginLoad()
        time.endLoad()
        // Returns without a wait; the time limit of the suite fails otherwise.
        for body in bodies.withLock({ $0 }) { body(false) }
        #expect(bodies.withLock { $0.count } == 1)
    }

    @Test func theSystemTakesTheTimeBack() async throws {
        let (system, gates) = (FakeSystem(), Gates())
        let kit = try kit(system, gates)
        let task = try kit.pipeline.task(for: request())
        system.watch([task])
        var begins = system.begins.makeAsyncIterator()
        await begins.next()
        system.expire()
        var returns = system.returns.makeAsyncIterator()
        #expect(await returns.next() == 1)
        #expect(!task.isFinished)
        // A load that begins in the foreground again asks again, and holds the time for both.
        let next = try kit.pipeline.task(for: request(1))
        system.watch([task, next])
        #expect(system.count == 2)
        await begins.next()
        gates.open(1)
        _ = try await next.image
        // The first load continues as far as the system lets it.
        gates.open(0)
        _ = try await task.image
        #expect(await returns.next() == 0)
    }

    @Test func aLoadAfterARefusalAsksAgain() async throws {
        let (system, gates) = (FakeSystem(refusals: 1), Gates())
        let kit = try kit(system, gates)
        let task = try kit.pipeline.task(for: request())
        let next = try kit.pipeline.task(for: request(1))
        system.watch([task, next])
        #expect(system.count == 2)
        for number in 0...1 { gates.open(number) }
        _ = try await task.image
        _ = try await next.image
        var returns = system.returns.makeAsyncIterator()
        #expect(await returns.next() == 0)
    }

    @Test func onlyALoadThatAsksForTimeGetsIt() async throws {
        let (system, gates) = (FakeSystem(), Gates())
        let kit = try kit(system, gates)
        gates.open(0)
        _ = try await kit.pipeline.image(from: request(isContinued: false))
        // An image in memory needs no time.
        _ = try await kit.pipeline.image(from: request())
        #expect(system.count == 0)
    }
}

/// The decision when time is asked for and given back.
@Suite struct BackgroundTimeStateTests {
    @Test func theFirstLoadAsksAndTheLastGivesBack() {
        var state = BackgroundTimeState()
        #expect(state.beginLoad() == .ask(1))
        #expect(state.beginLoad() == .none)
        #expect(state.endLoad() == .none)
        #expect(state.endLoad() == .giveBack)
        #expect(state.beginLoad() == .ask(2))
    }

    @Test func anExpiredGrantIsNotGivenBackAndTheNextLoadAsks() {
        var state = BackgroundTimeState()
        _ = state.beginLoad()
        state.expire(1)
        #expect(state.beginLoad() == .ask(2))
        // Too late: the second grant is held.
        state.expire(1)
        #expect(state.endLoad() == .none)
        #expect(state.endLoad() == .giveBack)
    }

    @Test func nothingIsGivenBackAfterTheSystemTookIt() {
        var state = BackgroundTimeState()
        _ = state.beginLoad()
        state.expire(1)
        #expect(state.endLoad() == .none)
        #expect(state.beginLoad() == .ask(2))
    }
}

extension ImageRequest {
    /// The request with an image that is in no cache.
    fileprivate var reloaded: ImageRequest {
        var request = self
        request.caching = .reload
        return request
    }
}
