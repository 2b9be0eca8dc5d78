#if TERN_URLSESSION || !os(Linux)
import Foundation
import TernConcurrency
import Testing

@testable import Tern

/// The messages of the system's socket task as frames (RFC 6455 §5.2), and back.
struct URLSessionSocketTests {
    private typealias Command = SocketBridge.Command

    /// A frame as the session's side writes it.
    private static func frame(_ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true) -> [UInt8] {
        let mask: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]
        var bytes: [UInt8] = [(isFinal ? 0x80 : 0) | opcode]
        switch payload.count {
        case ..<126: bytes.append(0x80 | UInt8(payload.count))
        case ...0xFFFF: bytes += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        default: bytes += [0x80 | 127, 0, 0, 0, 0] + (0..<4).map { UInt8(payload.count >> (24 - 8 * $0) & 0xFF) }
        }
        return bytes + mask + payload.indices.map { payload[$0] ^ mask[$0 & 3] }
    }

    // MARK: Frames

    @Test func everySplitOfTheFramesGivesTheSameCalls() {
        let long = [UInt8](repeating: 7, count: 300)
        let input =
            Self.frame(1, Array("hé".utf8)) + Self.frame(2, long, isFinal: false) + Self.frame(9, [1, 2])
            + Self.frame(0, [8]) + Self.frame(10, []) + Self.frame(2, [])
            + Self.frame(8, [0x0F, 0xA0] + Array("bye".utf8))
        let expected: [Command] = [
            .text("hé"), .ping([1, 2]), .binary(Data(long + [8])), .binary(Data()),
            .close(code: 4000, reason: Data("bye".utf8)),
        ]
        for size in [1, 2, 3, 7, 100, input.count] {
            var bridge = SocketBridge()
            var commands: [Command] = []
            for start in stride(from: 0, to: input.count, by: size) {
                commands += bridge.take(input[start..<min(start + size, input.count)])
            }
            #expect(commands == expected)
        }
    }

    @Test func aLargeMessageIsOneCall() {
        var bridge = SocketBridge()
        let payload = (0..<200_000).map { UInt8(truncatingIfNeeded: $0) }
        let commands = bridge.take(Self.frame(2, payload)) + bridge.take(Self.frame(8, []))
        #expect(commands == [.binary(Data(payload)), .close(code: nil, reason: Data())])
    }

    @Test func framesOfTheServerHaveNoMask() {
        #expect(Array(SocketBridge.frame(text: "hi")) == [0x81, 2, 0x68, 0x69])
        #expect(Array(SocketBridge.frame(binary: Data(count: 126)).prefix(4)) == [0x82, 126, 0, 126])
        let large = SocketBridge.frame(binary: Data(count: 65_536)).prefix(10)
        #expect(Array(large) == [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0])
        #expect(Array(SocketBridge.pong([5])) == [0x8A, 1, 5])
        #expect(Array(SocketBridge.close(code: 1_001, reason: Data("x".utf8))) == [0x88, 3, 0x03, 0xE9, 0x78])
        for code in [0, 999, 1_005, 1_006, 1_015, 70_000] {
            #expect(Array(SocketBridge.close(code: code, reason: nil)) == [0x88, 0])
        }
    }

    // MARK: The task

    /// A task whose calls a test completes.
    private final class Task: SystemSocketTask {
        struct Calls {
            var entries: [String] = []
            var sends: [@Sendable () -> Void] = []
            var receives: [@Sendable (SystemMessage?) -> Void] = []
            var pings: [@Sendable (Bool) -> Void] = []
        }

        let calls = Lock(Calls())
        var entries: [String] { calls.withLock { $0.entries } }
        let taskIdentifier = 1
        let taskDescription: String? = nil
        var priority: Float {
            get { 0.5 }
            set {}
        }
        let isDownload = false
        let countOfBytesReceived: Int64 = 0
        let countOfBytesExpectedToReceive: Int64 = 0
        let target: Target? = nil
        let method = Request.Method.get

        func resume() {}
        func suspend() {}
        func cancel() { calls.withLock { $0.entries.append("cancel") } }

        func send(_ message: SystemMessage, _ done: @escaping @Sendable () -> Void) {
            calls.withLock { calls in
                calls.entries.append("\(message)")
                calls.sends.append(done)
            }
        }

        func receive(_ done: @escaping @Sendable (SystemMessage?) -> Void) {
            calls.withLock { $0.receives.append(done) }
        }

        func ping(_ done: @escaping @Sendable (Bool) -> Void) {
            calls.withLock { calls in
                calls.entries.append("ping")
                calls.pings.append(done)
            }
        }

        func close(code: UInt16?, reason: Data) {
            calls.withLock { $0.entries.append("close \(code ?? 0) \(String(decoding: reason, as: UTF8.self))") }
        }

        func completeSend() { calls.withLock { $0.sends.isEmpty ? nil : $0.sends.removeFirst() }?() }
        func answerPing() { calls.withLock { $0.pings.isEmpty ? nil : $0.pings.removeFirst() }?(true) }

        /// Returns false if nothing waits for a message.
        func receive(_ message: SystemMessage?) -> Bool {
            guard let done = calls.withLock({ $0.receives.isEmpty ? nil : $0.receives.removeFirst() }) else {
                return false
            }
            done(message)
            return true
        }
    }

    /// The events that a socket reports, and its reader.
    private final class Log: Sendable {
        let isReading = Lock(true)
        private let events = Lock<[String]>([])

        /// The events so far, without those of bytes that were sent.
        var entries: [String] { events.withLock { $0 } }

        func add(_ event: SystemEvent) {
            let text: String? =
                switch event {
                case .response(let response):
                    "response \(response.status) \(response.fields["Sec-WebSocket-Accept"] ?? "")"
                case .data(let data): "data \(Array(data))"
                case .completed(let error, _): error == nil ? "completed" : "failed"
                default: nil
                }
            if let text { events.withLock { $0.append(text) } }
        }
    }

    private struct Failure: Error {}

    private func makeSocket(_ log: Log, _ pipe: UploadPipe, _ task: Task) -> SystemSocket {
        let socket = SystemSocket(pipe, key: "dGhlIHNhbXBsZSBub25jZQ==") { work in
            work()
        } takesBytes: {
            log.isReading.withLock { $0 }
        } report: {
            log.add($0)
        }
        socket.attach(task)
        return socket
    }

    private static let opened = "response 101 s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

    @Test func messagesAreSentOneAfterTheOther() {
        let (log, pipe, task) = (Log(), UploadPipe(), Task())
        let socket = makeSocket(log, pipe, task)
        _ = pipe.offer(Data(Self.frame(1, Array("one".utf8)) + Self.frame(1, Array("two".utf8)) + Self.frame(9, [3])))
        // Nothing is sent before the handshake.
        socket.pipeIsReady()
        #expect(task.entries == [])
        socket.opened(subprotocol: nil, fields: ["Sec-WebSocket-Accept": "the system's own", "Set-Cookie": "a=1"])
        #expect(log.entries == [Self.opened])
        #expect(task.entries == ["text(\"one\")"])
        task.completeSend()
        #expect(task.entries.count == 2)
        _ = pipe.offer(Data(Self.frame(8, [0x03, 0xE8] + Array("done".utf8))))
        socket.pipeIsReady()
        #expect(task.entries.count == 2)
        task.completeSend()
        #expect(task.entries == ["text(\"one\")", "text(\"two\")", "ping", "close 1000 done"])
        task.answerPing()
        #expect(log.entries.last == "data [138, 1, 3]")
    }

    @Test func theEndOfThePipeEndsAnOpenSocketAfterItsMessages() {
        let (log, pipe, task) = (Log(), UploadPipe(), Task())
        let socket = makeSocket(log, pipe, task)
        socket.opened(subprotocol: nil, fields: [:])
        _ = pipe.offer(Data(Self.frame(1, Array("one".utf8))))
        _ = pipe.end()
        socket.pipeIsReady()
        #expect(task.entries == ["text(\"one\")"])
        task.completeSend()
        #expect(task.entries == ["text(\"one\")", "cancel"])

        let (closedPipe, closedTask) = (UploadPipe(), Task())
        let closed = makeSocket(log, closedPipe, closedTask)
        closed.opened(subprotocol: nil, fields: [:])
        _ = closedPipe.offer(Data(Self.frame(8, [])))
        _ = closedPipe.end()
        closed.pipeIsReady()
        #expect(closedTask.entries == ["close 0 "])
    }

    @Test func aSlowReaderReceivesNoMessage() {
        let (log, task) = (Log(), Task())
        let socket = makeSocket(log, UploadPipe(), task)
        socket.opened(subprotocol: nil, fields: [:])
        #expect(task.receive(.text("a")))
        log.isReading.withLock { $0 = false }
        #expect(task.receive(.binary(Data([1]))))
        #expect(!task.receive(.text("too early")))
        log.isReading.withLock { $0 = true }
        socket.receive()
        #expect(task.receive(.text("b")))
        #expect(log.entries == [Self.opened, "data [129, 1, 97]", "data [130, 1, 1]", "data [129, 1, 98]"])
    }

    @Test func theCloseOfTheServerFollowsItsMessages() {
        let (log, task) = (Log(), Task())
        let socket = makeSocket(log, UploadPipe(), task)
        socket.opened(subprotocol: nil, fields: [:])
        socket.closed(code: 4_000, reason: Data("bye".utf8))
        socket.completed(nil, nil)
        #expect(log.entries == [Self.opened])
        #expect(task.receive(.text("a")))
        #expect(task.receive(nil))
        #expect(
            log.entries == [Self.opened, "data [129, 1, 97]", "data [136, 5, 15, 160, 98, 121, 101]", "completed"])
    }

    @Test func aLostConnectionIsAFailure() {
        let (log, task) = (Log(), Task())
        let socket = makeSocket(log, UploadPipe(), task)
        socket.opened(subprotocol: nil, fields: [:])
        #expect(task.receive(nil))
        socket.completed(Failure(), nil)
        #expect(log.entries == [Self.opened, "failed"])
    }

    @Test func aRefusedHandshakeIsItsStatus() {
        let (log, task) = (Log(), Task())
        makeSocket(log, UploadPipe(), task).completed(Failure(), SystemResponse(status: 403, fields: [:]))
        #expect(log.entries == ["completed"])
        let (lost, other) = (Log(), Task())
        makeSocket(lost, UploadPipe(), other).completed(Failure(), nil)
        #expect(lost.entries == ["failed"])
    }

    #if canImport(FoundationNetworking)
    /// The libcurl of the system was built without WebSockets, or the server refuses the connection.
    @Test func aSystemWithoutSocketsSaysSo() throws {
        var failure = URLSessionFailure(target: try Target(absolute: "http://a.test/"))
        failure.isForUpgrade = true
        #expect(failure.failure(.unsupportedURL, nil).kind == .unsupported)
        failure.isForUpgrade = false
        #expect(failure.failure(.unsupportedURL, nil).kind == .invalidRequest)
    }
    #endif
}
#endif
