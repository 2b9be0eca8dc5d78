import Logging
import ServiceLifecycle
import Tern
import TernServiceLifecycle
import TernTesting
import Testing
import UnixSignals

/// Runs a server with a session of its own until the process is asked to end.
func run(_ server: some Service, session: Session, logger: Logger) async throws {
    // Services are shut down in the reverse order: the server ends while the session still takes requests.
    let services: [any Service] = [SessionService(session: session, logger: logger), server]
    let group = ServiceGroup(services: services, gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
    try await group.run()
}

/// The program of `Documentation/Integrations.md`, which `make lint` compares with this file.
@Suite(.timeLimit(.minutes(1)))
struct ArticleTests {
    private struct FailingServer: Service {
        struct Failure: Error {}

        func run() async throws { throw Failure() }
    }

    @Test func aServerThatFailsEndsTheSession() async throws {
        let session = Session()
        let server = try LoopbackServer { try $0.respond(text: "x") }
        let client = Client(baseURL: server.url, session: session)
        #expect(try await client.get("page", as: String.self) == "x")
        await #expect(throws: FailingServer.Failure.self) {
            try await run(FailingServer(), session: session, logger: Logger(label: "test"))
        }
        let error = await #expect(throws: NetworkError.self) { try await client.get("page") }
        #expect(error?.kind == .sessionInvalidated)
    }
}
