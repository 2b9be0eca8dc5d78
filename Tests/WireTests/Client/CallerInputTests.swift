import Synchronization
import Tern
import TernConcurrency
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if !TERN_URLSESSION
/// Requests whose values come from elsewhere: lengths, fields and answers to challenges.
@Suite("Wire: input of the caller", .timeLimit(.minutes(1)))
struct CallerInputTests {
    private static let chunks = AsyncStream<Data> { $0.finish() }
    private static let text: LoopbackServer.Handler = { exchange in
        _ = try exchange.readBody()
        try exchange.respond(text: exchange.request["Accept-Encoding"] ?? "none")
    }

    /// Foundation says -1 for a length that is not known.
    @Test(arguments: [-1, Int64.min]) func aNegativeLengthIsRefused(length: Int64) async throws {
        try await withServer(Self.text) { server, client in
            let error = try await failure {
                try await client.post("/", body: .stream(Self.chunks, length: length))
            }
            #expect(error.kind == .invalidRequest && error.reason.contains("\(length)"))
            #expect(server.counts.requestsReceived == 0)
        }
    }

    @Test(arguments: ["-5", "+5", "", "5 ", "0x5", "99999999999999999999", "five"])
    func aContentLengthThatIsNoNumberIsRefused(text: String) async throws {
        try await withServer(Self.text) { server, client in
            let error = try await failure {
                try await client.post("/", headers: ["Content-Length": text], body: .stream(Self.chunks))
            }
            #expect(error.kind == .invalidRequest, "\(error)")
            #expect(server.counts.requestsReceived == 0)
        }
    }

    /// One behavior for all kinds of calls: a length other than that of the body is refused before anything is sent,
    /// and one that is right is sent once.
    @Test(arguments: ["5", "1", "9223372036854775807"])
    func aContentLengthWithoutABodyIsRefused(length: String) async throws {
        let headers: Headers = ["Content-Length": length]
        let calls: [@Sendable (Client) async throws -> Void] = [
            { client in _ = try await client.get("/", headers: headers) as Data },
            { client in _ = try await client.head("/", headers: headers) },
            { client in _ = try await client.delete("/", headers: headers) as Data },
            { client in _ = try await client.post("/", headers: headers) as Data },
            { client in _ = try await client.get("/", headers: headers, as: String.self) },
            { client in _ = try await client.task(.get, "/", headers: headers).value as Data },
            { client in _ = try await client.get("/") { $0.headers["Content-Length"] = length } as Data },
            { client in
                let request = try client.request(.post, "/", headers: headers)
                _ = try await client.session.response(for: request) as Response<Data>
            },
        ]
        try await withServer(Self.text) { server, client in
            for (number, call) in calls.enumerated() {
                let error = try await failure { try await call(client) }
                #expect(error.kind == .invalidRequest, "call \(number): \(error)")
                #expect(error.reason.contains("Content-Length says \(length) bytes and there is no body"), "\(number)")
            }
            #expect(server.counts.requestsReceived == 0)
            for method in [Request.Method.get, .post] {
                _ = try await client.task(method, "/", headers: ["Content-Length": "0"]).value as Data
            }
            #expect(server.counts.requestsReceived == 2)
        }
    }

    @Test func twoContentLengthsAreRefused() async throws {
        var headers = Headers()
        headers.append(name: "Content-Length", value: "1")
        headers.append(name: "Content-Length", value: "2")
        try await withServer(Self.text) { [headers] server, client in
            for method in [Request.Method.get, .post] {
                let error = try await failure { try await client.task(method, "/", headers: headers).value as Data }
                #expect(error.kind == .invalidRequest && error.reason.contains("two different"), "\(error)")
            }
            #expect(server.counts.requestsReceived == 0)
        }
    }

    @Test func lengthsOfAFormThatOverflowAreRefused() async throws {
        var form = MultipartForm()
        for name in ["a", "b"] { form.append(Self.chunks, length: .max, named: name) }
        try await withServer(Self.text) { _, client in
            let error = try await failure { try await client.post("/", body: .multipart(form)) }
            #expect(error.kind == .requestBody)
        }
    }

    /// The bytes of a range are those with a coding, and cannot be decompressed.
    @Test func aRangeIsAskedForWithoutACoding() async throws {
        try await withServer { exchange in
            let codings = exchange.request["Accept-Encoding"] ?? "none"
            let isRange = exchange.request["Range"] != nil
            let headers = isRange ? [("Content-Range", "bytes 0-\(codings.utf8.count - 1)/100")] : []
            try exchange.respond(status: isRange ? 206 : 200, headers: headers, text: codings)
        } test: { _, client in
            let text = try await client.get("/", headers: ["Range": "bytes=0-9"], as: String.self)
            #expect(text == "identity")
            let own: Headers = ["Range": "bytes=0-9", "Accept-Encoding": "br"]
            #expect(try await client.get("/", headers: own, as: String.self) == "br")
            #expect(try await client.get("/", as: String.self).contains("gzip"))
        }
    }

    @Test func allCookieFieldsOfTheCallerAreSent() async throws {
        try await withServer { exchange in
            let fields = exchange.request.headers.filter { $0.name.lowercased() == "cookie" }.map(\.value)
            try exchange.respond(headers: [("Set-Cookie", "c=3")], text: fields.joined(separator: "|"))
        } test: { _, client in
            var headers = Headers()
            headers.append(name: "Cookie", value: "a=1")
            headers.append(name: "Cookie", value: "b=2")
            _ = try await client.get("/", as: String.self)
            #expect(try await client.get("/", headers: headers, as: String.self) == "a=1; b=2; c=3")
        }
    }

    // MARK: Challenges

    /// Answers each challenge with the challenged request and another query.
    private final class Tries: SessionPolicy {
        let failures = Mutex<[Int]>([])

        @concurrent func answer(
            to challenge: AuthenticationChallenge, for request: Request, of task: AnySessionTask
        ) async throws -> ChallengeDecision? {
            let count = failures.withLock { failures in
                failures.append(challenge.previousFailures)
                return failures.count
            }
            var other = request
            other.headers["X-Try"] = "\(count)"
            return .send(other)
        }
    }

    @Test func aPolicyThatAnswersWithRequestsIsAskedFourTimes() async throws {
        let policy = Tries()
        try await withServer(configuration: .test { $0.policy = policy }) { exchange in
            try exchange.respond(status: 401, headers: [("WWW-Authenticate", "Basic realm=\"r\"")], text: "no")
        } test: { server, client in
            let error = try await failure { try await client.get("/") }
            #expect(error.status == 401)
            #expect(policy.failures.withLock { $0 } == [0, 1, 2, 3])
            #expect(server.counts.requestsReceived == 5)
        }
    }

    /// A redirect has removed the fields, and the answer to the challenge of the other origin does not add them again.
    @Test func anAnswerAfterARedirectAddsNoFieldsOfTheSession() async throws {
        let seen = Mutex<[[String]]>([])
        let other = try LoopbackServer { exchange in
            seen.withLock { $0.append(exchange.request.headers.map { $0.name.lowercased() }) }
            if exchange.request["X-Try"] != nil { return try exchange.respond(text: "in") }
            try exchange.respond(status: 401, headers: [("WWW-Authenticate", "Basic realm=\"r\"")], text: "no")
        }
        defer { other.stop() }
        let url = other.url.absoluteString
        let configuration = Session.Configuration.test {
            $0.headers["X-API-Key"] = "key"
            $0.secretHeaderOrigins = .all
            $0.policy = Tries()
        }
        try await withServer(configuration: configuration) { exchange in
            #expect(exchange.request["X-API-Key"] == "key")
            try exchange.respond(status: 307, headers: [("Location", url)])
        } test: { _, client in
            let text = try await client.get("/", as: String.self)
            #expect(text == "in")
            let fields = seen.withLock { $0 }
            #expect(fields.count == 2 && fields.allSatisfy { !$0.contains("x-api-key") })
        }
    }

    /// Never has a credential.
    private struct Waiting: CredentialProvider {
        let isPreemptive: Bool

        @concurrent func credential(
            for challenge: AuthenticationChallenge, of request: Request
        ) async throws -> Credential? {
            try await Task.sleep(for: .seconds(1_000))
            return nil
        }

        @concurrent func preemptiveCredential(for request: Request) async throws -> Credential? {
            if isPreemptive { try await Task.sleep(for: .seconds(1_000)) }
            return nil
        }
    }

    @Test(arguments: [false, true]) func theTotalLimitIncludesTheProviderOfCredentials(isPreemptive: Bool) async throws
    {
        let configuration = Session.Configuration.test {
            $0.credentials = Waiting(isPreemptive: isPreemptive)
            $0.timeouts.total = .milliseconds(300)
        }
        try await withServer(configuration: configuration) { exchange in
            try exchange.respond(status: 401, headers: [("WWW-Authenticate", "Basic realm=\"r\"")], text: "no")
        } test: { server, client in
            let error = try await failure { try await client.get("/") }
            #expect(error.kind == .totalTimedOut, "\(error)")
            #expect(server.counts.requestsReceived == (isPreemptive ? 0 : 1))
        }
    }

    // MARK: Interceptors

    private final class Tokens: Authenticator {
        let interceptor = Mutex<AuthenticationInterceptor<Tokens>?>(nil)

        func apply(_ credential: String, to request: inout Request) { request.headers["X-Token"] = credential }

        @concurrent func refresh(_ credential: String?) async throws -> String { "new" }

        /// Uses the interceptor that asks.
        func needsRefresh(_ credential: String) -> Bool {
            interceptor.withLock { $0 }?.credential == "old"
        }
    }

    @Test func needsRefreshMayUseTheInterceptor() async throws {
        let tokens = Tokens()
        let interceptor = AuthenticationInterceptor(tokens, credential: "old")
        tokens.interceptor.withLock { $0 = interceptor }
        defer { tokens.interceptor.withLock { $0 = nil } }
        try await withServer(configuration: .test { $0.interceptors = [interceptor] }) { exchange in
            try exchange.respond(text: exchange.request["X-Token"] ?? "none")
        } test: { _, client in
            let text = try await client.get("/", as: String.self)
            #expect(text == "new")
        }
    }

    @Test func aCredentialIsSentToItsOriginsAlone() async throws {
        let handler: LoopbackServer.Handler = { try $0.respond(text: $0.request["X-Token"] ?? "none") }
        let (own, other) = (try LoopbackServer(handler: handler), try LoopbackServer(handler: handler))
        defer { own.stop() }
        defer { other.stop() }
        let origins: Session.Configuration.HeaderOrigins = [own.url.absoluteString]
        let interceptor = AuthenticationInterceptor(Tokens(), credential: "t", origins: origins)
        let client = Client(session: Session(configuration: .test { $0.interceptors = [interceptor] }))
        #expect(try await client.get(own.url.absoluteString, as: String.self) == "t")
        #expect(try await client.get(other.url.absoluteString, as: String.self) == "none")
    }

    /// A server has chosen the target, as in a durable upload whose creation answers with a Location.
    @Test func aCredentialDoesNotFollowAServerToAnotherOrigin() async throws {
        let handler: LoopbackServer.Handler = { try $0.respond(text: $0.request["X-Token"] ?? "none") }
        let (own, other) = (try LoopbackServer(handler: handler), try LoopbackServer(handler: handler))
        defer { own.stop() }
        defer { other.stop() }
        let session = Session(
            configuration: .test { $0.interceptors = [AuthenticationInterceptor(Tokens(), credential: "t")] })
        var request = try Request(.get, own.url.absoluteString)
        #expect(try await session.response(for: request, decode: .string).value == "t")
        try request.move(to: try Target(absolute: other.url.absoluteString))
        #expect(try await session.response(for: request, decode: .string).value == "none")
    }

    @Test func anyBurstIsAccepted() async throws {
        let limiter = RateLimitInterceptor(requestsPerSecond: 0.01, burst: .max)
        try await withServer(configuration: .test { $0.interceptors = [limiter] }, Self.text) { _, client in
            for _ in 0..<3 { _ = try await client.get("/") }
        }
    }
}
#endif
