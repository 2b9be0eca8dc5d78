import TernConcurrency
import TernTesting
import Testing

@testable import Tern

@Suite("Reachability", .timeLimit(.minutes(1)))
struct ReachabilityTests {
    /// A source that reports the statuses that a test sets.
    final class SettableSource: ReachabilitySource {
        private struct State {
            var status: Reachability.Status?
            var watches: [Watch] = []
            var refusals = 0
        }

        final class Watch: ReachabilityWatch {
            let tell: @Sendable (Reachability.Status) -> Void
            private let closed = Lock(false)
            var isClosed: Bool { closed.withLock { $0 } }
            init(_ tell: @escaping @Sendable (Reachability.Status) -> Void) { self.tell = tell }
            func close() { closed.withLock { $0 = true } }
        }

        private let state: Lock<State>
        /// Serializes the reports, as the socket of a kernel does: otherwise a watch that opens while a test sets a
        /// status could report the previous status after the new one.
        private let order = Lock(())
        /// Whether the status can be queried without a watch, as the kernel allows.
        private let canBeAsked: Bool

        init(_ initial: Reachability.Status? = nil, canBeAsked: Bool = true, refusals: Int = 0) {
            state = Lock(State(status: initial, refusals: refusals))
            self.canBeAsked = canBeAsked
        }

        var watches: [Watch] { state.withLock { $0.watches } }

        private var current: Reachability.Status? { state.withLock { $0.status } }

        var currentStatus: (@Sendable () -> Reachability.Status)? {
            guard canBeAsked else { return nil }
            return { self.current ?? .unknown }
        }

        func watch(_ onChange: @escaping @Sendable (Reachability.Status) -> Void) -> (any ReachabilityWatch)? {
            let watch = state.withLock { state -> Watch? in
                if state.refusals > 0 {
                    state.refusals -= 1
                    return nil
                }
                let watch = Watch(onChange)
                state.watches.append(watch)
                return watch
            }
            if watch != nil { order.withLock { _ in if let current { onChange(current) } } }
            return watch
        }

        func tell(_ status: Reachability.Status) {
            let watches = state.withLock { state in
                state.status = status
                return state.watches
            }
            order.withLock { _ in
                for watch in watches where !watch.isClosed { watch.tell(status) }
            }
        }
    }

    @Test func currentStatusComesFirstAndRepetitionsAreSkipped() async {
        let source = SettableSource(.unreachable)
        let reachability = Reachability(source)
        #expect(source.watches.isEmpty)
        var statuses = reachability.statuses.makeAsyncIterator()
        #expect(await statuses.next() == .unreachable)
        source.tell(.unreachable)
        source.tell(.reachable(.wifi))
        #expect(await statuses.next() == .reachable(.wifi))
        source.tell(.reachable(.wifi))
        source.tell(.reachable(.cellular))
        #expect(await statuses.next() == .reachable(.cellular))
        #expect(reachability.status == .reachable(.cellular))
        #expect(source.watches.count == 1)
    }

    @Test func statusBeginsUnknown() async {
        let reachability = Reachability(SettableSource())
        #expect(reachability.status == .unknown)
        var statuses = reachability.statuses.makeAsyncIterator()
        #expect(await statuses.next() == .unknown)
    }

    @Test func streamsEndWithTheReachability() async {
        let source = SettableSource(.unreachable)
        var reachability: Reachability? = Reachability(source)
        let statuses = reachability?.statuses
        reachability = nil
        #expect(source.watches.map(\.isClosed) == [true])
        var seen: [Reachability.Status] = []
        if let statuses { for await status in statuses { seen.append(status) } }
        #expect(seen == [.unreachable])
    }

    @Test func sourceIsWatchedOnlyWithListeners() async {
        let source = SettableSource(.unreachable)
        let reachability = Reachability(source)
        #expect(reachability.status == .unreachable)
        #expect(source.watches.isEmpty)
        var first: AsyncStream<Reachability.Status>? = reachability.statuses
        var second: AsyncStream<Reachability.Status>? = reachability.statuses
        #expect(source.watches.count == 1)
        first = nil
        #expect(source.watches.map(\.isClosed) == [false])
        second = nil
        #expect(source.watches.map(\.isClosed) == [true])
        #expect(first == nil && second == nil)

        // A later listener begins with the current status, not with the last one reported.
        source.tell(.reachable(.wifi))
        var statuses = reachability.statuses.makeAsyncIterator()
        #expect(await statuses.next() == .reachable(.wifi))
        #expect(source.watches.map(\.isClosed) == [true, false])
        // A report of the closed watch is ignored.
        source.watches[0].tell(.unreachable)
        #expect(reachability.status == .reachable(.wifi))
    }

    @Test func cancelledListenerStopsListening() async {
        let source = SettableSource(.unreachable)
        let reachability = Reachability(source)
        let seen = LoopbackServer.Gate()
        let listener = Task {
            for await _ in reachability.statuses { seen.open() }
        }
        // This wait is never cancelled.
        try? await seen.wait()
        listener.cancel()
        await listener.value
        #expect(source.watches.map(\.isClosed) == [true])
    }

    @Test func failedWatchIsTriedAgain() async {
        let source = SettableSource(.reachable(.wired), refusals: 1)
        let reachability = Reachability(source)
        var first = reachability.statuses.makeAsyncIterator()
        #expect(await first.next() == .unknown)
        var second = reachability.statuses.makeAsyncIterator()
        #expect(await second.next() == .reachable(.wired))
        #expect(await first.next() == .reachable(.wired))
    }

    @Test func sourceWithoutQueriesIsWatchedFromTheFirstAccess() {
        let source = SettableSource(canBeAsked: false)
        let reachability = Reachability(source)
        #expect(reachability.status == .unknown)
        source.tell(.reachable(.cellular))
        #expect(reachability.status == .reachable(.cellular))
        _ = reachability.statuses
        #expect(source.watches.map(\.isClosed) == [false])
    }

    @Test func immediateCancellationLeavesNoState() async {
        let source = SettableSource(.reachable(.wifi))
        let reachability = Reachability(source)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<200 {
                        var statuses = reachability.statuses.makeAsyncIterator()
                        let status = await statuses.next()
                        // A listener that arrives while another opens the watch can be too early for a status.
                        #expect(status == .reachable(.wifi) || status == .unknown)
                    }
                }
            }
        }
        #expect(!source.watches.isEmpty && source.watches.allSatisfy(\.isClosed))
        var statuses = reachability.statuses.makeAsyncIterator()
        #expect(await statuses.next() == .reachable(.wifi))
    }

    @Test func statusesAreDescribedInWords() {
        let media = Reachability.Medium.allCases.map { Reachability.Status.reachable($0).description }
        #expect(media == ["wired", "wifi", "cellular", "other"].map { "reachable via \($0)" })
        #expect(Reachability.Status.unreachable.description == "not reachable")
        #expect(Reachability.Status.unknown.description == "unknown")
        #expect(Reachability.Status.reachable(.other).isReachable && !Reachability.Status.unknown.isReachable)
    }

    #if os(Linux)
    @Test func kernelReportsAStatus() {
        // This holds for every network of the machine: every process can read rtnetlink.
        #expect(NetlinkReachability.readStatus() != nil)
        #expect(Reachability().status != .unknown)
    }
    #endif
}

@Suite("Offline wait", .timeLimit(.minutes(1)))
struct OfflineWaitTests {
    private let source = ReachabilityTests.SettableSource(.unreachable)
    private let clock = ManualClock()

    private func client(_ stub: StubTransport, source: ReachabilityTests.SettableSource? = nil) throws -> Client {
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
    func requestWithoutANetworkIsSentAgainOnItsReturn(kind: NetworkError.Kind) async throws {
        let stub = failing(kind, times: 1)
        let task = try client(stub).task(.post, "a", body: .text("x"), as: String.self)
        try await stub.waitForCalls(1)
        try await clock.waitForSleepers(1)
        source.tell(.reachable(.wifi))
        #expect(try await task.value == "back")
        #expect(stub.calls.count == 2)
    }

    @Test func requestFailsWithItsErrorAfterTheLimit() async throws {
        let stub = failing(.dns, times: 9)
        let task = try client(stub).task(.get, "a")
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(5))
        do {
            _ = try await task.value
            Issue.record("nothing failed")
        } catch {
            #expect(error.kind == .dns)
            let reason = "; there was no route to h, and the network did not return within 5.0 seconds"
            #expect(error.reason.hasSuffix(reason))
        }
        #expect(source.watches.map(\.isClosed) == [true])
        // The request is tried a last time at the end.
        #expect(stub.calls.count == 2)
    }

    /// The status tells of default routes alone, and a host can be reached without one.
    @Test func hostIsTriedAgainWithoutAChangeOfTheStatus() async throws {
        let stub = failing(.connectionFailed, times: 2)
        let task = try client(stub).task(.get, "a", as: String.self)
        for delay in [1, 2] {
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(delay))
        }
        #expect(try await task.value == "back")
        #expect(stub.calls.count == 3)
    }

    @Test func routeToTheHostIsEnough() async throws {
        let stub = failing(.connectionFailed, times: 9)
        let local = Reachability(ReachabilityTests.SettableSource(.unreachable))
        #expect(local.isOffline(to: try Request(.get, "http://h").target))
        #expect(!local.isOffline(to: try Request(.get, "http://localhost").target))
        var configuration = Session.Configuration()
        configuration.reachability = local
        configuration.interceptors = [OfflineWaitInterceptor(upTo: .seconds(5), clock: clock)]
        let client = try Client(baseURL: "http://localhost", session: Session(configuration: configuration, stub: stub))
        let error = await #expect(throws: NetworkError.self) { try await client.get("a") }
        #expect(error?.kind == .connectionFailed && stub.calls.count == 1)
    }

    #if os(Linux)
    /// The kernel is asked for a route to an address. A name is not looked up.
    @Test func kernelKnowsTheRoutesToAddresses() {
        let reachability = Reachability()
        #expect(reachability.hasRoute(to: "127.0.0.1") == true)
        #expect(reachability.hasRoute(to: "localhost") == true)
        #expect(reachability.hasRoute(to: "host.example") == nil)
        #expect(reachability.hasRoute(to: "fe80::1%lo") == nil)
        #expect(reachability.hasRoute(to: "") == nil)
    }
    #endif

    @Test func trialsBecomeRare() {
        var trials = RouteTrials()
        #expect((0..<7).map { _ in trials.next() } == [1, 2, 4, 8, 16, 30, 30].map { .seconds($0) })
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

    /// Apple's systems report to watches only, and not at once: the watch has begun by the time a request has failed.
    @Test func firstRequestWaitsForASourceWithoutQueries() async throws {
        let source = ReachabilityTests.SettableSource(canBeAsked: false)
        let stub = StubTransport { call in
            if call.index > 0 { return .text("back") }
            source.tell(.unreachable)
            throw StubTransport.Failure(.dns)
        }
        let task = try client(stub, source: source).task(.get, "a", as: String.self)
        try await clock.waitForSleepers(1)
        source.tell(.reachable(.wifi))
        #expect(try await task.value == "back")
    }

    @Test(arguments: [Reachability.Status.unknown, .reachable(.wired)])
    func requestsDoNotWaitWithANetworkOrAnUnknownStatus(status: Reachability.Status) async throws {
        let stub = failing(.dns, times: 9)
        let error = await #expect(throws: NetworkError.self) {
            try await client(stub, source: ReachabilityTests.SettableSource(status)).get("a")
        }
        #expect(error?.kind == .dns && stub.calls.count == 1)
    }

    @Test func requestThatMayHaveReachedAServerIsNotSentAgain() async throws {
        let stub = failing(.connectionLost, times: 9)
        let error = await #expect(throws: NetworkError.self) { try await client(stub).get("a") }
        #expect(error?.kind == .connectionLost && stub.calls.count == 1)
    }
}
