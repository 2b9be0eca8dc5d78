import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The ways in which a test puts a stub in place of the network.
@Suite("Wire: the seam for stubs")
struct StubSeamTests {
    /// The code under test, which makes its own sessions.
    private struct Store {
        let catalog: Client
        let login: Client

        init(configuration: Session.Configuration) throws {
            catalog = try Client(baseURL: "https://catalog.example", session: Session(configuration: configuration))
            var quiet = configuration
            quiet.interceptors = []
            login = try Client(baseURL: "https://login.example", session: Session(configuration: quiet))
        }
    }

    private struct Marking: RequestAdapter {
        func adapt(_ request: Request) throws -> Request {
            var request = request
            request.headers["X-By"] = "adapter"
            return request
        }
    }

    @Test func everySessionOfAConfigurationHasItsStub() async throws {
        let stub = StubTransport { .text($0.headers["X-By"] ?? "nobody") }
        var configuration = Session.Configuration()
        configuration.interceptors = [Marking()]
        configuration.stub = stub
        let store = try Store(configuration: configuration)
        #expect(try await store.catalog.get("a", as: String.self) == "adapter")
        #expect(try await store.login.get("b", as: String.self) == "nobody")
        #expect(stub.calls.map(\.urlString) == ["https://catalog.example/a", "https://login.example/b"])
        #expect(store.catalog.session.configuration.stub === stub)
        configuration.stub = nil
        #expect(configuration.stub == nil && Session(configuration: configuration).configuration.stub == nil)
    }

    @Test func aClientWithAStubNeedsNothingElse() async throws {
        let stub = StubTransport(["GET /users/1": .text("Ada"), "GET /v1/x": .text("x")])
        #expect(try await Client(stub: stub).get("users/1", as: String.self) == "Ada")
        let client = Client(baseURL: "https://api.example/v1", stub: stub, headers: ["X-A": "1"])
        #expect(try await client.get("x", as: String.self) == "x")
        #expect(stub.calls.last?.headers["X-A"] == "1")
        let error = try await failure { try await client.get("other") }
        #expect(error.kind == .unsupported)
    }

    @Test(arguments: ["", "no url", "ftp://a.example", "/relative"])
    func aClientWithoutAUsableBaseFailsEachCall(base: String) async throws {
        let stub = StubTransport { _ in .text("never") }
        let error = try await failure { try await Client(baseURL: base, stub: stub).get("a") }
        #expect(error.kind == .invalidRequest && stub.calls.isEmpty, "\(error)")
    }

    @Test func aClientTellsItsBase() throws {
        let session = Session(stub: StubTransport { _ in .text("") })
        #expect(Client(session: session).baseURL == nil)
        let rows = [
            "https://a.example": "https://a.example/", "https://u:p@a.example:443/v1": "https://a.example/v1/",
            "http://a.example:8080/v1/?q=1#f": "http://a.example:8080/v1/",
        ]
        for (given, base) in rows {
            #expect(try Client(baseURL: given, session: session).baseURL?.absoluteString == base)
        }
        #expect(Client(baseURL: URL(filePath: "/tmp"), session: session).baseURL == nil)
    }
}
