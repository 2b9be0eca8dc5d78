import ArgumentParser
import Dispatch
import Synchronization
import Tern
import TernStreaming

// Thread and readLine's waiting.
import class Foundation.Thread

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `tern ws`: sends the lines of standard input as messages, and writes the messages of the server to standard output.
struct WebSocketCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ws",
        abstract: "Open a WebSocket: lines from standard input go out, messages come to standard output.",
        discussion: """
            The end of the input, and Ctrl-C, close the socket properly. In a pipe the output is the messages alone, each \
            text with a line end, and bytes as they are.
            """)

    @Argument(help: "The URL, ws or wss; without a scheme as in 'tern get'.", transform: URLText.complete)
    var url: String

    @Flag(help: "Send each line as bytes instead of as text.")
    var binary = false

    @Option(
        help: ArgumentHelp(
            "Send a ping every so many seconds, and tell the time until its answer.", valueName: "seconds"))
    var ping: Double?

    @Option(name: [.customLong("protocol")], help: "A subprotocol to offer; may be repeated.")
    var protocols: [String] = []

    @Flag(help: "Offer to compress messages (permessage-deflate).")
    var compress = false

    @OptionGroup var header: HeaderOptions
    @OptionGroup var network: NetworkOptions

    func validate() throws {
        if let ping, !(ping > 0 && ping < 1e6) { throw ValidationError("--ping takes a positive number of seconds") }
    }

    func run() async throws {
        try await CommandRun.run { interrupt, terminal in
            var options = WebSocket.Options()
            if compress { options.compression = WebSocket.Compression() }
            let (url, protocols, headers) = (url, protocols, header.headers)
            let session = try network.session()
            // Owned here: the signal cancels it.
            let opening = Task {
                try await session.webSocket(url, protocols: protocols, headers: headers, options: options)
            }
            interrupt.performs { opening.cancel() }
            let socket = try await opening.value
            let screen = SocketScreen(terminal, isTerminal: Output.isTerminal)
            screen.tell("connected\(socket.subprotocol.map { ", protocol \(Terminal.plain($0))" } ?? "")")
            interrupt.performs {
                // Ends with the closing of the socket, which has a time limit.
                _ = Task { try await socket.close(code: .goingAway) }
            }
            try await converse(over: socket, screen)
            if let code = interrupt.exitCode { throw ExitCode(code) }
        }
    }

    private func converse(over socket: WebSocket, _ screen: SocketScreen) async throws {
        let (binary, ping) = (binary, ping)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for await line in InputLines.stream() {
                    try await socket.send(binary ? .binary(Data(line.utf8)) : .text(line))
                }
                try await socket.close()
            }
            if let ping {
                group.addTask {
                    while true {
                        try await Task.sleep(for: .seconds(ping))
                        screen.tell("ping: answered after \(DurationText.span(try await socket.ping()))")
                    }
                }
            }
            defer { group.cancelAll() }
            for try await message in socket.messages { try screen.show(message) }
        }
        // The end of the messages can come before the end of the connection.
        for await _ in socket.states {}
        if let closure = socket.closure {
            let reason = closure.reason.isEmpty ? "" : ": \(Terminal.plain(closure.reason))"
            screen.tell("closed with the code \(closure.code)\(reason)")
        }
    }
}

/// The lines of standard input.
enum InputLines {
    /// The number of lines that are read before the first is sent.
    private static let limit = 64

    /// Returns the lines as they are typed. A thread waits for them, because reading blocks; it ends with the process.
    static func stream(
        _ read: @escaping @Sendable () -> String? = { readLine() }
    ) -> some AsyncSequence<String, Never> {
        let (stream, continuation) = AsyncStream.makeStream(of: String.self)
        // Created with 0: a semaphore that ends below its first value stops the process.
        let room = DispatchSemaphore(value: 0)
        for _ in 0..<limit { room.signal() }
        Thread.detachNewThread {
            while true {
                // A sender that waits for the server makes the reader wait, or a long input would be in memory.
                room.wait()
                guard let line = read() else { break }
                continuation.yield(line)
            }
            continuation.finish()
        }
        return stream.map { line in
            room.signal()
            return line
        }
    }
}

/// Shows messages: colored on a terminal, and plain in a pipe.
struct SocketScreen: Sendable {
    private let terminal: Terminal
    /// Whether standard output is a terminal. It then gets no control characters of the server, wherever standard error
    /// goes.
    private let isTerminal: Bool
    private let isColored: Bool

    init(_ terminal: Terminal, isTerminal: Bool) {
        self.terminal = terminal
        self.isTerminal = isTerminal
        isColored = isTerminal && terminal.isInteractive
    }

    /// Writes a line about the socket to standard error.
    func tell(_ text: String) { terminal.writeLine(isColored ? "\u{1B}[2m\(text)\u{1B}[0m" : text) }

    /// Writes a message to standard output.
    func show(_ message: WebSocket.Message) throws { try Output.write(data(for: message)) }

    /// Returns the bytes that are written for a message.
    func data(for message: WebSocket.Message) -> Data {
        switch message {
        case .text(let text): Data((isTerminal ? colored(Terminal.plain(text), "32") : text).utf8) + [0x0A]
        case .binary(let data) where isTerminal: Data((colored("(\(data.count) bytes)", "36") + "\n").utf8)
        case .binary(let data): data
        }
    }

    private func colored(_ text: String, _ color: String) -> String {
        isColored ? "\u{1B}[\(color)m\(text)\u{1B}[0m" : text
    }
}
