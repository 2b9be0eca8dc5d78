import Tern
import TernTesting
import Testing

/// Checks which bodies count as empty.
@Suite("Empty bodies", .timeLimit(.minutes(1)))
struct EmptyBodyTests {
    private struct User: Decodable, Sendable {
        var name: String
    }

    private func client(_ body: String) throws -> Client {
        let stub = StubTransport { _ in .text(body, contentType: "application/json") }
        return try Client(baseURL: "https://a.example", session: Session(stub: stub))
    }

    /// Rails answers in this way where there is no content, and AFNetworking treats the answer as no value.
    @Test func bodyOfOneSpaceHasNoValue() async throws {
        let client = try client(" ")
        let user: User? = try await client.get("x")
        #expect(user == nil)
        let handle = try await client.task(.get, "x", as: User?.self).value
        #expect(handle == nil)
        // A call for the bytes gets them.
        let text: String? = try await client.get("x")
        #expect(text == " ")
        let missing = try await failure { try await client.get("x", as: User.self) }
        #expect(missing.kind == .decoding)
    }
}
