#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernTesting
import Testing

/// Checks trailers, and bodies that go both ways at once, with an application behind hypercorn and with nghttpd.
@Suite("servers of other authors: trailers and streams", .serialized, .timeLimit(.minutes(1)))
struct PeerStreamTests {
    private static let absence: Comment = "hypercorn is missing; `make test` installs it"

    @Test(.enabled(if: PeerServer.Kind.hypercorn.isExpected, absence))
    func trailersOfAnApplicationArrive() async throws {
        let peer = try await PeerServer(.hypercorn)
        defer { peer.stop() }
        let client = try peer.client(.http2)
        for _ in 0..<3 {
            // hypercorn sends trailers to clients that ask for them.
            let request = try client.request(.get, "trailers", headers: ["TE": "trailers"])
            let response = try await client.response(for: request, as: String.self)
            #expect(response.value == "part one, part two" && response.metrics.httpVersion == .http2)
            #expect(response.trailers["X-End"] == "reached" && response.trailers["X-Length"] == "18")
            #expect(response.headers["X-End"] == nil)
        }
    }

    @Test(.enabled(if: PeerServer.Kind.nghttpd.isExpected, "nghttpd is missing; `make test` installs it"))
    func trailersFollowAFileOfNghttpd() async throws {
        let peer = try await PeerServer(.nghttpd)
        defer { peer.stop() }
        let client = try peer.client(.http2)
        let response = try await client.response(for: client.request(.get, "files/big"))
        #expect(PeerServer.big.matches(response.value) && response.value.count == PeerServer.big.count)
        #expect(response.trailers["x-end"] == "reached")
    }

    /// Each part of the request is sent after the last one came back.
    @Test(.enabled(if: PeerServer.Kind.hypercorn.isExpected, absence))
    func bodiesGoBothWaysAtOnce() async throws {
        let peer = try await PeerServer(.hypercorn)
        defer { peer.stop() }
        for access in peer.accesses where access != .plain {
            let client = try peer.client(access)
            let (parts, source) = AsyncStream.makeStream(of: Data.self)
            source.yield(Data("part 0".utf8))
            let stream = client.stream("via/echo", method: .post, body: .stream(parts))
            var number = 0
            for try await chunk in stream.chunks {
                #expect(chunk == Data("part \(number)".utf8), "\(access)")
                number += 1
                if number < 20 { source.yield(Data("part \(number)".utf8)) } else { source.finish() }
            }
            #expect(number == 20, "\(access)")
        }
    }
}
#endif
