// For Linux only: URLSession does not report its connections.
#if os(Linux) && !TERN_URLSESSION
import Foundation
import TernConcurrency
import TernEngine
import TernStreaming
import TernTesting
import Testing

@testable import Tern

@Suite("Wire: open connections", .timeLimit(.minutes(1)))
struct OpenConnectionsTests {
    private func count(_ url: URL, active: Int = 0, idle: Int = 0) -> Session.OpenConnections {
        let port = url.port ?? 80
        return Session.OpenConnections(
            origin: "http://\(url.host() ?? ""):\(port)", activeCount: active, idleCount: idle)
    }

    // MARK: The numbers

    @Test func aConnectionIsActiveDuringItsResponseAndIdleAfterIt() async throws {
        let (arrived, gate) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        try await withServer { exchange in
            arrived.open()
            try exchange.wait(for: gate)
            try exchange.respond(text: "done")
        } test: { server, client in
            #expect(await client.session.openConnections == [])
            let task = client.task(.get, "x")
            try await arrived.wait()
            #expect(await client.session.openConnections == [count(server.url, active: 1)])
            gate.open()
            _ = try await task.value
            #expect(await client.session.openConnections == [count(server.url, idle: 1)])
        }
    }

    @Test func eachOriginHasNumbersOfItsOwn() async throws {
        let arrived = LoopbackServer.Gate()
        let held = try LoopbackServer { exchange in
            if exchange.request.path == "/held" {
                arrived.open()
                try exchange.waitForClientToClose()
            }
            try exchange.respond()
        }
        defer { held.stop() }
        try await withServer {
            try $0.respond()
        } test: { server, client in
            try await client.get("x")
            let task = client.task(.get, "\(held.url("held"))")
            try await arrived.wait()
            try await client.get("\(held.url("x"))")
            let expected = [count(server.url, idle: 1), count(held.url, active: 1, idle: 1)]
            let found = await client.session.openConnections
            #expect(found == expected.sorted { $0.origin < $1.origin })
            task.cancel()
            try await held.wait { $0.openConnections == 1 }
            #expect(await client.session.openConnections.map(\.idleCount) == [1, 1])
            #expect(await client.session.openConnections.map(\.activeCount) == [0, 0])
        }
    }

    @Test func requestsThatShareAConnectionAreCountedAsOne() async throws {
        let server = try TwoVersionServer([.status("204")])
        defer { server.stop() }
        let session = Session(configuration: .test { $0.usesHTTP2WithoutTLS = true })
        let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/"))
        try await withThrowingTaskGroup { group in
            for _ in 0..<20 {
                group.addTask { _ = try await session.response(for: Request(.get, url: url)) }
            }
            try await group.waitForAll()
        }
        #expect(server.log.count == 20 && server.connections == 1)
        #expect(await session.openConnections == [count(url, idle: 1)])
        await session.finishTasksAndInvalidate()
        #expect(await session.openConnections == [])
        for await _ in server.ends { break }
    }

    @Test func aWebSocketIsActive() async throws {
        try await withServer { exchange in
            try exchange.acceptWebSocket()
            try exchange.echoMessages()
        } test: { server, client in
            let socket = try await client.webSocket("live")
            #expect(await client.session.openConnections == [count(server.url, active: 1)])
            try await socket.close()
            try await server.wait { $0.openConnections == 0 }
            #expect(await client.session.openConnections == [])
        }
    }

    @Test func theOriginOverAUnixSocketIsThatOfTheRequest() async throws {
        let path = "/tmp/tern-\(UUID().uuidString.prefix(8)).sock"
        try await withServer(on: .unix(path: path)) {
            try $0.respond()
        } test: { server, client in
            try await client.get("x")
            try await client.get("http://example.com:8080/")
            let other = try #require(URL(string: "http://example.com:8080"))
            let expected = [count(server.url, idle: 1), count(other, idle: 1)]
            #expect(await client.session.openConnections == expected.sorted { $0.origin < $1.origin })
        }
    }

    // MARK: The end of connections

    @Test func anIdleConnectionIsCountedUntilItsLifetimeEnds() async throws {
        try await withServer(configuration: .test { $0.idleConnectionLifetime = .milliseconds(20) }) {
            try $0.respond()
        } test: { server, client in
            try await client.get("x")
            try await server.wait { $0.openConnections == 0 }
            #expect(await client.session.openConnections == [])
        }
    }

    @Test func aConnectionThatTheServerClosesIsNotCounted() async throws {
        let mayClose = LoopbackServer.Gate()
        try await withServer { exchange in
            try exchange.respond()
            try exchange.wait(for: mayClose)
            exchange.close()
        } test: { server, client in
            try await client.get("x")
            #expect(await client.session.openConnections == [count(server.url, idle: 1)])
            mayClose.open()
            while await client.session.openConnections != [] { await Task.yield() }
        }
    }

    @Test func invalidationClosesIdleConnections() async throws {
        try await withServer {
            try $0.respond()
        } test: { server, client in
            try await client.get("x")
            #expect(await client.session.isInvalidated == false)
            await client.session.finishTasksAndInvalidate()
            #expect(await client.session.openConnections == [])
            #expect(await client.session.isInvalidated)
            try await server.wait { $0.openConnections == 0 }
        }
    }

    @Test func invalidationLetsActiveConnectionsFinish() async throws {
        let (arrived, gate) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        try await withServer { exchange in
            arrived.open()
            try exchange.wait(for: gate)
            try exchange.respond(text: "done")
        } test: { server, client in
            let session = client.session
            let task = client.task(.get, "x", as: String.self)
            try await arrived.wait()
            async let end: Void = session.finishTasksAndInvalidate()
            while session.tasks.live.isOpen { await Task.yield() }
            #expect(await session.openConnections == [count(server.url, active: 1)])
            #expect(await session.isInvalidated == false)
            gate.open()
            #expect(try await task.value == "done")
            await end
            #expect(await session.openConnections == [])
            try await server.wait { $0.openConnections == 0 }
        }
    }

    @Test func aCancelledSessionHasNoConnections() async throws {
        let arrived = LoopbackServer.Gate()
        try await withServer { exchange in
            arrived.open()
            try exchange.waitForClientToClose()
        } test: { server, client in
            let task = client.task(.get, "x")
            try await arrived.wait()
            await client.session.invalidateAndCancel()
            #expect(try await task.failure().isCancelled)
            #expect(await client.session.openConnections == [])
            try await server.wait { $0.openConnections == 0 }
        }
    }

    // MARK: The answer

    @Test func aCancelledTaskGetsTheAnswer() async throws {
        try await withServer {
            try $0.respond()
        } test: { server, client in
            try await client.get("x")
            let reader = Task {
                while !Task.isCancelled { await Task.yield() }
                return await client.session.openConnections
            }
            reader.cancel()
            #expect(await reader.value == [count(server.url, idle: 1)])
        }
    }

    @Test func aTaskOnTheLoopGetsTheAnswer() async throws {
        try await withServer {
            try $0.respond()
        } test: { server, client in
            let session = client.session
            let found = try await withTaskExecutorPreference(session.executor) {
                try await client.get("x")
                return await session.openConnections
            }
            #expect(found == [count(server.url, idle: 1)])
        }
    }

    /// No session can cause it: its lane lives at least as long.
    @Test func aLaneThatHasEndedAnswersWithoutConnections() async throws {
        #expect(EventLoop.shared.problem() == nil)
        let answer = Waiter<[Session.OpenConnections]>()
        // No client has this number.
        EventLoop.shared.post(to: .max, operation: 0, object: PoolOrder(.count(answer)))
        #expect(await answer.wait(onCancel: {}) == [])
    }

    @Test func everyReaderGetsAnAnswerWhileTheSessionEnds() async throws {
        try await withServer {
            try $0.respond()
        } test: { _, client in
            let session = client.session
            await withTaskGroup { group in
                for number in 0..<200 {
                    group.addTask {
                        // Fails after the end.
                        _ = try? await client.get("x")
                        let connections = await session.openConnections
                        #expect(connections.count <= 1)
                        if number == 100 { await session.finishTasksAndInvalidate() }
                    }
                }
            }
            #expect(await session.openConnections == [])
        }
    }

    @Test func aTransportThatDoesNotKnowItsConnectionsReportsNone() async throws {
        let session = Session(configuration: .test(), transport: StubTransport([:]))
        #expect(await session.openConnections == [])
    }
}
#endif
