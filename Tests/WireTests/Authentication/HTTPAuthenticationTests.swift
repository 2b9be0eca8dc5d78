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
@Suite("Wire: HTTP authentication", .timeLimit(.minutes(1)))
struct HTTPAuthenticationTests {
    private static let basic = "Basic " + Data("ada:s3cret".utf8).base64EncodedString()

    /// Accepts the right Basic credential, and challenges all other requests.
    private static let basicServer: LoopbackServer.Handler = { exchange in
        let body = try exchange.readBody()
        if exchange.request["Authorization"] == basic {
            try exchange.respond(text: "in \(body.count)")
        } else {
            try exchange.respond(status: 401, headers: [("WWW-Authenticate", "Basic realm=\"x\"")], text: "out")
        }
    }

    /// Accepts the right response to a Digest challenge; a nonce is valid for a number of requests, and then stale.
    private final class DigestServer: Sendable {
        private struct Nonces {
            var issued = 0
            var uses: [String: Set<String>] = [:]
            var replays = 0
        }

        private let nonces = Lock(Nonces())
        private let limit: Int
        private let namesNext: Bool

        /// The number of requests that repeated a count of the same nonce.
        var replays: Int { nonces.withLock { $0.replays } }

        /// `namesNext`: each accepted response carries the nonce of the next request.
        init(usesOfANonce limit: Int, namesNext: Bool = false) {
            self.limit = limit
            self.namesNext = namesNext
        }

        func handle(_ exchange: LoopbackServer.Exchange) throws {
            let field = exchange.request["Authorization"] ?? ""
            guard field.hasPrefix("Digest ") else { return try challenge(exchange, isStale: false) }
            let parts = Self.parameters(field)
            let ha1 = Self.hash("ada:realm:s3cret")
            let ha2 = Self.hash("\(exchange.request.method):\(parts["uri"] ?? "")")
            let text = [ha1, parts["nonce"], parts["nc"], parts["cnonce"], parts["qop"], ha2].compactMap { $0 }
            guard parts["response"] == Self.hash(text.joined(separator: ":")), parts["uri"] == exchange.request.target
            else { return try challenge(exchange, isStale: false) }
            let isGood = nonces.withLock { nonces in
                let uses = nonces.uses[parts["nonce"] ?? "", default: []]
                let count = parts["nc"] ?? ""
                if uses.contains(count) { nonces.replays += 1 }
                guard !uses.contains(count), uses.count < limit else { return false }
                nonces.uses[parts["nonce"] ?? ""] = uses.union([count])
                return true
            }
            guard isGood else { return try challenge(exchange, isStale: true) }
            let next = namesNext ? [("Authentication-Info", "nextnonce=\"\(nonce())\"")] : []
            try exchange.respond(headers: next, text: "in")
        }

        private func nonce() -> String {
            nonces.withLock { nonces in
                nonces.issued += 1
                return "n\(nonces.issued)"
            }
        }

        private func challenge(_ exchange: LoopbackServer.Exchange, isStale: Bool) throws {
            let text = "Digest realm=\"realm\", nonce=\"\(nonce())\", qop=\"auth\", algorithm=SHA-256, stale=\(isStale)"
            try exchange.respond(status: 401, headers: [("WWW-Authenticate", text)], text: "out")
        }

        private static func hash(_ text: String) -> String {
            DigestFunction.hash(Array(text.utf8), .sha256).map { byte in
                (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }.joined()
        }

        private static func parameters(_ field: String) -> [String: String] {
            var result: [String: String] = [:]
            for part in field.dropFirst("Digest ".count).split(separator: ",") {
                let pair = part.split(separator: "=", maxSplits: 1)
                guard pair.count == 2 else { continue }
                result[pair[0].filter { $0 != " " }] = pair[1].filter { $0 != "\"" }
            }
            return result
        }
    }

    private func url(_ server: LoopbackServer, _ user: String) -> String {
        server.url.absoluteString.replacing("http://", with: "http://\(user)@")
    }

    @Test func credentialOfTheURLAnswersTheChallengeOnce() async throws {
        try await withServer(Self.basicServer) { server, client in
            let request = try Request(.get, url(server, "ada:s3cret"))
            #expect(try await client.session.response(for: request, decode: .string).value == "in 0")
            #expect(server.counts.requestsReceived == 2)
            #expect(try await client.session.response(for: request, decode: .string).value == "in 0")
            #expect(server.counts.requestsReceived == 3, "what was accepted is sent at once")
            let other = try await failure { try await client.get("/") }
            #expect(other.status == 401, "and not with a request that has no credential")
        }
    }

    @Test func wrongCredentialIsNotSentAgain() async throws {
        try await withServer(Self.basicServer) { server, client in
            let request = try Request(.get, url(server, "ada:wrong"))
            let error = try await failure { try await client.session.response(for: request) }
            #expect(error.status == 401 && String(decoding: error.body, as: UTF8.self) == "out")
            #expect(server.counts.requestsReceived == 2)
            #expect(!"\(error)".contains("wrong"))
        }
    }

    @Test func providerIsCalledAgainAfterARefusal() async throws {
        final class RecordingProvider: CredentialProvider {
            let failures = Lock<[Int]>([])
            @concurrent func credential(
                for challenge: AuthenticationChallenge, of request: Request
            ) async throws -> Credential? {
                failures.withLock { $0.append(challenge.previousFailures) }
                return challenge.previousFailures == 0
                    ? .user("ada", password: "old") : .user("ada", password: "s3cret")
            }
        }
        let provider = RecordingProvider()
        try await withServer(configuration: .test { $0.credentials = provider }, Self.basicServer) { server, client in
            let first = try await client.get("/", as: String.self)
            #expect(first == "in 0")
            #expect(provider.failures.withLock { $0 } == [0, 1] && server.counts.requestsReceived == 3)
            #expect(try await client.task(.post, "/", body: .text("body"), as: String.self).value == "in 4")
            #expect(server.counts.requestsReceived == 4)
        }
    }

    @Test func preemptiveCredentialIsSentAtOnce() async throws {
        let server = try LoopbackServer(handler: Self.basicServer)
        defer { server.stop() }
        let provider = try FixedCredentials(
            [server.url.absoluteString: .user("ada", password: "s3cret")], isPreemptive: true)
        let client = Client(baseURL: server.url, session: Session(configuration: .test { $0.credentials = provider }))
        #expect(try await client.get("/", as: String.self) == "in 0")
        #expect(server.counts.requestsReceived == 1)
    }

    @Test func digestIsAnsweredCountedAndRenewed() async throws {
        let digest = DigestServer(usesOfANonce: 2)
        try await withServer {
            try digest.handle($0)
        } test: { server, client in
            let request = try Request(.get, url(server, "ada:s3cret"))
            for _ in 0..<5 {
                #expect(try await client.session.response(for: request, decode: .string).value == "in")
            }
            // 401, accepted, accepted, stale, accepted, accepted, stale, accepted.
            #expect(server.counts.requestsReceived == 8)
        }
    }

    @Test func nextNonceOfTheServerIsUsed() async throws {
        let digest = DigestServer(usesOfANonce: 1, namesNext: true)
        try await withServer {
            try digest.handle($0)
        } test: { server, client in
            var request = try Request(.get, url(server, "ada:s3cret"))
            // With a total limit, the session sends changed copies of the request: the authorization stays with it.
            request.timeouts = Timeouts(total: .seconds(60))
            for _ in 0..<5 {
                #expect(try await client.session.response(for: request, decode: .string).value == "in")
            }
            #expect(server.counts.requestsReceived == 6)
        }
    }

    @Test(arguments: [1, 2, .max])
    func concurrentRequestsUseTheirOwnDigestCount(uses: Int) async throws {
        let digest = DigestServer(usesOfANonce: uses)
        try await withServer {
            try digest.handle($0)
        } test: { server, client in
            let request = try Request(.get, url(server, "ada:s3cret"))
            let answers = try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<20 {
                    group.addTask { try await client.session.response(for: request, decode: .string).value }
                }
                return try await group.reduce(into: Set()) { $0.insert($1) }
            }
            #expect(answers == ["in"])
            #expect(digest.replays == 0)
        }
    }

    /// Several users share one session: the authorization of one is never sent for another.
    @Test func credentialsOfOneRequestAreNeverSentForAnother() async throws {
        let users = Lock<[String]>([])
        try await withServer { exchange in
            guard let field = exchange.request["Authorization"] else {
                return try exchange.respond(status: 401, headers: [("WWW-Authenticate", "Basic realm=x")])
            }
            users.withLock { $0.append(field) }
            try exchange.respond(text: field)
        } test: { server, client in
            for user in ["alice", "bob", "alice"] {
                var request = try client.request(.get, "/")
                request.credentials = try FixedCredentials([server.url.absoluteString: .user(user, password: "p")])
                let field = try await client.session.response(for: request, decode: .string).value
                #expect(field == "Basic " + Data("\(user):p".utf8).base64EncodedString())
            }
            let nobody = try await failure { try await client.get("/") }
            #expect(nobody.status == 401)
        }
    }

    private struct Answers: SessionPolicy {
        let decision: ChallengeDecision?
        @concurrent func answer(
            to challenge: AuthenticationChallenge, for request: Request, of task: AnySessionTask
        ) async throws -> ChallengeDecision? { decision }
    }

    @Test func challengePolicyHasFiveOutcomes() async throws {
        struct NoEntry: Error {}
        let server = try LoopbackServer(handler: Self.basicServer)
        defer { server.stop() }
        func client(_ decision: ChallengeDecision) -> Client {
            Client(
                baseURL: server.url, session: Session(configuration: .test { $0.policy = Answers(decision: decision) }))
        }
        let signed = try Request(.get, url: server.url, headers: ["Authorization": Self.basic])
        #expect(try await client(.send(signed)).get("/", as: String.self) == "in 0")
        #expect(try await client(.use(.user("ada", password: "s3cret"))).get("/", as: String.self) == "in 0")
        let cancelled = try await failure { try await client(.cancel(NoEntry())).get("/") }
        #expect(cancelled.kind == .authentication && cancelled.underlying is NoEntry)
        #expect(try await failure { try await client(.reject).get("/") }.status == 401)
        #expect(try await failure { try await client(.performDefault).get("/") }.status == 401)
    }

    @Test func theSessionsPolicyAnswersAChallengeBeforeThatOfTheRequest() async throws {
        let server = try LoopbackServer(handler: Self.basicServer)
        defer { server.stop() }
        let right = ChallengeDecision.use(.user("ada", password: "s3cret"))
        let rows: [(session: ChallengeDecision?, own: ChallengeDecision?, status: Int)] = [
            (nil, right, 200), (right, .reject, 200), (.reject, right, 401), (nil, nil, 401),
        ]
        for row in rows {
            let configuration = Session.Configuration.test { $0.policy = Answers(decision: row.session) }
            let client = Client(baseURL: server.url, session: Session(configuration: configuration))
            let request = try client.request(.get, "/") {
                $0.policy = Answers(decision: row.own)
                $0.validation = ResponseValidation(statuses: { _ in true })
            }
            #expect(try await client.response(for: request).status == row.status, "\(row)")
        }
    }

    /// Returns a server that demands Basic, and the `Authorization` fields that reach it.
    private static func basicServerWithRecord() throws -> (LoopbackServer, @Sendable () -> [String?]) {
        let fields = Lock<[String?]>([])
        let server = try LoopbackServer { exchange in
            fields.withLock { $0.append(exchange.request["Authorization"]) }
            try basicServer(exchange)
        }
        return (server, { fields.withLock { $0 } })
    }

    @Test func aSessionWithoutCredentialsSendsNoneOfAnother() async throws {
        let (server, received) = try Self.basicServerWithRecord()
        defer { server.stop() }
        let credentials = [server.url.absoluteString: Credential.user("ada", password: "s3cret")]
        let provider = try FixedCredentials(credentials, isPreemptive: true)
        let with = Client(baseURL: server.url, session: Session(configuration: .test { $0.credentials = provider }))
        let without = Client(baseURL: server.url, session: Session(configuration: .test()))
        #expect(try await with.get("/", as: String.self) == "in 0")
        #expect(try await failure { try await without.get("/") }.status == 401)
        #expect(try await with.get("/", as: String.self) == "in 0")
        #expect(received() == [Self.basic, nil, Self.basic])
    }

    @Test func theCredentialOfTheURLGoesBeforeAPreemptiveOne() async throws {
        let (server, received) = try Self.basicServerWithRecord()
        defer { server.stop() }
        let credentials = [server.url.absoluteString: Credential.user("mallory", password: "x")]
        let provider = try FixedCredentials(credentials, isPreemptive: true)
        let session = Session(configuration: .test { $0.credentials = provider })
        let url = "http://ada:s3cret@127.0.0.1:\(server.url.port ?? 0)/"
        #expect(try await Client(session: session).get(url, as: String.self) == "in 0")
        #expect(received() == [nil, Self.basic])
    }

    @Test func theUserInformationOfARedirectReplacesThatOfTheOrigin() async throws {
        let fields = Lock<[String?]>([])
        try await withServer { exchange in
            fields.withLock { $0.append(exchange.request["Authorization"]) }
            let host = exchange.request["Host"] ?? ""
            switch exchange.request.path {
            case "/start": try exchange.respond(status: 302, headers: [("Location", "http://ada:s3cret@\(host)/")])
            default: try Self.basicServer(exchange)
            }
        } test: { server, client async throws in
            for user in ["mallory:old@", ""] {
                let url = "http://\(user)127.0.0.1:\(server.url.port ?? 0)/start"
                let answer = try await client.session.response(for: Request(.get, url), decode: .string)
                #expect(answer.value == "in 0")
            }
            #expect(fields.withLock { $0.compactMap(\.self).allSatisfy { $0 == Self.basic } })
        }
    }

    @Test func credentialStaysWithItsOriginAfterARedirect() async throws {
        let fields = Lock<[String?]>([])
        let other = try LoopbackServer { exchange in
            fields.withLock { $0.append(exchange.request["Authorization"]) }
            try exchange.respond(text: "other")
        }
        defer { other.stop() }
        let target = other.url.absoluteString
        try await withServer { exchange in
            if exchange.request["Authorization"] == Self.basic {
                try exchange.respond(status: 302, headers: [("Location", target)])
            } else {
                try exchange.respond(status: 401, headers: [("WWW-Authenticate", "Basic realm=x")])
            }
        } test: { server, client in
            let request = try Request(.get, url(server, "ada:s3cret"))
            #expect(try await client.session.response(for: request, decode: .string).value == "other")
            #expect(fields.withLock { $0 } == [nil])
        }
    }

    @Test func challengeIsTheResponseIfTheBodyCannotBeSentAgain() async throws {
        try await withServer(Self.basicServer) { server, client in
            let chunks = AsyncStream { continuation in
                continuation.yield(Data("body".utf8))
                continuation.finish()
            }
            let request = try Request(.post, url(server, "ada:s3cret"), body: .stream(chunks, length: 4))
            let error = try await failure { try await client.session.response(for: request) }
            #expect(error.status == 401 && server.counts.requestsReceived == 1)
        }
    }
}
#endif
