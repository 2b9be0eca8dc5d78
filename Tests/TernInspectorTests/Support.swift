import Tern
import TernConcurrency
import TernInspector
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A session with an inspector, its page, and a viewer of it.
struct InspectedSession: Sendable {
    let session: Session
    let inspector: SessionInspector
    let url: URL
    /// Runs until the page ends.
    let page: Task<Void, any Error>
    let viewer: Client

    /// Runs a test with a session whose requests go to a server.
    static func run(
        limit: Int = 1_000, redaction: Recording.Redaction = .secrets,
        change: (inout Session.Configuration) -> Void = { _ in },
        answering handler: @escaping LoopbackServer.Handler = { try $0.respond(text: "hello") },
        _ test: (InspectedSession, LoopbackServer, Client) async throws -> Void
    ) async throws {
        let server = try LoopbackServer(handler: handler)
        defer { server.stop() }
        var configuration = Session.Configuration()
        configuration.proxies = .none
        let inspector = SessionInspector(limit: limit, redaction: redaction)
        configuration.observers = [inspector]
        change(&configuration)
        let session = Session(configuration: configuration)
        let inspected = try await open(session, inspector)
        try await test(inspected, server, Client(baseURL: server.url, session: session))
        inspected.page.cancel()
        try await inspected.page.value
    }

    private static func open(_ session: Session, _ inspector: SessionInspector) async throws -> InspectedSession {
        let ready = Waiter<URL?>()
        let page = Task {
            do {
                try await session.inspect { ready.resume(returning: $0) }
            } catch {
                ready.resume(returning: nil)
                throw error
            }
        }
        guard let url = await ready.wait(cancelled: nil) else {
            try await page.value
            throw CancellationError()
        }
        var viewing = Session.Configuration()
        viewing.proxies = .none
        viewing.maximumConnectionsPerHost = 64
        viewing.validation = .any
        let viewer = Client(baseURL: url, session: Session(configuration: viewing))
        return InspectedSession(session: session, inspector: inspector, url: url, page: page, viewer: viewer)
    }

    /// Reads the events of the page until one has what is looked for.
    func event<Found>(where look: (JSONValue) throws -> Found?) async throws -> Found {
        for try await line in viewer.stream("events").lines where line.hasPrefix("data: ") {
            let event = try TernJSONDecoder().decode(JSONValue.self, from: Data(line.utf8.dropFirst(6)))
            if let found = try look(event) { return found }
        }
        throw CancellationError()
    }

    /// Reads events until one has a task for which a condition holds, and returns that task.
    func task(where condition: (JSONValue) -> Bool) async throws -> JSONValue {
        try await event { $0["tasks"]?.array?.first(where: condition) }
    }

    /// Returns the details of a task.
    func details(of task: JSONValue) async throws -> JSONValue {
        try await viewer.get("tasks/\(task["number"]?.integer ?? 0)")
    }
}
