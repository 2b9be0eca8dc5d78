#if os(Linux)
import Foundation
import Synchronization
import TernStreaming
import TernTesting
import Testing

@testable import TernTool

/// `tern ws` as a process in a pipe, over real connections.
@Suite("tern ws", .timeLimit(.minutes(1)))
struct WebSocketCommandTests {
    /// Notes a frame, as "opcode payload".
    private static func note(_ frame: LoopbackServer.WebSocketFrame, in seen: Seen) {
        let code = frame.payload.prefix(2).reduce(0) { $0 << 8 | Int($1) }
        seen.add("\(frame.opcode) \(frame.opcode == 8 ? "\(code)" : String(decoding: frame.payload, as: UTF8.self))")
    }

    @Test(arguments: [false, true]) func linesGoOutAndMessagesComeIn(isBinary: Bool) async throws {
        let seen = Seen()
        try await withTool { exchange in
            seen.add(exchange.request["X-Test"] ?? "")
            try exchange.acceptWebSocket(subprotocol: "chat")
            for _ in 0..<2 {
                guard let frame = try exchange.readFrame() else { return }
                Self.note(frame, in: seen)
            }
            try exchange.write(.text("one"), .text("\u{1B}[2Jtwo"), .binary([0, 255]))
            guard let close = try exchange.readFrame() else { return }
            Self.note(close, in: seen)
            try exchange.write(.close(1_000))
        } test: { server, tool in
            let url = "ws" + server.text("/live").dropFirst(4)
            let options = ["--protocol", "chat", "-H", "X-Test: yes"] + (isBinary ? ["--binary"] : [])
            let result = try await tool.run(
                ToolProcess.path("tern"), ["ws", url] + options, input: "hello\nw\u{F6}rld\n")
            #expect(result.code == 0, "\(result.messages)")
            // A pipe receives the messages as they are: no colours, and bytes without a line end.
            #expect(result.output == Data("one\n\u{1B}[2Jtwo\n".utf8) + [0, 255])
            #expect(result.messages.contains("connected, protocol chat"))
            #expect(result.messages.contains("closed with the code 1000") && !result.messages.contains("\u{1B}"))
            let opcode = isBinary ? 2 : 1
            #expect(seen.all == ["yes", "\(opcode) hello", "\(opcode) w\u{F6}rld", "8 1000"])
        }
    }

    /// Standard error is not that terminal where it goes to a file, and a terminal can be a `dumb` one.
    @Test(arguments: [true, false]) func terminalGetsNoControlCharacters(isInteractive: Bool) {
        let terminal = OutputRecorder().terminal(isInteractive: isInteractive)
        let text = WebSocket.Message.text("a\u{1B}[2Jb\u{9B}c\nd")
        let shown = String(decoding: SocketScreen(terminal, isTerminal: true).data(for: text), as: UTF8.self)
        let plain = "a\u{FFFD}[2Jb\u{FFFD}c\u{FFFD}d"
        #expect(shown == (isInteractive ? "\u{1B}[32m\(plain)\u{1B}[0m\n" : plain + "\n"))
        let bytes = SocketScreen(terminal, isTerminal: true).data(for: .binary(Data([0x1B, 0x5B])))
        #expect(String(decoding: bytes, as: UTF8.self).contains("(2 bytes)"))
        #expect(SocketScreen(terminal, isTerminal: false).data(for: text) == Data("a\u{1B}[2Jb\u{9B}c\nd\n".utf8))
    }

    @Test func inputWaitsForTheSender() async {
        let count = Mutex(0)
        let lines = InputLines.stream {
            count.withLock { count in
                count += 1
                return count < 1_000 ? "\(count)" : nil
            }
        }
        var seen = 0
        for await line in lines {
            seen += 1
            #expect(line == "\(seen)" && count.withLock { $0 } <= seen + 65)
        }
        #expect(seen == 999)
    }

    @Test func pingsTellTheirTime() async throws {
        try await withTool { exchange in
            try exchange.acceptWebSocket()
            for _ in 0..<2 {
                guard let ping = try exchange.readFrame() else { return }
                try exchange.write(.pong(ping.payload))
            }
            try exchange.write(.close(4_000, "enough"))
            _ = try exchange.readFrame()
        } test: { server, tool in
            let result = try await tool.run(
                ToolProcess.path("tern"), ["ws", server.text("/live"), "--ping", "0.02"], keepsInputOpen: true)
            #expect(result.code == 0 && result.output.isEmpty, "\(result.messages)")
            #expect(result.messages.contains("ping: answered after"))
            #expect(result.messages.contains("closed with the code 4000: enough"))
        }
    }

    @Test func interruptionClosesTheSocket() async throws {
        let seen = Seen()
        let gate = LoopbackServer.Gate()
        try await withTool { exchange in
            try exchange.acceptWebSocket()
            // The first ping tells that the tool waits for messages.
            while let frame = try exchange.readFrame() {
                Self.note(frame, in: seen)
                gate.open()
                if frame.opcode == 8 { return try exchange.write(.close(1_001)) }
            }
        } test: { server, tool in
            let result = try await tool.run(
                ToolProcess.path("tern"), ["ws", server.text("/live"), "--ping", "0.02"], keepsInputOpen: true
            ) { process in
                try await gate.wait()
                kill(process.processIdentifier, SIGINT)
            }
            #expect(result.code == 130, "\(result.messages)")
            #expect(seen.all.last == "8 1001")
        }
    }

    @Test(arguments: [(403, 8), (401, 6)]) func refusedHandshakeIsToldByItsCode(status: Int, code: Int32) async throws {
        try await withTool { exchange in
            try exchange.respond(status: status, body: Array("not for you".utf8))
        } test: { server, tool in
            let result = try await tool.tern("ws", server.text("/live?token=s3cr3t"), input: "hello\n")
            #expect(result.code == code && result.output.isEmpty)
            #expect(result.messages.contains("\(status)") && !result.messages.contains("s3cr3t"), "\(result.messages)")
        }
    }

    @Test func lostConnectionIsAnError() async throws {
        try await withTool { exchange in
            try exchange.acceptWebSocket()
            try exchange.write(.text("last"))
            exchange.close()
        } test: { server, tool in
            let result = try await tool.run(
                ToolProcess.path("tern"), ["ws", server.text("/live")], keepsInputOpen: true)
            #expect(result.code == 4 && result.text == "last\n", "\(result.messages)")
        }
    }
}

/// `tern events` as a process in a pipe, over real connections.
@Suite("tern events", .timeLimit(.minutes(1)))
struct EventsCommandTests {
    private static let events: [ScriptedEvent] = [
        .comment("hi"), .event("one", id: "1"), .event("two\nlines", type: "add", id: "2"), .event("[DONE]"),
    ]

    @Test func pipeReceivesTheData() async throws {
        let seen = Seen()
        try await withTool { exchange in
            seen.add("\(exchange.request.method) \(exchange.request["Last-Event-ID"] ?? "")")
            try exchange.writeEvents(Self.events)
            try exchange.endChunks()
        } test: { server, tool in
            let whole = try await tool.tern("events", server.text("/"), "--until", "[DONE]", "--last-event-id", "7")
            #expect(whole.code == 0 && whole.text == "one\ntwo\nlines\n", "\(whole.messages)")
            let all = try await tool.tern("events", server.text("/"), "--include", "--until", "[DONE]", "-d", "{}")
            #expect(all.text == "message #1\none\nadd #2\ntwo\nlines\n" && !all.messages.contains("\u{1B}"))
            #expect(seen.all == ["GET 7", "POST "])
        }
    }

    @Test func endWithoutTheExpectedEventIsAnError() async throws {
        try await withTool { exchange in
            try exchange.writeEvents([.event("one")])
            try exchange.endChunks()
        } test: { server, tool in
            let result = try await tool.tern("events", server.text("/"), "--once", "--until", "[DONE]")
            #expect(result.code == 4 && result.text == "one\n", "\(result.messages)")
        }
    }

    @Test func wrongContentTypeIsToldByItsCode() async throws {
        try await withTool { exchange in
            try exchange.respond(json: ["a": 1])
        } test: { server, tool in
            let result = try await tool.tern("events", server.text("/"))
            #expect(result.code == 7 && result.output.isEmpty, "\(result.messages)")
        }
    }

    @Test func interruptionEndsTheConnection() async throws {
        let gate = LoopbackServer.Gate()
        try await withTool { exchange in
            try exchange.writeEvents([.event("one")])
            try exchange.waitUntilReceived()
            gate.open()
            try exchange.waitForClientToClose()
        } test: { server, tool in
            let result = try await tool.run(ToolProcess.path("tern"), ["events", server.text("/")]) { process in
                try await gate.wait()
                kill(process.processIdentifier, SIGINT)
            }
            #expect(result.code == 130, "\(result.messages)")
        }
    }
}
#endif
