import Testing

@testable import Tern

/// Decides how a 401 or 407 is answered, and which header is sent.
@Suite("Authentication")
struct AuthenticationTests {
    private static let url = "https://a.example/x?y"
    private static let ada = Credential.user("ada", password: "s3cret")

    private func response(
        _ challenges: String..., status: Int = 401, from url: String = Self.url
    ) throws -> ResponseHead {
        var headers: Headers = [:]
        for challenge in challenges {
            headers.append(name: status == 407 ? "Proxy-Authenticate" : "WWW-Authenticate", value: challenge)
        }
        return ResponseHead(status: status, version: .http11, target: try Target(absolute: url), headers: headers)
    }

    private func askedChallenge(_ action: AuthenticationRules.Action) throws -> AuthenticationChallenge {
        guard case .ask(let challenge) = action else { throw Unexpected(action: action) }
        return challenge
    }

    private func renewedAuthorization(_ action: AuthenticationRules.Action) throws -> Authorization {
        guard case .renew(let authorization) = action else { throw Unexpected(action: action) }
        return authorization
    }

    private func isFinal(_ action: AuthenticationRules.Action) -> Bool {
        if case .returnResponse = action { true } else { false }
    }

    private struct Unexpected: Error { let action: AuthenticationRules.Action }

    private func value(_ authorization: Authorization?, _ method: Request.Method = .get) throws -> String {
        var authorization = try #require(authorization)
        return authorization.field(method: method, target: try Target(absolute: Self.url)).value
    }

    private func challenge(_ challenges: String...) throws -> AuthenticationChallenge {
        var headers: Headers = [:]
        for challenge in challenges { headers.append(name: "WWW-Authenticate", value: challenge) }
        var rules = AuthenticationRules()
        let head = ResponseHead(
            status: 401, version: .http11, target: try Target(absolute: Self.url), headers: headers)
        return try askedChallenge(rules.action(for: head))
    }

    /// A provider can try a password in the other normal form, which is another one for the server.
    @Test func aPasswordWithOtherBytesIsAnotherCredential() throws {
        let challenge = try challenge("Basic realm=r")
        var rules = AuthenticationRules()
        let first = try rules.answer(challenge, with: .user("ada", password: "p\u{E4}ss"))
        let second = try rules.answer(challenge, with: .user("ada", password: "pa\u{308}ss"))
        #expect(try value(first) != value(second))
        #expect(try rules.answer(challenge, with: .user("ada", password: "pa\u{308}ss")) == nil)
        #expect(Credential.bearer("K") != .bearer("\u{212A}") && Credential.bearer("K") == .bearer("K"))
    }

    // MARK: Choice of the answer

    @Test(
        arguments: [
            (
                "Basic realm=r, Digest realm=r, nonce=n, Digest realm=r, nonce=n, algorithm=SHA-256, Bearer",
                ["SHA-256", nil, "Bearer", "Basic"]
            ),
            ("Digest nonce=n, Digest nonce=m, algorithm=SHA-512-256, Negotiate", ["SHA-512-256", nil]),
            ("Digest nonce=n, algorithm=SHA-1, Basic realm=r", ["Basic"]),
        ] as [(String, [String?])])
    func offersAreRankedByStrength(field: String, expected: [String?]) throws {
        let offers = try challenge(field).offers
        #expect(offers.map { $0.scheme == "Digest" ? $0.parameters["algorithm"] : $0.scheme } == expected)
    }

    @Test func credentialSelectsTheScheme() throws {
        let all = try challenge("Basic realm=r", "Bearer realm=r", "Digest realm=r, nonce=n, qop=auth")
        #expect(try Authorization(Self.ada, answering: all).schemeName == "Digest MD5")
        #expect(try Authorization(.bearer("t0ken"), answering: all).schemeName == "Bearer")
        #expect(throws: Authorization.Problem.noOffer) {
            try Authorization(.bearer("t"), answering: try challenge("Basic realm=r"))
        }
        #expect(throws: Authorization.Problem.noOffer) {
            try Authorization(Self.ada, answering: try challenge("Bearer"))
        }
    }

    @Test(arguments: [
        ("Aladdin", "open sesame", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        ("test", "123\u{A3}", "Basic dGVzdDoxMjPCow=="),
        ("", "", "Basic Og=="), ("u", "a:b", "Basic dTphOmI="),
    ])
    func basicIsBase64OfUTF8(user: String, password: String, expected: String) throws {
        let credential = Credential.user(user, password: password)
        #expect(try value(try Authorization(credential, answering: try challenge("Basic realm=r"))) == expected)
        #expect(try value(try Authorization(preemptive: credential)) == expected)
    }

    @Test(
        arguments: [
            (Credential.user("a:b", password: "p"), .colon), (.user("a\n", password: "p"), .controlCharacter),
            (.user("a", password: "p\r\nX: y"), .controlCharacter), (.bearer(""), .badToken),
            (.bearer("a b"), .badToken),
            (.bearer("a\r\nX: y"), .badToken), (.bearer("t\u{F6}ken"), .badToken),
        ] as [(Credential, Authorization.Problem)])
    func invalidFieldValueIsRefused(credential: Credential, expected: Authorization.Problem) throws {
        #expect(throws: expected) { try Authorization(preemptive: credential) }
        #expect(throws: expected) {
            try Authorization(credential, answering: try challenge("Basic realm=r, Bearer"))
        }
    }

    @Test func tokensAreSentUnchanged() throws {
        let authorization = try Authorization(preemptive: .bearer("mF_9.B5f-4.1JqM="))
        #expect(try value(authorization) == "Bearer mF_9.B5f-4.1JqM=")
    }

    // MARK: Number of attempts

    @Test(arguments: [200, 403, 302, 500]) func otherStatusesAreReturned(status: Int) throws {
        var rules = AuthenticationRules()
        #expect(isFinal(rules.action(for: try response("Basic realm=r", status: status))))
    }

    @Test func unanswerableChallengeIsTheResponse() throws {
        var rules = AuthenticationRules()
        #expect(isFinal(rules.action(for: try response())))
        #expect(isFinal(rules.action(for: try response("Negotiate", "NTLM"))))
    }

    @Test func refusedCredentialIsNotSentAgain() throws {
        var rules = AuthenticationRules()
        let first = try askedChallenge(rules.action(for: try response("Basic realm=r")))
        #expect((first.previousFailures, first.realm, first.origin) == (0, "r", "https://a.example:443"))
        #expect(try value(try rules.answer(first, with: Self.ada)).hasPrefix("Basic "))
        let second = try askedChallenge(rules.action(for: try response("Basic realm=r")))
        #expect(second.previousFailures == 1)
        #expect(try rules.answer(second, with: Self.ada) == nil)
        #expect(try rules.answer(second, with: .user("ada", password: "other")) != nil)
    }

    @Test func numberOfChallengesIsLimited() throws {
        var rules = AuthenticationRules()
        for number in 0..<4 {
            let challenge = try askedChallenge(rules.action(for: try response("Basic realm=r")))
            #expect(challenge.previousFailures == number)
            _ = try rules.answer(challenge, with: .user("ada", password: "\(number)"))
        }
        #expect(isFinal(rules.action(for: try response("Basic realm=r"))))
    }

    @Test func staleNonceIsRenewedOnceWithoutAProvider() throws {
        var rules = AuthenticationRules()
        let challenge = try askedChallenge(rules.action(for: try response("Digest realm=r, nonce=n1, qop=auth")))
        #expect(try value(try rules.answer(challenge, with: Self.ada)).contains("nonce=\"n1\""))
        let stale = try response("Digest realm=r, nonce=n2, qop=auth, stale=TRUE")
        let renewed = try renewedAuthorization(rules.action(for: stale))
        #expect(try value(renewed).contains("nonce=\"n2\"") && renewed.credential == Self.ada)
        #expect(try askedChallenge(rules.action(for: stale)).previousFailures == 1)
    }

    @Test func staleChallengeWithoutACredentialAsksTheProvider() throws {
        var rules = AuthenticationRules()
        #expect(try askedChallenge(rules.action(for: try response("Digest nonce=n, stale=true"))).previousFailures == 0)
    }

    @Test func rememberedNonceThatIsRefusedIsRenewed() throws {
        var rules = AuthenticationRules()
        rules.recordInitial(
            try Authorization(Self.ada, answering: try challenge("Digest nonce=old, qop=auth")),
            to: try Target(absolute: Self.url))
        // The challenge is not marked as stale: the nonce came from another request.
        let answer = try response("Digest nonce=new, qop=auth")
        #expect(try value(try renewedAuthorization(rules.action(for: answer))).contains("nonce=\"new\""))
        let challenge = try askedChallenge(rules.action(for: answer))
        #expect(challenge.previousFailures == 1)
        #expect(try rules.answer(challenge, with: Self.ada) == nil)
    }

    @Test func refusedRememberedTokenIsNotAFailure() throws {
        var rules = AuthenticationRules()
        rules.recordInitial(try Authorization(preemptive: .bearer("old")), to: try Target(absolute: Self.url))
        let challenge = try askedChallenge(rules.action(for: try response("Bearer error=\"invalid_token\"")))
        #expect(challenge.previousFailures == 0)
        #expect(try rules.answer(challenge, with: .bearer("old")) == nil)
        #expect(try rules.answer(challenge, with: .bearer("new")) != nil)
    }

    @Test func preemptiveBasicCanBecomeDigest() throws {
        var rules = AuthenticationRules()
        rules.recordInitial(try Authorization(preemptive: Self.ada), to: try Target(absolute: Self.url))
        let challenge = try askedChallenge(rules.action(for: try response("Digest nonce=n, qop=auth")))
        #expect(try rules.answer(challenge, with: Self.ada)?.schemeName == "Digest MD5")
    }

    @Test func anotherOriginStartsOver() throws {
        var rules = AuthenticationRules()
        let first = try askedChallenge(rules.action(for: try response("Basic realm=r")))
        _ = try rules.answer(first, with: Self.ada)
        let second = try askedChallenge(rules.action(for: try response("Basic realm=r", from: "https://b.example/")))
        #expect((second.previousFailures, second.origin) == (0, "https://b.example:443"))
        #expect(try rules.answer(second, with: Self.ada) != nil)
    }

    @Test func proxyAndServerAreCountedSeparately() throws {
        var rules = AuthenticationRules()
        let proxy = try askedChallenge(rules.action(for: try response("Basic realm=p", status: 407)))
        #expect(proxy.source == .proxy)
        var answer = try #require(try rules.answer(proxy, with: Self.ada))
        #expect(answer.field(method: .get, target: try Target(absolute: Self.url)).name == "Proxy-Authorization")
        let server = try askedChallenge(rules.action(for: try response("Basic realm=r")))
        #expect(server.source == .server && server.previousFailures == 0)
        #expect(try rules.answer(server, with: Self.ada) != nil)
    }

    // MARK: Cache

    @Test func cachedNonceCountsAllRequests() throws {
        let cache = AuthenticationCache()
        let target = try Target(absolute: Self.url)
        #expect(cache.field(for: target, owner: .session, method: .get) == nil)
        let authorization = try Authorization(Self.ada, answering: try challenge("Digest nonce=n, qop=auth"))
        cache.remember(authorization, for: target, owner: .session)
        for count in 1...3 {
            let field = try #require(cache.field(for: target, owner: .session, method: .get))
            #expect(field.name == "Authorization" && field.value.contains("nc=0000000\(count)"))
        }
        cache.update(from: "nextnonce=\"m\"", for: target, owner: .session)
        let next = try #require(cache.field(for: target, owner: .session, method: .get))
        #expect(next.value.contains("nonce=\"m\"") && next.value.contains("nc=00000001"))
    }

    @Test func cacheSeparatesOwnersAndOrigins() throws {
        let cache = AuthenticationCache()
        let target = try Target(absolute: Self.url)
        let eve = Credential.user("eve", password: "e")
        cache.remember(try Authorization(preemptive: Self.ada), for: target, owner: .url(Self.ada))
        #expect(cache.authorization(for: target, owner: .url(Self.ada)) != nil)
        #expect(cache.authorization(for: target, owner: .url(eve)) == nil)
        #expect(cache.authorization(for: target, owner: .session) == nil)
        #expect(cache.authorization(for: try Target(absolute: "https://b.example/"), owner: .url(Self.ada)) == nil)
        #expect(cache.authorization(for: try Target(absolute: "http://a.example/"), owner: .url(Self.ada)) == nil)
        #expect(cache.authorization(for: target, owner: .url(Self.ada), source: .proxy) == nil)
        cache.forget(eve, for: target, owner: .url(Self.ada))
        #expect(cache.authorization(for: target, owner: .url(Self.ada)) != nil)
        cache.forget(Self.ada, for: target, owner: .url(Self.ada))
        #expect(cache.authorization(for: target, owner: .url(Self.ada)) == nil)
    }

    @Test func cacheIsBounded() throws {
        let cache = AuthenticationCache()
        for number in 0..<600 {
            let target = try Target(absolute: "https://h\(number).example/")
            cache.remember(try Authorization(preemptive: Self.ada), for: target, owner: .session)
        }
        var kept = 0
        for number in 0..<600 {
            let target = try Target(absolute: "https://h\(number).example/")
            if cache.authorization(for: target, owner: .session) != nil { kept += 1 }
        }
        #expect(kept == AuthenticationCache.limit)
    }

    @Test func credentialsOfURLsAreUsed() throws {
        #expect(Credential(of: try Target(absolute: "https://ada:s3cret@a.example/")) == Self.ada)
        #expect(Credential(of: try Target(absolute: "https://ada@a.example/")) == .user("ada", password: ""))
        #expect(Credential(of: try Target(absolute: "https://a%40b:%3A@a.example/")) == .user("a@b", password: ":"))
        #expect(Credential(of: try Target(absolute: "https://a.example/")) == nil)
    }

    @Test func descriptionsKeepSecrets() throws {
        for credential in [Self.ada, .bearer("s3cret")] {
            var dumped = ""
            dump(credential, to: &dumped)
            for text in ["\(credential)", String(reflecting: credential), dumped] {
                #expect(!text.contains("s3cret") && !text.contains("ada"), "\(text)")
            }
        }
        #expect(Self.ada.user == "ada")
        #expect(Credential.bearer("t").user == nil)
    }

    @Test func noncesDiffer() {
        #expect(Authorization.randomNonce() != Authorization.randomNonce())
        #expect(Authorization.randomNonce().utf8.count >= 16)
    }
}
