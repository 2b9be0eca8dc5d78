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

    /// Answers once the gate is open, with the header that distinguishes the requests.
    private static func gated(_ gate: LoopbackServer.Gate) -> LoopbackServer.Handler {
        { exchange in
            try exchange.wait(for: gate)
            let status = exchange.request.path == "/missing" ? 404 : 200
            try exchange.respond(status: status, text: exchange.request["Authorization"] ?? "nobody")
        }
    }

    /// Starts a task whose request is sent, and others that wait for its response: each raises the priority of the
    /// request that it joins, which shows that it has joined.
    private func makeSharingTasks(
        of count: Int, _ client: Client, _ server: LoopbackServer, _ path: String = "a"
    ) async throws -> [SessionTask<Response<String>>] {
        var request = try client.request(.get, path)
        let first = client.session.task(for: request, decode: .string, startsImmediately: true)
        try await server.wait { $0.requestsReceived == 1 }
        var tasks = [first]
        request.priority = .high
        while tasks.count < count {
            first.priority = .normal
            request.headers["X-Trace"] = "\(tasks.count)"
            tasks.append(client.session.task(for: request, decode: .string, startsImmediately: true))
            while first.priority != .high, !Task.isCancelled { await Task.yield() }
        }
        return tasks
    }

    @Test func identicalRequestsAreSentOnce() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: Self.shared(), Self.gated(gate)) { server, client in
            let tasks = try await makeSharingTasks(of: 50, client, server)
            gate.open()
            for task in tasks {
                let response = try await task.value
                #expect(response.value == "nobody")
            }
            #expect(server.counts.requestsReceived == 1)
            // The first request has ended: the next is sent.
            #expect(try await client.get("a", as: String.self) == "nobody")
            #expect(server.counts.requestsReceived == 2)
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

    /// The cookie of the session is that of its user.
    @Test func differentCookiesOfTheSessionNeverShare() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: Self.shared()) { exchange in
            if exchange.request.path.hasPrefix("/login") {
                let user = exchange.request.path.dropFirst(7)
                return try exchange.respond(headers: [("Set-Cookie", "sid=\(user); Path=/")], text: "")
            }
            try exchange.wait(for: gate)
            try exchange.respond(text: exchange.request["Cookie"] ?? "none")
        } test: { server, client in
            _ = try await client.get("login/a")
            async let first = client.get("me", as: String.self)
            try await server.wait { $0.requestsReceived == 2 }
            _ = try await client.get("login/b")
            async let second = client.get("me", as: String.self)
            try await server.wait { $0.requestsReceived == 4 }
            gate.open()
            #expect(try await [first, second] == ["sid=a", "sid=b"])
        }
    }

    @Test func failureReachesEveryWaiterAndNamesItsTask() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: Self.shared(), Self.gated(gate)) { server, client in
            let tasks = try await makeSharingTasks(of: 2, client, server, "missing")
            gate.open()
            for task in tasks {
                let error = try await failure { try await task.value }
                #expect(error.status == 404 && error.taskID == task.id)
            }
            #expect(server.counts.requestsReceived == 1)
        }
    }

    @Test func cancellingOneWaiterKeepsTheOthers() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: Self.shared(), Self.gated(gate)) { server, client in
            let tasks = try await makeSharingTasks(of: 6, client, server)
            tasks[3].cancel()
            #expect(try await failure { try await tasks[3].value }.isCancelled)
            // The task that sent the request is cancelled: the request goes on for the others.
            tasks[0].cancel()
            #expect(try await failure { try await tasks[0].value }.isCancelled)
            gate.open()
            for index in [1, 2, 4, 5] {
                let response = try await tasks[index].value
                #expect(response.value == "nobody")
            }
            #expect(server.counts.requestsReceived == 1)
        }
    }

    @Test func requestsWithBodiesAndStreamsAreNotShared() async throws {
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

    @Test func runningRequestTakesTheHighestPriority() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: Self.shared(), Self.gated(gate)) { server, client in
            var request = try client.request(.get, "a")
            request.priority = .low
            let first = client.session.task(for: request, startsImmediately: true)
            try await server.wait { $0.requestsReceived == 1 }
            request.priority = .veryHigh
            let second = client.session.task(for: request, startsImmediately: true)
            while first.priority != .veryHigh, !Task.isCancelled { await Task.yield() }
            gate.open()
            _ = try await (first.value, second.value)
            #expect(server.counts.requestsReceived == 1)
        }
    }
}
#endif
