import Foundation
import GRPCCore
import Synchronization
import Tern
import TernGRPCTransport
import Testing

/// Counts the calls of a session.
struct CallObserver: SessionObserver {
    static let labels = Mutex<[String]>([])

    func willSend(_ request: Request, of task: AnySessionTask) {
        Self.labels.withLock { $0.append(request.label ?? "") }
    }
}

/// Returns a transport whose calls to the catalogue are retried.
func catalogueTransport(_ url: String) throws -> TernGRPCTransport {
    let json = """
        {"methodConfig": [{
            "name": [{"service": "shop.Catalogue"}], "timeout": "5s",
            "retryPolicy": {
                "maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"]
            }
        }]}
        """
    var configuration = TernGRPCTransport.Configuration()
    configuration.serviceConfig = try JSONDecoder().decode(ServiceConfig.self, from: Data(json.utf8))
    configuration.session.observers = [CallObserver()]
    return try TernGRPCTransport(url, configuration: configuration)
}

/// The program of `Documentation/Integrations.md`, which `make lint` compares with this file.
@Suite("Article: gRPC", .enabled(if: TestServer.isExpected, TestServer.absence), .timeLimit(.minutes(1)))
struct ArticleTests {
    @Test func aTransportHasAServiceConfig() async throws {
        let server = try await TestServer()
        let transport = try catalogueTransport(server.url)
        let method = MethodDescriptor(fullyQualifiedService: "shop.Catalogue", method: "List")
        #expect(transport.config(forMethod: method)?.timeout == .seconds(5))
        try await withGRPCClient(transport: transport) { client in
            let reply = try await client.unary("Unary", message(size: 3)).message
            #expect(reply.count == 3)
        }
        #expect(CallObserver.labels.withLock { $0 } == ["tern.Test/Unary"])
    }
}
