// For Linux only: URLSession does not report interim responses.
#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernConcurrency
import TernTesting
import Testing

/// Checks the interim responses (1xx) that observers receive.
@Suite("Wire: interim responses", .timeLimit(.minutes(1)))
struct InterimResponseTests {
    /// Records the responses, and opens a gate at the first interim one.
    private final class Journal: SessionObserver {
        let events = Lock<[String]>([])
        let gate = LoopbackServer.Gate()

        func didReceive(interim response: ResponseHead, of task: AnySessionTask) {
            let links = response.headers.values(for: "Link").joined(separator: ",")
            events.withLock { $0.append("interim \(response.status) \(links) \(response.version.rawValue)") }
            gate.open()
        }

        func didReceive(_ response: ResponseHead, of task: AnySessionTask) {
            events.withLock { $0.append("\(response.status)") }
        }

        func takeEvents() -> [String] {
            events.withLock { events in
                defer { events = [] }
                return events
            }
        }
    }

    private static let hints = """
        HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n\
        HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nSet-Cookie: early=1\r\n\r\n\
        HTTP/1.1 103 Early Hints\r\nLink: </b.css>\r\nLink: </c.css>\r\n\r\n
        """
    private static let expected = [
        "interim 102  HTTP/1.1", "interim 103 </a.css> HTTP/1.1", "interim 103 </b.css>,</c.css> HTTP/1.1",
    ]

    /// The server sends the response only after the observer has received the first interim one.
    @Test func interimResponsesAreReportedAtOnceAndInOrder() async throws {
        let journal = Journal()
        let configuration = Session.Configuration.test { $0.observers = [journal] }
        try await withServer(configuration: configuration) { exchange in
            if exchange.request.path == "/cookie" {
                return try exchange.respond(text: exchange.request["Cookie"] ?? "none")
            }
            try exchange.write(Self.hints)
            try exchange.wait(for: journal.gate)
            try exchange.respond(status: exchange.request.path == "/missing" ? 404 : 200, text: "hello")
        } test: { server, client in
            #expect(try await client.get("", as: String.self) == "hello")
            #expect(journal.takeEvents() == Self.expected + ["200"])
            for try await _ in client.stream("").chunks {}
            #expect(journal.takeEvents() == Self.expected + ["200"])
            _ = try await failure { try await client.get("missing") }
            #expect(journal.takeEvents() == Self.expected + ["404"])
            // Their cookies are not stored.
            #expect(try await client.get("cookie", as: String.self) == "none")
            #expect(server.counts.acceptedConnections == 1)
        }
    }

    @Test func everyRequestOfATaskReportsItsOwn() async throws {
        let journal = Journal()
        let configuration = Session.Configuration.test { $0.observers = [journal] }
        try await withServer(configuration: configuration) { exchange in
            try exchange.write("HTTP/1.1 103 Early Hints\r\nLink: \(exchange.request.path)\r\n\r\n")
            if exchange.request.path == "/end" { return try exchange.respond(text: "") }
            try exchange.respond(status: 302, headers: [("Location", "/end")], text: "")
        } test: { _, client in
            _ = try await client.get("start")
            #expect(
                journal.takeEvents() == [
                    "interim 103 /start HTTP/1.1", "302", "interim 103 /end HTTP/1.1", "200",
                ])
        }
    }

    @Test func interimResponsesBeforeAFailureAreReported() async throws {
        let journal = Journal()
        let configuration = Session.Configuration.test { $0.observers = [journal] }
        try await withScript(Self.hints, configuration: configuration) { _, client in
            let error = try await failure { try await client.get("") }
            #expect(error.kind == .connectionLost)
            #expect(journal.takeEvents() == Self.expected)
        }
        // More than 100 are refused, and the first 100 are reported.
        let flood = String(repeating: "HTTP/1.1 103 Early Hints\r\n\r\n", count: 200)
        try await withScript(flood, configuration: configuration) { _, client in
            let error = try await failure { try await client.get("") }
            #expect(error.kind == .malformedResponse || error.kind == .tooLarge, "\(error)")
            #expect(journal.takeEvents().count == 100)
        }
    }
}
#endif
