#if os(Linux) && !TERN_URLSESSION
import Foundation
import Glibc
import Tern
import TernTesting
import Testing

/// Calls caddy over HTTP/3 alone. `PeerTests` has the checks that hold for each version of HTTP.
@Suite(
    "Wire: HTTP/3", .serialized, .timeLimit(.minutes(1)),
    .enabled(if: PeerServer.hasHTTP3, "caddy, or a library of HTTP/3, is missing; `make test` installs them"))
struct HTTP3Tests {
    @Test func certificatesAreJudgedBeforeARequestIsSent() async throws {
        let peer = try await PeerServer(.caddy)
        defer { peer.stop() }
        // An unknown authority.
        let stranger = try peer.client(.http3) { $0.authorities = .system }
        let untrusted = try await failure { try await stranger.post("via/echo") }
        #expect(untrusted.kind == .untrustedServer, "\(untrusted)")
        // A pin that does not match.
        let pinned = try peer.client(.http3) { configuration in
            configuration.trust.standard = TrustPolicy(pins: [])
        }
        let refused = try await failure { try await pinned.post("via/echo") }
        #expect(refused.kind == .pinMismatch && refused.metrics?.sentBytes == 0, "\(refused)")
        #expect(peer.count("POST", "/echo") == 0)
        // Every certificate.
        let trusting = try peer.client(.http3) { $0.trust.standard = .unchecked }
        #expect(try await trusting.get("files/small", as: String.self) == "hello")
    }

    @Test func aServerWithoutHTTP3IsAnError() async throws {
        // No socket is bound to the port, which the system says.
        let port = try LoopbackPort.free()
        let session = Session(configuration: .test { $0.http3 = .always })
        let client = try Client(baseURL: "https://127.0.0.1:\(port)", session: session)
        let error = try await failure { try await client.get("files/small") }
        #expect(error.kind == .connectionRefused, "\(error)")
    }

    @Test func aServerThatDoesNotAnswerTakesTheTimeLimitForConnecting() async throws {
        let silent = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(silent) }
        let port = try LoopbackPort.bind(silent)
        let session = Session(
            configuration: .test {
                $0.http3 = .always
                $0.timeouts.connect = .milliseconds(300)
            })
        let client = try Client(baseURL: "https://127.0.0.1:\(port)", session: session)
        let error = try await failure { try await client.get("files/small") }
        #expect(error.kind == .connectTimedOut, "\(error)")
    }

    @Test func cancellingEndsADownload() async throws {
        let peer = try await PeerServer(.caddy)
        defer { peer.stop() }
        let client = try peer.client(.http3)
        let stream = client.stream("files/large")
        var iterator = stream.chunks.makeAsyncIterator()
        _ = try await iterator.next()
        stream.task.cancel()
        let error = try await failure {
            while try await iterator.next() != nil {}
        }
        #expect(error.kind == .cancelled)
        // The connection goes on.
        let response = try await client.response(for: client.request(.get, "files/small"), as: String.self)
        #expect(response.value == "hello" && response.metrics.isReusedConnection)
    }

    @Test func aConnectionForEachRequestIsPossible() async throws {
        let peer = try await PeerServer(.caddy)
        defer { peer.stop() }
        let client = try peer.client(.http3) { $0.maximumConnectionUses = 1 }
        for _ in 0..<3 {
            let response = try await client.response(for: client.request(.get, "files/small"), as: String.self)
            #expect(response.value == "hello" && !response.metrics.isReusedConnection)
        }
    }

    @Test func typedCallsWithInterceptorsGoOverHTTP3() async throws {
        let peer = try await PeerServer(.caddy)
        defer { peer.stop() }
        struct User: Codable { let name: String }
        let client = try peer.client(.http3) { $0.interceptors = [RetryInterceptor()] }
        // The server says that it is text.
        let echoed: String = try await client.post("via/echo", body: .json(User(name: "Ada")))
        #expect(echoed == #"{"name":"Ada"}"#)
    }
}
#endif
