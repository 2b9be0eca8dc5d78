import Foundation
import Tern
import TernHTTPCache
import TernImages

enum TernJobs {
    // MARK: 1
    static func get(_ client: Client) async throws -> Book {
        try await client.get("books/1")
    }

    // MARK: 2
    static func post(_ book: Book, _ client: Client) async throws -> Book {
        try await client.post("books", body: .json(book))
    }

    // MARK: 3
    static func explain(_ client: Client) async throws -> String {
        do throws(NetworkError) {
            return try await client.get("books/1", as: Book.self).title
        } catch {
            return try error.decode(as: Problem.self).title
        }
    }

    // MARK: 4
    static func download(to file: URL, _ client: Client, show: (Double) -> Void) async throws {
        let task = client.download("film", to: file)
        for await progress in task.progress { show(progress.fractionCompleted ?? 0) }
        _ = try await task.value
    }

    // MARK: 5
    static func upload(_ photo: URL, _ client: Client, show: (Double) -> Void) async throws {
        var form = MultipartForm()
        form.append("summer", named: "album")
        try form.append(file: photo, named: "photo")
        let task = client.upload("photos", multipart: form)
        for await progress in task.uploadProgress { show(progress.fractionCompleted ?? 0) }
        _ = try await task.value
    }

    // MARK: 6
    static func persistent() throws -> Client {
        try Client(baseURL: base, interceptors: [RetryInterceptor()])
    }

    // MARK: 7
    struct Login: Authenticator {
        let client: Client

        func apply(_ token: String, to request: inout Request) {
            request.headers["Authorization"] = "Bearer \(token)"
        }

        func refresh(_ token: String?) async throws -> String { try await client.post("token") }
    }

    static func signedIn() throws -> Client {
        let login = Login(client: try Client(baseURL: base))
        return try Client(baseURL: base, interceptors: [AuthenticationInterceptor(login)])
    }

    // MARK: 8
    static func lines(_ client: Client) async throws {
        for try await line in client.stream("log").lines { print(line) }
    }

    // MARK: 9
    static func caching() throws -> Client {
        var configuration = Session.Configuration()
        configuration.cache = .memory()
        return try Client(baseURL: base, session: Session(configuration: configuration))
    }

    // MARK: 10
    static func thumbnail(of url: URL) async throws -> RasterImage {
        let size = PixelSize(width: 200, height: 200)
        let request = ImageRequest(url, targetSize: size, contentMode: .fill)
        return try await ImagePipeline.shared.response(for: request).image
    }
}
