import TernConcurrency
import TernTesting
import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Checks `print`, interpolation and `dump` of values that hold secrets, because logs contain their output.
@Suite("Printed descriptions", .timeLimit(.minutes(1)))
struct DumpTests {
    private static let url = "https://ada:s3cret@example.com/v1?token=s3cret"

    private func client() throws -> Client {
        var configuration = Session.Configuration()
        configuration.headers["Authorization"] = "Bearer s3cret"
        configuration.secretHeaderOrigins = ["https://example.com"]
        let headers: Headers = ["X-Api-Key": "s3cret", "X-Plain": "shown"]
        let session = Session(configuration: configuration, transport: StubTransport(["GET /v1/a": .data(Data())]))
        return try Client(baseURL: Self.url, session: session, headers: headers)
    }

    /// Fails if any form of the value contains a secret, or the compiler's name of a private type.
    private func check(_ value: some Any, shows shown: String, sourceLocation: SourceLocation = #_sourceLocation) {
        var dumped = ""
        dump(value, to: &dumped)
        for text in ["\(value)", String(reflecting: value), "\([value])", dumped] {
            let isClean = !text.contains("s3cret") && !text.contains("unknown context")
            #expect(isClean, "\(text)", sourceLocation: sourceLocation)
        }
        #expect("\(value)".contains(shown), "\(value)", sourceLocation: sourceLocation)
        #expect(dumped.contains(shown), "\(dumped)", sourceLocation: sourceLocation)
    }

    @Test func aClientShowsItsBase() throws {
        check(try client(), shows: "https://example.com/v1/")
        check(Client(), shows: "no base URL")
    }

    @Test func aConfigurationShowsItsLimits() throws {
        var configuration = try client().session.configuration
        configuration.authorities = .pem(Data("s3cret".utf8))
        configuration.maximumConnections = 77
        check(configuration, shows: "77")
    }

    @Test func tasksAndSnapshotsShowTheirRequest() async throws {
        let client = try client()
        let task = client.task(.get, "a", query: ["token": "s3cret"], startsImmediately: false)
        check(task, shows: "GET https://example.com/v1/a?token=<redacted>")
        check(task.erased, shows: "GET https://example.com/v1/a?token=<redacted>")
        let snapshot = try #require(await client.session.tasks.snapshot.first)
        check(snapshot, shows: "GET https://example.com/v1/a?token=<redacted>")
        task.cancel()
    }

    @Test func responsesShowStatusAndURL() async throws {
        let client = try client()
        let response = try await client.response(for: client.request(.get, "a", query: ["token": "s3cret"]))
        check(response, shows: "200 https://example.com/v1/a?token=<redacted>")
        check(response.head, shows: "200 https://example.com/v1/a?token=<redacted>")
    }

    @Test func resumeDataShowsItsOffset() throws {
        let token = ResumeData(url: Self.url, validator: "v", offset: 5, partialFile: "/a/b", totalBytes: nil)
        check(token, shows: "example.com/v1?token=<redacted>, 5 of an unknown number of bytes in /a/b")
    }

    @Test func aQueryShowsNames() throws {
        let query: Request.Query = ["token": "s3cret", "bare": .null]
        check(query, shows: "token=<redacted>")
        check(try #require(query.items.first), shows: "token=<redacted>")
    }

    // MARK: Secrets in every place

    /// Returns a value of each type that takes a secret, with one in it.
    private func holders() async throws -> [any Sendable] {
        let secret = "s3cret"
        var configuration = Session.Configuration()
        let proxy = Proxy(.http, host: "proxy.example", port: 8080, user: secret, password: secret)
        configuration.proxies = .schemes(http: proxy, https: proxy)
        configuration.headers["X-Functions-Key"] = secret
        configuration.secretHeaderOrigins = .all
        let identity = ClientIdentity.pkcs12(Data(secret.utf8), password: secret)
        configuration.trust.hosts["example.com"] = TrustPolicy()
        configuration.trust.hosts["example.com"]?.identity = identity
        let fixed = try FixedCredentials([
            "https://example.com": .user(secret, password: secret), "https://b.example": .bearer(secret),
        ])
        configuration.credentials = fixed
        let store = CookieStore()
        try store.insert(Cookie(name: "id", value: secret, domain: "example.com"))
        configuration.cookies = .store(store)
        let tokens = AuthenticationInterceptor(Tokens(), credential: secret)
        configuration.interceptors = [tokens, CoalescingInterceptor()]
        var form = MultipartForm()
        form.append(secret, named: "password")
        var request = try Request(.post, Self.url, headers: ["Authorization": secret], body: .multipart(form))
        request.credentials = fixed
        request.cookies = .store(store)
        request.trust = TrustPolicy()
        request.trust?.identity = identity
        let body = Request.Body.text(secret)
        let stub = StubTransport { _ in .text(secret, headers: ["Set-Cookie": "a=\(secret)"]) }
        let stubbed = Session(configuration: Session.Configuration(), transport: stub)
        request.body = body
        var plain = try Request(.post, Self.url, headers: ["X-Auth": secret], body: body)
        plain.credentials = fixed
        let response = try await stubbed.response(for: plain)
        let wired = Session(configuration: configuration)
        let call = try #require(stub.calls.first)
        return [
            proxy, configuration.proxies, configuration, identity, fixed, store, configuration.cookies, tokens,
            CoalescingInterceptor(), form, body, Request.Body.json([secret]), request, Client(session: wired), wired,
            wired.tasks,
            wired.tasks, stub, stubbed, call, response,
            StubTransport.Answer.text(secret), Reply(to: request, headers: ["X-Key": secret], body: Data(secret.utf8)),
            Recorder(configuration), configuration.trust, Credential.bearer(secret),
            Headers(["Location": Self.url, "X-Session": secret]), ChallengeDecision.use(.bearer(secret)),
            RedirectDecision.follow(request), stubbed.stream(plain),
        ]
    }

    private struct Tokens: Authenticator {
        func apply(_ credential: String, to request: inout Request) { request.headers["Authorization"] = credential }
        func refresh(_ spent: String?) async throws -> String { "s3cret" }
    }

    @Test func secretsAreHiddenInEveryHolder() async throws {
        for value in try await holders() {
            var dumped = ""
            dump(value, to: &dumped)
            let texts = [dumped, "\(value)", String(reflecting: value), "\([value])", "\(Optional(value) as Any)"]
            for text in texts { #expect(!text.contains("s3cret"), "\(type(of: value)): \(text)") }
        }
    }

    @Test func logLinesHoldNoSecret() async throws {
        let lines = Lock<[String]>([])
        var configuration = Session.Configuration()
        configuration.interceptors = [LoggingInterceptor(.headers) { line in lines.withLock { $0.append(line) } }]
        let stub = StubTransport { call in
            if call.path == "/v1" {
                return .status(302, headers: ["Location": "/end?code=s3cret", "Set-Cookie": "a=s3cret"])
            }
            return .status(404, headers: ["X-Session": "s3cret", "Link": "</a?token=s3cret>; rel=next"])
        }
        let session = Session(configuration: configuration, transport: stub)
        let headers: Headers = ["X-Auth-Key": "s3cret", "Referer": Self.url, "Cookie": "a=s3cret"]
        let request = try Request(.post, Self.url + "#s3cret", headers: headers, body: .text("s3cret"))
        do throws(NetworkError) {
            _ = try await session.response(for: request)
            Issue.record("nothing failed")
        } catch {
            #expect(!"\(error) \(String(reflecting: error))".contains("s3cret"))
        }
        let text = lines.withLock { $0.joined(separator: "\n") } + request.curlDescription
        #expect(!text.contains("s3cret"), "\(text)")
        #expect(text.contains("X-Auth-Key") && text.contains("<redacted>"))
    }

    /// A shell reads bytes: a quote ends a text, although it is one character if it is followed by a combining mark.
    @Test func curlCommandQuotesEveryQuoteForTheShell() throws {
        var request = try Request(.get, "https://a.example/", headers: ["X": "a'\u{301};id'\u{20DD}b'c"])
        request.unixSocketPath = "/tmp/'\u{301}"
        let expected =
            #"curl --header 'X: a'\''"# + "\u{301};id" + #"'\''"# + "\u{20DD}b" + #"'\''c' --unix-socket '/tmp/'\''"#
            + "\u{301}' 'https://a.example/'"
        #expect(Array(request.curlDescription.unicodeScalars) == Array(expected.unicodeScalars))
    }
}
