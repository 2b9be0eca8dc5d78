import HTTPTypes
import Tern
import TernHTTPTypes
import TernTesting
import Testing

struct Book: Codable, Sendable, Equatable {
    var title: String
}

/// Returns the books of a page, and the tag of its version.
func books(of client: Client, page: Int) async throws -> ([Book], String?) {
    let request = HTTPRequest(method: .get, scheme: nil, authority: nil, path: "/books?page=\(page)")
    let (response, books) = try await client.response(for: request, as: [Book].self)
    return (books, response.headerFields[.eTag])
}

/// The program of `Documentation/Integrations.md`, which `make lint` compares with this file.
@Suite("Article: HTTP types", .timeLimit(.minutes(1)))
struct ArticleTests {
    @Test func theBooksOfAPageAreDecoded() async throws {
        let server = try LoopbackServer { exchange in
            try exchange.respond(
                headers: [("ETag", "\"7\""), ("Content-Type", "application/json")],
                text: #"[{"title": "\#(exchange.request.target)"}]"#)
        }
        defer { server.stop() }
        var configuration = Session.Configuration()
        configuration.proxies = .none
        let client = Client(baseURL: server.url, session: Session(configuration: configuration))
        let (books, tag) = try await books(of: client, page: 2)
        #expect(books == [Book(title: "/books?page=2")] && tag == "\"7\"")
    }
}
