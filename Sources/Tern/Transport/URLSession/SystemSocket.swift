#if TERN_URLSESSION || !os(Linux)
import Foundation
import TernConcurrency

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A socket task of the system's URLSession. A protocol, so that `SystemSocket` is tested without a network.
///
/// The completion handlers are called on any thread.
protocol SystemSocketTask: SystemTask {
    func send(_ message: SystemMessage, _ done: @escaping @Sendable () -> Void)
    /// Waits for a message; nil after a failure, whose reason the end of the task has.
    func receive(_ done: @escaping @Sendable (SystemMessage?) -> Void)
    /// Sends a Ping, and calls `done` with true for its answer.
    func ping(_ done: @escaping @Sendable (Bool) -> Void)
    func close(code: UInt16?, reason: Data)
}

/// A message of the system's socket task.
enum SystemMessage: Sendable, Equatable {
    case text(String)
    case binary(Data)
}

extension URLSessionWebSocketTask: SystemSocketTask {
    func send(_ message: SystemMessage, _ done: @escaping @Sendable () -> Void) {
        let own: Message =
            switch message {
            case .text(let text): .string(text)
            case .binary(let data): .data(data)
            }
        // The end of the task has the error.
        send(own) { _ in done() }
    }

    func receive(_ done: @escaping @Sendable (SystemMessage?) -> Void) {
        receive { result in
            switch result {
            case .success(.string(let text)): done(.text(text))
            case .success(.data(let data)): done(.binary(data))
            default: done(nil)
            }
        }
    }

    func ping(_ done: @escaping @Sendable (Bool) -> Void) { sendPing { done($0 == nil) } }

    func close(code: UInt16?, reason: Data) {
        // FoundationNetworking knows no code of applications; such a close has the code 1000 there.
        let code = code.map { CloseCode(rawValue: Int($0)) ?? .normalClosure } ?? .normalClosure
        cancel(with: code, reason: reason.isEmpty ? nil : reason)
    }
}

/// Moves the messages of one socket between the system's task and the pipe and the chunks of an attempt, as frames.
/// Called on the delegate queue, to which the completion handlers of the task post.
final class SystemSocket: URLSessionBody {
    private struct Shared {
        var bridge = SocketBridge()
        var commands = FIFO<SocketBridge.Command>()
        var task: (any SystemSocketTask)?
        var isOpen = false
        var isSending = false
        /// Whether the system was told to close the socket.
        var isClosing = false
        var isReceiving = false
        var sentBytes: Int64 = 0
        /// Whether the system has no further message.
        var isDrained = false
        /// The Close frame of the server.
        var closure: Data?
        /// The end of the system's task, which waits for its last messages.
        var end: SystemEvent?
    }

    private static let readSize = 256 << 10

    private let pipe: UploadPipe
    private let key: String
    /// Runs work on the delegate queue.
    private let post: @Sendable (@escaping @Sendable () -> Void) -> Void
    /// Returns whether the reader of the chunks takes more.
    private let takesBytes: @Sendable () -> Bool
    /// Reports an event of the task to its attempt.
    private let report: @Sendable (SystemEvent) -> Void
    private let shared = Lock(Shared())

    /// - Parameter key: The value of Sec-WebSocket-Key that the session's side expects an answer to. The system has its
    ///   own.
    init(
        _ pipe: UploadPipe, key: String, post: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void,
        takesBytes: @escaping @Sendable () -> Bool, report: @escaping @Sendable (SystemEvent) -> Void
    ) {
        self.pipe = pipe
        self.key = key
        self.post = post
        self.takesBytes = takesBytes
        self.report = report
    }

    // MARK: Events of the system

    /// Handles a handshake that the server agreed to.
    ///
    /// - Parameter fields: The fields of its response.
    func opened(subprotocol: String?, fields: [String: String]) {
        var fields = fields.filter { !$0.key.lowercased().hasPrefix("sec-websocket-") }
        fields["Connection"] = "Upgrade"
        fields["Upgrade"] = "websocket"
        fields["Sec-WebSocket-Accept"] = SHA1.webSocketAccept(for: key)
        if let subprotocol, !subprotocol.isEmpty { fields["Sec-WebSocket-Protocol"] = subprotocol }
        shared.withLock { $0.isOpen = true }
        report(.response(SystemResponse(status: 101, fields: fields)))
        receive()
        pipeIsReady()
    }

    func closed(code: Int, reason: Data?) {
        shared.withLock { $0.closure = SocketBridge.close(code: code, reason: reason) }
        finishIfDrained()
    }

    func completed(_ error: (any Error)?, _ response: SystemResponse?) {
        // The response to a refused handshake is no failure of the task: its status is the error.
        let isRefused = response.map { $0.status != 101 } ?? false
        let isOpen = shared.withLock { shared in
            shared.end = .completed(isRefused ? nil : error, response)
            return shared.isOpen
        }
        // Without an open socket, there are no messages to wait for.
        if !isOpen { shared.withLock { $0.isDrained = true } }
        receive()
        finishIfDrained()
    }

    private func finishIfDrained() {
        let (closure, end) = shared.withLock { shared -> (Data?, SystemEvent?) in
            guard shared.isDrained else { return (nil, nil) }
            let closure = shared.closure.take()
            return (closure, closure == nil ? shared.end.take() : .completed(nil, nil))
        }
        if let closure { report(.data(closure)) }
        if let end { report(end) }
    }

    // MARK: Receiving

    /// Asks for the next message, if the reader takes one.
    func receive() {
        guard takesBytes() else { return }
        let task = shared.withLock { shared -> (any SystemSocketTask)? in
            guard shared.isOpen, !shared.isReceiving, !shared.isDrained, let task = shared.task else { return nil }
            shared.isReceiving = true
            return task
        }
        task?.receive { [weak self, post] message in post { [weak self] in self?.received(message) } }
    }

    private func received(_ message: SystemMessage?) {
        shared.withLock { shared in
            shared.isReceiving = false
            if message == nil { shared.isDrained = true }
        }
        switch message {
        case .text(let text): report(.data(SocketBridge.frame(text: text)))
        case .binary(let data): report(.data(SocketBridge.frame(binary: data)))
        case nil: return finishIfDrained()
        }
        receive()
    }

    // MARK: Sending

    func begin(_ ready: @escaping @Sendable (URLSessionUpload) -> Void) { ready(.socket) }

    func attach(_ task: any SystemSocketTask) { shared.withLock { $0.task = task } }

    /// Sends the messages of the pipe, one after the other: the system's task takes the next one when it has sent the
    /// last.
    func pipeIsReady() {
        while let command = nextCommand() {
            guard let task = shared.withLock({ $0.task }) else { return }
            switch command {
            case .text(let text): send(.text(text), task)
            case .binary(let data): send(.binary(data), task)
            case .ping(let payload):
                task.ping { [report, post] isAnswered in
                    if isAnswered { post { report(.data(SocketBridge.pong(payload))) } }
                }
            case .close(let code, let reason):
                shared.withLock { $0.isClosing = true }
                task.close(code: code, reason: reason)
            }
        }
    }

    private func send(_ message: SystemMessage, _ task: any SystemSocketTask) {
        shared.withLock { $0.isSending = true }
        task.send(message) { [weak self, post] in
            post { [weak self] in
                self?.shared.withLock { $0.isSending = false }
                self?.pipeIsReady()
            }
        }
    }

    private func nextCommand() -> SocketBridge.Command? {
        while true {
            let (isReady, command) = shared.withLock { shared in
                (shared.isOpen && !shared.isSending, shared.isSending ? nil : shared.commands.popFirst())
            }
            if let command { return command }
            guard isReady, readPipe() else { return nil }
        }
    }

    /// Reads the pipe. Returns false if it has no bytes now.
    private func readPipe() -> Bool {
        var buffer = [UInt8](repeating: 0, count: Self.readSize)
        let (read, producer) = unsafe buffer.withUnsafeMutableBytes { unsafe pipe.read(into: $0) }
        unsafe producer?.resume()
        guard case .bytes(let count) = read else {
            // The end follows a Close frame, after which the system ends the connection, or the owner has let go of an
            // open socket, whose messages have all been sent.
            if case .end = read, let task = shared.withLock({ $0.isClosing ? nil : $0.task }) { task.cancel() }
            return false
        }
        let total = shared.withLock { shared in
            for command in shared.bridge.take(buffer[..<count]) { shared.commands.append(command) }
            shared.sentBytes += Int64(count)
            return shared.sentBytes
        }
        report(.sent(total))
        return true
    }

    func close() {
        pipe.close()
        shared.withLock { $0.task = nil }
    }

    func takeStream() -> InputStream? { nil }
}
#endif
