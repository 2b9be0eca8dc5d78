import InMemoryLogging
import Logging
import Tern
import TernTesting
import Testing

@testable import TernLogging

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Logging to swift-log", .timeLimit(.minutes(1)))
struct LoggingObserverTests {
    private let handler = InMemoryLogHandler()

    private func withServer(
        level: Logger.Level = .trace, _ respond: @escaping LoopbackServer.Handler,
        test: (_ server: LoopbackServer, _ client: Client, _ observer: LoggingObserver) async throws -> Void
    ) async throws {
        var logger = Logger(label: "test") { _ in handler }
        logger.logLevel = level
        let observer = LoggingObserver(logger: logger)
        let server = try LoopbackServer(handler: respond)
        defer { server.stop() }
        var configuration = Session.Configuration()
        configuration.proxies = .none
        configuration.observers = [observer]
        try await test(server, Client(baseURL: server.url, session: Session(configuration: configuration)), observer)
    }

    private var messages: [String] { handler.entries.map { "\($0.level) \($0.message)" } }

    private func values(of name: String) -> [String?] { handler.entries.map { $0.metadata[name].map { "\($0)" } } }

    @Test func eachRequestHasTwoEntries() async throws {
        try await withServer { exchange in
            if exchange.request.path == "/start" {
                return try exchange.respond(status: 302, headers: [("Location", "/end")])
            }
            try exchange.respond(status: 404, text: "none")
        } test: { server, client, observer in
            _ = try? await client.get("start") { $0.label = "list" }
            await client.session.drained()
            #expect(
                messages == [
                    "debug request sent", "debug response received", "debug request sent", "debug response received",
                    "warning task failed",
                ])
            #expect(values(of: "http.response.status_code") == [nil, "302", nil, "404", nil])
            #expect(values(of: "http.request.resend_count") == [nil, nil, "1", "1", nil])
            #expect(values(of: "error.type") == [nil, nil, nil, "404", "404"])
            #expect(Set(values(of: "tern.label")) == ["list"] && Set(values(of: "tern.task")) == ["1"])
            #expect(values(of: "url.full").first == "http://127.0.0.1:\(server.port)/start")
            #expect(values(of: "duration_ms").map { $0 != nil } == [false, true, false, true, false])
            #expect(observer.count == 0)
        }
    }

    @Test func aCancelledTaskIsNoWarning() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            gate.open()
            try exchange.waitForClientToClose()
        } test: { _, client, _ in
            let task = client.task(.get, "x")
            try await gate.wait()
            task.cancel()
            _ = try? await task.value
            await client.session.drained()
            #expect(messages == ["debug request sent", "debug request failed", "debug task cancelled"])
            #expect(values(of: "error.type") == [nil, "cancelled", "cancelled"])
        }
    }

    @Test func entriesBelowTheLevelOfTheLoggerAreLeftOut() async throws {
        try await withServer(level: .info) {
            try $0.respond(status: 500)
        } test: { _, client, _ in
            _ = try? await client.get("x")
            await client.session.drained()
            #expect(messages == ["warning task failed"])
        }
    }

    @Test func secretsNeverAppear() async throws {
        try await withServer { exchange in
            switch exchange.request.path {
            case "/redirect": try exchange.respond(status: 302, headers: [("Location", "/x?code=s3cret#s3cret")])
            case "/invalid": try exchange.write("s3cret: s3cret\r\n\r\n")
            default: try exchange.respond(status: 403, headers: [("Set-Cookie", "id=s3cret")], text: "s3cret")
            }
        } test: { server, client, _ in
            let base = "http://ada:s3cret@127.0.0.1:\(server.port)"
            for path in ["/redirect?a=s3cret", "/invalid?b=s3cret"] {
                _ = try? await client.send(
                    .post, base + path, headers: ["Authorization": "Bearer s3cret", "X-API-Key": "s3cret"],
                    body: .text("s3cret"))
            }
            await client.session.drained()
            #expect(handler.entries.count == 8)
            for entry in handler.entries { #expect(!"\(entry.message) \(entry.metadata)".contains("s3cret")) }
        }
    }
}
