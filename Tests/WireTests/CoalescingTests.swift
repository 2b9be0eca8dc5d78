#if !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite(.timeLimit(.minutes(1)))
struct CoalescingTests {
    private static func shared(_ change: (inout Session.Configuration) -> Void = { _ in }) -> Session.Configuration {
        .test {
            $0.interceptors = [CoalescingInterceptor(ignoring: ["X-Trace"])]
            change(&$0)
        }
    }

    /// Answers once the gate is open, with what distinguishes requests.
    private static func gated(_ gate: LoopbackServer.Gate) -> LoopbackServer.Handler {
        { exchange in
            try exchange.wait(for: gate)
            let status = exchange.request.path == "/missing" ? 404 : 200
            try exchange.respond(status: status, text: exchange.request["Authorization"] ?? "nobody")
        }
    }

    private func tasks(_ count: Int, _ client: Client, _ path: String = "a") -> [SessionTask<String>] {
        (0..<count).map { number in
            client.task(.get, path, headers: ["X-Trace": "\(number)"], as: String.self)
        }
    }

    /// Until all are in the interceptor: the registry knows them, and one is on the wire.
    private func allWait(_ server: LoopbackServer) async throws {
        try await server.wait { $0.requestsReceived >= 1 }
        for _ in 0..<100 { await Task.yield() }
    }

    @Test func identicalRequestsAreSentOnce() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: Self.shared(), Self.gated(gate)) { server, client in
            let tasks = tasks(50, client)
            try await allWait(server)
            gate.open()
            for task in tasks { #expect(try await task.value == "nobody") }
            #expect(server.counts.requestsReceived < 50)
            // The first is over: the next is sent.
            let before = server.counts.requestsReceived
            #expect(try await client.get("a", as: String.self) == "nobody")
            #expect(server.counts.requestsReceived == before + 1)
        }
    }

    @Test func differentCredentialsNeverShare() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: Self.shared(), Self.gated(gate)) { server, client in
            let tasks = ["a", "b", "c"].map { client.task(.get, "x", headers: ["Authorization": $0], as: String.self) }
            try await server.wait { $0.requestsReceived == 3 }
            gate.open()
            var answers: [String] = []
            for task in tasks { answers.append(try await task.value) }
            #expect(answers == ["a", "b", "c"])
        }
    }

    @Test func aFailureIsEveryonesAndNamesEachTask() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: Self.shared(), Self.gated(gate)) { server, client in
            let tasks = tasks(2, client, "missing")
            try await allWait(server)
            gate.open()
            for task in tasks {
                let error = try await failure { try await task.value }
                #expect(error.status == 404 && error.taskID == task.id)
            }
        }
    }

    @Test func whoIsCancelledLeavesAlone() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: Self.shared(), Self.gated(gate)) { server, client in
            let first = tasks(1, client)[0]
            try await server.wait { $0.requestsReceived == 1 }
            let others = tasks(5, client)
            for _ in 0..<100 { await Task.yield() }
            others[2].cancel()
            #expect(try await failure { try await others[2].value }.isCancelled)
            // The one that asked goes: another asks.
            first.cancel()
            #expect(try await failure { try await first.value }.isCancelled)
            try await server.wait { $0.requestsReceived >= 2 }
            gate.open()
            for (index, task) in others.enumerated() where index != 2 {
                #expect(try await task.value == "nobody")
            }
        }
    }

    @Test func whatHasABodyOrIsStreamedIsSentEachTime() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: Self.shared(), Self.gated(gate)) { server, client in
            let posts = (0..<2).map { _ in client.task(.post, "a", body: .text("x")) }
            let streams = (0..<2).map { _ in client.stream("a") }
            try await server.wait { $0.requestsReceived == 4 }
            gate.open()
            for task in posts { _ = try await task.value }
            for stream in streams {
                for try await _ in stream.chunks {}
            }
        }
    }

    @Test func theRequestUnderWayTakesOverTheHighestPriority() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: Self.shared(), Self.gated(gate)) { server, client in
            var request = try client.request(.get, "a")
            request.priority = .low
            let first = client.session.task(for: request, startsImmediately: true)
            try await server.wait { $0.requestsReceived == 1 }
            request.priority = .veryHigh
            let second = client.session.task(for: request, startsImmediately: true)
            while first.priority != .veryHigh { await Task.yield() }
            gate.open()
            _ = try await (first.value, second.value)
            #expect(server.counts.requestsReceived == 1)
        }
    }
}
#endif
