#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernConcurrency
import TernStreaming
import TernTesting
import Testing

/// Credentials, tokens and cookies of event streams and of the handshakes of sockets.
@Suite("Live connections: credentials", .timeLimit(.minutes(1)))
struct LiveAuthenticationTests {
    /// The server refuses each request that does not have this field.
    private func withServer(
        expecting field: String, challenge: String, configuration: Session.Configuration = .test(),
        test: (LoopbackServer, Session) async throws -> Void
    ) async throws {
        let server = try LoopbackServer { exchange in
            guard exchange.request["Authorization"] == field else {
                return try exchange.respond(status: 401, headers: [("WWW-Authenticate", challenge)], text: "who?")
            }
            try LiveConnection.greet(exchange, LiveConnection.facts(exchange))
        }
        defer { server.stop() }
        let session = Session(configuration: configuration)
        try await test(server, session)
        await session.invalidateAndCancel()
    }

    @Test(arguments: LiveConnection.allCases) func basicAnswersItsChallenge(kind: LiveConnection) async throws {
        try await withServer(expecting: "Basic dTpw", challenge: "Basic realm=\"r\"") { server, session in
            let origin = "http://127.0.0.1:\(server.port)"
            let credentials = try FixedCredentials([origin: .user("u", password: "p")])
            let text = try await kind.greeting(session, "\(origin)/") { $0.credentials = credentials }
            #expect(text == "Basic dTpw, none")
            #expect(server.counts.requestsReceived == 2)
        }
    }

    @Test(arguments: LiveConnection.allCases) func aWrongPasswordIsARefusalWithItsBody(
        kind: LiveConnection
    ) async throws {
        try await withServer(expecting: "Basic dTpw", challenge: "Basic realm=\"r\"") { server, session in
            let origin = "http://127.0.0.1:\(server.port)"
            let credentials = try FixedCredentials([origin: .user("u", password: "wrong")])
            let error = try await failure {
                try await kind.greeting(session, "\(origin)/") { $0.credentials = credentials }
            }
            #expect(error.status == 401)
            #expect(String(decoding: error.body, as: UTF8.self) == "who?")
            #expect(!"\(error)".contains("wrong"))
        }
    }

    @Test(arguments: LiveConnection.allCases) func aTokenAnswersABearerChallenge(kind: LiveConnection) async throws {
        try await withServer(expecting: "Bearer t1", challenge: "Bearer") { server, session in
            let origin = "http://127.0.0.1:\(server.port)"
            let credentials = try FixedCredentials([origin: .bearer("t1")])
            let text = try await kind.greeting(session, "\(origin)/") { $0.credentials = credentials }
            #expect(text == "Bearer t1, none")
            #expect(server.counts.requestsReceived == 2)
        }
    }

    private final class Tokens: Authenticator {
        let refreshes = Lock(0)

        func apply(_ credential: String, to request: inout Request) {
            request.headers["Authorization"] = "Bearer \(credential)"
        }

        @concurrent func refresh(_ credential: String?) async throws -> String {
            refreshes.withLock { $0 += 1 }
            return "new"
        }
    }

    @Test(arguments: LiveConnection.allCases) func aRefusedTokenIsRefreshedOnce(kind: LiveConnection) async throws {
        let tokens = Tokens()
        let interceptor = AuthenticationInterceptor(tokens, credential: "old", refreshLimit: 5)
        let configuration = Session.Configuration.test { $0.interceptors = [interceptor] }
        try await withServer(expecting: "Bearer new", challenge: "Bearer", configuration: configuration) {
            server, session in
            let texts = try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<5 {
                    group.addTask { try await kind.greeting(session, "http://127.0.0.1:\(server.port)/") }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(texts == Array(repeating: "Bearer new, none", count: 5))
            #expect(tokens.refreshes.withLock { $0 } == 1)
        }
    }

    @Test(arguments: LiveConnection.allCases) func cookiesAreSentAndStored(kind: LiveConnection) async throws {
        let server = try LoopbackServer { exchange in
            let number = exchange.request["Cookie"] == nil ? 1 : 2
            try LiveConnection.greet(
                exchange, LiveConnection.facts(exchange), headers: [("Set-Cookie", "visit=\(number); Path=/")])
        }
        defer { server.stop() }
        let store = CookieStore()
        let session = Session(configuration: .test { $0.cookies = .store(store) })
        let url = "http://127.0.0.1:\(server.port)/"
        #expect(try await kind.greeting(session, url) == "none, none")
        #expect(try await kind.greeting(session, url) == "none, visit=1")
        #expect(try await kind.greeting(session, url) { $0.headers["Cookie"] = "own=1" } == "none, own=1; visit=2")
        await session.invalidateAndCancel()
    }
}
#endif
