import Foundation
import Hummingbird
import Tern

/// A server that passes on what another server sends: `swift run server http://127.0.0.1:8000`.
@main
struct Server {
    static func main() async throws {
        let address = CommandLine.arguments.dropFirst().first ?? "http://127.0.0.1:8000"
        let router = Router()
        try addRoutes(to: router, upstream: address)
        let application = Application(
            router: router, configuration: .init(address: .hostname("127.0.0.1", port: 8080)))
        try await application.runService()
    }
}

func addRoutes(to router: Router<BasicRequestContext>, upstream address: String) throws {
    // One session for all users: no cookies, and a limit for slow servers.
    var configuration = Session.Configuration()
    configuration.cookies = .none
    configuration.timeouts.idle = .seconds(10)
    let client = try Client(baseURL: address, session: Session(configuration: configuration))

    router.get("files/{name}") { _, context in
        let name = try context.parameters.require("name")
        let stream = client.stream(try Tern.Request.path([name]))
        do {
            let head = try await stream.response
            let type = head.headers["Content-Type"] ?? "application/octet-stream"
            // Back-pressure reaches from the reader of this response to the other server's socket.
            let body = ResponseBody(asyncSequence: stream.chunks.map { ByteBuffer(bytes: $0) })
            return Hummingbird.Response(status: .ok, headers: [.contentType: type], body: body)
        } catch let error as NetworkError {
            throw HTTPError(error.status == 404 ? .notFound : .badGateway, message: error.shortDescription)
        }
    }
}
