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

    @Test(.enabled(if: PeerServer.Kind.hypercorn.isExpected, absence))
    func trailersOfAStreamArriveAfterItsBody() async throws {
        let peer = try await PeerServer(.hypercorn)
        defer { peer.stop() }
        let stream = try peer.client(.http2).stream("trailers", headers: ["TE": "trailers"])
        var text = ""
        for try await chunk in stream.chunks {
            text += String(decoding: chunk, as: UTF8.self)
            #expect(throws: NetworkError.self) { try stream.trailers }
        }
        #expect(text == "part one, part two")
        let trailers = try stream.trailers
        #expect(trailers["X-End"] == "reached" && trailers["X-Length"] == "18")
    }

    /// hypercorn does not answer an expectation over HTTP/2, so the body waits until the limit.
    @Test(.enabled(if: PeerServer.Kind.hypercorn.isExpected, absence))
    func aBodyOverHTTP2WaitsForItsPermission() async throws {
        let peer = try await PeerServer(.hypercorn)
        defer { peer.stop() }
        let client = try peer.client(.http2)
        var request = try client.request(.post, "via/collect", body: .text("waits"))
        request.expectsContinue = true
        request.timeouts = Timeouts(expectContinue: .milliseconds(300))
        let start = ContinuousClock.now
        let response = try await client.response(for: request, as: String.self)
        #expect(response.value == "waits" && response.metrics.httpVersion == .http2)
        #expect(start.duration(to: .now) >= .milliseconds(300))
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
