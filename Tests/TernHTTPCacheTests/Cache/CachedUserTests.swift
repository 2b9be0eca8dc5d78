import Foundation
import Tern
import TernConcurrency
import TernHTTPCache
import TernTesting
import Testing

/// Responses of different users: challenges, credentials, cookies, partitions and trust.
@Suite("HTTP cache: users", .timeLimit(.minutes(1)))
struct CachedUserTests {
    /// Answers with the Authorization field, or with a challenge.
    private static func protected(_ exchange: LoopbackServer.Exchange) throws {
        let fresh = [("Cache-Control", "max-age=60")]
        guard let authorization = exchange.request["Authorization"] else {
            return try exchange.respond(
                status: 401, headers: fresh + [("WWW-Authenticate", "Basic realm=\"r\""), ("ETag", "\"401\"")],
                text: "who are you?")
        }
        try exchange.respond(headers: fresh, text: authorization)
    }

    private static func basic(_ user: String) -> String { "Basic " + Data("\(user):p".utf8).base64EncodedString() }

    @Test func theAuthorizedResponseIsStoredForItsUser() async throws {
        try await withCache(
            session: { $0.cookies = .none }, handler: Self.protected,
            test: { cached in
                func session(_ user: String) throws -> Client {
                    let credentials = try FixedCredentials([
                        cached.server.url.absoluteString: .user(user, password: "p")
                    ])
                    return try cached.client {
                        $0.cookies = .none
                        $0.credentials = credentials
                    }
                }
                let (ada, eve) = (try session("ada"), try session("eve"))
                #expect(try await ada.fetch("a").text == Self.basic("ada"))
                #expect(cached.requestCount == 2)
                #expect(try await ada.fetch("a").cacheTrace?.source == .stored)
                #expect(cached.requestCount == 2)
                #expect(try await eve.fetch("a").text == Self.basic("eve"))
                #expect(await cached.failure() == .status)
                #expect(await cached.failure(cache: .onlyStored) == .notStored)
            })
    }

    /// A response is stored for the user with whose cookies the request was sent first. With a total time limit, the
    /// repetition after a dead connection once had those of the present user.
    @Test(arguments: [nil, Duration.seconds(50)]) func aRepetitionIsThatOfTheSameUser(total: Duration?) async throws {
        let store = CookieStore()
        let users = Lock<[String?]>([])
        try await withCache(
            session: {
                $0.cookies = .store(store)
                $0.timeouts.total = total
            },
            handler: { exchange in
                users.withLock { $0.append(exchange.request["Cookie"]) }
                if exchange.request.path == "/user", exchange.request.requestIndex == 1 {
                    // The next user comes while the first one's request is lost.
                    let host = exchange.request["Host"] ?? ""
                    try URL(string: "http://\(host)/").map { try store.store("user=eve", for: $0) }
                    return exchange.close()
                }
                try exchange.respond(
                    headers: [("Cache-Control", "max-age=60"), ("Vary", "Cookie")],
                    text: exchange.request["Cookie"] ?? "nobody")
            },
            test: { cached in
                try store.store("user=ada", for: cached.server.url)
                _ = try await cached.client.fetch("first")
                #expect(try await cached.client.fetch("user").text == "user=ada")
                #expect(users.withLock { $0 } == ["user=ada", "user=ada", "user=ada"])
                #expect(try await cached.client.fetch("user").text == "user=eve")
            })
    }

    @Test func theCredentialsOfAURLAndOfAFieldAreSeparate() async throws {
        try await withCache(
            session: { $0.cookies = .none }, handler: Self.protected,
            test: { cached in
                let base = cached.server.url("/a").absoluteString
                for _ in 0..<2 {
                    for user in ["ada", "eve"] {
                        let url = base.replacing("http://", with: "http://\(user):p@")
                        let response = try await cached.client.session.response(for: try Request(.get, url))
                        #expect(response.text == Self.basic(user))
                    }
                }
                for token in ["Bearer 1", "Bearer 2", "Bearer 1"] {
                    #expect(try await cached.get(headers: ["Authorization": token]).text == token)
                }
                #expect(await cached.failure() == .status)
                let sent = cached.requestCount
                #expect(try await cached.get(headers: ["Authorization": "Bearer 2"]).cacheTrace?.source == .stored)
                #expect(cached.requestCount == sent)
            })
    }

    /// With a named partition in place of credentials, a new token finds what the one before has stored.
    @Test(
        arguments: [
            // partition, the option, whether the second token finds the response of the first
            ("ada", true, true), ("ada", false, false), (nil, true, false),
        ] as [(String?, Bool, Bool)])
    func aNamedPartitionStandsForTheUser(partition: String?, replaces: Bool, isFound: Bool) async throws {
        try await withCache(
            session: { $0.cookies = .none },
            handler: { exchange in
                let vary = exchange.request.path == "/varying" ? [("Vary", "Authorization")] : []
                try exchange.respond(
                    headers: [("Cache-Control", "max-age=60")] + vary,
                    text: exchange.request["Authorization"] ?? "nobody")
            },
            test: { cached in
                func session(_ partition: String?) throws -> Client {
                    try cached.client {
                        $0.cookies = .none
                        $0.partition = partition
                        $0.partitionReplacesCredentials = replaces
                    }
                }
                let client = try session(partition)
                func get(_ path: String, _ token: String, _ client: Client) async throws -> String {
                    try await client.response(
                        for: try client.request(.get, path, headers: ["Authorization": token])
                    ).text
                }
                #expect(try await get("a", "Bearer 1", client) == "Bearer 1")
                #expect(try await get("a", "Bearer 2", client) == (isFound ? "Bearer 1" : "Bearer 2"))
                if replaces, let partition {
                    // Neither a session with the default nor a request without credentials finds it.
                    let strict = try cached.client {
                        $0.cookies = .none
                        $0.partition = partition
                    }
                    #expect(try await get("a", "Bearer 4", strict) == "Bearer 4")
                    #expect(try await client.fetch("a").text == "nobody")
                }
                // Another user has another partition.
                let other = try session("eve")
                #expect(try await get("a", "Bearer 3", other) == "Bearer 3")
                // A response that says that it depends on the field is used for its value only.
                #expect(try await get("varying", "Bearer 1", client) == "Bearer 1")
                #expect(try await get("varying", "Bearer 2", client) == "Bearer 2")
            })
    }

    @Test func anInterceptorThatAddsAuthorizationSeparatesUsers() async throws {
        struct Signing: Interceptor {
            let token: Locked<String>

            func intercept(_ request: Tern.Request, next: Next) async throws -> Reply {
                var request = request
                request.headers["Authorization"] = token.value
                return try await next(request)
            }
        }
        let token = Locked("Bearer 1")
        try await withCache(
            session: { $0.interceptors = [Signing(token: token)] }, handler: Self.protected,
            test: { cached in
                for _ in 0..<2 { #expect(try await cached.get().text == "Bearer 1") }
                #expect(cached.requestCount == 1)
                token.change { $0 = "Bearer 2" }
                #expect(try await cached.get().text == "Bearer 2")
                let other = try cached.client { $0.interceptors = [Signing(token: token)] }
                #expect(try await other.fetch("a").cacheTrace?.source == .network)
                #expect(cached.requestCount == 3)
            })
    }

    @Test func sessionsWithDifferentCookiesShareNothing() async throws {
        let count = Counter()
        try await withCache(
            handler: { exchange in
                let cookie = exchange.request["Cookie"] ?? "none"
                try exchange.respond(
                    headers: [("Cache-Control", "max-age=60"), ("Set-Cookie", "user=\(count.next())")], text: cookie)
            },
            test: { cached in
                #expect(try await cached.get().text == "none")
                #expect(try await cached.get().cacheTrace?.source == .stored)
                #expect(try await cached.get("b").text == "user=1")
                let other = try cached.client { _ in }
                #expect(try await other.fetch("a").text == "none")
                #expect(try await other.fetch("b").text == "user=3")
                #expect(cached.requestCount == 4)
                let stored = try await cached.get("b")
                #expect(stored.text == "user=1")
                #expect(stored.cacheTrace?.source == .stored)
            })
    }

    @Test func varyCookieSelectsByTheCookiesOfTheRequest() async throws {
        try await withCache(
            handler: { exchange in
                if exchange.request.path == "/login" {
                    return try exchange.respond(headers: [("Set-Cookie", "user=1; Path=/")])
                }
                try exchange.respond(
                    headers: [("Cache-Control", "max-age=60"), ("Vary", "Cookie")],
                    text: exchange.request["Cookie"] ?? "none")
            },
            test: { cached in
                for _ in 0..<2 { #expect(try await cached.get().text == "none") }
                _ = try await cached.client.send(.post, "login")
                for _ in 0..<2 { #expect(try await cached.get().text == "user=1") }
                #expect(cached.requestCount == 3)
            })
    }

    @Test(arguments: StoreKind.allCases)
    func aPartitionIsSharedByItsNameAndCleared(kind: StoreKind) async throws {
        try await withCache(kind, handler: numbered([("Cache-Control", "max-age=60")])) { cached in
            func client(_ partition: String) throws -> Client {
                try cached.client {
                    $0.partition = partition
                    $0.cookies = .none
                }
            }
            let (first, second, other) = (try client("ada"), try client("ada"), try client("eve"))
            #expect(try await first.fetch("a").text == "1")
            #expect(try await second.fetch("a").text == "1")
            #expect(try await other.fetch("a").text == "2")
            #expect(try await cached.get().text == "3")
            // Clearing refuses what is still being stored, of all partitions.
            await cached.cache.flush()
            try await cached.cache.clear(partition: "ada")
            #expect(try await second.fetch("a").text == "4")
            #expect(try await other.fetch("a").text == "2")
            await cached.cache.flush()
            try await cached.cache.clear(cached.client.session)
            #expect(try await cached.get().text == "5")
            #expect(try await other.fetch("a").text == "2")
        }
    }

    enum Clearing: CaseIterable, Sendable { case partition, session, url, everything }

    @Test(arguments: StoreKind.allCases, Clearing.allCases)
    func aResponseUnderWayIsNotStoredAfterClearing(kind: StoreKind, clearing: Clearing) async throws {
        let gate = LoopbackServer.Gate()
        try await withCache(
            kind, session: { $0.partition = "ada" },
            handler: { exchange in
                let number = exchange.number
                if number == 1 { try exchange.wait(for: gate) }
                try exchange.respond(headers: [("Cache-Control", "max-age=60")], text: "\(number)")
            },
            test: { cached in
                let sender = Task { try await cached.get() }
                try await cached.server.wait { $0.requestsReceived == 1 }
                let url = cached.server.url("/a").absoluteString
                switch clearing {
                case .partition: try await cached.cache.clear(partition: "ada")
                case .session: try await cached.cache.clear(cached.client.session)
                case .url: try await cached.cache.remove(url, of: cached.client.session)
                case .everything: try await cached.cache.removeAll()
                }
                gate.open()
                #expect(try await sender.value.text == "1")
                let next = try await cached.get()
                #expect(next.text == "2")
                #expect(next.cacheTrace?.source == .network)
            })
    }

    @Test func aResponseToOnesOwnCredentialsComesBeforeASharedOne() async throws {
        try await withCache(
            handler: { exchange in
                try exchange.respond(
                    headers: [("Cache-Control", "max-age=60")], text: exchange.request["Authorization"] ?? "none")
            },
            test: { (cached) async throws in
                let ada: Headers = ["Authorization": "Bearer ada"]
                #expect(try await cached.get(headers: ada).text == "Bearer ada")
                #expect(try await cached.get().text == "none")
                #expect(try await cached.get(headers: ada).text == "Bearer ada")
                #expect(cached.requestCount == 2)
            })
    }

    @Test func anUnsafeRequestWithItsOwnTrustInvalidates() async throws {
        try await withCache(
            session: { $0.cookies = .none }, handler: numbered([("Cache-Control", "max-age=60")]),
            test: { cached in
                #expect(try await cached.get().text == "1")
                var post = try cached.client.request(.post, "a")
                post.trust = .unchecked
                _ = try await cached.client.session.response(for: post)
                #expect(try await cached.get().text == "3")
            })
    }

    @Test func varyAuthorizationCountsAnAuthorizationThatTheSessionAdds() async throws {
        try await withCache(
            handler: { exchange in
                let authorization = exchange.request["Authorization"]
                if exchange.request.path == "/private", authorization == nil {
                    return try exchange.respond(
                        status: 401, headers: [("WWW-Authenticate", "Basic realm=\"r\"")], text: "who")
                }
                try exchange.respond(
                    headers: [("Cache-Control", "max-age=60"), ("Vary", "Authorization")],
                    text: authorization == nil ? "anonymous" : "ada")
            },
            test: { cached in
                let credentials = try FixedCredentials([
                    cached.server.url.absoluteString: .user("ada", password: "pw")
                ])
                let client = try cached.client { $0.credentials = credentials }
                #expect(try await client.fetch("public").text == "anonymous")
                #expect(try await client.fetch("private").text == "ada")
                #expect(try await client.fetch("public").text == "ada")
                #expect(try await client.fetch("public").cacheTrace?.source == .stored)
            })
    }

    @Test func sessionsWithOtherTrustShareNothing() async throws {
        try await withCache(
            session: { $0.cookies = .none }, handler: numbered([("Cache-Control", "max-age=60")]),
            test: { cached in
                #expect(try await cached.get().text == "1")
                let trusting = try cached.client {
                    $0.cookies = .none
                    $0.trust.standard = .unchecked
                }
                #expect(try await trusting.fetch("a").text == "2")
                var request = try cached.client.request(.get, "a")
                request.trust = .unchecked
                #expect(try await cached.client.session.response(for: request).text == "3")
                let same = try cached.client { $0.cookies = .none }
                #expect(try await same.fetch("a").text == "1")
            })
    }
}
