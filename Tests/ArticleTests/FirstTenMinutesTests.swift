import Tern
import TernHTTPCache
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The programs of Documentation/FirstTenMinutes.md, word for word. `scripts/checks/articles` compares them. The server
// stands in for the article's `python3 -m http.server`.

private struct Book: Codable, Sendable, Equatable {
    var title: String
    var pages: Int
}

private struct Shelf: Sendable {
    let client: Client

    func books() async throws(NetworkError) -> [Book] {
        try await client.get("books.json")
    }
}

extension Shelf {
    /// Downloads a film into a folder, and prints the progress.
    func watch(_ film: String, in folder: URL) async throws {
        let task = client.download(film, to: folder.appending(path: film))
        for await progress in task.progress {
            print(progress.completedBytes, "of", progress.totalBytes ?? 0, "bytes")
        }
        print("saved as", try await task.value.path)
    }
}

private struct Program {
    static func run(at address: String, folder: URL) async throws {
        var policy = RetryPolicy()
        policy.limit = 5

        var configuration = Session.Configuration()
        configuration.interceptors = [RetryInterceptor(policy)]
        configuration.cache = .memory()
        let client = try Client(baseURL: address, session: Session(configuration: configuration))

        let shelf = Shelf(client: client)
        for book in try await shelf.books() { print(book.title, book.pages) }
        try await shelf.watch("film.bin", in: folder)

        let request = try client.request(.get, "books.json")
        let response = try await client.response(for: request, as: [Book].self)
        print(response.cacheTrace?.description ?? "no cache")
    }
}

@Suite("Documentation: first ten minutes", .timeLimit(.minutes(1)))
struct FirstTenMinutesTests {
    let server: LoopbackServer
    let address: String
    private let scratch: ScratchFolder

    init() throws {
        server = try LoopbackServer { exchange in
            switch exchange.request.path {
            case "/busy/books.json" where exchange.number == 1: try exchange.respond(status: 503)
            case "/books.json", "/busy/books.json":
                let books = [Book(title: "Dune", pages: 412), Book(title: "Emma", pages: 474)]
                try exchange.respond(headers: [("Cache-Control", "max-age=60")], json: books)
            case "/film.bin": try exchange.serveFile(LoopbackServer.Pattern(count: 2_000_000))
            default: try exchange.respond(status: 404, text: "File not found")
            }
        }
        address = server.url.absoluteString
        scratch = try ScratchFolder()
    }

    private var folder: URL { scratch.url }

    @Test func theFirstStepPrintsAText() async throws {
        let client = try Client(baseURL: address)
        let text: String = try await client.get("books.json")
        print(text)
        #expect(text.contains("Dune"))
    }

    @Test func theSecondStepDecodes() async throws {
        let shelf = Shelf(client: try Client(baseURL: address))
        for book in try await shelf.books() { print(book.title, book.pages) }
        #expect(try await shelf.books().count == 2)
    }

    @Test func theThirdStepExplainsFailures() async throws {
        let client = try Client(baseURL: address)
        do throws(NetworkError) {
            let films: [Book] = try await client.get("films.json")
            print(films.count)
        } catch {
            print(error)
            print(error.kind, error.status ?? 0, error.body.count)
        }
        await #expect { try await client.get("films.json") } throws: { error in
            (error as? NetworkError)?.status == 404 && (error as? NetworkError)?.body.count == 14
        }
    }

    @Test func theFourthStepDownloads() async throws {
        let shelf = Shelf(client: try Client(baseURL: address))
        try await shelf.watch("film.bin", in: folder)
        #expect(try Data(contentsOf: folder.appending(path: "film.bin")).count == 2_000_000)
    }

    @Test func theFifthStepTriesAgain() async throws {
        let address = server.url("/busy").absoluteString
        let client = try Client(baseURL: address, interceptors: [RetryInterceptor()])
        #expect(try await Shelf(client: client).books().count == 2)
        #expect(server.requests.count == 2)
    }

    @Test func theWholeProgramAnswersFromItsCache() async throws {
        try await Program.run(at: address, folder: folder)
        #expect(server.requests.map(\.target) == ["/books.json", "/film.bin"])
    }

    @Test func theShelfHasOneBook() async throws {
        let stub = StubTransport(["GET /books.json": try .json([Book(title: "Dune", pages: 412)])])
        let shelf = Shelf(client: try Client(baseURL: "https://shelf.example", session: Session(stub: stub)))
        #expect(try await shelf.books() == [Book(title: "Dune", pages: 412)])
        #expect(stub.calls.map(\.path) == ["/books.json"])
    }
}
