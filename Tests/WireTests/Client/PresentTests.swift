import Tern
import TernTesting
import Testing

/// Checks the call for a resource that may be missing, and the questions to an error that callers ask first.
@Suite("Client: present or not", .timeLimit(.minutes(1)))
struct PresentTests {
    private func client(_ stub: StubTransport, interceptors: [any Interceptor] = []) throws -> Client {
        var configuration = Session.Configuration()
        configuration.interceptors = interceptors
        return try Client(baseURL: "https://a.example", session: Session(configuration: configuration, stub: stub))
    }

    @Test(arguments: [(200, "text" as String?), (404, nil), (410, nil)])
    func aMissingResourceIsNil(status: Int, expected: String?) async throws {
        let client = try client(StubTransport { _ in .text("text", status: status) })
        let text: String? = try await client.getIfPresent("x")
        #expect(text == expected)
    }

    @Test(arguments: [400, 401, 403, 405, 500])
    func anyOtherStatusIsAnError(status: Int) async throws {
        let client = try client(StubTransport { _ in .text("text", status: status) })
        let error = try await failure { try await client.getIfPresent("x", as: String.self) }
        #expect(error.status == status && !error.isNotFound)
    }

    /// A 404 that was accepted, or one whose body fails, is no missing resource.
    @Test func onlyARefusedStatusCounts() async throws {
        let client = try client(StubTransport { _ in .text("not JSON", status: 404, contentType: "application/json") })
        let error = try await failure {
            try await client.getIfPresent("x", as: [Int].self) { $0.validation = ResponseValidation { _ in true } }
        }
        #expect(error.kind == .decoding && error.status == 404 && !error.isNotFound)
    }

    @Test func theServersExplanationIsInTheReason() async throws {
        let body = #"{"title": "No credit", "detail": "30 < 50"}"#
        let stub = StubTransport { _ in .text(body, status: 422, contentType: "application/problem+json") }
        let error = try await failure { try await client(stub).get("x") }
        #expect(error.reason.hasSuffix("; the server says: No credit: 30 < 50"), "\(error)")
        let stream = try client(stub).stream("x")
        let streamError = try await failure { for try await _ in stream {} }
        #expect(streamError.reason.hasSuffix("; the server says: No credit: 30 < 50"), "\(streamError)")
        var configuration = Session.Configuration()
        configuration.quotedExplanations = .none
        let session = Session(configuration: configuration, stub: stub)
        let silentError = try await failure { try await session.response(for: Request(.get, "https://a.example/x")) }
        #expect(!silentError.reason.contains("credit") && silentError.body.count == body.utf8.count)
    }

    /// Each row: the failure, whether another attempt can help a GET and a POST, and whether there is no network.
    @Test(
        arguments: [
            (.dns, true, true), (.connectionFailed, true, true), (.connectionRefused, true, false),
            (.idleTimedOut, true, false), (.connectionLost, true, false), (.untrustedServer, false, false),
            (.totalTimedOut, false, false), (.decoding, false, false),
        ] as [(NetworkError.Kind, Bool, Bool)])
    func questionsToAnErrorHaveTheirAnswers(kind: NetworkError.Kind, isRetryable: Bool, isOffline: Bool) async throws {
        let client = try client(StubTransport { _ throws in throw StubTransport.Failure(kind) })
        let error = try await failure { try await client.get("x") }
        #expect(error.kind == kind && error.isRetryable == isRetryable && error.isOffline == isOffline)
        let post = try await failure { try await client.post("x", body: .text("y")) }
        #expect(!post.isRetryable && post.isOffline == isOffline && !post.isNotFound)
    }

    @Test(arguments: [(503, true), (429, true), (404, false), (400, false)])
    func aStatusIsRetryableByTheRulesOfThePolicy(status: Int, isRetryable: Bool) async throws {
        let client = try client(StubTransport { _ in .status(status) })
        let error = try await failure { try await client.get("x") }
        #expect(error.isRetryable == isRetryable && !error.isOffline)
    }
}
