// For Linux only: URLSession has no event loops.
#if os(Linux) && !TERN_URLSESSION
import Dispatch
import Foundation
import TernConcurrency
import TernEngine
import TernTesting
import Testing

@testable import Tern

/// Checks sessions whose connections live on several loops. Each test has a process of its own, because the number of
/// loops is fixed with the first session. Left out by `make test-loops`, which spreads connections by another rule.
@Suite("Wire: several loops", .enabled(if: !EventLoops.areSpreadForTests), .timeLimit(.minutes(1)))
struct SeveralLoopsTests {
    @Test func theNinthConnectionLivesOnAnotherLoop() async {
        await #expect(processExitsWith: .success) {
            await CheckFailure.report {
                try Session.setEventLoopCount(3)
                let (early, late) = (LoopbackServer.Gate(), LoopbackServer.Gate())
                let server = try LoopbackServer { exchange in
                    try exchange.wait(for: exchange.request.path.hasPrefix("/early") ? early : late)
                    try exchange.respond(text: exchange.request.path)
                }
                defer { server.stop() }
                let client = Client(baseURL: server.url, session: Session(configuration: .test()))
                var tasks: [SessionTask<Data>] = []
                for number in 1...12 {
                    // The ninth and the eleventh live on the second loop, the tenth and the twelfth on the third.
                    tasks.append(client.task(.get, "\([9, 11].contains(number) ? "early" : "late")/\(number)"))
                    try await server.wait { $0.requestsReceived == number }
                }
                #expect(await client.session.openConnections.map(\.activeCount) == [12])
                let release = await Loops.block(1)
                early.open()
                try await server.wait { $0.requestsServed == 2 }
                late.open()
                for number in [1, 2, 3, 4, 5, 6, 7, 8, 10, 12] { _ = try await tasks[number - 1].value }
                #expect(tasks[8].state == .running && tasks[10].state == .running)
                release.signal()
                for number in [9, 11] { #expect(try await tasks[number - 1].value == Data("/early/\(number)".utf8)) }
                #expect(server.counts.acceptedConnections == 12)
                #expect(await client.session.openConnections.map(\.idleCount) == [12])
                await client.session.finishTasksAndInvalidate()
                #expect(await client.session.openConnections == [])
                try await server.wait { $0.openConnections == 0 }
            }
        }
    }

    /// A connection that was opened for a request has not waited, so its end is no end of a kept-alive connection.
    @Test func aNewConnectionOnAnotherLoopHasNotWaited() async {
        await #expect(processExitsWith: .success) {
            await CheckFailure.report {
                try Session.setEventLoopCount(3)
                let gate = LoopbackServer.Gate()
                let server = try LoopbackServer { exchange in
                    switch exchange.request.path {
                    case "/closed": exchange.close()
                    case "/late":
                        let lines = ["HTTP/1.1 408 Late", "Connection: close", "Content-Length: 0", "", ""]
                        try exchange.write(lines.joined(separator: "\r\n"))
                        exchange.close()
                    default:
                        try exchange.wait(for: gate)
                        try exchange.respond(text: "")
                    }
                }
                defer { server.stop() }
                let client = Client(baseURL: server.url, session: Session(configuration: .test()))
                var tasks: [SessionTask<Data>] = []
                for number in 1...8 {
                    tasks.append(client.task(.get, "held/\(number)"))
                    try await server.wait { $0.requestsReceived == number }
                }
                let error = try await failure { try await client.get("closed") }
                #expect(error.kind == .connectionLost && !"\(error)".contains("kept-alive"), "\(error)")
                #expect(server.requestCount("/closed") == 1)
                let late = try await failure { try await client.get("late") }
                #expect(late.status == 408 && server.requestCount("/late") == 1, "\(late)")
                gate.open()
                for task in tasks { _ = try await task.value }
            }
        }
    }

    // MARK: Shared limits

    /// Each loop has half of the connections, all of which carry requests. One that becomes idle makes room for a
    /// request on the other loop.
    @Test func anIdleConnectionGivesItsRoomToAnotherLoop() async {
        await #expect(processExitsWith: .success) {
            await CheckFailure.report {
                try Session.setEventLoopCount(2)
                let gates = (1...16).map { _ in LoopbackServer.Gate() }
                let server = try LoopbackServer { exchange in
                    if let number = Int(exchange.request.path.dropFirst("/held/".count)) {
                        try exchange.wait(for: gates[number - 1])
                    }
                    try exchange.respond(text: exchange.request.path)
                }
                defer { server.stop() }
                let configuration = Session.Configuration.test { $0.maximumConnectionsPerHost = 16 }
                let client = Client(baseURL: server.url, session: Session(configuration: configuration))
                var held: [SessionTask<Data>] = []
                for number in 1...16 {
                    held.append(client.task(.get, "held/\(number)"))
                    try await server.wait { $0.requestsReceived == number }
                }
                // At home, because both have as many.
                let last = client.task(.get, "last")
                await Loops.pass(0)
                await Loops.pass(1)
                #expect(server.counts.acceptedConnections == 16)
                // The ninth and those after it are on the second loop.
                gates[10].open()
                #expect(try await last.value == Data("/last".utf8))
                #expect(server.counts.acceptedConnections == 17)
                for gate in gates { gate.open() }
                for task in held { _ = try await task.value }
                #expect(await client.session.openConnections.map(\.idleCount) == [16])
                await client.session.finishTasksAndInvalidate()
                try await server.wait { $0.openConnections == 0 }
            }
        }
    }

    @Test func theLimitForAllHostsIsShared() async {
        await #expect(processExitsWith: .success) {
            await CheckFailure.report {
                try Session.setEventLoopCount(2)
                let gate = LoopbackServer.Gate()
                let server = try LoopbackServer { exchange in
                    if exchange.request.path == "/held" { try exchange.wait(for: gate) }
                    try exchange.respond(text: exchange.request.path)
                }
                let other = try LoopbackServer { try $0.respond(text: "other") }
                defer {
                    server.stop()
                    other.stop()
                }
                let session = Session(configuration: .test { $0.maximumConnections = 16 })
                let client = Client(baseURL: server.url, session: session)
                let held = (1...16).map { _ in client.task(.get, "held") }
                try await server.wait { $0.requestsReceived == 16 }
                let waiting = Client(baseURL: other.url, session: session).task(.get, "")
                await Loops.pass(0)
                await Loops.pass(1)
                #expect(other.counts.acceptedConnections == 0)
                gate.open()
                #expect(try await waiting.value == Data("other".utf8))
                for task in held { _ = try await task.value }
                let counts = await session.openConnections
                let open = counts.reduce(0) { $0 + $1.activeCount + $1.idleCount }
                // Both loops can close an idle connection for the request, if both become idle at the same moment.
                #expect(counts.count == 2 && (15...16).contains(open))
            }
        }
    }

    // MARK: A transfer on another loop

    @Test func aTransferOnAnotherLoopFollowsItsCommands() async {
        await #expect(processExitsWith: .success) {
            await CheckFailure.report {
                let spread = try await SpreadSession()
                defer { spread.stop() }
                let task = spread.client.task(.get, "half")
                await task.wait(forBytes: 1_000)
                task.pause()
                await Loops.pass(0)
                await Loops.pass(1)
                spread.mayFinish.open()
                try await spread.hasFinished.wait()
                // Each call is a turn of the loop, which serves the sockets first.
                for _ in 0..<4 { await Loops.pass(1) }
                #expect(task.progressNow.completedBytes == 1_000)
                task.resume()
                #expect(try await task.value.count == 2_000)
                #expect(task.progressNow.completedBytes == 2_000 && task.progressNow.isFinished)

                let silent = spread.client.task(.get, "silent")
                try await spread.server.wait { $0.requestsReceived == 11 }
                silent.cancel()
                #expect(try await silent.failure().isCancelled)
                try await spread.server.wait { $0.openConnections == 8 }
            }
        }
    }

    @Test func aTransferOnAnotherLoopHasItsTimeLimits() async {
        await #expect(processExitsWith: .success) {
            await CheckFailure.report {
                let spread = try await SpreadSession()
                defer { spread.stop() }
                var request = try spread.client.request(.get, "silent")
                request.timeouts = Timeouts(idle: .milliseconds(200))
                let start = ContinuousClock.now
                let error = try await failure { try await spread.client.response(for: request) }
                #expect(error.timeoutPhase == .idle, "\(error)")
                #expect(start.duration(to: .now) >= .milliseconds(200))
                try await spread.server.wait { $0.openConnections == 8 }
            }
        }
    }
}

/// The loops of the process, as a test stops and passes them.
private enum Loops {
    private final class Call: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    private final class Caller: LoopClient {
        private let context: LoopContext
        private let id: UInt64

        init(_ context: LoopContext, _ id: UInt64) { (self.context, self.id) = (context, id) }

        func receive(operation: UInt64, object: any AnyObject & Sendable) { (object as? Call)?.body() }

        func close() { context.remove(id) }
    }

    private static func post(to index: Int, _ body: @escaping @Sendable () -> Void) {
        let loop = EventLoops.all[index]
        let client = loop.open { Caller($0, $1) }
        loop.post(to: client, operation: 0, object: Call(body))
        loop.close(client)
    }

    /// Returns when a loop has taken all messages so far.
    static func pass(_ index: Int) async {
        await withCheckedContinuation { continuation in post(to: index) { continuation.resume() } }
    }

    /// Stops a loop until the returned semaphore is signalled.
    static func block(_ index: Int) async -> DispatchSemaphore {
        let release = DispatchSemaphore(value: 0)
        await withCheckedContinuation { continuation in
            post(to: index) {
                continuation.resume()
                release.wait()
            }
        }
        return release
    }
}

/// A session in a process with two loops: eight connections on the home loop carry requests, and one on the other loop
/// is idle.
private struct SpreadSession {
    let server: LoopbackServer
    let client: Client
    /// Lets the server send the second half of a response.
    let mayFinish = LoopbackServer.Gate()
    let hasFinished = LoopbackServer.Gate()
    private let held: [SessionTask<Data>]

    init() async throws {
        try Session.setEventLoopCount(2)
        let (mayGoOn, finished) = (mayFinish, hasFinished)
        let server = try LoopbackServer { exchange in
            switch exchange.request.path {
            case "/held", "/silent": try exchange.waitForClientToClose()
            case "/half":
                try exchange.writeHead(headers: [("Content-Length", "2000")])
                try exchange.write([UInt8](repeating: 1, count: 1_000))
                try exchange.wait(for: mayGoOn)
                try exchange.write([UInt8](repeating: 2, count: 1_000))
                finished.open()
            default: try exchange.respond(text: exchange.request.path)
            }
        }
        let configuration = Session.Configuration.test { $0.maximumConnectionsPerHost = 16 }
        let client = Client(baseURL: server.url, session: Session(configuration: configuration))
        (self.server, self.client) = (server, client)
        held = (0..<8).map { _ in client.task(.get, "held") }
        try await server.wait { $0.requestsReceived == 8 }
        _ = try await client.get("first")
    }

    func stop() {
        for task in held { task.cancel() }
        server.stop()
    }
}
#endif
