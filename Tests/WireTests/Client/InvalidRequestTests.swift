import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Checks requests that are refused before a task exists, and that no text of an error shows a secret.
@Suite("Wire: invalid requests and secrets", .timeLimit(.minutes(1)))
struct InvalidRequestTests {
    struct Refused: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let send: @Sendable (Client) async throws -> Void

        init(_ description: String, _ send: @escaping @Sendable (Client) async throws -> Void) {
            testDescription = description
            self.send = send
        }

        static let all = [
            Refused("line break in a header's value") { client in
                try await client.get("", headers: ["X-Test": "a\r\nX-Evil: b"])
            },
            Refused("line feed in a header's value") { client in
                try await client.get("", headers: ["X-Test": "a\nb"])
            },
            Refused("NUL in a header's value") { client in
                try await client.get("", headers: ["X-Test": "a\0b"])
            },
            Refused("space in a header's name") { client in
                try await client.get("", headers: ["X Test": "a"])
            },
            Refused("line break in a header's name") { client in
                try await client.get("", headers: ["X-Test: a\r\nY": "b"])
            },
            Refused("Transfer-Encoding by hand") { client in
                try await client.post("", headers: ["Transfer-Encoding": "chunked"], body: .text("x"))
            },
            Refused("GET with a body") { client in
                try await client.send(.get, "", body: .text("x"))
            },
            Refused("GET with an empty body") { client in
                try await client.send(.get, "", body: .data(Data()))
            },
            Refused("HEAD with a body") { client in
                try await client.send(.head, "", body: .json([1]))
            },
            Refused("method that is no token") { client in try await client.send("GE T", "") },
            Refused("method with a line break") { client in
                try await client.send("GET / HTTP/1.1\r\nX: y\r\n\r\nGET", "")
            },
            Refused("CONNECT") { client in try await client.send(.connect, "") },
            Refused("other scheme") { client in try await client.get("ftp://127.0.0.1/x") },
            Refused("no host") { client in try await client.get("http:///x") },
            Refused("port out of range") { client in try await client.get("http://127.0.0.1:99999/") },
            Refused("line break in the path") { client in
                try await client.get("x HTTP/1.1\r\nX-Evil: y")
            },
            Refused("streamed") { client in
                _ = try await client.stream("", headers: ["X-Test": "a\nb"]).response
            },
            Refused("handle") { client in
                _ = try await client.task(.get, "", body: .text("x")).value
            },
            Refused("download") { client in
                _ = try await client.download("http://", destination: nil).value
            },
        ]
    }

    @Test(arguments: Refused.all) func requestIsRefusedBeforeAnyTaskExists(refused: Refused) async throws {
        try await withServer {
            try $0.respond(text: "never")
        } test: { server, client in
            let events = client.session.tasks.events
            let error = try await failure { try await refused.send(client) }
            #expect(error.kind == .invalidRequest)
            #expect(error.response == nil && error.metrics == nil)
            #expect(await client.session.tasks.count == 0)
            await client.session.finishTasksAndInvalidate()
            // The first event of this session is its end.
            var first: TaskRegistry.Event?
            for await event in events where first == nil { first = event }
            guard case .sessionInvalidated = first else {
                Issue.record("\(String(describing: first))")
                return
            }
            #expect(server.counts.acceptedConnections == 0)
        }
    }

    @Test(arguments: [Timeouts(connect: .seconds(-1)), Timeouts(idle: .seconds(-1)), Timeouts(total: .nanoseconds(-1))])
    func requestWithANegativeTimeLimitIsRefused(timeouts: Timeouts) async throws {
        try await withDemo { server, client in
            var request = try client.request(.get, "json")
            request.timeouts = timeouts
            let error = try await failure { [request] in try await client.session.response(for: request) }
            #expect(error.kind == .invalidRequest && error.reason.contains("negative"))
            #expect(server.counts.requestsReceived == 0)
        }
    }

    @Test func invalidBaseURLFailsEveryCall() async throws {
        #expect(throws: NetworkError.self) { try Client(baseURL: "not a URL") }
        let url = try #require(URL(string: "mailto:x@example.com"))
        let client = Client(baseURL: url, session: Session(configuration: .test()))
        #expect(try await failure { try await client.get("x") }.kind == .invalidRequest)
        #expect(try await failure { try await Client().get("relative/path") }.kind == .invalidRequest)
    }

    // MARK: Secrets

    private func texts(of error: NetworkError) -> String {
        let request = error.request.map { "\($0) \(String(reflecting: $0)) \($0.headers)" } ?? ""
        return "\(error) \(error.reason) \(error.shortDescription) \(String(reflecting: error)) \(request)"
    }

    private static let secret = "hunter2"

    @Test(arguments: [200, 404, 500]) func transportErrorShowsNoSecret(status: Int) async throws {
        try await withServer { exchange in
            if status == 200 { return exchange.close() }
            try exchange.respond(status: status, headers: [("Set-Cookie", "id=\(Self.secret)")], text: Self.secret)
        } test: { server, client in
            let url = "http://user:\(Self.secret)@127.0.0.1:\(server.port)/x?token=\(Self.secret)&\(Self.secret.count)"
            let error = try await failure {
                try await client.get(url, headers: ["Authorization": "Bearer \(Self.secret)", "Cookie": Self.secret])
            }
            #expect(error.kind == (status == 200 ? .connectionLost : .status))
            #expect(!texts(of: error).contains(Self.secret))
            #expect(error.description.contains("token=<redacted>"))
            #expect(server.counts.requestsReceived == 1)
        }
    }

    @Test(arguments: [
        "http://user:hunter2@host:99999/", "http://user:hunter2@/x", "ftp://user:hunter2@host/", "http://host:hunter2/",
        "http://a b/?key=hunter2", "http://user:hunter2/@host/", "http://host/\r\n?key=hunter2",
    ])
    func errorOfAnInvalidRequestShowsNoSecret(url: String) async throws {
        let client = Client(session: Session(configuration: .test()))
        let error = try await failure { try await client.get(url) }
        #expect(error.kind == .invalidRequest)
        #expect(!texts(of: error).contains(Self.secret))
    }

    @Test func errorOfAnInvalidHeaderShowsNoSecret() async throws {
        let client = try Client(baseURL: "http://127.0.0.1:9/", session: Session(configuration: .test()))
        let error = try await failure {
            try await client.get("", headers: ["Authorization": "Bearer hunter2\r\n", "X-Plain": "hunter2"])
        }
        #expect(error.kind == .invalidRequest)
        #expect(!"\(error) \(error.reason)".contains(Self.secret))
        #expect(error.description.contains("Authorization"))
    }
}
