#if os(Linux) && !TERN_URLSESSION
import Foundation
import TernConcurrency
import TernTesting
import Testing

@testable import Tern
@testable import TernStreaming

/// The bytes of a socket that leave although the socket is released, or the server has ended its direction.
@Suite("WebSocket: release", .timeLimit(.minutes(1)))
struct WebSocketReleaseTests {
    typealias Frame = LoopbackServer.WebSocketFrame

    /// The frames that a server received, until the client ended its direction.
    private final class Received: Sendable {
        private let frames = Lock<[Frame]>([])
        let isComplete = LoopbackServer.Gate()

        var all: [Frame] { frames.withLock { $0 } }

        func read(_ exchange: LoopbackServer.Exchange) throws {
            defer { isComplete.open() }
            while let frame = try exchange.readFrame() { frames.withLock { $0.append(frame) } }
        }

        /// Returns the opcodes, once all frames have arrived.
        func opcodes() async throws -> [UInt8] {
            try await isComplete.wait()
            return all.map(\.opcode)
        }
    }

    private static func session(clock: any Clock<Duration> = ContinuousClock()) -> Session {
        var configuration = Session.Configuration()
        configuration.proxies = .none
        return Session(configuration: configuration, transport: EngineTransport(configuration), clock: clock)
    }

    private func server(_ script: @escaping LoopbackServer.Handler) throws -> LoopbackServer {
        try LoopbackServer { exchange in
            try exchange.acceptWebSocket()
            try script(exchange)
        }
    }

    private func options(_ change: (inout WebSocket.Options) -> Void = { _ in }) -> WebSocket.Options {
        var options = WebSocket.Options()
        options.pingInterval = nil
        change(&options)
        return options
    }

    /// Bytes leave at the end of a turn, and the socket can be cancelled before that.
    @Test func aMessageLeavesBeforeTheSocketIsCancelled() async throws {
        let received = (0..<20).map { _ in Received() }
        let next = Lock(0)
        let server = try server { exchange in
            let number = next.withLock { number in
                defer { number += 1 }
                return number
            }
            // The client ends the connection without a Close frame.
            try? received[number].read(exchange)
        }
        defer { server.stop() }
        let session = Self.session()
        try await withTaskExecutorPreference(session.executor) {
            for _ in received {
                let socket = try await session.webSocket(server.url.absoluteString, options: options())
                try await socket.send("last words")
                socket.cancel()
            }
        }
        for each in received { #expect(try await each.opcodes() == [1]) }
    }

    /// Reads a socket to its end and releases it. Each socket was released while its Close frame was on the way to the
    /// loop, and about a third of the frames left.
    @Test func theCloseFrameOfAReleasedSocketLeaves() async throws {
        let answered = Lock(0)
        let server = try server { exchange in
            try exchange.write(.close(1000))
            if try exchange.readFrame()?.opcode == 8 { answered.withLock { $0 += 1 } }
        }
        defer { server.stop() }
        let session = Self.session()
        for _ in 0..<100 {
            let socket = try await session.webSocket(server.url.absoluteString)
            while try await socket.receive() != nil {}
            #expect(socket.closure?.isClean == true)
        }
        await session.drained()
        try await server.wait { $0.openConnections == 0 }
        #expect(answered.withLock { $0 } == 100)
    }

    @Test func answersBeforeAProtocolErrorLeaveAlthoughTheSocketIsReleased() async throws {
        for _ in 0..<20 {
            let received = Received()
            let server = try server { exchange in
                for number in 0..<8 { try exchange.write(.text("\(number)")) }
                try exchange.write(Frame(opcode: 3))
                try received.read(exchange)
            }
            defer { server.stop() }
            let session = Self.session()
            do {
                let socket = try await session.webSocket(server.url.absoluteString)
                let error = await #expect(throws: NetworkError.self) {
                    while let message = try await socket.receive() { try await socket.send(message) }
                }
                #expect(error?.kind == .malformedResponse)
                #expect(socket.closure?.isClean == false)
            }
            #expect(try await received.opcodes() == Array(repeating: 1, count: 8) + [8])
            #expect(received.all.last?.payload == [0x03, 0xEA])
            await session.drained()
        }
    }

    /// Sends messages until the connection takes no more. Returns the number of those that were accepted: one more has
    /// begun.
    private func fill(_ socket: WebSocket) async throws -> Int {
        let accepted = Lock(0)
        let sending = Task {
            while true {
                try await socket.send(Data(repeating: 5, count: 100_000))
                accepted.withLock { $0 += 1 }
            }
        }
        var (last, stable) = (Int64(-1), 0)
        while stable < 50 {
            let (isSending, sent) = (await socket.isSending, await socket.metrics.sentBytes)
            stable = isSending && sent == last ? stable + 1 : 0
            last = sent
            try await ContinuousClock().sleepWithoutDescriptor(for: .milliseconds(2))
        }
        sending.cancel()
        _ = await sending.result
        return accepted.withLock { $0 }
    }

    @Test func acceptedMessagesOfAReleasedSocketLeave() async throws {
        let gate = LoopbackServer.Gate()
        let received = Received()
        let server = try server { exchange in
            try exchange.wait(for: gate)
            try received.read(exchange)
        }
        defer { server.stop() }
        let session = Self.session()
        var accepted = 0
        do {
            let socket = try await session.webSocket(server.url.absoluteString, options: options())
            accepted = try await fill(socket)
        }
        gate.open()
        let sizes = try await received.opcodes().count
        #expect(accepted > 0 && sizes >= accepted, "\(sizes) of \(accepted)")
        #expect(received.all.allSatisfy { $0.opcode == 2 && $0.payload.count == 100_000 })
        await session.drained()
    }

    @Test func theRestOfAClosingOutlivesTheSocket() async throws {
        // The reader takes the message, answers it, and never asks for the Close frame behind it.
        let clock = ManualClock()
        let received = Received()
        let server = try server { exchange in
            try exchange.write(.text("question"), .close(4_000, "bye"))
            try received.read(exchange)
        }
        defer { server.stop() }
        let session = Self.session(clock: clock)
        do {
            let socket = try await session.webSocket(server.url.absoluteString, options: options())
            #expect(try await socket.receive() == .text("question"))
            try await socket.send("answer")
        }
        // The time in which a reader can ask for more.
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(1))
        // The server waits for the end of the connection, which is its own to end.
        try await server.wait { $0.bytesIn > 0 }
        while received.all.count < 2 { await Task.yield() }
        #expect(received.all.map(\.opcode) == [1, 8])
        #expect(received.all.last?.payload == [0x0F, 0xA0])
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(10))
        #expect(try await received.opcodes() == [1, 8])
        await session.drained()
    }

    @Test func aReleasedSocketIsCutAtItsLimit() async throws {
        let clock = ManualClock()
        let ended = LoopbackServer.Gate()
        let hold = LoopbackServer.Gate()
        let server = try server { exchange in
            // The end of the client's direction is not answered.
            try exchange.wait(for: hold)
            try exchange.waitForClientToClose()
            ended.open()
        }
        defer { server.stop() }
        let session = Self.session(clock: clock)
        let task: AnySessionTask
        do {
            let socket = try await session.webSocket(server.url.absoluteString, options: options())
            try await socket.send("accepted")
            task = socket.task
        }
        try await clock.waitForSleepers(1)
        #expect(task.state == .running)
        clock.advance(by: .seconds(10))
        await session.drained()
        #expect(task.state == .cancelled)
        hold.open()
        try await ended.wait()
    }

    @Test func unreadMessagesDoNotKeepAReleasedSocket() async throws {
        let received = Received()
        let server = try server { exchange in
            for _ in 0..<64 { try exchange.write(.binary([UInt8](repeating: 1, count: 64 << 10))) }
            try received.read(exchange)
        }
        defer { server.stop() }
        let session = Self.session()
        do {
            let socket = try await session.webSocket(
                server.url.absoluteString, options: options { $0.receiveBufferSize = 1 << 10 })
            _ = try await socket.receive()
            try await socket.send("accepted")
        }
        #expect(try await received.opcodes() == [1])
        await session.drained()
    }

    // MARK: A server that has ended its direction

    @Test(arguments: [false, true]) func aServerThatHasEndedItsDirectionReceivesTheAnswer(isUnread: Bool) async throws {
        let received = Received()
        let server = try server { exchange in
            if isUnread { try exchange.write(.text("unread")) }
            try exchange.write(.close(1001))
            exchange.close()
            try received.read(exchange)
        }
        defer { server.stop() }
        let session = Self.session()
        let socket = try await session.webSocket(server.url.absoluteString, options: options())
        if !isUnread { #expect(try await socket.receive() == nil) }
        #expect(try await received.opcodes() == [8])
        for await _ in socket.states {}
        #expect(socket.closure == WebSocket.Closure(code: .goingAway, isClean: true))
        await session.drained()
        #expect(socket.task.state == .completed)
    }

    @Test func acceptedMessagesLeaveAfterAnEndWithoutACloseFrame() async throws {
        let gate = LoopbackServer.Gate()
        let received = Received()
        let server = try server { exchange in
            try exchange.wait(for: gate)
            exchange.close()
            try received.read(exchange)
        }
        defer { server.stop() }
        let session = Self.session()
        let socket = try await session.webSocket(server.url.absoluteString, options: options())
        let accepted = try await fill(socket)
        gate.open()
        let error = await #expect(throws: NetworkError.self) { _ = try await socket.receive() }
        #expect(error?.kind == .connectionLost)
        let late = await #expect(throws: NetworkError.self) { try await socket.send("late") }
        #expect(late?.kind == .connectionLost)
        let count = try await received.opcodes().count
        #expect(accepted > 0 && count >= accepted, "\(count) of \(accepted)")
        await session.drained()
    }

    // MARK: The truth of a clean end

    @Test func anEndIsNotCleanWhenTheCloseFrameCouldNotLeave() async throws {
        let clock = ManualClock()
        let (full, hold) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        let server = try server { exchange in
            try exchange.wait(for: full)
            try exchange.write(.close(1000))
            // Nothing is read.
            try exchange.wait(for: hold)
        }
        defer {
            hold.open()
            server.stop()
        }
        let session = Self.session(clock: clock)
        let socket = try await session.webSocket(server.url.absoluteString, options: options())
        _ = try await fill(socket)
        full.open()
        let end = Task { try await socket.receive() }
        for await state in socket.states where state != .open { break }
        #expect(socket.closure == nil, "the Close frame has not left")
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(10))
        #expect(try await end.value == nil)
        #expect(socket.closure == WebSocket.Closure(code: .normalClosure, isClean: false))
        await session.drained()
    }
}
#endif
