import HTTPTypes
import OpenAPIRuntime
import Tern
import TernOpenAPITransport
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Sends requests over sockets of this machine, as a generated client does.
@Suite(.timeLimit(.minutes(2)))
struct TernTransportTests {
    private let session: Session

    init() {
        var configuration = Session.Configuration()
        // Longer than the tests: a transfer that ends early ends for its own reason.
        configuration.timeouts.idle = .seconds(600)
        session = Session(configuration: configuration)
    }

    /// Sends a request to a path of a server.
    private func send(
        _ method: HTTPRequest.Method, _ path: String, to baseURL: URL, fields: HTTPFields = [:], body: HTTPBody? = nil
    ) async throws -> (response: HTTPResponse, body: HTTPBody?) {
        // A generated client gives neither a scheme nor an authority.
        let request = HTTPRequest(method: method, scheme: nil, authority: nil, path: path, headerFields: fields)
        let transport: any ClientTransport = TernTransport(session: session)
        return try await transport.send(request, body: body, baseURL: baseURL, operationID: "anOperation")
    }

    private func text(_ body: HTTPBody?) async throws -> String {
        let body = try #require(body)
        return String(decoding: try await [UInt8](collecting: body, upTo: 1 << 20), as: UTF8.self)
    }

    // MARK: Requests

    @Test(arguments: [
        ("v1", "/users?page=2"), ("v1/", "/users?page=2"), ("v1/", "users?page=2"), ("v1", "users?page=2"),
    ])
    func thePathFollowsThatOfTheServer(base: String, path: String) async throws {
        let server = try LoopbackServer { try $0.respond(text: $0.request.target) }
        let answer = try await send(.get, path, to: server.url(base))
        #expect(try await text(answer.body) == "/v1/users?page=2")
    }

    @Test func anEmptyPathIsThatOfTheServer() async throws {
        let server = try LoopbackServer { try $0.respond(text: $0.request.target) }
        let answer = try await send(.get, "", to: server.url("v1"))
        #expect(try await text(answer.body) == "/v1")
    }

    @Test func methodFieldsAndBodyArriveAtTheServer() async throws {
        let server = try LoopbackServer { exchange in
            let body = String(decoding: try exchange.readBody(), as: UTF8.self)
            let request = exchange.request
            let fields = ["Content-Type", "Content-Length", "X-Own"].map { request[$0] ?? "-" }
            try exchange.respond(text: ([request.method] + fields + [body]).joined(separator: " "))
        }
        var fields: HTTPFields = [.contentType: "application/json"]
        fields[try #require(HTTPField.Name("X-Own"))] = "1"
        let answer = try await send(.put, "/", to: server.url, fields: fields, body: HTTPBody("{}".utf8))
        #expect(try await text(answer.body) == "PUT application/json 2 1 {}")
    }

    @Test(arguments: [HTTPBody.Length.unknown, .known(12)])
    func theBodyOfARequestIsStreamed(length: HTTPBody.Length) async throws {
        let hasFirst = LoopbackServer.Gate()
        let server = try LoopbackServer { exchange in
            var text = ""
            while let chunk = try exchange.readChunk() {
                text += String(decoding: chunk, as: UTF8.self)
                hasFirst.open()
            }
            try exchange.respond(text: "\(text) \(exchange.request["Content-Length"] ?? "chunked")")
        }
        // The second part is made when the server has the first.
        let (parts, continuation) = AsyncStream<ArraySlice<UInt8>>.makeStream()
        continuation.yield(ArraySlice("first,".utf8))
        async let answer = send(
            .post, "/", to: server.url, body: HTTPBody(parts, length: length, iterationBehavior: .single))
        try await hasFirst.wait()
        continuation.yield(ArraySlice("second".utf8))
        continuation.finish()
        let expected = "first,second \(length == .unknown ? "chunked" : "12")"
        #expect(try await text(await answer.body) == expected)
    }

    @Test func aBodyInMemoryIsSentAgainAfterARedirect() async throws {
        let server = try LoopbackServer { exchange in
            let body = try exchange.readBody()
            if exchange.request.path == "/old" {
                try exchange.respond(status: 307, headers: [("Location", "/new")])
            } else {
                try exchange.respond(body: body)
            }
        }
        let answer = try await send(.post, "/old", to: server.url, body: HTTPBody("abc".utf8))
        #expect(try await text(answer.body) == "abc")
    }

    @Test(arguments: [IterationBehavior.single, .multiple])
    func aBodyOfAnotherLengthFailsTheRequest(behavior: IterationBehavior) async throws {
        let server = try LoopbackServer { exchange in
            _ = try exchange.readBody()
            try exchange.respond(text: "read")
        }
        let stream = AsyncStream<ArraySlice<UInt8>> { continuation in
            continuation.yield([1, 2, 3])
            continuation.finish()
        }
        let body = HTTPBody(stream, length: .known(5), iterationBehavior: behavior)
        let error = await #expect(throws: NetworkError.self) {
            _ = try await send(.post, "/", to: server.url, body: body)
        }
        #expect(error?.kind == (behavior == .single ? .requestBody : .invalidRequest))
    }

    @Test func theTaskHasTheNameOfTheOperation() async throws {
        let gate = LoopbackServer.Gate()
        let server = try LoopbackServer { exchange in
            try exchange.wait(for: gate)
            try exchange.respond(text: "")
        }
        async let answer = send(.get, "/", to: server.url)
        try await server.wait { $0.requestsReceived == 1 }
        #expect(await session.tasks.all.map(\.label) == ["anOperation"])
        gate.open()
        _ = try await answer
    }

    // MARK: Responses

    @Test(arguments: [200, 201, 404, 500]) func everyStatusIsAResponse(status: Int) async throws {
        let server = try LoopbackServer { exchange in
            try exchange.respond(
                status: status,
                headers: [("Content-Type", "application/x-own"), ("Set-Cookie", "a"), ("Set-Cookie", "b")],
                text: "text")
        }
        let answer = try await send(.get, "/", to: server.url)
        #expect(answer.response.status.code == status)
        #expect(answer.response.headerFields[.contentType] == "application/x-own")
        #expect(answer.response.headerFields[values: .setCookie] == ["a", "b"])
        #expect(answer.body?.length == .known(4))
        #expect(answer.body?.iterationBehavior == .single)
        #expect(try await text(answer.body) == "text")
    }

    @Test func theBodyOfAResponseIsStreamed() async throws {
        let hasArrived = LoopbackServer.Gate()
        let server = try LoopbackServer { exchange in
            try exchange.writeChunkedHead()
            try exchange.writeChunk(Array("first".utf8))
            try exchange.wait(for: hasArrived)
            try exchange.writeChunk(Array("second".utf8))
            try exchange.endChunks()
        }
        let answer = try await send(.get, "/", to: server.url)
        let body = try #require(answer.body)
        #expect(body.length == .unknown)
        var iterator = body.makeAsyncIterator()
        #expect(try await iterator.next() == ArraySlice("first".utf8))
        hasArrived.open()
        #expect(try await iterator.next() == ArraySlice("second".utf8))
        #expect(try await iterator.next() == nil)
    }

    @Test(arguments: [HTTPRequest.Method.head, .get]) func aResponseWithoutContentHasNoBody(
        method: HTTPRequest.Method
    ) async throws {
        let server = try LoopbackServer { exchange in
            if exchange.request.method == "HEAD" {
                try exchange.writeHead(headers: [("Content-Length", "5")])
            } else {
                try exchange.writeHead(status: 204)
            }
        }
        let answer = try await send(method, "/", to: server.url)
        #expect(answer.response.status.code == (method == .head ? 200 : 204))
        #expect(answer.body == nil)
    }

    // MARK: Errors and cancellation

    @Test func aRefusedConnectionIsAnError() async throws {
        let url = try #require(URL(string: "http://127.0.0.1:\(LoopbackServer.refusingPort())"))
        let error = await #expect(throws: NetworkError.self) { _ = try await send(.get, "/", to: url) }
        #expect(error?.kind == .connectionRefused)
        #expect(error?.label == "anOperation")
    }

    @Test func aTruncatedBodyIsAnErrorOfItsIterator() async throws {
        let server = try LoopbackServer { exchange in
            try exchange.writeHead(headers: [("Content-Length", "10")])
            try exchange.write("first")
            exchange.close()
        }
        let answer = try await send(.get, "/", to: server.url)
        let error = await #expect(throws: NetworkError.self) { _ = try await text(answer.body) }
        #expect(error?.kind == .truncatedBody)
    }

    @Test func theErrorOfABodyEndsTheRequest() async throws {
        struct Broken: Error {}
        let server = try LoopbackServer { _ = try $0.readBody() }
        let parts = AsyncThrowingStream<ArraySlice<UInt8>, any Error> { continuation in
            continuation.yield([1, 2, 3])
            continuation.finish(throwing: Broken())
        }
        let body = HTTPBody(parts, length: .unknown, iterationBehavior: .single)
        let error = await #expect(throws: NetworkError.self) {
            _ = try await send(.post, "/", to: server.url, body: body)
        }
        #expect(error?.kind == .requestBody)
        #expect(error?.underlying is Broken)
    }

    @Test func cancellingTheCallEndsTheRequest() async throws {
        let (hasRequest, hasLeft) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        let server = try LoopbackServer { exchange in
            hasRequest.open()
            try exchange.waitForClientToClose()
            hasLeft.open()
        }
        let call = Task { try await send(.get, "/", to: server.url) }
        try await hasRequest.wait()
        call.cancel()
        let error = await #expect(throws: NetworkError.self) { _ = try await call.value }
        #expect(error?.isCancelled == true)
        try await hasLeft.wait()
    }

    @Test func releasingTheBodyEndsTheTransfer() async throws {
        let hasLeft = LoopbackServer.Gate()
        let server = try LoopbackServer { exchange in
            try exchange.writeChunkedHead()
            try exchange.waitForClientToClose()
            hasLeft.open()
        }
        var answer: (response: HTTPResponse, body: HTTPBody?)? = try await send(.get, "/", to: server.url)
        #expect(answer?.response.status == .ok)
        answer = nil
        try await hasLeft.wait()
    }
}
