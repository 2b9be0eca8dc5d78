#if os(Linux) && !TERN_URLSESSION
import Foundation
import TernConcurrency
import TernTesting
import Testing

@testable import Tern
@testable import TernStreaming

/// A socket that is opened again: its delays, its ends, and the socket that is being prepared.
@Suite("WebSocket: reconnection", .timeLimit(.minutes(1)))
struct ReconnectingWebSocketTests {
    private static func session() -> Session {
        var configuration = Session.Configuration()
        configuration.proxies = .none
        return Session(configuration: configuration)
    }

    private func server(_ script: @escaping LoopbackServer.Handler) throws -> LoopbackServer {
        try LoopbackServer { exchange in
            try exchange.acceptWebSocket()
            try script(exchange)
        }
    }

    @Test func aReconnectingSocketOpensAnotherConnection() async throws {
        let opened = Lock(0)
        let server = try server { exchange in
            let number = opened.withLock { count in
                count += 1
                return count
            }
            _ = try exchange.readFrame()
            try exchange.write(.text("message \(number)"))
            if number == 3 { return try exchange.write(.close(1000)) }
            number == 1 ? exchange.close() : try exchange.write(.close(1012))
        }
        defer { server.stop() }
        let (session, clock) = (Self.session(), ManualClock())
        let url = server.url.absoluteString
        let live = ReconnectingWebSocket(clock: clock) {
            try await session.webSocket(url)
        } onOpen: { socket in
            try await socket.send("subscribe")
        }
        let timer = Task {
            while true {
                try await clock.waitForSleepers(1)
                clock.advance(by: .seconds(30))
            }
        }
        defer { timer.cancel() }
        var messages: [WebSocket.Message] = []
        for try await message in live.messages { messages.append(message) }
        #expect(messages == (1...3).map { .text("message \($0)") })
        let error = try await streamFailure { try await live.send(.text("late")) }
        #expect(error.kind == .webSocketClosed)
    }

    /// A message does not show that the server works, if it ends each connection at once.
    @Test func aServerThatGreetsAndClosesIsAskedMoreAndMoreSeldom() async throws {
        let server = try server { exchange in
            try exchange.write(.text("hello"), .close(1011))
        }
        defer { server.stop() }
        let (session, clock) = (Self.session(), ManualClock())
        let url = server.url.absoluteString
        let live = ReconnectingWebSocket(backoff: .init(maximumFailures: 4), clock: clock) {
            try await session.webSocket(url)
        }
        let waits = Lock<[Duration]>([])
        let timer = Task {
            while true {
                try await clock.waitForSleepers(1)
                guard let next = clock.nextDeadline else { continue }
                waits.withLock { $0.append(clock.now.duration(to: next)) }
                clock.advance(to: next)
            }
        }
        defer { timer.cancel() }
        var count = 0
        for try await _ in live.messages { count += 1 }
        #expect(count == 5)
        let delays = waits.withLock { $0 }
        #expect(delays.count == 4 && delays[3] > delays[0])
    }

    @Test func theServerDelaysTheNextHandshake() async throws {
        let server = try LoopbackServer { exchange in
            if exchange.number == 1 {
                return try exchange.respond(status: 503, headers: [("Retry-After", "120")], text: "busy")
            }
            try exchange.acceptWebSocket()
            try exchange.write(.text("hello"), .close(1000))
        }
        defer { server.stop() }
        let (session, clock) = (Self.session(), ManualClock())
        let url = server.url.absoluteString
        let live = ReconnectingWebSocket(clock: clock) { try await session.webSocket(url) }
        let message = Task { try await live.receive() }
        try await clock.waitForSleepers(1)
        let next = try #require(clock.nextDeadline)
        #expect(clock.now.duration(to: next) == .seconds(120))
        clock.advance(to: next)
        #expect(try await message.value == .text("hello"))
    }

    @Test func cancellingAReaderWhileASocketIsAwaitedEndsItsWait() async throws {
        let server = try server { exchange in
            _ = try exchange.readFrame()
            exchange.close()
        }
        defer { server.stop() }
        let (session, clock) = (Self.session(), ManualClock())
        let url = server.url.absoluteString
        let live = ReconnectingWebSocket(clock: clock) {
            try await session.webSocket(url)
        } onOpen: { socket in
            try await socket.send("subscribe")
        }
        let reader = Task { try await live.receive() }
        try await clock.waitForSleepers(1)
        reader.cancel()
        let error = try await streamFailure { _ = try await reader.value }
        #expect(error.kind == .cancelled)
        #expect(server.requests.count == 1)
        await session.drained()
    }

    @Test func closingWhileASocketIsPreparedEndsTheMessages() async throws {
        let server = try server { exchange in
            try exchange.write(.text("late"))
            try exchange.echoMessages()
        }
        defer { server.stop() }
        let (session, url) = (Self.session(), server.url.absoluteString)
        let (prepared, preparation) = AsyncStream.makeStream(of: Void.self)
        let (begun, beginning) = AsyncStream.makeStream(of: Void.self)
        let live = ReconnectingWebSocket {
            try await session.webSocket(url)
        } onOpen: { _ in
            beginning.finish()
            for await _ in prepared {}
        }
        let reader = Task { try await live.receive() }
        for await _ in begun {}
        try await live.close()
        preparation.finish()
        #expect(try await reader.value == nil)
        #expect(await live.current == nil)
        #expect(server.requests.count == 1)
        await session.drained()
    }

    @Test func aServerThatClosesBeforeTheFirstMessageIsTriedAgain() async throws {
        let opened = Lock(0)
        let server = try server { exchange in
            let number = opened.withLock { count in
                count += 1
                return count
            }
            if number == 1 { try exchange.write(.close(1012)) }
            while let frame = try exchange.readFrame(), frame.opcode != 8 {
                try exchange.write(.text("welcome"), .close(1000))
            }
        }
        defer { server.stop() }
        let (session, clock) = (Self.session(), ManualClock())
        let url = server.url.absoluteString
        // Counted here: the server counts a connection after its answer, which can be too late.
        let attempts = Lock(0)
        let live = ReconnectingWebSocket(clock: clock) {
            attempts.withLock { $0 += 1 }
            return try await session.webSocket(url)
        } onOpen: { socket in
            if attempts.withLock({ $0 == 1 }) {
                for await state in socket.states where state != .open { break }
            }
            try await socket.send("subscribe")
        }
        let timer = Task {
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(30))
        }
        defer { timer.cancel() }
        var messages: [WebSocket.Message] = []
        for try await message in live.messages { messages.append(message) }
        #expect(messages == [.text("welcome")])
        #expect(server.requests.count == 2)
    }

    @Test func aRefusalIsNotTriedAgain() async throws {
        let server = try LoopbackServer { try $0.respond(status: 403) }
        defer { server.stop() }
        let (session, url) = (Self.session(), server.url.absoluteString)
        let live = ReconnectingWebSocket { try await session.webSocket(url) }
        let error = try await streamFailure { _ = try await live.receive() }
        #expect(error.status == 403)
        #expect(server.requests.count == 1)
    }

    @Test func delaysDoubleUpToTheLongest() {
        let backoff = ReconnectingWebSocket.Backoff(initial: .seconds(1), maximum: .seconds(10))
        #expect((1...6).map { backoff.delay(after: $0, random: 1) } == [1, 2, 4, 8, 10, 10].map { .seconds($0) })
        #expect(backoff.delay(after: 1_000, random: 0) == .seconds(5))
    }

    /// The states of a socket that is opened, lost, opened again and closed.
    @Test func statesFollowTheConnection() async throws {
        let opened = Lock(0)
        let server = try server { exchange in
            let number = opened.withLock { count in
                count += 1
                return count
            }
            try exchange.write(.text("message \(number)"))
            if number == 1 { return exchange.close() }
            _ = try exchange.readFrame()
            try exchange.write(.close(1000))
        }
        defer { server.stop() }
        let (session, clock) = (Self.session(), ManualClock())
        let url = server.url.absoluteString
        let live = ReconnectingWebSocket(clock: clock) { try await session.webSocket(url) }
        #expect(live.state == .idle)
        let seen = Task {
            var states: [ReconnectingWebSocket.State] = []
            for await state in live.states { states.append(state) }
            return states
        }
        var messages = live.messages.makeAsyncIterator()
        #expect(try await messages.next() == .text("message 1") && live.state != .closed)
        let next = Task { try await live.receive() }
        try await clock.waitForSleepers(1)
        guard case .waiting(let delay) = live.state else {
            Issue.record("the state is \(live.state)")
            return
        }
        #expect(delay > .zero && delay <= .milliseconds(500))
        clock.advance(by: .seconds(1))
        #expect(try await next.value == .text("message 2"))
        #expect(live.state == .open)
        try await live.send("done")
        #expect(try await live.receive() == nil)
        #expect(live.state == .closed)
        // A slow reader misses states, and gets the last one.
        #expect(await seen.value.last == .closed)
        var late: [ReconnectingWebSocket.State] = []
        for await state in live.states { late.append(state) }
        #expect(late == [.closed])
    }

    @Test func aCancelledReaderLeavesTheSocketIdle() async throws {
        let clock = ManualClock()
        let live = ReconnectingWebSocket(clock: clock) {
            throw NetworkError(.connectionRefused, reason: "nobody is there")
        }
        let reader = Task { try await live.receive() }
        try await clock.waitForSleepers(1)
        reader.cancel()
        _ = await reader.result
        #expect(live.state == .idle)
        try await live.close()
        #expect(live.state == .closed)
    }
}
#endif
