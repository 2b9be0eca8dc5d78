import Tern
import TernHTTPCache
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The recipes for requests of Documentation/Cookbook.md, word for word. `scripts/checks/articles` compares them.

private struct Repository: Codable, Sendable {
    var name: String
}

/// Returns the names of all repositories, page after page.
private func repositoryNames(of client: Client) async throws -> [String] {
    var names: [String] = []
    for try await page in client.pages("repos", query: ["per_page": 100], as: [Repository].self) {
        names += page.value.map(\.name)
    }
    return names
}

private struct Page: Codable, Sendable {
    var items: [String]
    var cursor: String?
}

/// Returns the pages of a list whose bodies name the next page.
private func items(of client: Client) -> Pages<Page> {
    client.pages("items", as: Page.self) { page throws(NetworkError) in
        guard let cursor = page.value.cursor else { return nil }
        return try client.request(.get, "items", query: ["cursor": cursor])
    }
}

private struct Token: Codable, Sendable {
    var access: String
    var expires: Date
}

private struct Login: Authenticator {
    let client: Client

    func apply(_ token: Token, to request: inout Request) {
        request.headers["Authorization"] = "Bearer \(token.access)"
    }

    func needsRefresh(_ token: Token) -> Bool { token.expires < Date(timeIntervalSinceNow: 30) }

    func refresh(_ token: Token?) async throws -> Token {
        try await client.post("token", body: .form(["grant_type": "client_credentials"]))
    }
}

/// Keeps a body with its tag, and asks only whether it has changed.
private actor Article {
    private var tag: String?
    private var body = Data()

    func current(from client: Client) async throws(NetworkError) -> Data {
        var request = try client.request(.get, "article")
        request.headers["If-None-Match"] = tag
        request.validation = ResponseValidation(statuses: { (200..<300).contains($0) || $0 == 304 })
        let response = try await client.response(for: request)
        if response.status != 304 { (tag, body) = (response.headers["ETag"], response.value) }
        return body
    }
}

private struct Order: Codable, Sendable {
    /// A state that this version does not know is also decoded.
    struct State: RawRepresentable, Codable, Hashable, Sendable {
        static let open = State(rawValue: "open")
        var rawValue: String
    }

    var orderID: Int
    var createdAt: Date
    var state: State
    var notes: JSONValue?

    enum CodingKeys: String, CodingKey {
        // The strategy makes `orderId` of `order_id`.
        case orderID = "orderId"
        case createdAt, state, notes
    }
}

private func shop(_ url: String) throws -> Client {
    var configuration = Session.Configuration()
    configuration.json.decoder.keyDecodingStrategy = .convertFromSnakeCase
    configuration.json.decoder.dateDecodingStrategy = .iso8601
    configuration.json.encoder.keyEncodingStrategy = .convertToSnakeCase
    configuration.json.encoder.dateEncodingStrategy = .iso8601
    return try Client(baseURL: url, session: Session(configuration: configuration))
}

private struct Problem: Decodable, Sendable {
    var title: String
}

private enum APIError: Error {
    case notFound
    case refused(Problem)
    case offline
    case other(NetworkError)

    init(_ error: NetworkError) {
        switch error.kind {
        case .status where error.status == 404:
            self = .notFound
        case .status:
            // A body that is no problem document, such as a proxy's page, leaves the error as it is.
            let problem = try? error.decode(as: Problem.self)
            self = problem.map(APIError.refused) ?? .other(error)
        case .dns, .connectionRefused, .connectionFailed, .connectTimedOut:
            self = .offline
        default:
            self = .other(error)
        }
    }
}

private struct Books: Sendable {
    let client: Client

    func title(of id: Int) async throws(APIError) -> String {
        do throws(NetworkError) {
            return try await client.get(path: ["books", "\(id)"])
        } catch {
            throw APIError(error)
        }
    }
}

@Suite("Documentation: recipes for requests", .timeLimit(.minutes(1)))
struct RequestRecipes {
    @Test func ordersAreWrittenAsTheyWereRead() async throws {
        let text = #"{"created_at":"2026-11-29T08:30:00Z","notes":{"gift":true},"order_id":7,"state":"packed"}"#
        let server = try LoopbackServer { exchange in
            if exchange.request.method == "PUT" {
                #expect(String(decoding: try exchange.readBody(), as: UTF8.self) == text)
                return try exchange.respond(status: 204)
            }
            try exchange.respond(headers: [("Content-Type", "application/json")], text: text)
        }
        defer { server.stop() }
        let client = try shop(server.url.absoluteString)
        let order: Order = try await client.get("orders/7")
        try await client.put("orders/7", body: .json(order))
        #expect(order.orderID == 7 && order.state != .open && order.notes == ["gift": true])
    }

    @Test func paginationFollowsLinksAndCursors() async throws {
        let server = try LoopbackServer { exchange in
            switch exchange.request.target {
            case "/repos?per_page=100":
                try exchange.respond(
                    headers: [("Link", "</repos?page=2>; rel=\"next\"")], json: [Repository(name: "a")])
            case "/repos?page=2": try exchange.respond(json: [Repository(name: "b")])
            case "/items": try exchange.respond(json: Page(items: ["x"], cursor: "c2"))
            default: try exchange.respond(json: Page(items: ["y"]))
            }
        }
        let client = Client(baseURL: server.url)
        #expect(try await repositoryNames(of: client) == ["a", "b"])
        var found: [String] = []
        for try await page in items(of: client) { found += page.value.items }
        #expect(found == ["x", "y"])
    }

    @Test func oneRefreshServesAllRequests() async throws {
        let server = try LoopbackServer { exchange in
            switch exchange.request.path {
            case "/token":
                _ = try exchange.readBody()
                try exchange.respond(json: Token(access: "new", expires: Date(timeIntervalSinceNow: 3_600)))
            case _ where exchange.request["Authorization"] == "Bearer new": try exchange.respond(text: "in")
            default: try exchange.respond(status: 401)
            }
        }
        let address = server.url.absoluteString

        let login = Login(client: try Client(baseURL: address))
        let client = try Client(baseURL: address, interceptors: [AuthenticationInterceptor(login)])

        async let first: String = client.get("a")
        async let second: String = client.get("b")
        #expect(try await [first, second] == ["in", "in"])
        #expect(server.requests.filter { $0.target == "/token" }.count == 1)
    }

    @Test func entityTagsWorkByHandAndByCache() async throws {
        let server = try LoopbackServer { exchange in
            let headers = [("ETag", "\"1\""), ("Cache-Control", "no-cache")]
            if exchange.request["If-None-Match"] == "\"1\"" {
                try exchange.respond(status: 304, headers: headers)
            } else {
                try exchange.respond(headers: headers, text: "text")
            }
        }
        let address = server.url.absoluteString
        let article = Article()
        let plain = try Client(baseURL: address)
        #expect(try await article.current(from: plain) == Data("text".utf8))
        #expect(try await article.current(from: plain) == Data("text".utf8))
        #expect(server.requests.count == 2)

        var configuration = Session.Configuration()
        configuration.cache = .memory()
        let client = try Client(baseURL: address, session: Session(configuration: configuration))

        _ = try await client.get("article")
        let request = try client.request(.get, "article")
        let response = try await client.response(for: request)
        print(response.cacheTrace?.source ?? .network)
        #expect(response.cacheTrace?.source == .validated)
    }

    @Test func ratesAreLimited() async throws {
        let server = try LoopbackServer { try $0.respond(text: "done") }
        let address = server.url.absoluteString

        let limits = RateLimitInterceptor(requestsPerSecond: 100, burst: 5)
        let client = try Client(baseURL: address, interceptors: [RetryInterceptor(), limits])

        for _ in 0..<8 { #expect(try await client.get("a", as: String.self) == "done") }
        #expect(server.requests.count == 8)
    }

    @Test func errorsHaveTypesOfTheirOwn() async throws {
        let server = try LoopbackServer { exchange in
            switch exchange.request.path {
            case "/books/1": try exchange.respond(text: "Dune")
            case "/books/2":
                try exchange.respond(
                    status: 403, headers: [("Content-Type", "application/problem+json")],
                    text: #"{"title": "Lent out"}"#)
            default: try exchange.respond(status: 404)
            }
        }
        let books = Books(client: Client(baseURL: server.url))
        #expect(try await books.title(of: 1) == "Dune")
        await #expect { try await books.title(of: 2) } throws: { error in
            if case .refused(let problem)? = error as? APIError { problem.title == "Lent out" } else { false }
        }
        await #expect { try await books.title(of: 3) } throws: { error in
            if case .notFound? = error as? APIError { true } else { false }
        }
        let port = try LoopbackServer.refusingPort()
        let away = Books(client: try Client(baseURL: "http://127.0.0.1:\(port)"))
        await #expect { try await away.title(of: 1) } throws: { error in
            if case .offline? = error as? APIError { true } else { false }
        }
    }

    @Test func aRecordingAnswersOffline() async throws {
        let server = try LoopbackServer { try $0.respond(text: "Dune") }
        let file = FileManager.default.temporaryDirectory.appending(path: "tern-\(UInt64.random(in: 0 ... .max)).json")

        // Once, against the server: records the exchanges.
        let recorder = Recorder()
        let live = Books(client: Client(baseURL: server.url, session: Session(recorder: recorder)))
        _ = try await live.title(of: 1)
        try recorder.recording.write(to: file)

        // In the tests, without a network.
        let stub = StubTransport(replaying: try Recording(contentsOf: file))
        let books = Books(client: Client(baseURL: server.url, session: Session(stub: stub)))
        #expect(try await books.title(of: 1) == "Dune")
        try FileManager.default.removeItem(at: file)
    }

    @Test func waitsPassOnAManualClock() async throws {
        let clock = ManualClock()
        let stub = StubTransport { call in call.index == 0 ? .status(503) : .text("Dune") }
        var configuration = Session.Configuration()
        configuration.interceptors = [RetryInterceptor(clock: clock)]
        let session = Session(configuration: configuration, stub: stub)
        let books = Books(client: try Client(baseURL: "https://books.example", session: session))

        async let title = books.title(of: 1)
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(30))
        #expect(try await title == "Dune")
    }
}
