import Hummingbird
import HummingbirdTesting
import Testing

@testable import server

@Suite(.timeLimit(.minutes(1))) struct ServerTests {
    @Test func aFileIsPassedOnWithItsContentType() async throws {
        try await withProxy { client in
            try await client.execute(uri: "/files/notes.txt", method: .get) { response in
                #expect(response.status == .ok)
                #expect(response.headers[.contentType] == "text/plain")
                #expect(response.body == notes)
            }
        }
    }

    @Test func aMissingFileIsNotFound() async throws {
        try await withProxy { client in
            try await client.execute(uri: "/files/absent.txt", method: .get) { response in
                #expect(response.status == .notFound)
            }
        }
    }

    @Test func aFailureOfTheOtherServerIsABadGateway() async throws {
        try await withProxy { client in
            try await client.execute(uri: "/files/broken.txt", method: .get) { response in
                #expect(response.status == .badGateway)
            }
        }
    }
}

/// 4 MB, which is more than one chunk.
private let notes = ByteBuffer(repeating: UInt8(ascii: "n"), count: 4_000_000)

/// Runs the routes of the example before a server that has one file.
private func withProxy(_ body: @escaping @Sendable (any TestClientProtocol) async throws -> Void) async throws {
    let files = Router()
    files.get("notes.txt") { _, _ in
        Response(status: .ok, headers: [.contentType: "text/plain"], body: ResponseBody(byteBuffer: notes))
    }
    files.get("broken.txt") { _, _ -> Response in throw HTTPError(.internalServerError) }
    try await Application(router: files).test(.live) { upstream in
        let port = try #require(upstream.port)
        let router = Router()
        try addRoutes(to: router, upstream: "http://127.0.0.1:\(port)")
        try await Application(router: router).test(.live) { client in try await body(client) }
    }
}
