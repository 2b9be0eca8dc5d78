import HTTPTypes
import Synchronization
import Tern
import TernHTTPTypes
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Requests of swift-http-types over a real connection.
@Suite("Client with swift-http-types", .timeLimit(.minutes(1)))
struct ClientHTTPTypesTests {
    private struct Received: Sendable {
        var method: String
        var target: String
        var headers: [String]
        var body: [UInt8]
    }

    private final class Log: Sendable {
        private let entries = Mutex<[Received]>([])
        var all: [Received] { entries.withLock { $0 } }
        func add(_ entry: Received) { entries.withLock { $0.append(entry) } }
    }

    /// Runs a server that records each request and answers with two cookies.
    private func withServer(
        status: Int = 200, headers: Headers = [:],
        test: (_ server: LoopbackServer, _ client: Client, _ log: Log) async throws -> Void
    ) async throws {
        let log = Log()
        let server = try LoopbackServer { exchange in
            let request = exchange.request
            let fields = request.headers.map { "\($0.name): \($0.value)" }
            log.add(
                Received(
                    method: request.method, target: request.target, headers: fields, body: try exchange.readBody()))
            try exchange.respond(
                status: status, headers: [("Set-Cookie", "a=1"), ("X-Between", "x"), ("Set-Cookie", "b=2")],
                text: "[1,2]")
        }
        defer { server.stop() }
        var configuration = Session.Configuration()
        configuration.proxies = .none
        try await test(
            server, Client(baseURL: server.url, session: Session(configuration: configuration), headers: headers), log)
    }

    private func request(
        _ method: HTTPRequest.Method = .get, to server: LoopbackServer, _ path: String, fields: HTTPFields = [:]
    ) -> HTTPRequest {
        HTTPRequest(
            method: method, scheme: "http", authority: "127.0.0.1:\(server.port)", path: path, headerFields: fields)
    }

    @Test func aCallReturnsTheResponseAndTheBody() async throws {
        try await withServer { server, client, log in
            let tag = try #require(HTTPField.Name("X-Tag"))
            var fields = HTTPFields()
            fields.append(HTTPField(name: tag, value: "one"))
            fields.append(HTTPField(name: tag, value: "two"))
            let (response, data) = try await client.response(for: request(to: server, "/list?page=2", fields: fields))
            #expect(response.status.code == 200 && response.status.reasonPhrase == "OK")
            #expect(String(decoding: data, as: UTF8.self) == "[1,2]")
            #expect(response.headerFields[values: .setCookie] == ["a=1", "b=2"])
            #expect(response.headerFields[fields: .setCookie].allSatisfy { $0.indexingStrategy == .disallow })
            let received = try #require(log.all.first)
            #expect(received.method == "GET" && received.target == "/list?page=2")
            #expect(received.headers.filter { $0.hasPrefix("X-Tag") } == ["X-Tag: one", "X-Tag: two"])
            #expect(
                received.headers.filter { $0.lowercased().hasPrefix("host:") } == ["Host: 127.0.0.1:\(server.port)"])
        }
    }

    @Test func bytesAreSentWithTheTypeOfTheRequestAlone() async throws {
        try await withServer { server, client, log in
            var typed = request(.put, to: server, "/x")
            _ = try await client.response(for: typed, body: Data("ab".utf8))
            typed.headerFields[.contentType] = "text/csv"
            _ = try await client.response(for: typed, body: Data("a,b".utf8))
            #expect(log.all.map(\.body) == [Array("ab".utf8), Array("a,b".utf8)])
            let types = log.all.map { $0.headers.filter { $0.lowercased().hasPrefix("content-type") } }
            #expect(types == [[], ["Content-Type: text/csv"]])
        }
    }

    @Test func theBodyIsDecoded() async throws {
        try await withServer { server, client, _ in
            let (_, numbers) = try await client.response(for: request(to: server, "/"), as: [Int].self) {
                $0.validation = .any
            }
            #expect(numbers == [1, 2])
        }
    }

    @Test func aRefusedStatusIsAnErrorUnlessEveryStatusIsAccepted() async throws {
        try await withServer(status: 404) { server, client, _ in
            let missing = request(to: server, "/")
            let error = await #expect(throws: NetworkError.self) { try await client.response(for: missing) }
            #expect(error?.status == 404)
            let (response, _) = try await client.response(for: missing) { $0.validation = .any }
            #expect(response.status == .notFound)
        }
    }

    @Test func aRequestWithoutAuthorityGoesToTheBaseURL() async throws {
        try await withServer(headers: ["X-Client": "yes"]) { server, client, log in
            let folder = try Client(baseURL: "\(server.url)v1", session: client.session)
            for path in ["/users?a=b", "//other.example/x", "/a/../b"] {
                let request = HTTPRequest(method: .get, scheme: nil, authority: nil, path: path)
                _ = try await client.response(for: request)
                _ = try await folder.response(for: request)
            }
            let targets = ["/users?a=b", "//other.example/x", "/b"]
            #expect(log.all.map(\.target) == targets.flatMap { [$0, $0] })
            #expect(log.all.filter { $0.headers.contains("X-Client: yes") }.count == 3)
        }
    }

    @Test func headersOfTheClientDoNotGoToAnotherServer() async throws {
        try await withServer(headers: ["X-Client": "yes", "Authorization": "Bearer s3cret"]) { _, client, _ in
            try await withServer { other, _, log in
                _ = try await client.response(for: request(to: other, "/"))
                #expect(log.all.count == 1)
                #expect(!log.all[0].headers.contains { $0.hasPrefix("X-Client") || $0.hasPrefix("Authorization") })
            }
        }
    }

    @Test func aRequestThatCannotBeConvertedSendsNothing() async throws {
        try await withServer { server, client, log in
            var fields = HTTPFields()
            fields.append(HTTPField(name: .accept, value: [0xFF]))
            await #expect(throws: ConversionError.self) {
                try await client.response(for: request(to: server, "/", fields: fields))
            }
            #expect(throws: ConversionError.self) { try client.stream(request(to: server, "x")) }
            #expect(log.all.isEmpty)
        }
    }

    @Test func aStreamAndADownloadTakeTheRequest() async throws {
        try await withServer { server, client, log in
            let stream = try client.stream(request(.post, to: server, "/s"), body: .text("x"))
            #expect(try HTTPResponse(await stream.response).status == .ok)
            var bytes = Data()
            for try await chunk in stream.chunks { bytes += chunk }
            #expect(bytes == Data("[1,2]".utf8))
            let file = FileManager.default.temporaryDirectory.appending(path: "tern-http-types-\(server.port)")
            defer { try? FileManager.default.removeItem(at: file) }
            let saved = try await client.download(request(to: server, "/d"), to: file).value
            #expect(try Data(contentsOf: saved) == bytes)
            #expect(log.all.map(\.method) == ["POST", "GET"])
        }
    }
}
