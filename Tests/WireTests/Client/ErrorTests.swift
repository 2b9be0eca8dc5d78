#if os(Linux) && !TERN_URLSESSION
import Synchronization
import Tern
import TernStreaming
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Checks each kind of failure over real sockets, and the content of its error.
@Suite("Wire: errors", .timeLimit(.minutes(1)))
struct ErrorTests {
    // MARK: No connection

    @Test func unknownNameIsADNSFailure() async throws {
        let session = Session(configuration: .test { $0.timeouts.connect = .seconds(40) })
        let client = try Client(baseURL: "http://host.invalid/", session: session)
        let error = try await failure { try await client.get("x") }
        #expect(error.kind == .dns)
        #expect(error.reason.contains("host.invalid"))
        #expect(error.metrics?.remoteAddress == nil)
    }

    @Test func refusedConnectionIsItsOwnKind() async throws {
        let port = try LoopbackServer.refusingPort()
        let client = try Client(baseURL: "http://127.0.0.1:\(port)/", session: Session(configuration: .test()))
        let error = try await failure { try await client.get("x") }
        #expect(error.kind == .connectionRefused)
        #expect(error.reason.contains("127.0.0.1:\(port)"))
        #expect(error.response == nil && error.metrics != nil)
        #expect(error.description == "connection-refused: GET http://127.0.0.1:\(port)/x: \(error.reason)")
    }

    @Test func noDecoderRunsAfterATransportError() async throws {
        let decodes = Atomic(0)
        let decoder = BodyDecoder { body, _ in
            decodes.add(1, ordering: .relaxed)
            return body.count
        }
        try await withServer { exchange in
            try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel")
            if exchange.request.path == "/whole" { try exchange.write("lo") }
            exchange.close()
        } test: { server, client async throws in
            func get(_ path: String) async throws -> Int {
                try await client.session.response(for: client.request(.get, path), decode: decoder).value
            }
            #expect(try await failure { try await get("cut") }.kind == .truncatedBody)
            #expect(decodes.load(ordering: .relaxed) == 0)
            #expect(try await get("whole") == 5)
            server.stop()
            #expect(try await failure { try await get("refused") }.kind == .connectionRefused)
        }
        #expect(decodes.load(ordering: .relaxed) == 1)
    }

    // MARK: Limits of size

    @Test(arguments: [true, false]) func bodyBeyondTheLimitOfMemoryIsTooLarge(isStated: Bool) async throws {
        try await withServer(configuration: .test { $0.maximumBodySize = 1_000 }) { exchange in
            let body = [UInt8](repeating: 7, count: Int(exchange.request.path.dropFirst()) ?? 0)
            if isStated { try exchange.respond(body: body) } else { try exchange.writeChunked(chunks: [body]) }
        } test: { _, client in
            #expect(try await client.get("1000").count == 1_000)
            let error = try await failure { try await client.get("1001") }
            #expect(error.kind == .tooLarge)
            #expect(error.reason.contains("1000 bytes"))
            #expect(error.status == 200)
            // The limit of a request replaces that of the session; a stream has none.
            var request = try client.request(.get, "5000")
            request.maximumBodySize = 5_000
            #expect(try await client.response(for: request).value.count == 5_000)
            var count = 0
            for try await chunk in client.stream("5000").chunks { count += chunk.count }
            #expect(count == 5_000)
        }
    }

    @Test func refusedStatusTakesPrecedenceOverALargeBody() async throws {
        try await withServer(configuration: .test { $0.maximumBodySize = 1_000 }) { exchange in
            try exchange.respond(status: 500, body: LoopbackServer.Pattern(count: 5_000).bytes())
        } test: { _, client in
            let error = try await failure { try await client.get("") }
            #expect(error.kind == .status && error.status == 500)
            #expect(error.body == Data(LoopbackServer.Pattern(count: 1_000).bytes()))
        }
    }

    @Test func tooLargeContentLengthIsRefusedAtTheHead() async throws {
        try await withServer { exchange in
            try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 4000000000000\r\n\r\nx")
            try exchange.waitForClientToClose()
        } test: { server, client in
            let error = try await failure { try await client.get("") }
            #expect(error.kind == .tooLarge)
            try await server.wait { $0.openConnections == 0 }
        }
    }

    // MARK: Status

    @Test(arguments: [300, 301, 304, 400, 404, 418, 500, 599]) func statusOutside2xxIsAnError(status: Int) async throws
    {
        try await withServer { exchange in
            try exchange.respond(status: status, headers: [("X-Why", "because")], text: "the reason")
        } test: { server, client in
            let error = try await failure { try await client.get("") }
            #expect(error.kind == .status && error.status == status)
            #expect(error.response?.headers["X-Why"] == "because")
            #expect(error.body == (status == 304 ? Data() : Data("the reason".utf8)))
            #expect(error.shortDescription == "status-\(status)")
            #expect(error.description.contains("\(status)"))
            let streamed = try await failure { try await client.stream("").response }
            #expect(streamed.status == status && streamed.body == error.body)
            // The refused bodies were read to their ends: the connection can be used again.
            try await server.wait { $0.idleConnections == $0.acceptedConnections }
        }
    }

    @Test(arguments: [200, 201, 202, 204, 207, 299]) func statusInside2xxIsNotAnError(status: Int) async throws {
        try await withServer {
            try $0.respond(status: status)
        } test: { _, client async throws in
            #expect(try await client.response(for: client.request(.get, "")).status == status)
        }
    }

    @Test func errorContainsTheStartOfTheBodyOnly() async throws {
        try await withServer(configuration: .test { $0.errorBodyLimit = 100 }) { exchange in
            try exchange.respond(status: 500, body: LoopbackServer.Pattern(count: 1_000_000).bytes())
        } test: { _, client async throws in
            let start = Data(LoopbackServer.Pattern(count: 100).bytes())
            #expect(try await failure { try await client.get("") }.body == start)
            #expect(try await failure { try await client.stream("").response }.body == start)
        }
    }

    @Test(arguments: ["collected", "streamed"])
    func aLongProblemDocumentDecodes(form: String) async throws {
        struct Problem: Decodable { let title: String, details: [String] }
        let details = (0..<4_000).map { "the field \($0) is wrong" }
        try await withServer { exchange in
            let text = "{\"title\":\"wrong\",\"details\":[\"" + details.joined(separator: "\",\"") + "\"]}"
            try exchange.respond(
                status: 422, headers: [("Content-Type", "application/problem+json")], body: Array(text.utf8))
        } test: { _, client in
            let error = try await failure {
                if form == "streamed" { _ = try await client.stream("").response } else { _ = try await client.get("") }
            }
            #expect(error.status == 422 && error.body.count > 100_000)
            let problem = try error.decode(as: Problem.self)
            #expect(problem.title == "wrong" && problem.details == details)
        }
    }

    /// An interceptor that decodes the error before the caller has it.
    private struct Decoding: Interceptor {
        func intercept(_ request: Request, next: Next) async throws -> Reply {
            do {
                return try await next(request)
            } catch {
                #expect(try error.decode(as: Refusal.self) == Refusal(errorCode: 7))
                throw error
            }
        }
    }

    private struct Refusal: Decodable, Equatable { let errorCode: Int }

    @Test(arguments: [
        "value", "data", "response", "task", "post", "upload", "download", "stream", "decoding", "interceptor", "retry",
        "events",
    ])
    func errorsDecodeWithTheCodersOfTheSession(form: String) async throws {
        let configuration = Session.Configuration.test {
            $0.json.decoder.keyDecodingStrategy = .convertFromSnakeCase
            if form == "interceptor" { $0.interceptors = [Decoding()] }
            var policy = RetryPolicy()
            policy.firstDelay = .zero
            if form == "retry" { $0.interceptors = [RetryInterceptor(policy)] }
        }
        try await withServer(configuration: configuration) { exchange in
            let status = form == "decoding" ? 200 : form == "retry" ? 503 : 400
            try exchange.respond(
                status: status, headers: [("Content-Type", "application/json")], body: Array(#"{"error_code":7}"#.utf8))
        } test: { _, client in
            let error = try await failure {
                switch form {
                case "value", "interceptor", "retry", "decoding": _ = try await client.get("", as: [Int].self)
                case "response": _ = try await client.response(for: client.request(.get, ""))
                case "task": _ = try await client.task(.get, "").value
                case "post": _ = try await client.post("", body: .json([1]), as: [Int].self)
                case "download": _ = try await client.download("", destination: nil).value
                case "upload": _ = try await client.task(.put, "", body: .data(Data([1]))).value
                case "stream": _ = try await client.stream("").response
                case "events": for try await _ in client.events("") {}
                default: _ = try await client.get("")
                }
            }
            #expect(try error.decode(as: Refusal.self) == Refusal(errorCode: 7))
        }
    }

    // MARK: Decoding

    @Test func decodingErrorHasItsPathAndResponse() async throws {
        struct User: Decodable, Sendable { let id: Int }
        try await withServer {
            try $0.respond(json: [["id": "private"]])
        } test: { _, client in
            let error = try await failure { try await client.get("", as: [User].self) }
            #expect(error.kind == .decoding && error.underlying is DecodingError)
            #expect(error.reason.contains("id") && !error.description.contains("private"))
            #expect(error.status == 200 && error.body == Data(#"[{"id":"private"}]"#.utf8))
        }
    }

    // MARK: Cancelled

    @Test func cancelledHandleAndCancelledTaskHaveTheSameKind() async throws {
        try await withServer {
            try $0.waitForClientToClose()
        } test: { server, client in
            let task = client.task(.get, "")
            let direct = Task { () async -> NetworkError? in
                do throws(NetworkError) {
                    _ = try await client.get("")
                    return nil
                } catch {
                    return error
                }
            }
            try await server.wait { $0.requestsReceived == 2 }
            task.cancel()
            direct.cancel()
            for error in [try await failure { try await task.value }, try #require(await direct.value)] {
                #expect(error.kind == .cancelled && error.isCancelled)
                #expect(error.taskID != nil && error.sessionID == client.session.id)
            }
            #expect(task.state == .cancelled)
            try await server.wait { $0.openConnections == 0 }
            await client.session.drained()
            #expect(await client.session.tasks.count == 0)
        }
    }

    @Test func errorNamesItsTask() async throws {
        try await withServer {
            try $0.respond(status: 500)
        } test: { _, client in
            var request = try client.request(.get, "x")
            request.label = "nightly"
            let task = client.session.task(for: request)
            task.resume()
            let error = try await failure { try await task.value }
            #expect(
                error.taskID == task.id && error.label == "nightly" && error.request?.urlString == request.urlString)
            #expect(error.description.contains("[nightly]"))
        }
    }
}
#endif
