#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernStreaming
import TernTesting
import Testing

/// Public bug reports of other clients about event streams, multipart streams and WebSockets, tried on Tern. Each test
/// names its report.
@Suite("Public reports: live connections", .timeLimit(.minutes(1)))
struct LiveReportTests {
    typealias Frame = LoopbackServer.WebSocketFrame

    // MARK: Events

    /// Returns the first events of a stream whose body comes in these chunks.
    private func events(_ chunks: [String], count: Int) async throws -> [ServerSentEvent] {
        var events: [ServerSentEvent] = []
        try await withServer { exchange in
            try exchange.writeChunkedHead(headers: [("Content-Type", "text/event-stream")])
            for chunk in chunks {
                try exchange.writeChunk(Array(chunk.utf8))
                try exchange.waitUntilReceived()
            }
            try exchange.waitForClientToClose()
        } test: { _, client in
            for try await event in client.events("a") {
                events.append(event)
                if events.count == count { break }
            }
        }
        return events
    }

    /// EventSource/eventsource #326: the line endings of one stream differ.
    @Test func lineEndingsMayDiffer() async throws {
        let events = try await events(["event: a\r\ndata: 1\n\n", "data: 2\r\r\ndata: 3\r\n\n"], count: 3)
        #expect(events.map(\.data) == ["1", "2", "3"] && events.first?.type == "a")
    }

    /// rexxars/eventsource-parser #17: a line ending is cut by the end of a chunk.
    @Test(arguments: [
        ["data: A\r\n", "data: B\r", "data: C\r\n", "\n"], ["data: A\r\n", "data: B\r", "\ndata: C\r\n", "\r\n"],
    ])
    func aLineEndingMayBeCut(chunks: [String]) async throws {
        #expect(try await events(chunks, count: 1).map(\.data) == ["A\nB\nC"])
    }

    /// EventSource/eventsource #358: an event without an ID keeps the last one.
    @Test func anEventWithoutAnIDKeepsTheLastOne() async throws {
        let events = try await events(["id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n"], count: 3)
        #expect(events.map(\.id) == ["1", "1", ""])
    }

    /// whatwg/html #7791 and symfony #36692: only the byte order mark at the start is removed, also when a chunk cuts
    /// it.
    @Test func onlyTheFirstByteOrderMarkIsRemoved() async throws {
        let chunks = ["\u{FEFF}data: a\n\ndata: \u{FEFF}b\n\n", "\u{FEFF}data: c\n\ndata: d\n\n"]
        let events = try await events(chunks, count: 3)
        #expect(events.map(\.data) == ["a", "\u{FEFF}b", "d"])
    }

    /// joshmossas/event-source-plus #26: the last ID is sent after each reconnection, not the first alone.
    @Test func eachReconnectionSendsTheLastID() async throws {
        let clock = ManualClock()
        let sent = Log<String>()
        try await withServer { exchange in
            sent.add(exchange.request["Last-Event-ID"] ?? "none")
            let last = Int(exchange.request["Last-Event-ID"] ?? "0") ?? 0
            try exchange.writeEvents([.event("\(last + 1)", id: "\(last + 1)")])
            try exchange.endChunks()
        } test: { _, client in
            var options = EventStreamOptions()
            options.clock = clock
            (options.firstByteTimeout, options.silenceTimeout) = (nil, nil)
            let advancing = Task {
                while !Task.isCancelled {
                    try await clock.waitForSleepers(1)
                    clock.advance(by: .seconds(60))
                }
            }
            var data: [String] = []
            for try await event in client.events("a", options: options) {
                data.append(event.data)
                if data.count == 4 { break }
            }
            advancing.cancel()
            #expect(data == ["1", "2", "3", "4"])
            #expect(sent.all.prefix(4) == ["none", "1", "2", "3"])
        }
    }

    // MARK: Multipart streams of cameras

    /// janakj/py-mjpeg #2, scottlamb/multipart-stream-rs #2 and legege/node-mjpeg-proxy #1, #5 and #8: the parameter
    /// has the dashes of the delimiter, quotes, or a blank before the sign.
    @Test(arguments: [
        "multipart/x-mixed-replace; boundary=--myboundary", "multipart/x-mixed-replace;boundary =--myboundary",
        "multipart/x-mixed-replace; boundary=\"--myboundary\"", "multipart/x-mixed-replace; boundary=myboundary",
    ])
    func theBoundaryMayHaveItsDashes(type: String) async throws {
        let text = "--myboundary\r\nContent-Type: image/jpeg\r\nContent-Length: 3\r\n\r\none\r\n"
        let rest = "--myboundary\r\nContent-Type: image/jpeg\r\nContent-Length: 3\r\n\r\ntwo\r\n--myboundary--\r\n"
        #expect(try await parts(type, text + rest) == ["one", "two"])
    }

    /// arendst/Tasmota #12376 and yoursunny/esp32cam #67: the stream begins with the fields of the first part.
    @Test func theFirstDelimiterMayBeMissing() async throws {
        let text = "Content-Type: image/jpeg\r\nContent-Length: 3\r\n\r\none\r\n--b\r\n"
        let rest = "Content-Type: image/jpeg\r\nContent-Length: 3\r\n\r\ntwo\r\n--b--\r\n"
        #expect(try await parts("multipart/x-mixed-replace;boundary=b", text + rest) == ["one", "two"])
    }

    private func parts(_ type: String, _ text: String) async throws -> [String] {
        var parts: [String] = []
        try await withServer { exchange in
            try exchange.respond(headers: [("Content-Type", type)], text: text)
        } test: { _, client in
            let stream = client.stream("camera")
            for try await part in stream.parts { parts.append(String(decoding: part.body, as: UTF8.self)) }
        }
        return parts
    }

    // MARK: WebSockets

    /// ninenines/cowboy #1044 and crossbario/autobahn-python #283: the server ends the connection with its Close frame.
    @Test(arguments: [false, true]) func aCloseFrameBeforeTheEndGivesItsCode(isReset: Bool) async throws {
        try await withServer { exchange in
            try exchange.acceptWebSocket()
            try exchange.write(Frame.close(1001, "bye"))
            try exchange.waitUntilReceived()
            if isReset { exchange.reset() } else { exchange.close() }
        } test: { _, client in
            let socket = try await client.webSocket("live")
            #expect(try await socket.receive() == nil)
            #expect(socket.closure?.code == .goingAway && socket.closure?.reason == "bye")
        }
    }

    /// TooTallNate/Java-WebSocket #561: messages that were sent before the end arrive before the Close frame.
    @Test func messagesBeforeTheEndArrive() async throws {
        let received = Log<UInt8>()
        try await withServer { exchange in
            try exchange.acceptWebSocket()
            while let frame = try exchange.readFrame() {
                received.add(frame.opcode)
                if frame.opcode == 8 { return try exchange.write(Frame.close(1000)) }
            }
        } test: { _, client in
            let socket = try await client.webSocket("live")
            for index in 0..<200 { try await socket.send("\(index)") }
            try await socket.close()
            #expect(received.all == [UInt8](repeating: 1, count: 200) + [8])
        }
    }

    /// faye/faye-websocket-node #17: the socket is closed as soon as it is open.
    @Test func aSocketMayEndAtOnce() async throws {
        let received = Log<UInt8>()
        try await withServer { exchange in
            try exchange.acceptWebSocket()
            while let frame = try exchange.readFrame() {
                received.add(frame.opcode)
                if frame.opcode == 8 { return try exchange.write(Frame.close(1000)) }
            }
        } test: { server, client in
            for _ in 0..<50 { try await client.webSocket("live").close() }
            #expect(received.all == [UInt8](repeating: 8, count: 50))
            try await server.wait { $0.openConnections == 0 }
        }
    }
}
#endif
