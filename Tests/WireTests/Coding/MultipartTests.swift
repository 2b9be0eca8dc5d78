#if !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite(.timeLimit(.minutes(1)))
struct MultipartTests {
    /// The request as the server received it.
    private struct Received: Codable, Sendable, Equatable {
        var type: String
        var length: Int?
        var body: String
    }

    private static func receive(_ exchange: LoopbackServer.Exchange) throws {
        let body = String(decoding: try exchange.readBody(), as: UTF8.self)
        let request = exchange.request
        try exchange.respond(
            json: Received(type: request["Content-Type"] ?? "", length: request.contentLength, body: body))
    }

    private static func form() throws -> MultipartForm {
        var form = try MultipartForm(boundary: "b")
        form.append("Ada", named: "name")
        form.append(Data("12".utf8), named: "file", filename: "a.txt")
        return form
    }

    private static let bytes = """
        --b\r\nContent-Disposition: form-data; name="name"\r\n\r\nAda\r\n--b\r\n\
        Content-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\n12\r\n--b--\r\n
        """

    @Test func aFormArrivesWithItsExactLength() async throws {
        try await withServer(Self.receive) { _, client in
            let task = client.upload("a", multipart: try Self.form(), as: Received.self)
            let last = await task.uploadProgress.collected().last
            let received = try await task.value
            #expect(
                received
                    == Received(
                        type: "multipart/form-data; boundary=b", length: Self.bytes.utf8.count, body: Self.bytes))
            #expect(last?.totalBytes == Int64(Self.bytes.utf8.count) && last?.isFinished == true)
        }
    }

    @Test func aFormWithoutPartsLeavesTheRequestAsItIs() async throws {
        try await withServer(Self.receive) { _, client in
            let received: Received = try await client.post("a", body: .multipart(MultipartForm()))
            #expect(received == Received(type: "", length: 0, body: ""))
        }
    }

    @Test(arguments: [Request.Method.get, .head]) func aMethodWithoutBodyRefusesAForm(
        method: Request.Method
    ) async throws {
        try await withServer(Self.receive) { server, client in
            let form = try Self.form()
            let error = try await failure { _ = try await client.send(method, "a", body: .multipart(form)) }
            #expect(error.kind == .invalidRequest)
            #expect(server.counts.acceptedConnections == 0)
        }
    }

    @Test func aFormOfDataAndFilesIsSentAgainAfterARedirect() async throws {
        try await inTestFolder { folder in
            try folder.write("content", to: "f.bin")
            try await withServer { exchange in
                if exchange.request.path == "/a" {
                    _ = try exchange.drainBody()
                    try exchange.respond(status: 307, headers: [("Location", "/b")], text: "")
                } else {
                    try Self.receive(exchange)
                }
            } test: { _, client in
                var form = try Self.form()
                try form.append(file: folder.url("f.bin"), named: "f")
                let received: Received = try await client.post("a", body: .multipart(form))
                #expect(received.body.contains("\r\n\r\ncontent\r\n--b--\r\n"))
                #expect(received.length == received.body.utf8.count)
            }
        }
    }

    @Test func aFormWithAStreamIsNotSentAgain() async throws {
        try await withServer { exchange in
            _ = try exchange.drainBody()
            try exchange.respond(status: 307, headers: [("Location", "/b")], text: "")
        } test: { server, client in
            var form = try Self.form()
            form.append(UploadTests.Pieces(), length: Int64(UploadTests.pattern.count), named: "s")
            let body = Request.Body.multipart(form)
            let error = try await failure { _ = try await client.post("a", body: body) }
            #expect(error.kind == .redirect)
            #expect(error.reason.contains("only once"))
        }
    }

    @Test func aStreamOfAnotherLengthEndsTheRequestBeforeTheServerHasAll() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            defer { gate.open() }
            let whole = try? exchange.drainBody()
            #expect(whole == nil)
        } test: { _, client in
            for length in [Int64(UploadTests.pattern.count) - 1, Int64(UploadTests.pattern.count) + 1] {
                var form = try Self.form()
                form.append(UploadTests.Pieces(), length: length, named: "s")
                let body = Request.Body.multipart(form)
                let error = try await failure { _ = try await client.post("a", body: body) }
                #expect(error.kind == .requestBody)
                #expect(error.reason.contains("part 3") && error.reason.contains("\(length) bytes"))
            }
            try await gate.wait()
        }
    }

    @Test func missingFileOfAFormIsAClearError() async throws {
        try await inTestFolder { folder in
            try folder.write("content", to: "f")
            try await withServer(Self.receive) { server, client in
                var form = try Self.form()
                try form.append(file: folder.url("f"), named: "f")
                try FileManager.default.removeItem(at: folder.url("f"))
                let body = Request.Body.multipart(form)
                let error = try await failure { _ = try await client.post("a", body: body) }
                #expect(error.kind == .requestBody && error.reason.contains("No such file"))
                #expect(server.counts.acceptedConnections == 0)
            }
        }
    }

    @Test func aFormWrittenToAFileArrivesLikeTheForm() async throws {
        try await inTestFolder { folder in
            try await withServer(Self.receive) { _, client in
                let body = try await Self.form().write(to: folder.url("form"))
                let received: Received = try await client.post("a", body: body)
                #expect(received.body == Self.bytes && received.type == "multipart/form-data; boundary=b")
            }
        }
    }
}
#endif
