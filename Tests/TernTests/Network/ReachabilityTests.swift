import TernConcurrency
import TernTesting
import Testing

@testable import Tern

@Suite("Reachability", .timeLimit(.minutes(1)))
struct ReachabilityTests {
    /// Tells what a test says.
    final class Told: ReachabilitySource {
        private struct State {
            var tell: (@Sendable (Reachability.Status) -> Void)?
            var starts = 0
            var isStopped = false
        }
        private let initial: Reachability.Status?
        private let state = Lock(State())

        init(_ initial: Reachability.Status? = nil) { self.initial = initial }

        var starts: Int { state.withLock { $0.starts } }
        var isStopped: Bool { state.withLock { $0.isStopped } }

        func start(_ tell: @escaping @Sendable (Reachability.Status) -> Void) {
            state.withLock { state in
                state.tell = tell
                state.starts += 1
            }
            if let initial { tell(initial) }
        }

        func stop() { state.withLock { $0.isStopped = true } }

        func tell(_ status: Reachability.Status) { state.withLock { $0.tell }?(status) }
    }

    @Test func theCurrentStatusComesFirstAndEqualOnesOnce() async {
        let source = Told(.unreachable)
        let reachability = Reachability(source)
        #expect(source.starts == 0)
        var statuses = reachability.statuses.makeAsyncIterator()
        #expect(await statuses.next() == .unreachable)
        source.tell(.unreachable)
        source.tell(.reachable(.wifi))
        #expect(await statuses.next() == .reachable(.wifi))
        source.tell(.reachable(.wifi))
        source.tell(.reachable(.cellular))
        #expect(await statuses.next() == .reachable(.cellular))
        #expect(reachability.status == .reachable(.cellular))
        #expect(source.starts == 1)
    }

    @Test func itBeginsUnknown() async {
        let reachability = Reachability(Told())
        #expect(reachability.status == .unknown)
        var statuses = reachability.statuses.makeAsyncIterator()
        #expect(await statuses.next() == .unknown)
    }

    @Test func streamsEndWithTheReachability() async {
        let source = Told(.unreachable)
        var reachability: Reachability? = Reachability(source)
        let statuses = reachability?.statuses
        reachability = nil
        #expect(source.isStopped)
        var seen: [Reachability.Status] = []
        if let statuses { for await status in statuses { seen.append(status) } }
        #expect(seen == [.unreachable])
    }

    @Test func statusesAreWords() {
        #expect(Reachability.Status.reachable(.wifi).description == "reachable via wifi")
        #expect(Reachability.Status.unreachable.description == "not reachable")
        #expect(Reachability.Status.unknown.description == "unknown")
        #expect(Reachability.Status.reachable(.other).isReachable && !Reachability.Status.unknown.isReachable)
    }

    #if os(Linux)
    @Test func theKernelAnswersHere() {
        // Whatever the machine's network is: rtnetlink can be read by everyone.
        #expect(NetlinkReachability.look() != nil)
        #expect(Reachability().status != .unknown)
    }
    #endif
}

@Suite("Offline wait", .timeLimit(.minutes(1)))
struct OfflineWaitTests {
    private let source = ReachabilityTests.Told(.unreachable)
    private let clock = ManualClock()

    private func client(_ stub: StubTransport, source: ReachabilityTests.Told? = nil) throws -> Client {
        var configuration = Session.Configuration()
        configuration.reachability = Reachability(source ?? self.source)
        configuration.interceptors = [OfflineWaitInterceptor(upTo: .seconds(5), clock: clock)]
        return try Client(baseURL: "http://h", session: Session(configuration: configuration, stub: stub))
    }

    private func failing(_ kind: NetworkError.Kind, times: Int) -> StubTransport {
        StubTransport { call in
            if call.index < times { throw StubTransport.Failure(kind) }
            return .text("back")
        }
    }

    @Test(arguments: [NetworkError.Kind.dns, .connectionFailed, .connectTimedOut])
    func aRequestThatFoundNoNetworkIsSentAgainWhenItIsBack(kind: NetworkError.Kind) async throws {
        let stub = failing(kind, times: 1)
        let task = try client(stub).task(.post, "a", body: .text("x"), as: String.self)
        try await stub.waitForCalls(1)
        try await clock.waitForSleepers(1)
        source.tell(.reachable(.wifi))
        #expect(try await task.value == "back")
        #expect(stub.calls.count == 2)
    }

    @Test func afterTheLimitItFailsWithWhatItHad() async throws {
        let stub = failing(.dns, times: 9)
        let task = try client(stub).task(.get, "a")
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(5))
        do {
            _ = try await task.value
            Issue.record("nothing failed")
        } catch {
            #expect(error.kind == .dns)
        }
        #expect(stub.calls.count == 1)
    }

    @Test func cancellingEndsTheWait() async throws {
        let stub = failing(.dns, times: 9)
        let task = try client(stub).task(.get, "a")
        try await clock.waitForSleepers(1)
        task.cancel()
        do {
            _ = try await task.value
            Issue.record("nothing failed")
        } catch {
            #expect(error.isCancelled)
        }
    }

    @Test(arguments: [Reachability.Status.unknown, .reachable(.wired)])
    func whereThereIsANetworkOrNothingIsKnownNothingWaits(status: Reachability.Status) async throws {
        let stub = failing(.dns, times: 9)
        let error = await #expect(throws: NetworkError.self) {
            try await client(stub, source: ReachabilityTests.Told(status)).get("a")
        }
        #expect(error?.kind == .dns && stub.calls.count == 1)
    }

    @Test func whatMayHaveReachedAServerIsNotSentAgain() async throws {
        let stub = failing(.connectionLost, times: 9)
        let error = await #expect(throws: NetworkError.self) { try await client(stub).get("a") }
        #expect(error?.kind == .connectionLost && stub.calls.count == 1)
    }
}
