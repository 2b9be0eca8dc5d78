import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Calls the verbs in the forms in which users write them.
@Suite("Wire: verbs", .timeLimit(.minutes(1)))
struct ClientVerbTests {
    private struct User: Codable, Sendable, Equatable {
        var id: Int
        var name: String
    }

    private static let ada = User(id: 1, name: "Ada")

    /// Answers `/user` with Ada, `/empty` with nothing, `/null` with JSON null, and others with method, target and
    /// body.
    private static let handler: LoopbackServer.Handler = { exchange in
        switch exchange.request.path {
        case "/user": try exchange.respond(json: ada)
        case "/empty": try exchange.respond(status: 204)
        case "/null": try exchange.respond(headers: [("Content-Type", "application/json")], text: "null")
        case "/echo":
            try exchange.respond(headers: [("Content-Type", "application/json")], body: try exchange.readBody())
        case "/string": try exchange.respond(headers: [("Content-Type", "application/json")], text: "\"quoted\"")
        default:
            let body = String(decoding: try exchange.readBody(), as: UTF8.self)
            try exchange.respond(text: "\(exchange.request.method) \(exchange.request.target) \(body)")
        }
    }

    // MARK: Types

    @Test func unannotatedLetIsData() async throws {
        try await withServer(Self.handler) { _, client in
            let body = try await client.get("x")
            let data: Data = body
            #expect(data == Data("GET /x ".utf8))
        }
    }

    @Test func callsWithoutAValueNeedNoType() async throws {
        try await withServer(Self.handler) { server, client in
            try await client.delete("x")
            try await client.post("x", body: .json(Self.ada))
            try await client.put("x")
            try await client.patch("x")
            try await client.get("x")
            try await client.send("PURGE", "x")
            _ = try await client.head("x")
            let methods = ["DELETE", "POST", "PUT", "PATCH", "GET", "PURGE", "HEAD"]
            #expect(server.requests.map(\.method) == methods)
        }
    }

    @Test(arguments: ["PURGE", "M-SEARCH", "purge"])
    func anyMethodIsSentByItsName(name: String) async throws {
        try await withServer(Self.handler) { server, client async throws in
            #expect(try await client.send(Request.Method(name), "x", as: String.self) == "\(name) /x ")
            #expect(try await client.task(Request.Method(name), "x", as: String.self).value == "\(name) /x ")
            #expect(server.requests.map(\.method) == [name, name])
        }
    }

    @Test func annotationSelectsTheType() async throws {
        try await withServer(Self.handler) { _, client in
            let user: User = try await client.get("user")
            let data: Data = try await client.get("user")
            let text: String = try await client.get("x")
            let _: NoContent = try await client.get("user")
            let numbers: [String: Int]? = try await client.get("null")
            #expect(user == Self.ada && text == "GET /x " && numbers == nil)
            #expect(try JSONDecoder().decode(User.self, from: data) == Self.ada)
        }
    }

    @Test func argumentSelectsTheType() async throws {
        try await withServer(Self.handler) { _, client async throws in
            #expect(try await client.get("user", as: User.self) == Self.ada)
            #expect(try await client.get("x", as: Data.self) == Data("GET /x ".utf8))
            #expect(try await client.get("x", as: String.self) == "GET /x ")
            // String is the body as text, not a JSON string.
            #expect(try await client.get("string", as: String.self) == "\"quoted\"")
            #expect(try await client.delete("user", as: NoContent.self) == NoContent())
            #expect(try await client.post("x", body: .text("b"), as: String.self) == "POST /x b")
            #expect(try await client.put("x", body: .text("b"), as: String.self) == "PUT /x b")
            #expect(try await client.patch("x", body: .text("b"), as: String.self) == "PATCH /x b")
            #expect(try await client.send("LINK", "x", as: String.self) == "LINK /x ")
            #expect(try await client.task(.get, "user", as: User.self).value == Self.ada)
            #expect(try await client.task(.get, "x").value == Data("GET /x ".utf8))
            #expect(try await client.upload("x", body: .text("up"), as: String.self).value == "POST /x up")
            #expect(try await client.response(for: client.request(.get, "user"), as: User.self).value == Self.ada)
        }
    }

    /// golang/go: `json.Encoder` writes a line feed after each value. Alamofire #2466 and kean/Get #57: servers send
    /// white space in place of a value.
    @Test(arguments: [
        "null\n", " null", "\r\nnull\t", "\u{FEFF}null", " ", "\n", "\r\n", "\t \t", "\u{FEFF}", "\u{FEFF}\n",
    ])
    func optionalIsNilForNullAndWhiteSpace(body: String) async throws {
        try await withServer(Self.handler) { _, client in
            let user: User? = try await client.post("echo", body: .text(body))
            let users: [User]? = try await client.post("echo", body: .text(body))
            #expect(user == nil && users == nil)
            let data: Data? = try await client.post("echo", body: .text(body))
            #expect(data == Data(body.utf8))
        }
    }

    @Test(arguments: ["nul", "null null", "nullx", "\"null\"", "\u{A0}", "\u{B}"])
    func optionalIsAnErrorForOtherBodies(body: String) async throws {
        try await withServer(Self.handler) { _, client in
            let error = try await failure { try await client.post("echo", body: .text(body)) as User? }
            #expect(error.kind == .decoding)
        }
    }

    @Test func optionalIsNilForAnEmptyBody() async throws {
        try await withServer(Self.handler) { _, client in
            let data: Data? = try await client.get("empty")
            let text: String? = try await client.get("empty")
            let user: User? = try await client.get("empty")
            #expect(data == nil && text == nil && user == nil)
            let someData: Data? = try await client.get("x")
            let someUser: User? = try await client.get("user")
            #expect(someData == Data("GET /x ".utf8) && someUser == Self.ada)
            #expect(try await client.get("null", as: User?.self) == nil)
            #expect(try await client.get("null", as: String?.self) == "null")
            #expect(try await client.get("empty", as: Data.self).isEmpty)
            #expect(try await client.get("empty", as: String.self).isEmpty)
            let error = try await failure { try await client.get("empty", as: User.self) }
            #expect(error.kind == .decoding && error.reason.contains("empty"))
        }
    }

    private func fetch<T: Decodable & Sendable>(_ type: T.Type, _ path: String, _ client: Client) async throws -> T {
        try await client.get(path)
    }

    private func created<T: Codable & Sendable>(_ value: T, _ client: Client) async throws -> T {
        try await client.post("user", body: .json(value))
    }

    @Test func genericCallerCanPassABodyType() async throws {
        try await withServer(Self.handler) { _, client async throws in
            #expect(try await fetch(Data.self, "x", client) == Data("GET /x ".utf8))
            #expect(try await fetch(String.self, "x", client) == "GET /x ")
            #expect(try await fetch(Data?.self, "empty", client) == nil)
            #expect(try await fetch(NoContent.self, "empty", client) == NoContent())
            #expect(try await fetch(User.self, "user", client) == Self.ada)
            #expect(try await created(Self.ada, client) == Self.ada)
        }
    }

    @Test func configuredCodersAreUsed() async throws {
        struct Dated: Codable, Sendable, Equatable { var createdAt: Date }
        // The example of Documentation/Requests.md.
        let configuration = Session.Configuration.test { configuration in
            configuration.json.decoder.keyDecodingStrategy = .convertFromSnakeCase
            configuration.json.decoder.dateDecodingStrategy = .iso8601
            configuration.json.encoder.keyEncodingStrategy = .convertToSnakeCase
            configuration.json.encoder.dateEncodingStrategy = .iso8601
        }
        try await withServer(configuration: configuration) { exchange in
            let isJSON = exchange.request["Content-Type"] == "application/json"
            let body = try exchange.readBody()
            let isRight = isJSON && body == [UInt8](#"{"created_at":"1970-01-01T00:00:05Z"}"#)
            try exchange.respond(
                status: isRight ? 200 : 400, headers: [("Content-Type", "application/json")], body: body)
        } test: { _, client async throws in
            let dated = Dated(createdAt: Date(timeIntervalSince1970: 5))
            #expect(try await client.post("", body: .json(dated)) == dated)
        }
    }

    // MARK: Requests

    @Test func queryIsAppendedInOrder() async throws {
        try await withServer(Self.handler) { _, client async throws in
            let query: Request.Query = ["page": 2, "tags": "a b&c", "flag": .null, "page": 3]
            #expect(
                try await client.get("x?y=z", query: query, as: String.self)
                    == "GET /x?y=z&page=2&tags=a%20b%26c&flag&page=3 ")
            #expect(try await client.delete("x", query: ["id": 1], as: String.self) == "DELETE /x?id=1 ")
        }
    }

    @Test func headersOfTheCallComeBeforeTheClientsAndTheSessions() async throws {
        let configuration = Session.Configuration.test { configuration in
            configuration.headers = ["X-One": "session", "X-Two": "session", "X-Three": "session"]
        }
        try await withServer(configuration: configuration) { exchange in
            let values = ["X-One", "X-Two", "x-three"].map { exchange.request.values(of: $0).joined(separator: "+") }
            try exchange.respond(text: values.joined(separator: " "))
        } test: { _, client async throws in
            var client = client
            client.headers = ["x-two": "client", "X-Three": "client"]
            #expect(try await client.get("", as: String.self) == "session client client")
            #expect(try await client.get("", headers: ["X-THREE": "call"], as: String.self) == "session client call")
            #expect(
                try await client.task(.post, "", headers: ["X-One": "call"], as: String.self).value
                    == "call client client")
        }
    }

    @Test func bodyBringsItsTypeUnlessTheCallHasOne() async throws {
        try await withServer { exchange in
            try exchange.respond(text: exchange.request.values(of: "Content-Type").joined(separator: "+"))
        } test: { _, client async throws in
            #expect(try await client.post("", as: String.self) == "")
            #expect(try await client.post("", body: .json(1), as: String.self) == "application/json")
            #expect(try await client.post("", body: .text("x"), as: String.self) == "text/plain; charset=utf-8")
            #expect(try await client.post("", body: .data(Data()), as: String.self) == "application/octet-stream")
            #expect(try await client.post("", body: .data(Data([1]), contentType: nil), as: String.self) == "")
            let type: Headers = ["content-type": "application/vnd.api+json"]
            #expect(try await client.put("", headers: type, body: .json(1), as: String.self) == type["Content-Type"])
        }
    }

    @Test func bodiesArriveWithTheirLengthsAndMethods() async throws {
        try await withServer { exchange in
            let body = try exchange.readBody()
            let framing = exchange.request.isChunked ? "chunked" : exchange.request["Content-Length"] ?? "none"
            try exchange.respond(text: "\(exchange.request.method) \(framing) \(body.count)")
        } test: { _, client async throws in
            let chunks = AsyncStream<Data> { continuation in
                for size in [1, 0, 5_000, 2] { continuation.yield(Data(count: size)) }
                continuation.finish()
            }
            #expect(try await client.post("", as: String.self) == "POST 0 0")
            #expect(try await client.put("", as: String.self) == "PUT 0 0")
            #expect(try await client.delete("", as: String.self) == "DELETE none 0")
            #expect(try await client.delete("", body: .text("why"), as: String.self) == "DELETE 3 3")
            #expect(
                try await client.patch("", body: .data(Data(count: 70_000)), as: String.self) == "PATCH 70000 70000")
            #expect(try await client.post("", body: .stream(chunks), as: String.self) == "POST chunked 5003")
        }
    }

    @Test func pathOfTheBaseURLIsAFolder() async throws {
        try await withServer(Self.handler) { server, client async throws in
            let api = Client(baseURL: server.url("v1"), session: client.session)
            let expected = [
                "users/1": "/v1/users/1", "/users": "/users", "": "/v1/", "?a=b": "/v1/?a=b", "a/": "/v1/a/",
                server.url("absolute").absoluteString: "/absolute",
            ]
            for (path, target) in expected {
                #expect(try await api.get(path, as: String.self) == "GET \(target) ")
            }
        }
    }

    // MARK: Text

    @Test(
        arguments: [
            ("text/plain", [0x63, 0x61, 0x66, 0xC3, 0xA9]),
            ("text/plain; charset=utf-8", [0x63, 0x61, 0x66, 0xC3, 0xA9]),
            ("text/plain; charset=ISO-8859-1", [0x63, 0x61, 0x66, 0xE9]), ("text/plain", [0x63, 0x61, 0x66, 0xE9]),
            ("text/plain; charset=\"windows-1252\"", [0x63, 0x61, 0x66, 0xE9]),
            ("text/html;charset=utf-16le", [0x63, 0, 0x61, 0, 0x66, 0, 0xE9, 0]),
        ] as [(String, [UInt8])])
    func stringIsReadInTheCharsetOfTheResponse(type: String, bytes: [UInt8]) async throws {
        try await withServer {
            try $0.respond(headers: [("Content-Type", type)], body: bytes)
        } test: { _, client async throws in
            #expect(try await client.get("", as: String.self) == "café")
        }
    }

    @Test(arguments: ["martian", "utf-8,gbk", "\"none\"", "utf8mb4"])
    func anUnknownCharsetIsIgnored(label: String) async throws {
        try await withServer { exchange in
            let body: [UInt8] = exchange.request.path == "/utf8" ? [0xC3, 0xA9] : [0xE9, 0x80]
            try exchange.respond(headers: [("Content-Type", "text/plain; charset=\(label)")], body: body)
        } test: { _, client async throws in
            #expect(try await client.get("utf8", as: String.self) == "é")
            #expect(try await client.get("other", as: String.self) == "é€")
        }
    }

    @Test func bytesThatAreNotInTheirCharsetAreAnError() async throws {
        try await withServer { exchange in
            try exchange.respond(headers: [("Content-Type", "text/plain; charset=utf-8")], body: [0x78, 0xE9])
        } test: { _, client in
            let error = try await failure { try await client.get("", as: String.self) }
            #expect(error.kind == .decoding && error.reason.contains("utf-8") && error.body == Data([0x78, 0xE9]))
        }
    }
}
