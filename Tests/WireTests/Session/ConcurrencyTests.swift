#if os(Linux) && !TERN_URLSESSION
import TernConcurrency
import Tern
import TernEngine
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Sends many requests at once: limits, priorities, identities.
@Suite("Wire: many at once", .timeLimit(.minutes(2)))
struct ConcurrencyTests {
    /// Counts the handlers that run at a time, and keeps the largest number.
    private final class Peak: Sendable {
        private let state = Lock((now: 0, peak: 0))
        var value: Int { state.withLock { $0.peak } }

        func enter() {
            state.withLock { state in
                state.now += 1
                state.peak = max(state.peak, state.now)
            }
        }

        func leave() { state.withLock { $0.now -= 1 } }
    }

    // MARK: Limits

    @Test(arguments: [1, 3]) func requestBeyondTheLimitOfAHostWaits(limit: Int) async throws {
        let (peak, gate) = (Peak(), LoopbackServer.Gate())
        try await withServer(configuration: .test { $0.maximumConnectionsPerHost = limit }) { exchange in
            peak.enter()
            try exchange.wait(for: gate)
            peak.leave()
            try exchange.respond(text: exchange.request.path)
        } test: { server, client in
            let tasks = (0..<20).map { client.task(.get, "\($0)", as: String.self) }
            try await server.wait { $0.requestsReceived >= limit }
            #expect(tasks.allSatisfy { $0.state == .running })
            gate.open()
            for (number, task) in tasks.enumerated() { #expect(try await task.value == "/\(number)") }
            // The gate can open before the last of them has entered; the number of connections proves the rest.
            #expect(peak.value <= limit)
            #expect(server.counts.acceptedConnections == limit)
        }
    }

    @Test func oneHostDoesNotWaitForAnother() async throws {
        let gate = LoopbackServer.Gate()
        let configuration = Session.Configuration.test { $0.maximumConnectionsPerHost = 1 }
        try await withServer(configuration: configuration) { exchange in
            try exchange.wait(for: gate)
            try exchange.respond(text: "slow")
        } test: { slow, client in
            let tasks = (0..<3).map { _ in client.task(.get, "", as: String.self) }
            try await slow.wait { $0.requestsReceived == 1 }
            let quick = try LoopbackServer { try $0.respond(text: "quick") }
            defer { quick.stop() }
            #expect(try await client.get(quick.url.absoluteString, as: String.self) == "quick")
            gate.open()
            for task in tasks { #expect(try await task.value == "slow") }
        }
    }

    @Test func totalLimitCoversAllHostsAndIdleConnections() async throws {
        let peak = Peak()
        let handler: LoopbackServer.Handler = { exchange in
            // The handler leaves before the response: the client can be elsewhere as soon as it has the response.
            peak.enter()
            peak.leave()
            try exchange.respond(text: "ok")
        }
        try await withServer(configuration: .test { $0.maximumConnections = 1 }, handler) { first, client in
            let second = try LoopbackServer(handler: handler)
            defer { second.stop() }
            try await client.get("")
            try await first.wait { $0.idleConnections == 1 }
            try await client.get(second.url.absoluteString)
            // One of the two is closed.
            while first.counts.openConnections + second.counts.openConnections != 1 { await Task.yield() }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<20 {
                    group.addTask { _ = try await client.get((number % 2 == 0 ? first : second).url.absoluteString) }
                }
                try await group.waitForAll()
            }
            #expect(peak.value == 1)
        }
    }

    @Test func queuedTaskThatIsCancelledNeverReachesTheServer() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: .test { $0.maximumConnectionsPerHost = 1 }) { exchange in
            try exchange.wait(for: gate)
            try exchange.respond(text: exchange.request.path)
        } test: { server, client in
            let first = client.task(.get, "first")
            try await server.wait { $0.requestsReceived == 1 }
            let second = client.task(.get, "second")
            let third = client.task(.get, "third")
            second.cancel()
            #expect(try await failure { try await second.value }.isCancelled)
            gate.open()
            _ = try await (first.value, third.value)
            #expect(server.requests.map(\.target) == ["/first", "/third"])
        }
    }

    // MARK: Priorities

    @Test func queuedTasksStartByPriorityAndAge() async throws {
        let gate = LoopbackServer.Gate()
        let server = try LoopbackServer { exchange in
            if exchange.request.path == "/blocker" { try exchange.wait(for: gate) }
            try exchange.respond(text: "ok")
        }
        defer { server.stop() }
        let configuration = Session.Configuration.test { $0.maximumConnectionsPerHost = 1 }
        let transport = WatchedTransport(configuration)
        let client = Client(baseURL: server.url, session: Session(configuration: configuration, transport: transport))
        let blocker = client.task(.get, "blocker")
        try await server.wait { $0.requestsReceived == 1 }

        func queue(_ name: String, _ priority: Request.Priority, after count: Int) async -> SessionTask<Data> {
            let task = client.task(.get, name, startsImmediately: false)
            task.priority = priority
            task.resume()
            await transport.waitForStarts(count)
            return task
        }
        let tasks = [
            await queue("low", .low, after: 2), await queue("normal-1", .normal, after: 3),
            await queue("urgent", .veryHigh, after: 4), await queue("normal-2", .normal, after: 5),
            await queue("raised", .veryLow, after: 6), await queue("lowered", .veryHigh, after: 7),
        ]
        tasks[4].priority = .high
        tasks[5].priority = .veryLow
        // The loop handles its messages in order, some per turn: the response to a later message shows that it has
        // handled all of these. Otherwise a busy loop could see the end of the blocker before it knows of more than the
        // first waiting task.
        let other = try LoopbackServer { try $0.respond(text: "") }
        defer { other.stop() }
        try await fence(other, of: client.session, roundTrips: 1)
        gate.open()
        for task in [blocker] + tasks { _ = try await task.value }
        #expect(
            server.requests.map(\.target)
                == ["/blocker", "/urgent", "/raised", "/normal-1", "/normal-2", "/low", "/lowered"])
    }

    @Test func aPriorityThatChangesBeforeTheStartIsNotLost() async throws {
        let server = try LoopbackServer { try $0.respond(text: "ok") }
        defer { server.stop() }
        let configuration = Session.Configuration.test()
        let transport = WatchedTransport(configuration)
        let client = Client(baseURL: server.url, session: Session(configuration: configuration, transport: transport))
        let task = client.task(.get, "", startsImmediately: false)
        transport.callBeforeStart { attempt in
            #expect(attempt.request.priority == .normal)
            task.priority = .veryHigh
        }
        task.resume()
        _ = try await task.value
        #expect(transport.commands == [.prioritize(.veryHigh)])
    }

    // MARK: Many

    @Test func hundredParallelDownloadsWriteTheirOwnFiles() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "tern-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // A leftover does no harm: the folder is the system's temporary one.
        defer { try? FileManager.default.removeItem(at: folder) }
        try await withServer { exchange in
            let seed = Int(exchange.request.path.dropFirst()) ?? 0
            try exchange.serveFile(.init(count: 100_000 + seed, seed: seed))
        } test: { server, client in
            let tasks = (0..<100).map { client.download("\($0)", to: folder.appending(path: "file-\($0)")) }
            for (number, task) in tasks.enumerated() {
                let bytes = try Data(contentsOf: try await task.value)
                #expect(bytes.count == 100_000 + number)
                #expect(LoopbackServer.Pattern(count: 100_000 + number, seed: number).matches(bytes))
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).count == 100)
            // Loops that share the limit can close connections to make room for each other.
            if !EventLoops.areSpreadForTests { #expect(server.counts.acceptedConnections <= 32) }
            #expect(await client.session.tasks.count == 0)
        }
    }

    @Test func tenThousandConcurrentTasksReceiveTheirOwnResponses() async throws {
        let server = try LoopbackServer(requestLogLimit: 0) { try $0.respond(text: $0.request.target) }
        defer { server.stop() }
        let client = Client(baseURL: server.url, session: Session(configuration: .test()))
        let ids = try await withThrowingTaskGroup(of: [TaskID].self) { group in
            for part in 0..<20 {
                group.addTask {
                    let tasks = (0..<500).map { number in
                        client.task(.get, "echo", query: ["n": part * 500 + number], as: String.self)
                    }
                    for (number, task) in tasks.enumerated() {
                        guard try await task.value == "/echo?n=\(part * 500 + number)" else { throw Crossed() }
                    }
                    return tasks.map(\.id)
                }
            }
            return try await group.reduce(into: [TaskID]()) { $0 += $1 }
        }
        #expect(ids.count == 10_000)
        #expect(Set(ids).count == 10_000)
        #expect(server.counts.requestsReceived == 10_000)
        #expect(await client.session.tasks.count == 0)
    }

    private struct Crossed: Error {}
}
#endif
