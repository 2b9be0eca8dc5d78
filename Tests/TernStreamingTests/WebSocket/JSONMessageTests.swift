#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernConcurrency
import TernStreaming
import TernTesting
import Testing

@Suite("WebSocket: messages in JSON", .timeLimit(.minutes(1)))
struct JSONMessageTests {
    private struct Quote: Codable, Equatable, Sendable {
        var lastPrice: Double
    }

    /// A session whose coders convert names.
    private func session(_ stub: StubTransport) -> Session {
        var configuration = Session.Configuration()
        configuration.json.decoder.keyDecodingStrategy = .convertFromSnakeCase
        configuration.json.encoder.keyEncodingStrategy = .convertToSnakeCase
        return Session(configuration: configuration, stub: stub)
    }

    private func socket(_ script: @escaping StubTransport.WebSocket.Script) async throws -> WebSocket {
        let stub = StubTransport { _ in .webSocket(script: script) }
        return try await session(stub).webSocket("https://example.com/live")
    }

    @Test func theCodersOfTheSessionAreUsed() async throws {
        let socket = try await socket { server in
            #expect(try await server.receive() == .text(#"{"last_price":1.5}"#))
            try await server.send(#"{"last_price": 2.5}"#)
            try await server.send(Data(#"{"last_price": 3.5}"#.utf8))
        }
        try await socket.send(json: Quote(lastPrice: 1.5))
        var quotes: [Quote] = []
        for try await quote in socket.messages(of: Quote.self) { quotes.append(quote) }
        #expect(quotes.map(\.lastPrice) == [2.5, 3.5])
        #expect(socket.closure?.code == .normalClosure)
    }

    @Test func aMessageThatCannotBeDecodedLeavesTheSocketOpen() async throws {
        let socket = try await socket { server in
            for text in [#"{"last_price": 1}"#, #"{"last_price": "a"}"#, #"{"last_price": 2}"#] {
                try await server.send(text)
            }
            _ = try await server.receive()
        }
        var quotes = socket.messages(of: Quote.self).makeAsyncIterator()
        #expect(try await quotes.next() == Quote(lastPrice: 1))
        do {
            _ = try await quotes.next()
            Issue.record("the message was decoded")
        } catch {
            #expect(error.kind == .decoding && error.body == Data(#"{"last_price": "a"}"#.utf8))
            #expect(error.reason.hasPrefix("the message of 19 bytes could not be decoded as Quote"), "\(error.reason)")
        }
        #expect(try await quotes.next() == nil)
        var rest = socket.messages(of: JSONValue.self).makeAsyncIterator()
        #expect(try await rest.next() == ["last_price": 2])
        try await socket.close()
        #expect(try await rest.next() == nil)
    }

    @Test func aValueThatCannotBeEncodedSendsNothing() async throws {
        let socket = try await socket { server in
            let message = try await server.receive()
            #expect(message == .text("1"))
        }
        do {
            try await socket.send(json: Quote(lastPrice: .infinity))
            Issue.record("the value was sent")
        } catch {
            #expect(error.kind == .requestBody && error.reason.contains("cannot be encoded as JSON"), "\(error.reason)")
        }
        try await socket.send(json: 1)
        #expect(try await socket.receive() == nil)
    }

    @Test func aReconnectingSocketDecodesTheMessagesOfAllConnections() async throws {
        let number = Lock(0)
        let stub = StubTransport { _ in
            .webSocket { server in
                let current = number.withLock { number in
                    number += 1
                    return number
                }
                try await server.send(#"{"last_price": \#(current)}"#)
                #expect(try await server.receive() == .text("true"))
                try await server.close(code: current == 1 ? 1012 : 1000)
            }
        }
        let session = session(stub)
        let live = ReconnectingWebSocket(backoff: .init(initial: .milliseconds(1))) {
            try await session.webSocket("https://example.com/live")
        }
        var prices: [Double] = []
        for try await quote in live.messages(of: Quote.self) {
            prices.append(quote.lastPrice)
            try await live.send(json: true)
        }
        #expect(prices == [1, 2])
    }
}
#endif
