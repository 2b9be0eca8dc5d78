#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import Testing

/// Calls caddy, which offers HTTP/3 in its responses (RFC 7838). The tests of the engine have alternatives that are of no
/// use.
@Suite(
    "Wire: HTTP/3 when it is offered", .serialized, .timeLimit(.minutes(1)),
    .enabled(if: PeerServer.hasHTTP3, "caddy, or a library of HTTP/3, is missing; `make test` installs them"))
struct HTTP3OfferTests {
    /// A client over HTTP/2, whose alternatives have more time than the machine of the tests needs.
    private func client(
        _ peer: PeerServer, _ change: (inout Session.Configuration) -> Void = { _ in }
    ) throws -> Client {
        try peer.client(.http2) {
            $0.http3 = .whenOffered
            $0.http3HeadStart = .seconds(600)
            change(&$0)
        }
    }

    /// Sends a request, and returns the version of HTTP that carried it.
    private func version(_ client: Client) async throws -> HTTPVersion? {
        let response = try await client.response(for: client.request(.get, "files/small"), as: String.self)
        #expect(response.value == "hello")
        return response.metrics.httpVersion
    }

    @Test func anOpenConnectionServesUntilTheAlternativeDoes() async throws {
        let peer = try await PeerServer(.caddy)
        defer { peer.stop() }
        let client = try client(peer)
        #expect(try await version(client) == .http2)
        while try await version(client) != .http3 {}
        #expect(try await version(client) == .http3)
        // The connection over TCP has ended, and takes no place any more.
        while await client.session.openConnections.reduce(0, { $0 + $1.activeCount + $1.idleCount }) != 1 {}
        #expect(try await client.post("via/echo", body: .text("hello"), as: String.self) == "hello")
        // Another session has learned nothing.
        #expect(try await version(self.client(peer)) == .http2)
    }

    @Test func aNewConnectionTriesTheAlternativeFirst() async throws {
        let peer = try await PeerServer(.caddy)
        defer { peer.stop() }
        let client = try client(peer) { $0.maximumConnectionUses = 1 }
        #expect(try await version(client) == .http2)
        for _ in 0..<2 { #expect(try await version(client) == .http3) }
        // A client that does not offer HTTP/2 shares the connection over HTTP/3 all the same.
        let http1 = try self.client(peer) {
            $0.maximumConnectionUses = 1
            $0.allowsHTTP2 = false
        }
        #expect(try await version(http1) == .http11)
        #expect(try await version(http1) == .http3)
    }

    @Test func aSessionWithAProxyStaysWithIt() async throws {
        let peer = try await PeerServer(.caddy)
        defer { peer.stop() }
        let tunnel = try Tunnel()
        defer { tunnel.stop() }
        let proxied = try client(peer) {
            $0.proxies = .only(Proxy(.http, host: "127.0.0.1", port: tunnel.port))
            $0.maximumConnectionUses = 1
        }
        for _ in 0..<3 { #expect(try await version(proxied) == .http2) }
        #expect(tunnel.requests.count == 3)
    }

    @Test func aPinIsNotGivenUpForAnAlternative() async throws {
        let other = try await PeerServer(.caddy)
        defer { other.stop() }
        let peer = try await PeerServer(.caddy, offer: .port(other.ports.secure))
        defer { peer.stop() }
        let authorities = try [peer, other].map { try Data(contentsOf: $0.folder.appending(path: "ca.pem")) }
        let certificate = try Certificate.load(
            pem: Data(contentsOf: peer.folder.appending(path: "server.pem")))[0]
        let client = try client(peer) {
            $0.authorities = .pem(authorities[0] + authorities[1])
            $0.trust.standard = TrustPolicy(pins: [.key(of: certificate)])
            $0.maximumConnectionUses = 1
        }
        for _ in 0..<3 {
            let response = try await client.response(
                for: client.request(.post, "via/echo", body: .text("hello")), as: String.self)
            #expect(response.value == "hello" && response.metrics.httpVersion == .http2)
        }
        #expect(peer.count("POST", "/echo") == 3 && other.count("POST", "/echo") == 0)
    }

    @Test func anAlternativeIsNamedInItsRequests() async throws {
        let peer = try await PeerServer(.caddy)
        defer { peer.stop() }
        let client = try client(peer) { $0.maximumConnectionUses = 1 }
        #expect(try await client.get("via/alternative", as: String.self) == "none")
        #expect(try await client.get("via/alternative", as: String.self) == "127.0.0.1:\(peer.ports.secure)")
    }

    @Test func aRequestHasItsOwnUse() async throws {
        let peer = try await PeerServer(.caddy)
        defer { peer.stop() }
        let client = try client(peer) { $0.http3 = .never }
        for (use, version) in [(nil, .http2), (.always, .http3), (nil, .http2), (.never, .http2)]
            as [(Session.Configuration.HTTP3Use?, HTTPVersion)]
        {
            var request = try client.request(.get, "files/small")
            request.http3 = use
            #expect(request.http3 == use)
            let response = try await client.response(for: request, as: String.self)
            #expect(response.metrics.httpVersion == version)
        }
    }

    @Test func aMisdirectedRequestGoesOverTCPAgain() async throws {
        let peer = try await PeerServer(.caddy, offer: .misdirected(LoopbackPort.free()))
        defer { peer.stop() }
        let client = try client(peer) { $0.maximumConnectionUses = 1 }
        #expect(try await version(client) == .http2)
        // The first of these has met the alternative, and the second knows better.
        for _ in 0..<2 { #expect(try await version(client) == .http2) }
    }

    @Test func anIdentityThatCannotBeReadIsAnError() async throws {
        var policy = TrustPolicy()
        policy.identity = .pem(certificates: Data(), key: Data())
        let session = Session(
            configuration: .test {
                $0.http3 = .always
                $0.trust.standard = policy
            })
        let client = try Client(baseURL: "https://127.0.0.1:1", session: session)
        let error = try await failure { try await client.get("files/small") }
        #expect(error.kind == .tls && error.reason.contains("identity"), "\(error)")
    }
}
#endif
