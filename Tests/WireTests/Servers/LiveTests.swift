#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernTesting
import Testing

/// Runs whole conversations with servers of other authors: authentication, repeated requests and connections.
@Suite("httpbin: conversations", .serialized, .enabled(if: Venv.isExpected, Venv.absence), .timeLimit(.minutes(2)))
struct LiveConversationTests {
    private struct Sent: SessionObserver {
        let log = Log<String>()
        func willSend(_ request: Request, of task: AnySessionTask) { log.add(request.urlString) }
    }

    @Test func repeatedRequestsEndAsExpected() async throws {
        try await inTestFolder { folder in
            let server = try await HTTPBin(in: folder)
            try await retries(server)
            try await staleNonces(server)
            try await tokens(server)
            try await conditions(server)
            try await limits(server)
            try await streams(server)
        }
    }

    private func client(_ server: HTTPBin, _ change: (inout Session.Configuration) -> Void = { _ in }) throws -> Client
    {
        try Client(baseURL: server.url, session: Session(configuration: .test(change)))
    }

    /// Repeats requests with a transient status as often as the policy says, and sends others once; a POST is never
    /// repeated.
    private func retries(_ server: HTTPBin) async throws {
        var policy = RetryPolicy()
        policy.limit = 2
        policy.firstDelay = .milliseconds(1)
        for (status, method, count) in [
            (503, .get, 3), (408, .delete, 3), (429, .put, 3), (501, .get, 1), (404, .get, 1), (503, .post, 1),
        ] as [(Int, Request.Method, Int)] {
            let sent = Sent()
            let client = try client(server) {
                $0.interceptors = [RetryInterceptor(policy)]
                $0.observers = [sent]
            }
            let error = try await failure { try await client.send(method, "status/\(status)") }
            #expect(error.status == status && sent.log.all.count == count, "\(method) \(status)")
        }
    }

    /// Each response ages the nonce; a nonce that the server marks as stale is renewed without a call of the provider.
    private func staleNonces(_ server: HTTPBin) async throws {
        for algorithm in ["MD5", "SHA-256", "SHA-512"] {
            let sent = Sent()
            let client = try client(server) {
                // One cookie store for all requests: httpbin keeps its state in cookies.
                $0.observers = [sent]
                $0.credentials = try? FixedCredentials([server.url: .user("ada", password: "secret")])
            }
            // httpbin calls the hash of 512 bits SHA-512; RFC 7616 defines only SHA-512-256.
            let expected = algorithm == "SHA-512" ? 401 : 200
            for _ in 0..<4 {
                let request = try client.request(.get, "digest-auth/auth/ada/secret/\(algorithm)/1")
                do {
                    let response = try await client.response(for: request)
                    #expect(response.status == expected)
                } catch {
                    #expect(error.status == expected, "\(algorithm): \(error)")
                }
            }
            #expect(sent.log.all.count < 20)
        }
    }

    private func tokens(_ server: HTTPBin) async throws {
        let client = try client(server) {
            $0.credentials = try? FixedCredentials([server.url: .bearer("t0ken")], isPreemptive: true)
        }
        let answer = try await client.get("bearer", as: JSONValue.self)
        #expect(answer == .object(["authenticated": .bool(true), "token": .string("t0ken")]))
        let nobody = try await failure { try await self.client(server).get("bearer") }
        #expect(nobody.status == 401)
    }

    /// 304 and 412 are the expected results, and the task does not wait for a body.
    private func conditions(_ server: HTTPBin) async throws {
        let client = try client(server)
        let first = try await client.response(for: client.request(.get, "etag/v1"))
        #expect(first.status == 200 && first.headers["ETag"] == "v1")
        let same = try await failure { try await client.get("etag/v1", headers: ["If-None-Match": "v1"]) }
        #expect(same.status == 304 && same.body.isEmpty)
        let other = try await failure { try await client.get("etag/v1", headers: ["If-Match": "v2"]) }
        #expect(other.status == 412)
        let echoed = try await client.response(
            for: client.request(.get, "response-headers", query: ["X-Two": "a", "X-two": "b"]))
        #expect(echoed.headers.values(for: "X-Two").count == 2)
    }

    /// The limit of redirects is the session's, and holds exactly.
    private func limits(_ server: HTTPBin) async throws {
        let client = try client(server) { $0.maximumRedirects = 3 }
        let reached = try await client.response(for: client.request(.get, "relative-redirect/3"))
        #expect(reached.head.redirects.count == 3)
        let beyond = try await failure { try await client.get("absolute-redirect/4") }
        #expect(beyond.kind == .tooManyRedirects)
        for (status, method) in [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")] {
            let query: Request.Query = ["url": "/anything", "status_code": status]
            let answer = try await client.post("redirect-to", query: query, body: .text("x"), as: JSONValue.self)
            guard case .object(let members) = answer else { throw CheckFailure(description: "no object") }
            #expect(members["method"] == .string(method), "\(status)")
            #expect(members["data"] == .string(method == "POST" ? "x" : ""), "\(status)")
        }
    }

    /// Each line is a JSON text that arrives when it is sent; a compressed stream works like any other.
    private func streams(_ server: HTTPBin) async throws {
        let client = try client(server)
        var ids: [JSONValue?] = []
        for try await line in client.stream("stream/10").lines {
            guard case .object(let members) = try JSONDecoder().decode(JSONValue.self, from: Data(line.utf8)) else {
                continue
            }
            ids.append(members["id"])
        }
        #expect(ids.count == 10 && Set(ids.map { "\(String(describing: $0))" }).count == 10)
        var text = ""
        for try await line in client.stream("brotli").lines { text += line }
        #expect(text.contains("\"brotli\": true") || text.contains("\"brotli\":true"))
        let seeded = try await client.get("stream-bytes/5000", query: ["seed": 7, "chunk_size": 100])
        let again = try await client.get("stream-bytes/5000", query: ["seed": 7, "chunk_size": 5_000])
        #expect(seeded == again && seeded.count == 5_000)
    }
}

/// Checks passwords with nginx, together with compressed and partial files.
@Suite("nginx: passwords", .serialized, .enabled(if: Nginx.isExpected, Nginx.absence), .timeLimit(.minutes(1)))
struct LiveNginxTests {
    private let nginx: Nginx

    init() async throws {
        nginx = try await Nginx()
        try Data("ada:{PLAIN}s3cret\n".utf8).write(to: nginx.folder.appending(path: "users"))
    }

    private func client(password: String) throws -> Client {
        let origin = "http://127.0.0.1:\(nginx.plainPort)"
        return try nginx.plainClient {
            $0.credentials = try? FixedCredentials([origin: .user("ada", password: password)])
        }
    }

    @Test func passwordIsRequestedOnceAndKept() async throws {
        defer { nginx.stop() }
        try nginx.makeFile("text", Array("behind a door".utf8))
        let client = try client(password: "s3cret")
        for _ in 0..<3 {
            let text = try await client.get("private/text", as: String.self)
            #expect(text == "behind a door")
        }
        // nginx has written its log of ended requests when it answers again.
        _ = try await client.get("hello")
        let statuses = try nginx.accessLog().filter { $0.contains("/private/") }.compactMap {
            $0.split(separator: " ").last
        }
        #expect(statuses == ["401", "200", "200", "200"])
        let wrong = try self.client(password: "wrong")
        let refused = try await failure { try await wrong.get("private/text") }
        #expect(refused.status == 401 && !"\(refused)".contains("wrong"))
    }

    @Test func resumedDownloadIsAuthenticated() async throws {
        defer { nginx.stop() }
        let pattern = LoopbackServer.Pattern(count: 24 << 20, seed: 3)
        try nginx.makeFile("big", pattern.bytes())
        let goal = nginx.folder.appending(path: "goal")
        let client = try client(password: "s3cret")
        let task = client.download("private/big", to: goal, options: Download.Options(isResumable: true))
        for await progress in task.progress where progress.completedBytes > 1 << 20 {
            task.pause()
            break
        }
        task.cancel()
        let error = try await failure { try await task.value }
        #expect(error.isCancelled)
        let resumeData = try #require(task.resumeData)
        let other = try self.client(password: "s3cret")
        let rest = other.download(resuming: resumeData, to: goal)
        let bytes = try Data(contentsOf: try await rest.value)
        #expect(bytes.count == pattern.count && pattern.matches(bytes))
        _ = try await other.get("hello")
        let log = try nginx.accessLog().filter { $0.contains("/private/") }
        #expect(log.contains { $0.hasSuffix(" 206") })
    }

    @Test func severalRangesAreOneBodyOfParts() async throws {
        defer { nginx.stop() }
        let pattern = LoopbackServer.Pattern(count: 10_000)
        try nginx.makeFile("pattern", pattern.bytes())
        let client = try nginx.plainClient()
        let request = try client.request(.get, "files/pattern", headers: ["Range": "bytes=0-9,100-109"])
        let response = try await client.response(for: request)
        #expect(response.status == 206)
        #expect(response.headers["Content-Type"]?.hasPrefix("multipart/byteranges") == true)
        let beyond = try await failure {
            try await client.get("files/pattern", headers: ["Range": "bytes=20000-"])
        }
        #expect(beyond.status == 416)
        let tail = try await client.get("files/pattern", headers: ["Range": "bytes=-5"])
        #expect(pattern.matches(tail, at: 9_995) && tail.count == 5)
    }
}
#endif
