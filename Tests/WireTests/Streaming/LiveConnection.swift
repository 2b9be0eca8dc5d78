#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernStreaming
import TernTesting
import Testing

/// The two kinds of live connections, which a test opens in the same way.
enum LiveConnection: String, CaseIterable, CustomTestStringConvertible {
    case events, webSocket

    var testDescription: String { rawValue }

    /// Opens the connection, and returns the text that the server sends first.
    func greeting(
        _ session: Session, _ url: String, _ change: (inout Request) -> Void = { _ in }
    ) async throws -> String {
        var request = try Request(.get, url)
        change(&request)
        switch self {
        case .events:
            var options = EventStreamOptions()
            options.reconnection = .never
            for try await event in session.events(for: request, options: options) { return event.data }
            throw NothingFailed()
        case .webSocket:
            let socket = try await session.webSocket(for: request)
            let message = try await socket.receive()
            try await socket.close()
            guard case .text(let text)? = message else { throw NothingFailed() }
            return text
        }
    }

    /// Answers a request of either kind with a text, and keeps the connection open.
    static func greet(_ exchange: LoopbackServer.Exchange, _ text: String, headers: LoopbackServer.Fields = []) throws {
        guard exchange.request["Upgrade"] == nil else {
            try exchange.acceptWebSocket(headers: headers)
            try exchange.write(.text(text))
            return try exchange.echoMessages()
        }
        try exchange.writeChunkedHead(headers: [("Content-Type", "text/event-stream")] + headers)
        try exchange.writeChunk(Array("data: \(text)\n\n".utf8))
        try exchange.waitForClientToClose()
    }

    /// A text that names the credential and the cookies of a request.
    static func facts(_ exchange: LoopbackServer.Exchange) -> String {
        "\(exchange.request["Authorization"] ?? "none"), \(exchange.request["Cookie"] ?? "none")"
    }
}
#endif
