import Tern
import TernCache
import TernConcurrency
import TernTesting
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests that sessions of different users never share images, and that sessions of one user do.
@Suite(.timeLimit(.minutes(1))) struct PartitionTests {
    /// Two configurations, and whether they share images.
    struct Pair: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let shares: Bool
        var handlesCookies = false
        let first: @Sendable (inout Session.Configuration) throws -> Void
        let second: @Sendable (inout Session.Configuration) throws -> Void
    }

    private static func twice(
        _ name: String, shares: Bool = true, handlesCookies: Bool = false,
        _ change: @escaping @Sendable (inout Session.Configuration) throws -> Void
    ) -> Pair {
        Pair(testDescription: name, shares: shares, handlesCookies: handlesCookies, first: change, second: change)
    }

    private static func header(_ name: String, _ value: String) -> @Sendable (inout Session.Configuration) -> Void {
        {
            $0.headers[name] = value
            $0.secretHeaderOrigins = .all
        }
    }

    private static func fixed(_ password: String) -> @Sendable (inout Session.Configuration) throws -> Void {
        { $0.credentials = try FixedCredentials(["https://a.example": .user("ada", password: password)]) }
    }

    private static func client(_ certificate: String) -> @Sendable (inout Session.Configuration) -> Void {
        {
            $0.trust.hosts["a.example"] = TrustPolicy()
            $0.trust.hosts["a.example"]?.identity = .pem(certificates: Data(certificate.utf8), key: Data("key".utf8))
        }
    }

    private static func named(
        _ name: String?, _ change: @escaping @Sendable (inout Session.Configuration) -> Void = { _ in }
    ) -> @Sendable (inout Session.Configuration) -> Void {
        {
            change(&$0)
            $0.partition = name
        }
    }

    private struct Passing: Interceptor {
        func intercept(_ request: Request, next: Next) async throws -> Reply { try await next(request) }
    }

    private struct Counting: Interceptor {
        var changesRequests: Bool { false }

        func intercept(_ request: Request, next: Next) async throws -> Reply { try await next(request) }
    }

    private struct Asking: CredentialProvider {
        @concurrent func credential(
            for challenge: AuthenticationChallenge, of request: Request
        ) async throws -> Credential? { nil }
    }

    private struct Deciding: SessionPolicy {}

    static let pairs: [Pair] = [
        twice("no identity") { _ in },
        Pair(
            testDescription: "headers that name no user", shares: true, first: header("User-Agent", "app/1"),
            second: header("User-Agent", "app/2")),
        Pair(
            testDescription: "two Authorizations", shares: false, first: header("Authorization", "Bearer ada"),
            second: header("Authorization", "Bearer eve")),
        Pair(
            testDescription: "one Authorization, and none", shares: false,
            first: header("Authorization", "Bearer ada"), second: { _ in }),
        twice("the same Authorization", header("Authorization", "Bearer ada")),
        Pair(
            testDescription: "two users of a gateway", shares: false, first: header("X-User", "ada"),
            second: header("X-User", "eve")),
        Pair(
            testDescription: "two Cookie headers", shares: false, first: header("Cookie", "id=1"),
            second: header("Cookie", "id=2")),
        Pair(testDescription: "two fixed credentials", shares: false, first: fixed("1"), second: fixed("2")),
        twice("the same fixed credentials", fixed("1")),
        Pair(testDescription: "two client identities", shares: false, first: client("a"), second: client("b")),
        twice("the same client identity", client("a")),
        twice("two cookie stores in memory", shares: false, handlesCookies: true) { $0.cookies = .separate },
        twice("two cookie stores that nothing is sent of") { $0.cookies = .separate },
        twice("the shared cookie store", handlesCookies: true) { $0.cookies = .shared },
        twice("no cookies", handlesCookies: true) { $0.cookies = .none },
        Pair(
            testDescription: "two sockets", shares: false, first: { $0.unixSocketPath = "/a" },
            second: { $0.unixSocketPath = "/b" }),
        Pair(
            testDescription: "any certificate, and checked ones", shares: false,
            first: { $0.trust.standard = .unchecked }, second: { _ in }),
        twice("an interceptor", shares: false) { $0.interceptors = [Passing()] },
        twice("an interceptor for each request", shares: true) {
            $0.interceptors = [
                RetryInterceptor(), CoalescingInterceptor(), OfflineWaitInterceptor(), LoggingInterceptor { _ in },
                RateLimitInterceptor(requestsPerSecond: 1_000), Counting(),
            ]
        },
        twice("a credential provider", shares: false) { $0.credentials = Asking() },
        twice("a policy", shares: false) { $0.policy = Deciding() },
        twice("a named partition with an interceptor", named("ada") { $0.interceptors = [Passing()] }),
        Pair(
            testDescription: "two named partitions", shares: false,
            first: named("ada") { $0.interceptors = [Passing()] },
            second: named("eve") { $0.interceptors = [Passing()] }),
        Pair(
            testDescription: "a token that rotates in a named partition", shares: true,
            first: named("ada", header("Authorization", "Bearer 1")),
            second: named("ada", header("Authorization", "Bearer 2"))),
        twice("cookies in a named partition", handlesCookies: true, named("ada") { $0.cookies = .separate }),
    ]

    private func kit(
        _ stub: StubTransport, _ folder: ScratchFolder, hook: Bool = false,
        _ change: (inout Session.Configuration) throws -> Void = { _ in }
    ) throws -> PipelineKit {
        var session = Session.Configuration()
        try change(&session)
        return PipelineKit(stub, disk: .folder(folder.url)) { [session] configuration in
            configuration.session = Session(configuration: session, stub: stub)
            configuration.diskContent = .all
            if hook { configuration.hooks.prepare = { $0 } }
        }
    }

    private func load(_ request: ImageRequest, _ kit: PipelineKit) async throws {
        _ = try await kit.pipeline.image(from: request)
        try await kit.pipeline.flush()
    }

    @Test(arguments: pairs) func sessionsSharePicturesOnlyWithinOnePartition(_ pair: Pair) async throws {
        let (folder, picture) = (try ScratchFolder(), try Pictures.png())
        let stub = StubTransport { _ in .data(picture, headers: ["ETag": "\"1\"", "Cache-Control": "max-age=60"]) }
        let (first, second) = (try kit(stub, folder, pair.first), try kit(stub, folder, pair.second))
        var request = ImageRequest(
            try url("https://a.example/1.png"), targetSize: PixelSize(width: 20, height: 20),
            processors: [.rotate(degrees: 90)])
        request.options.handlesCookies = pair.handlesCookies
        try await load(request, first)
        #expect(await first.pipeline.isOnDisk(request))
        #expect(await second.pipeline.isOnDisk(request) == pair.shares)
        #expect((first.pipeline.key(of: request) == second.pipeline.key(of: request)) == pair.shares)
        try await load(request, second)
        #expect(stub.calls.count == (pair.shares ? 1 : 2))
        // Neither sends a condition with the other's validator.
        #expect(stub.calls.allSatisfy { $0.headers["If-None-Match"] == nil })
        // A session finds its own image again.
        first.pipeline.memory.removeAll()
        try await load(request, first)
        #expect(stub.calls.count == (pair.shares ? 1 : 2))
    }

    @Test func pipelinesOfOneSessionShareWhateverItsInterceptors() async throws {
        let (folder, picture) = (try ScratchFolder(), try Pictures.png())
        let stub = StubTransport { _ in .data(picture) }
        let first = try kit(stub, folder) { $0.interceptors = [Passing()] }
        let second = PipelineKit(stub, disk: .folder(folder.url)) {
            $0.session = first.pipeline.configuration.session
        }
        let request = ImageRequest(try url("https://a.example/1.png"))
        try await load(request, first)
        try await load(request, second)
        #expect(stub.calls.count == 1)
    }

    @Test func aHookThatChangesRequestsSharesNothing() async throws {
        let (folder, picture) = (try ScratchFolder(), try Pictures.png())
        let stub = StubTransport { _ in .data(picture) }
        let request = ImageRequest(try url("https://a.example/1.png"))
        for isNamed in [false, true] {
            let kits = try (0..<2).map { _ in
                try kit(stub, folder, hook: true) { if isNamed { $0.partition = "ada" } }
            }
            for kit in kits { try await load(request, kit) }
        }
        #expect(stub.calls.count == 3)
    }

    @Test func aCookieStoreIsIdentifiedByItsFile() async throws {
        let (folder, picture) = (try ScratchFolder(), try Pictures.png())
        let stub = StubTransport { _ in .data(picture, headers: ["Set-Cookie": "id=1; Max-Age=60"]) }
        func load(_ name: String) async throws {
            let kit = try kit(stub, folder) {
                $0.cookies = .store(try CookieStore(file: folder.url.appending(path: name)))
            }
            var request = ImageRequest(try url("https://a.example/1.png"))
            request.options.handlesCookies = true
            try await self.load(request, kit)
        }
        try await load("ada")
        try await load("ada")
        #expect(stub.calls.count == 1)
        try await load("eve")
        #expect(stub.calls.count == 2)
    }

    @Test func aNameThatReplacesTheURLKeepsUsersApart() async throws {
        let (folder, picture) = (try ScratchFolder(), try Pictures.png())
        let stub = StubTransport { _ in .data(picture) }
        func load(session: String, request token: String?) async throws {
            let configured = try kit(stub, folder, Self.header("Authorization", session))
            var configuration = configured.pipeline.configuration
            configuration.hooks.cacheKey = { _ in "the same" }
            let pipeline = ImagePipeline(configuration: configuration)
            var request = try Request(.get, "https://a.example/1.png")
            request.headers["Authorization"] = token
            _ = try await pipeline.image(from: ImageRequest(.request(request)))
            try await pipeline.flush()
        }
        let ways: [(String, String?)] = [("ada", nil), ("eve", nil), ("ada", "bob"), ("ada", "eve"), ("ada", "eve")]
        for (session, token) in ways { try await load(session: session, request: token) }
        #expect(stub.calls.count == 4)
    }

    @Test func oneRequestsAuthorizationIsNotAnothers() async throws {
        let (folder, picture) = (try ScratchFolder(), try Pictures.png())
        let stub = StubTransport { _ in .data(picture) }
        let kit = try kit(stub, folder)
        var requests: [Request] = []
        for token in ["ada", "eve"] {
            var request = try Request(.get, "https://a.example/1.png")
            request.headers["Authorization"] = token
            requests.append(request)
            requests.append(try Request(.get, "https://\(token)@a.example/1.png"))
            requests.append(try Request(.get, "https://:\(token)@a.example/1.png"))
            request = try Request(.get, "https://a.example/1.png")
            request.unixSocketPath = "/\(token)"
            requests.append(request)
        }
        for request in requests { try await load(ImageRequest(.request(request)), kit) }
        #expect(stub.calls.count == requests.count)
        for request in requests { try await load(ImageRequest(.request(request)), kit) }
        #expect(stub.calls.count == requests.count)
    }

    @Test func aFailureAndAPartBelongToTheirSession() async throws {
        let folder = try ScratchFolder()
        let stub = StubTransport { call in
            call.headers["Authorization"] == "ada" ? .status(404) : .data(Data("no picture".utf8))
        }
        let request = ImageRequest(try url("https://a.example/1.png"))
        let first = try kit(stub, folder, Self.header("Authorization", "ada"))
        let second = try kit(stub, folder, Self.header("Authorization", "eve"))
        let keys = [first, second].map { $0.pipeline.key(of: request).source }
        #expect(PartialImage.key(keys[0]) != PartialImage.key(keys[1]))
        #expect(await first.pipeline.failure(of: request)?.kind == .network)
        #expect(await second.pipeline.failure(of: request)?.kind != .failedBefore)
    }

    @Test func thePartitionIsWrittenAsADigest() async throws {
        let folder = try ScratchFolder()
        let stub = StubTransport { _ in .status(404) }
        let request = ImageRequest(try url("https://a.example/1.png"))
        for change in [Self.header("Authorization", "hunter2"), Self.named("hunter2")] {
            let text = try kit(stub, folder, change).pipeline.key(of: request).text
            #expect(text.hasPrefix("image partition:") && text.hasSuffix(" https://a.example/1.png"))
            #expect(text.count == "image partition: https://a.example/1.png".count + 32)
            #expect(!text.contains("hunter2"))
        }
        // An image that is not from the network belongs to no session.
        let data = ImageRequest(.data("a") { Data() })
        let named = try kit(stub, folder, Self.named("ada")).pipeline
        #expect(named.key(of: data).text == "image data:a")
    }
}
