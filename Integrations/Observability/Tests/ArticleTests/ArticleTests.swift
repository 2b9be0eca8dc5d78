import Logging
import Tern
import TernLogging
import TernMetrics
import TernTesting
import TernTracing
import Testing

/// Returns a session whose requests are logged, measured and traced.
func observedSession() -> Session {
    var configuration = Session.Configuration()
    configuration.observers = [
        LoggingObserver(logger: Logger(label: "network")), MetricsObserver(), TracingObserver(),
    ]
    return Session(configuration: configuration)
}

/// Returns a task that measures the open connections of a session every 10 seconds.
func connectionMeasurement(of session: Session, with metrics: MetricsObserver) -> Task<Void, Never> {
    Task { await metrics.measureConnections(of: session, every: .seconds(10)) }
}

/// The program of `Documentation/Integrations.md`, which `make lint` compares with this file.
@Suite("Article: logs, metrics and traces", .timeLimit(.minutes(1)))
struct ArticleTests {
    @Test func aSessionWithAllObserversSendsRequests() async throws {
        let server = try LoopbackServer { try $0.respond(text: "x") }
        defer { server.stop() }
        var configuration = observedSession().configuration
        configuration.proxies = .none
        let client = Client(baseURL: server.url, session: Session(configuration: configuration))
        // Without a bootstrapped system, the observers have no effect.
        let text: String = try await client.get("x")
        #expect(text == "x")
        let measurement = connectionMeasurement(of: client.session, with: MetricsObserver())
        measurement.cancel()
        await measurement.value
    }
}
