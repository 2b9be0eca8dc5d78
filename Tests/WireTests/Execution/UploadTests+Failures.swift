#if !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension UploadTests {
    @Test(arguments: [pattern.count - 1, pattern.count + 1, 0, 100_000])
    func wrongLengthFailsClearly(stated: Int) async throws {
        let bodies = Log<Int>()
        try await withServer { exchange in
            if exchange.request.method == "GET" { return try exchange.respond(text: "next") }
            // The sequence throws where the body ends before its stated length.
            bodies.add(try exchange.readBody().count)
            try exchange.respond(text: "whole")
        } test: { server, client in
            let error = try await failure {
                try await client.upload("a", body: .stream(Pieces(), length: Int64(stated))).value
            }
            #expect(error.kind == .requestBody)
            #expect(error.reason.contains("\(stated)"))
            #expect(try await client.get("b", as: String.self) == "next")
            // A server that received too few bytes has received no complete body.
            if stated > Self.pattern.count { #expect(bodies.all.isEmpty) }
            #expect(server.requests.count { $0.method == "GET" } == 1)
        }
    }

    @Test func aLengthThatContradictsTheHeaderIsRefused() async throws {
        try await withServer(Self.receive) { server, client in
            let headers: Headers = ["Content-Length": "5"]
            for body in [Request.Body.text("four"), .stream(Pieces(), length: 4)] {
                let error = try await failure {
                    try await client.post("a", headers: headers, body: body)
                }
                #expect(error.kind == .invalidRequest)
            }
            #expect(server.counts.requestsReceived == 0)
        }
    }

    @Test func aMissingFileOrAFolderIsAnErrorBeforeAnythingIsSent() async throws {
        try await inTestFolder { folder in
            try await withServer(Self.receive) { server, client in
                for (file, code) in [(folder.url("missing"), 2), (URL(filePath: folder.path), 21)] as [(URL, Int32)] {
                    let error = try await failure {
                        try await client.upload("a", file: file).value
                    }
                    #expect(error.kind == .requestBody)
                    #expect((error.underlying as? FileFailure)?.code == code)
                }
                #expect(server.counts.acceptedConnections == 0)
            }
        }
    }

    @Test func aGetWithABodyIsRefused() async throws {
        try await withServer(Self.receive) { server, client in
            let error = try await failure { try await client.send(.get, "a", body: .text("x")) }
            #expect(error.kind == .invalidRequest)
            #expect(server.counts.acceptedConnections == 0)
        }
    }

    @Test(arguments: [nil, Int64(pattern.count)])
    func aSequenceThatThrowsFailsTheTaskWithItsError(length: Int64?) async throws {
        let ends = Log<Bool>()
        try await withServer { exchange in
            do { ends.add(try exchange.readBody().count >= 0) } catch { ends.add(false) }
        } test: { server, client in
            let body = Request.Body.stream(Pieces(failsAt: 1_500_000), length: length)
            let error = try await failure { try await client.upload("a", body: body).value }
            #expect(error.kind == .requestBody)
            #expect(error.underlying is Pieces.Broken)
            try await server.wait { $0.openConnections == 0 }
            // A body that fails at once can keep the request from being sent at all.
            if server.counts.requestsReceived == 0 { return }
            // The connection is closed before the server's thread reports the bytes it received.
            while ends.all.isEmpty, !Task.isCancelled { await Task.yield() }
            #expect(ends.all == [false])
        }
    }
}
#endif
