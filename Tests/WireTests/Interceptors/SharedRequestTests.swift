#if !TERN_URLSESSION
import Tern
import TernConcurrency
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests that each of the tasks that share a request keeps what is its own.
@Suite(.timeLimit(.minutes(1)))
struct SharedRequestTests {
    private static let shared = Session.Configuration.test { $0.interceptors = [CoalescingInterceptor()] }

    /// Sends 40 of 100 bytes, and the others once the gate is open.
    private static func halves(_ gate: LoopbackServer.Gate) -> LoopbackServer.Handler {
        { exchange in
            try exchange.writeHead(headers: [("Content-Length", "100")])
            try exchange.write(String(repeating: "a", count: 40))
            try exchange.wait(for: gate)
            try exchange.write(String(repeating: "b", count: 60))
        }
    }

    private typealias SharingTask = SessionTask<Response<String>>

    /// Starts a task whose request is sent, and then others that wait for its response, one after the other.
    private func tasks(
        of count: Int, _ client: Client, _ server: LoopbackServer, _ change: (inout Request, Int) -> Void = { _, _ in }
    ) async throws -> [SharingTask] {
        var tasks: [SharingTask] = []
        for number in 0..<count {
            var request = try client.request(.get, "a")
            request.label = "task \(number)"
            change(&request, number)
            tasks.append(client.session.task(for: request, decode: .string, startsImmediately: true))
            if number == 0 { try await server.wait { $0.requestsReceived == 1 } }
            // The progress of the request reaches each task that waits for it.
            while tasks[number].progressNow.completedBytes < 40, !Task.isCancelled { await Task.yield() }
        }
        return tasks
    }

    @Test func theRequestGoesOnWhenTheTaskThatSentItIsCancelled() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: Self.shared, Self.halves(gate)) { server, client in
            let tasks = try await tasks(of: 3, client, server)
            tasks[0].cancel()
            let error = try await failure { try await tasks[0].value }
            #expect(error.isCancelled && error.taskID == tasks[0].id)
            #expect(tasks[0].state == .cancelled)
            for await progress in tasks[0].progress { #expect(progress.completedBytes <= 100) }
            tasks[1].cancel()
            #expect(try await failure { try await tasks[1].value }.isCancelled)
            gate.open()
            #expect(try await tasks[2].value.value.count == 100)
            #expect(server.counts.requestsReceived == 1)
            await client.session.drained()
            #expect(await client.session.tasks.count == 0)
        }
    }

    @Test(arguments: [[0, 1, 2], [2, 1, 0], [1, 0, 2]])
    func theLastTaskThatIsCancelledEndsTheRequest(order: [Int]) async throws {
        try await withServer(configuration: Self.shared) { exchange in
            try exchange.writeHead(headers: [("Content-Length", "100")])
            try exchange.write(String(repeating: "a", count: 40))
            if exchange.number == 1 { return try exchange.waitForClientToClose() }
            try exchange.write(String(repeating: "b", count: 60))
        } test: { server, client in
            let tasks = try await tasks(of: 3, client, server)
            for number in order {
                tasks[number].cancel()
                #expect(try await failure { try await tasks[number].value }.isCancelled)
            }
            // The connection is closed before the response is whole, and the next task does not join the request.
            try await server.wait { $0.openConnections == 0 }
            #expect(try await client.get("a", as: String.self).count == 100)
            #expect(server.counts.requestsReceived == 2)
        }
    }

    @Test func cancellingAllTasksOfTheSessionEndsTheRequest() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: Self.shared, Self.halves(gate)) { server, client in
            let tasks = try await tasks(of: 3, client, server)
            await client.session.tasks.cancelAll()
            for task in tasks { #expect(try await failure { try await task.value }.isCancelled) }
            await client.session.drained()
            gate.open()
            #expect(server.counts.requestsReceived == 1)
        }
    }

    @Test func eachTaskSeesTheProgressOfTheRequest() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: Self.shared, Self.halves(gate)) { server, client in
            let tasks = try await tasks(of: 2, client, server)
            let progress = tasks[1].progressNow
            #expect(progress.completedBytes == 40 && progress.totalBytes == 100 && !progress.isFinished)
            var seen: [Int64] = []
            for await progress in tasks[1].progress {
                if seen.isEmpty { gate.open() }
                seen.append(progress.completedBytes)
            }
            #expect(seen.first == 40 && seen.last == 100)
            #expect(try await tasks[1].value.value.count == 100)
        }
    }

    @Test func aPausedTaskHoldsNobodyUp() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: Self.shared, Self.halves(gate)) { server, client in
            let tasks = try await tasks(of: 2, client, server)
            tasks[0].pause()
            #expect(tasks[0].state == .suspended)
            gate.open()
            #expect(try await tasks[1].value.value.count == 100)
            tasks[0].resume()
            #expect(try await tasks[0].value.value.count == 100)
            #expect(server.counts.requestsReceived == 1)
        }
    }

    @Test func aTaskThatJoinsAPausedOneResumesItsRequest() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: Self.shared, Self.halves(gate)) { server, client in
            let first = try await tasks(of: 1, client, server)[0]
            first.pause()
            var request = try client.request(.get, "a")
            request.priority = .high
            let second = client.session.task(for: request, decode: .string, startsImmediately: true)
            // The rest of the response comes once the second task has joined, which raises the priority.
            while first.priority != .high, !Task.isCancelled { await Task.yield() }
            gate.open()
            #expect(try await second.value.value.count == 100)
            #expect(server.counts.requestsReceived == 1)
            first.cancel()
        }
    }

    @Test func aPausedTaskThatIsAloneAgainReceivesNothing() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: Self.shared, Self.halves(gate)) { server, client in
            let tasks = try await tasks(of: 2, client, server)
            tasks[0].pause()
            tasks[1].cancel()
            #expect(try await failure { try await tasks[1].value }.isCancelled)
            gate.open()
            try await server.wait { $0.requestsServed == 1 }
            // A request after the rest of the response: by its end, the rest would have been received.
            _ = try await client.session.response(for: client.request(.get, "b"))
            #expect(tasks[0].progressNow.completedBytes == 40 && tasks[0].state == .suspended)
            tasks[0].resume()
            #expect(try await tasks[0].value.value.count == 100)
        }
    }

    @Test func thePriorityIsThatOfTheTasksThatWaitStill() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: Self.shared, Self.halves(gate)) { server, client in
            let tasks = try await tasks(of: 3, client, server) { request, number in
                request.priority = [.normal, .veryHigh, .high][number]
            }
            #expect(tasks[0].priority == .veryHigh)
            tasks[1].cancel()
            _ = try await failure { try await tasks[1].value }
            #expect(tasks[0].priority == .high)
            gate.open()
            for task in [tasks[0], tasks[2]] { #expect(try await task.value.value.count == 100) }
        }
    }

    @Test func theErrorHasTheLabelOfItsOwnTask() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: Self.shared) { exchange in
            try exchange.wait(for: gate)
            try exchange.respond(status: 404, text: "")
        } test: { server, client in
            var tasks: [SharingTask] = []
            for number in 0..<3 {
                var request = try client.request(.get, "a")
                request.label = number == 2 ? nil : "task \(number)"
                request.priority = number == 0 ? .normal : .high
                tasks.first?.priority = .normal
                tasks.append(client.session.task(for: request, decode: .string, startsImmediately: true))
                if number == 0 { try await server.wait { $0.requestsReceived == 1 } }
                // A task that joins raises the priority.
                while number > 0, tasks[0].priority != .high, !Task.isCancelled { await Task.yield() }
            }
            gate.open()
            for (number, task) in tasks.enumerated() {
                let error = try await failure { try await task.value }
                #expect(error.status == 404 && error.label == (number == 2 ? nil : "task \(number)"))
                #expect(error.taskID == task.id)
            }
        }
    }

    /// Keeps the time that each task had spent before its request was sent.
    private final class SpentTimes: SessionObserver {
        let times = Lock<[TaskID: Duration]>([:])

        func willSend(_ request: Request, of task: AnySessionTask) {
            times.withLock { $0[task.id] = request.timeouts.spent }
        }
    }

    @Test func theTimeLimitOfTheTaskThatSentTheRequestIsItsOwn() async throws {
        let (gate, spent) = (LoopbackServer.Gate(), SpentTimes())
        let stub = StubTransport { call in
            guard call.index == 0 else { return .text("second") }
            try await gate.wait()
            return .status(200).failing(StubTransport.Failure(.totalTimedOut))
        }
        var configuration = Self.shared
        configuration.observers = [spent]
        configuration.timeouts.total = .seconds(50)
        let session = Session(configuration: configuration, stub: stub)
        let request = try Request(.get, "https://a.example/a")
        let first = session.task(for: request, decode: .string, startsImmediately: true)
        while stub.calls.isEmpty { await Task.yield() }
        first.priority = .low
        let second = session.task(for: request, decode: .string, startsImmediately: true)
        // It has joined.
        while first.priority == .low { await Task.yield() }
        gate.open()
        #expect(try await failure { try await first.value }.kind == .totalTimedOut)
        // It sends the request with the time that it has left.
        #expect(try await second.value.value == "second")
        let times = spent.times.withLock { $0 }
        #expect(times[first.id] == .zero)
        #expect(try #require(times[second.id]) > .zero)
    }
}
#endif
