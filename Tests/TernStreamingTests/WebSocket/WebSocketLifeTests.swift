#if os(Linux) && !TERN_URLSESSION
import Foundation
import TernConcurrency
import TernTesting
import Testing

@testable import Tern
@testable import TernStreaming

/// The life of a socket: its handshake, its limits and its ends.
@Suite("WebSocket: life of a socket", .timeLimit(.minutes(1)))
struct WebSocketLifeTests {
    typealias Frame = LoopbackServer.WebSocketFrame

    private static func session(
        clock: any Clock<Duration> = ContinuousClock(), _ change: (inout Session.Configuration) -> Void = { _ in }
    ) -> Session {
        var configuration = Session.Configuration()
        configuration.proxies = .none
        change(&configuration)
        return Session(configuration: configuration, transport: EngineTransport(configuration), clock: clock)
    }

    private func server(_ script: @escaping LoopbackServer.Handler) throws -> LoopbackServer {
        try LoopbackServer { exchange in
            try exchange.acceptWebSocket()
            try script(exchange)
        }
    }

    private func error(_ body: () async throws -> Void) async throws -> NetworkError {
        do { try await body() } catch let error as NetworkError { return error }
        throw Missing()
    }

    private struct Missing: Error {}

    // MARK: The handshake

    @Test(arguments: [200, 204, 401, 403, 404, 426, 500]) func anotherStatusIsAnErrorWithItsBody(
        status: Int
    ) async throws {
        let server = try LoopbackServer { try $0.respond(status: status, text: "no sockets here") }
        defer { server.stop() }
        let error = try await error { _ = try await Self.session().webSocket(server.url.absoluteString) }
        #expect(error.kind == .status)
        #expect(error.status == status)
        #expect(String(decoding: error.body, as: UTF8.self) == (status == 204 ? "" : "no sockets here"))
    }

    @Test func aResponseThatDoesNotFitTheKeyIsRefused() async throws {
        let ended = LoopbackServer.Gate()
        let server = try LoopbackServer { exchange in
            try exchange.acceptWebSocket(headers: [("Sec-WebSocket-Accept", "AAAAAAAAAAAAAAAAAAAAAAAAAAA=")])
            try exchange.waitForClientToClose()
            ended.open()
        }
        defer { server.stop() }
        let session = Self.session()
        let error = try await error { _ = try await session.webSocket(server.url.absoluteString) }
        #expect(error.kind == .malformedResponse)
        #expect(error.reason.contains("Sec-WebSocket-Accept"))
        try await server.wait { $0.openConnections == 0 }
        #expect(ended.isOpen)
        await session.drained()
    }

    @Test func theRequestHasTheFieldsOfTheHandshake() async throws {
        let requests = Lock<[LoopbackServer.Request]>([])
        let server = try LoopbackServer { exchange in
            requests.withLock { $0.append(exchange.request) }
            try exchange.acceptWebSocket()
            try exchange.echoMessages()
        }
        defer { server.stop() }
        let client = try Client(
            baseURL: "http://127.0.0.1:\(server.port)/v1", session: Self.session(), headers: ["X-App": "1"])
        let socket = try await client.webSocket("live", query: ["room": "a b"], headers: ["Origin": "http://a.test"])
        let request = try #require(requests.withLock { $0.first })
        #expect(request.method == "GET")
        #expect(request.target == "/v1/live?room=a%20b")
        #expect(request["Upgrade"] == "websocket")
        #expect(request["Connection"]?.lowercased() == "upgrade")
        #expect(request["Sec-WebSocket-Version"] == "13")
        #expect(request["Host"] == "127.0.0.1:\(server.port)")
        #expect((request["Origin"], request["X-App"]) == ("http://a.test", "1"))
        try await socket.close()
    }

    @Test func redirectsChallengesAndCookiesApplyToTheHandshake() async throws {
        let keys = Lock<[String]>([])
        let server = try LoopbackServer { exchange in
            keys.withLock { $0.append(exchange.request["Sec-WebSocket-Key"] ?? "none") }
            switch exchange.request.path {
            case "/old":
                try exchange.respond(
                    status: 307,
                    headers: [("Location", "ws://\(exchange.request["Host"] ?? "")/new"), ("Set-Cookie", "a=1")])
            case "/new" where exchange.request["Authorization"] == nil:
                try exchange.respond(status: 401, headers: [("WWW-Authenticate", "Basic realm=\"r\"")])
            default:
                try exchange.acceptWebSocket(headers: [("Set-Cookie", "b=2")])
                try exchange.write(
                    .text("\(exchange.request["Cookie"] ?? "none") \(exchange.request["Authorization"] ?? "none")"))
                try exchange.echoMessages()
            }
        }
        defer { server.stop() }
        let store = CookieStore()
        let credentials = try FixedCredentials(["http://127.0.0.1:\(server.port)": .user("u", password: "p")])
        let session = Self.session { configuration in
            configuration.credentials = credentials
            configuration.cookies = .store(store)
        }
        let socket = try await session.webSocket("ws://127.0.0.1:\(server.port)/old")
        #expect(try await socket.receive() == .text("a=1 Basic dTpw"))
        #expect(socket.response.redirects.count == 1)
        #expect(store.cookies.map(\.name).sorted() == ["a", "b"])
        // Each attempt has a key of its own (RFC 6455 §4.1).
        #expect(Set(keys.withLock { $0 }).count == 3)
        try await socket.close()
    }

    @Test func cancellingTheCallerEndsTheHandshake() async throws {
        let asked = LoopbackServer.Gate()
        let server = try LoopbackServer { exchange in
            asked.open()
            try exchange.waitForClientToClose()
        }
        defer { server.stop() }
        let session = Self.session()
        let opening = Task { try await session.webSocket(server.url.absoluteString) }
        try await server.wait { $0.requestsReceived == 1 }
        opening.cancel()
        let error = try await error { _ = try await opening.value }
        #expect(error.kind == .cancelled)
        await session.drained()
    }

    @Test func aMethodOtherThanGetIsRefused() async throws {
        let request = try Request(.post, "http://127.0.0.1:1/", body: .data(Data([1])))
        let error = try await error { _ = try await Self.session().webSocket(for: request) }
        #expect(error.kind == .invalidRequest)
        let repeated = try await self.error {
            _ = try await Self.session().webSocket("ws://127.0.0.1:1/", protocols: ["a", "a"])
        }
        #expect(repeated.kind == .invalidRequest)
    }

    @Test(arguments: ["Protocol", "Extensions", "Key", "Version", "Accept"])
    func aFieldOfTheHandshakeIsRefusedAmongTheHeaders(name: String) async throws {
        let headers = Headers([Headers.Field(name: "sec-websocket-\(name)", value: "chat")])
        let error = try await error { _ = try await Self.session().webSocket("ws://127.0.0.1:1/", headers: headers) }
        #expect(error.kind == .invalidRequest)
        #expect(error.reason.lowercased().contains("sec-websocket-\(name.lowercased())"))
        if name == "Protocol" { #expect(error.reason.contains("protocols")) }
    }

    /// A length in a 101 response has no meaning: the frames begin after the head (RFC 9110 §8.6).
    @Test(arguments: [("Content-Length", "4"), ("Transfer-Encoding", "chunked"), ("Content-Encoding", "gzip")])
    func aSwitchWithTheFieldsOfABodyIsASwitch(name: String, value: String) async throws {
        let server = try LoopbackServer { exchange in
            try exchange.acceptWebSocket(headers: [(name, value)])
            try exchange.echoMessages()
        }
        defer { server.stop() }
        let socket = try await Self.session().webSocket(server.url.absoluteString)
        for text in ["a", "a longer text"] {
            try await socket.send(text)
            #expect(try await socket.receive() == .text(text))
        }
        try await socket.close()
        #expect(socket.closure?.isClean == true)
    }

    @Test func theTimeLimitsOfTheRequestEndWithTheHandshake() async throws {
        let server = try LoopbackServer { exchange in
            if exchange.request.path == "/silent" { return try exchange.waitForClientToClose() }
            try exchange.acceptWebSocket()
            try exchange.echoMessages()
        }
        defer { server.stop() }
        let session = Self.session { $0.timeouts = Timeouts(idle: .seconds(1), total: .seconds(1)) }
        let socket = try await session.webSocket(server.url.absoluteString)
        // The same limits end another handshake, and have passed by then.
        let error = try await error { _ = try await session.webSocket("\(server.url.absoluteString)silent") }
        #expect([.idleTimedOut, .totalTimedOut].contains(error.kind))
        try await socket.send("still open")
        #expect(try await socket.receive() == .text("still open"))
        try await socket.close()
    }

    @Test func openSocketsDoNotHoldUpRequests() async throws {
        let server = try LoopbackServer { exchange in
            if exchange.request.path == "/get" { return try exchange.respond(text: "got") }
            try exchange.acceptWebSocket()
            try exchange.echoMessages()
        }
        defer { server.stop() }
        let session = Self.session { $0.maximumConnectionsPerHost = 2 }
        var sockets: [WebSocket] = []
        for _ in 0..<10 { sockets.append(try await session.webSocket(server.url.absoluteString)) }
        let body = try await Client(baseURL: server.url, session: session).get("get", as: String.self)
        #expect(body == "got")
        for (index, socket) in sockets.enumerated() {
            try await socket.send("\(index)")
            #expect(try await socket.receive() == .text("\(index)"))
        }
        await session.invalidateAndCancel()
        #expect(sockets.allSatisfy { $0.task.state == .cancelled })
    }

    // MARK: Back-pressure

    @Test func aSlowReaderStopsTheSocket() async throws {
        let written = Lock(0)
        let server = try server { exchange in
            let frame = Frame.binary([UInt8](repeating: 1, count: 256 << 10)).bytes
            for _ in 0..<256 {
                try exchange.write(frame)
                written.withLock { $0 += 1 }
            }
            try exchange.echoMessages()
        }
        defer { server.stop() }
        let socket = try await Self.session().webSocket(server.url.absoluteString)
        // The first message shows that the server writes; the counts settle when nothing moves any more.
        #expect(try await socket.receive()?.byteCount == 256 << 10)
        var last: (Int64, Int) = (-1, -1)
        var stable = 0
        while stable < 50 {
            let now = (await socket.metrics.receivedBytes, written.withLock { $0 })
            stable = now == last ? stable + 1 : 0
            last = now
            await Task.yield()
            try await ContinuousClock().sleepWithoutDescriptor(for: .milliseconds(2))
        }
        #expect(last.0 < 8 << 20, "received \(last.0) bytes")
        #expect(last.1 < 256)
        for _ in 1..<256 { #expect(try await socket.receive()?.byteCount == 256 << 10) }
        try await socket.close()
        #expect(await socket.metrics.receivedMessages == 256)
    }

    /// Returns when the frame of a message waits for room in the connection, and nothing moves any more.
    private func waitUntilSendingStalls(_ socket: WebSocket) async throws {
        var (last, stable) = (Int64(-1), 0)
        while stable < 50 {
            let (isSending, count) = (await socket.isSending, await socket.waitingCount)
            let sent = await socket.metrics.sentBytes
            stable = isSending && count == 0 && sent == last ? stable + 1 : 0
            last = sent
            try await ContinuousClock().sleepWithoutDescriptor(for: .milliseconds(2))
        }
    }

    @Test func aSlowSocketSuspendsSendUntilTheServerReads() async throws {
        let gate = LoopbackServer.Gate()
        let total = Lock(0)
        let server = try server { exchange in
            try exchange.wait(for: gate)
            while let frame = try exchange.readFrame(), frame.opcode != 8 {
                total.withLock { $0 += frame.payload.count }
            }
            try exchange.write(.close(1000))
        }
        defer { server.stop() }
        let socket = try await Self.session().webSocket(server.url.absoluteString)
        let handed = Lock(0)
        let sending = Task {
            for _ in 0..<128 {
                try await socket.send(Data(repeating: 7, count: 512 << 10))
                handed.withLock { $0 += 1 }
            }
        }
        // A message behind those that wait is withdrawn by its cancellation, and the socket stays open.
        try await waitUntilSendingStalls(socket)
        let withdrawn = Task { try await socket.send("never sent") }
        while await socket.waitingCount < 1 { await Task.yield() }
        withdrawn.cancel()
        let error = try await error { try await withdrawn.value }
        #expect(error.kind == .cancelled)
        #expect(handed.withLock { $0 } < 128)
        gate.open()
        try await sending.value
        try await socket.close()
        #expect(total.withLock { $0 } == 128 * 512 << 10)
        #expect(socket.closure?.isClean == true)
    }

    @Test func aLargeMessageLetsPongsThrough() async throws {
        let frames = Lock<[(opcode: UInt8, isFinal: Bool)]>([])
        let server = try server { exchange in
            try exchange.write(.ping([1]))
            var count = 0
            while let frame = try exchange.readFrame() {
                frames.withLock { $0.append((frame.opcode, frame.isFinal)) }
                if frame.opcode < 8 { count += frame.payload.count }
                if frame.opcode == 8 { break }
                if frame.opcode == 0, !frame.isFinal { try exchange.write(.ping([2])) }
            }
            try exchange.write(.text("\(count)"), .close(1000))
        }
        defer { server.stop() }
        var options = WebSocket.Options()
        options.fragmentSize = 64 << 10
        let socket = try await Self.session().webSocket(server.url.absoluteString, options: options)
        try await socket.send(Data(repeating: 3, count: 16 << 20))
        try await socket.close()
        #expect(try await socket.receive() == .text("\(16 << 20)"))
        let all = frames.withLock { $0 }
        #expect(all.filter { $0.opcode == 2 }.count == 1)
        #expect(all.filter { $0.opcode == 0 }.count == 255)
        let last = try #require(all.lastIndex { $0.opcode == 0 })
        #expect(all[..<last].contains { $0.opcode == 10 })
    }

    @Test func messagesThatAreDroppedAreNotCounted() async throws {
        // The server reads nothing.
        let gate = LoopbackServer.Gate()
        let server = try server { try $0.wait(for: gate) }
        defer {
            gate.open()
            server.stop()
        }
        let socket = try await Self.session().webSocket(server.url.absoluteString)
        let sent = Lock(0)
        let sending = Task {
            while true {
                try await socket.send(Data(count: 512 << 10))
                sent.withLock { $0 += 1 }
            }
        }
        try await waitUntilSendingStalls(socket)
        let waiting = Task { try await socket.send("never sent") }
        while await socket.waitingCount < 1 { await Task.yield() }
        socket.task.cancel()
        for task in [sending, waiting] { _ = try await error { try await task.value } }
        #expect(await socket.metrics.sentMessages == sent.withLock { $0 })
    }

    /// Only the last Ping needs an answer (RFC 6455 §5.5.3), so a flood of them waits in a bounded space.
    @Test func answersToAFloodOfPingsAreBounded() {
        let pipe = UploadPipe(capacity: Outbox.pipeCapacity)
        var outbox = Outbox(WebSocket.Options(), nil)
        for number in 0..<10_000 {
            let payload = (0..<125).map { UInt8(truncatingIfNeeded: number >> ($0 % 3 * 8)) }
            _ = outbox.sendControl(.pong, payload, over: pipe)
        }
        var waiting: [Data] = []
        while let frame = outbox.nextFrame() { waiting.append(frame) }
        #expect(waiting.count == 1)
        // The answer that waits is that of the last Ping, under its mask.
        let frame = waiting.first.map(Array.init) ?? []
        let last = zip(frame.dropFirst(6), frame.indices).prefix(3).map { $0 ^ frame[2 + $1 % 4] }
        #expect(last == [0x0F, 0x27, 0x00])
    }

    // MARK: Silence

    @Test func aPingIsAnsweredAndMeasured() async throws {
        let server = try server { try $0.echoMessages() }
        defer { server.stop() }
        let socket = try await Self.session().webSocket(server.url.absoluteString)
        let time = try await socket.ping()
        #expect(time > .zero)
        #expect(await socket.metrics.roundTrip == time)
        try await socket.close()
        let error = try await error { try await socket.ping() }
        #expect(error.kind == .webSocketClosed)
    }

    @Test func aSilentPeerIsDeadAfterAPing() async throws {
        let clock = ManualClock()
        let pinged = LoopbackServer.Gate()
        let server = try server { exchange in
            let frame = try exchange.readFrame()
            if frame?.opcode == 9 { pinged.open() }
            try exchange.waitForClientToClose()
        }
        defer { server.stop() }
        let session = Self.session(clock: clock)
        let socket = try await session.webSocket(server.url.absoluteString)
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(30))
        while !pinged.isOpen { await Task.yield() }
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(20))
        let error = try await error { _ = try await socket.receive() }
        #expect(error.kind == .idleTimedOut)
        #expect(socket.closure == WebSocket.Closure(code: .abnormalClosure, isClean: false))
        await session.drained()
        #expect(socket.task.state == .failed)
    }

    /// The server sends a message between two looks at the time: the Ping comes an interval after the message, not
    /// after the look.
    @Test func theIntervalCountsFromTheLastByte() async throws {
        let clock = ManualClock()
        let (early, pinged) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        let server = try server { exchange in
            try exchange.wait(for: early)
            try exchange.write(.text("life"))
            while let frame = try exchange.readFrame() { if frame.opcode == 9 { pinged.open() } }
        }
        defer { server.stop() }
        var options = WebSocket.Options()
        options.pingInterval = .seconds(3)
        options.pingTimeout = .seconds(2)
        let session = Self.session(clock: clock)
        let socket = try await session.webSocket(server.url.absoluteString, options: options)
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(1))
        early.open()
        #expect(try await socket.receive() == .text("life"))
        clock.advance(by: .seconds(2))
        // The look at 3 s finds the byte of 1 s, and the next one is due at 4 s.
        try await clock.waitForSleepers(1)
        #expect(!pinged.isOpen)
        clock.advance(by: .seconds(1))
        try await pinged.wait()
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(2))
        let error = try await error { _ = try await socket.receive() }
        #expect(error.kind == .idleTimedOut)
        await session.drained()
    }

    @Test func aPingHasATimeLimitOfItsOwn() async throws {
        let clock = ManualClock()
        let server = try server { exchange in
            while let frame = try exchange.readFrame(), frame.opcode != 8 {
                if frame.opcode == 1 { try exchange.write(Frame(opcode: 1, payload: frame.payload)) }
            }
        }
        defer { server.stop() }
        var options = WebSocket.Options()
        options.pingInterval = nil
        options.pingTimeout = .seconds(7)
        let session = Self.session(clock: clock)
        let socket = try await session.webSocket(server.url.absoluteString, options: options)
        for (limit, seconds) in [(Duration.seconds(3), 3), (nil, 7)] {
            let ping = Task { try await socket.ping(timeout: limit) }
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(seconds))
            let error = try await error { _ = try await ping.value }
            #expect(error.kind == .idleTimedOut)
            #expect(error.reason.contains("\(seconds)"))
        }
        // The socket stays open.
        try await socket.send("still open")
        #expect(try await socket.receive() == .text("still open"))
        socket.cancel()
        await session.drained()
    }

    // MARK: Ends

    @Test func aServerThatDoesNotAnswerTheCloseIsCut() async throws {
        let clock = ManualClock()
        let server = try server { try $0.waitForClientToClose() }
        defer { server.stop() }
        var options = WebSocket.Options()
        options.pingInterval = nil
        let socket = try await Self.session(clock: clock).webSocket(server.url.absoluteString, options: options)
        async let closed: Void = socket.close()
        try await clock.waitForSleepers(1)
        #expect(socket.state == .closing)
        clock.advance(by: .seconds(10))
        try await closed
        #expect(socket.closure == WebSocket.Closure(code: .abnormalClosure, isClean: false))
        #expect(try await socket.receive() == nil)
    }

    /// The server's Close frame waits behind a message that nobody reads, and the server leaves the connection open.
    @Test func closingIsBoundedBehindAnUnreadMessage() async throws {
        let clock = ManualClock()
        let server = try server { exchange in
            try exchange.write(.text("unread"), .close(1000))
            try exchange.waitForClientToClose()
        }
        defer { server.stop() }
        var options = WebSocket.Options()
        options.pingInterval = nil
        let socket = try await Self.session(clock: clock).webSocket(server.url.absoluteString, options: options)
        // The limit for the answer to the Close frame.
        try await clock.waitForSleepers(1)
        let timer = Task {
            while socket.state == .open { await Task.yield() }
            while true {
                try await clock.waitForSleepers(1)
                clock.advance(by: .seconds(10))
            }
        }
        defer { timer.cancel() }
        try await socket.close()
        #expect(socket.state != .open && socket.state != .closing)
    }

    @Test func theCodeIsKnownWhenTheMessagesHaveEnded() async throws {
        let gate = LoopbackServer.Gate()
        let server = try server { exchange in
            try exchange.write(.text("last"), .close(4_000, "bye"))
            try exchange.wait(for: gate)
        }
        defer { server.stop() }
        let socket = try await Self.session().webSocket(server.url.absoluteString)
        #expect(socket.closure == nil)
        for try await message in socket.messages { #expect(message == .text("last")) }
        let closure = WebSocket.Closure(code: WebSocket.CloseCode(rawValue: 4_000), reason: "bye", isClean: true)
        #expect(socket.closure == closure)
        // The server has not ended the connection yet.
        #expect(socket.state == .closing)
        gate.open()
        for await _ in socket.states {}
        #expect(socket.state == .closed(closure))
        #expect(socket.closure == closure)
    }

    @Test func theCodeOfAFailureIsKnownWithItsError() async throws {
        let gate = LoopbackServer.Gate()
        let server = try server { exchange in
            try exchange.write(Frame(opcode: 1, payload: [0xFF]))
            try exchange.wait(for: gate)
        }
        defer { server.stop() }
        let socket = try await Self.session().webSocket(server.url.absoluteString)
        let error = try await error { _ = try await socket.receive() }
        #expect(error.kind == .malformedResponse)
        #expect(socket.closure == WebSocket.Closure(code: .invalidPayload, isClean: false))
        gate.open()
    }

    @Test func dataAfterTheServersCloseIsDroppedUntilTheConnectionIsCut() async throws {
        let clock = ManualClock()
        let (answered, flooded) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        let server = try server { exchange in
            try exchange.write(.text("first"), .close(1001, "bye"))
            while let frame = try exchange.readFrame(), frame.opcode != 8 {}
            answered.open()
            for _ in 0..<64 { try exchange.write(.text(String(repeating: "x", count: 100_000)), .ping(), .close(1002)) }
            flooded.open()
            try exchange.waitForClientToClose()
        }
        defer { server.stop() }
        var options = WebSocket.Options()
        options.pingInterval = nil
        let session = Self.session(clock: clock)
        let socket = try await session.webSocket(server.url.absoluteString, options: options)
        #expect(try await socket.receive() == .text("first"))
        #expect(try await socket.receive() == nil)
        #expect(socket.state == .closing)
        while !answered.isOpen || !flooded.isOpen { await Task.yield() }
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(10))
        for await _ in socket.states {}
        #expect(socket.closure == WebSocket.Closure(code: .goingAway, reason: "bye", isClean: true))
        #expect(await socket.metrics.receivedMessages == 1)
        #expect(try await socket.receive() == nil)
        await session.drained()
    }

    @Test func aConnectionThatEndsWithoutACloseFrameIsAnError() async throws {
        let server = try server { exchange in
            try exchange.write(.text("last"))
            exchange.close()
        }
        defer { server.stop() }
        let socket = try await Self.session().webSocket(server.url.absoluteString)
        #expect(try await socket.receive() == .text("last"))
        let error = try await error { _ = try await socket.receive() }
        #expect(error.kind == .connectionLost)
        #expect(socket.closure?.code == .abnormalClosure)
        let sending = try await self.error { try await socket.send("late") }
        #expect(sending.kind == .connectionLost)
    }

    @Test func cancellingTheTaskEndsEverythingAtOnce() async throws {
        let server = try server { exchange in
            for _ in 0..<64 { try exchange.write(.binary([UInt8](repeating: 0, count: 128 << 10))) }
            try exchange.waitForClientToClose()
        }
        defer { server.stop() }
        let session = Self.session()
        let socket = try await session.webSocket(server.url.absoluteString)
        // The inbox is full, and senders wait for a server that does not read.
        let sender = Task { while true { try await socket.send(Data(count: 512 << 10)) } }
        while await socket.isSending == false { await Task.yield() }
        socket.task.cancel()
        let sending = try await error { try await sender.value }
        #expect(sending.kind == .cancelled || sending.kind == .webSocketClosed)
        let reading = try await error { while try await socket.receive() != nil {} }
        #expect(reading.kind == .cancelled)
        for await _ in socket.states {}
        await session.drained()
        #expect(socket.task.state == .cancelled)
    }

    @Test(arguments: [false, true]) func cancellingWhileClosingEndsTheConnection(isOfTheTask: Bool) async throws {
        let server = try server { exchange in
            while let frame = try exchange.readFrame(), frame.opcode != 8 {}
            // The Close frame is not answered.
            try exchange.waitForClientToClose()
        }
        defer { server.stop() }
        let session = Self.session()
        let socket = try await session.webSocket(server.url.absoluteString)
        let closing = Task { try await socket.close() }
        for await state in socket.states where state == .closing { break }
        if isOfTheTask { socket.task.cancel() } else { closing.cancel() }
        if isOfTheTask {
            try await closing.value
        } else {
            let error = try await error { try await closing.value }
            #expect(error.kind == .cancelled)
        }
        await session.drained()
        #expect(socket.closure == WebSocket.Closure(code: .abnormalClosure, isClean: false))
        #expect(socket.task.state == .cancelled)
    }

    @Test func cancellingAReaderEndsItsWaitOnly() async throws {
        let server = try server { try $0.echoMessages() }
        defer { server.stop() }
        let socket = try await Self.session().webSocket(server.url.absoluteString)
        let reader = Task { try await socket.receive() }
        while await socket.readerCount == 0 { await Task.yield() }
        reader.cancel()
        let error = try await error { _ = try await reader.value }
        #expect(error.kind == .cancelled)
        try await socket.send("still open")
        #expect(try await socket.receive() == .text("still open"))
        try await socket.close()
    }

    @Test func aSocketThatIsReleasedIsCut() async throws {
        let server = try server { try $0.waitForClientToClose() }
        defer { server.stop() }
        let session = Self.session()
        do {
            let socket = try await session.webSocket(server.url.absoluteString)
            #expect(socket.state == .open)
        }
        await session.drained()
        try await server.wait { $0.openConnections == 0 }
    }

    @Test func theSocketIsATaskOfItsSession() async throws {
        let server = try server { try $0.echoMessages() }
        defer { server.stop() }
        let session = Self.session()
        var request = try Request(.get, url: server.url)
        request.label = "chat"
        let socket = try await session.webSocket(for: request)
        #expect(socket.task.label == "chat")
        #expect(await session.tasks.all.map(\.id) == [socket.task.id])
        var progress = socket.task.progress.makeAsyncIterator()
        try await socket.send("12345")
        _ = try await socket.receive()
        while let value = await progress.next(), value.completedBytes < 7 {}
        try await socket.close()
        await session.drained()
        #expect(await session.tasks.all.isEmpty)
        #expect(socket.task.state == .completed)
    }

    @Test func aCloseThatCannotBeSentIsRefused() async throws {
        let server = try server { try $0.echoMessages() }
        defer { server.stop() }
        let socket = try await Self.session().webSocket(server.url.absoluteString)
        for code in [WebSocket.CloseCode.noStatus, .abnormalClosure, WebSocket.CloseCode(rawValue: 999)] {
            let error = try await error { try await socket.close(code: code) }
            #expect(error.kind == .invalidRequest)
        }
        let long = try await error { try await socket.close(reason: String(repeating: "é", count: 62)) }
        #expect(long.kind == .invalidRequest)
        #expect(socket.state == .open)
        try await socket.close(code: .goingAway, reason: String(repeating: "e", count: 123))
    }

    @Test func compressedMessagesGoBothWays() async throws {
        let server = try LoopbackServer { exchange in
            try exchange.acceptWebSocket(extensions: "permessage-deflate")
            // The window of both directions is the same, so that the echo of compressed bytes is valid.
            try exchange.echoMessages()
        }
        defer { server.stop() }
        var options = WebSocket.Options()
        options.compression = WebSocket.Compression()
        options.fragmentSize = 1_000
        let socket = try await Self.session().webSocket(server.url.absoluteString, options: options)
        #expect(socket.isCompressed)
        let texts = (0..<50).map { index in String(repeating: "text \(index) ", count: 1 + index * 37) }
        for text in texts {
            try await socket.send(text)
            #expect(try await socket.receive() == .text(text))
        }
        let metrics = await socket.metrics
        #expect(metrics.sentBytes < metrics.sentMessageBytes / 4)
        try await socket.close()
    }
}
#endif
