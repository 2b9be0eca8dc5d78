import HTTPTypes
import OpenAPIRuntime
import Tern
import TernOpenAPITransport
import TernTesting
import Testing

/// Returns a transport for a generated client, as in `Client(serverURL: url, transport: patientTransport())`.
func patientTransport() -> TernTransport {
    var configuration = Session.Configuration()
    configuration.interceptors = [RetryInterceptor()]
    configuration.timeouts.total = .seconds(30)
    return TernTransport(session: Session(configuration: configuration))
}

/// The program of `Documentation/Integrations.md`, which `make lint` compares with this file.
@Suite(.timeLimit(.minutes(1)))
struct ArticleTests {
    @Test func theTransportSendsARequest() async throws {
        let server = try LoopbackServer { try $0.respond(text: "x") }
        let request = HTTPRequest(method: .get, scheme: nil, authority: nil, path: "/page")
        let (response, body) = try await patientTransport().send(
            request, body: nil, baseURL: server.url, operationID: "getPage")
        #expect(response.status == .ok)
        #expect(try await [UInt8](collecting: try #require(body), upTo: 10) == Array("x".utf8))
    }
}
