#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernHTTPCache
import TernTesting
import Testing

/// Stores the responses of Apache with mod_expires and mod_deflate, whose lifetimes pass by the clock of the cache.
@Suite(
    "Apache: HTTP cache", .serialized,
    .enabled(if: PeerServer.Kind.apache.isExpected, "apache2 is not installed; `make test` installs it"),
    .timeLimit(.minutes(1)))
struct ApacheCacheTests {
    private func withApache(
        _ test: (PeerServer, CachedClient, PeerServer.Access) async throws -> Void
    ) async throws {
        let apache = try await PeerServer(.apache)
        defer { apache.stop() }
        for access in apache.accesses {
            try await test(apache, try CachedClient { try apache.client(access, $0) }, access)
        }
    }

    @Test func aLifetimeOfModExpiresPassesAndIsRenewed() async throws {
        try await withApache { _, client, access in
            let first = try await client.get("kept/small")
            #expect(first.text == "hello" && first.cacheTrace?.source == .network, "\(access)")
            #expect(first.headers["Cache-Control"] == "max-age=60" && first.headers.contains("Expires"), "\(access)")
            #expect(try await client.get("kept/small").isStored("hello"), "\(access)")
            client.clock.advance(61)
            let confirmed = try await client.get("kept/small")
            #expect(confirmed.text == "hello" && confirmed.cacheTrace?.source == .validated, "\(access)")
            #expect(try await client.get("kept/small").isStored("hello"), "\(access)")
        }
    }

    @Test func bodiesOfModDeflateAreStoredByTheirCoding() async throws {
        try await withApache { _, client, access in
            let first = try await client.get("kept-packed/text.txt")
            #expect(first.text == PeerServer.text && first.headers["Content-Encoding"] == "gzip", "\(access)")
            #expect(first.headers["Vary"] == "Accept-Encoding", "\(access)")
            #expect(try await client.get("kept-packed/text.txt").isStored(PeerServer.text), "\(access)")
            let plain = try await client.get("kept-packed/text.txt", ["Accept-Encoding": "identity"])
            #expect(plain.text == PeerServer.text && plain.cacheTrace?.source != .stored, "\(access)")
            // mod_deflate adds `-gzip` to the entity tag, and may not recognize it in a condition.
            client.clock.advance(61)
            #expect(try await client.get("kept-packed/text.txt").text == PeerServer.text, "\(access)")
            #expect(try await client.get("kept-packed/text.txt").isStored(PeerServer.text), "\(access)")
        }
    }

    @Test func rangesAreServedAndCompleted() async throws {
        try await withApache { _, client, access in
            let part = try await client.get("kept/big", ["Range": "bytes=0-99999"])
            #expect(part.status == 206 && PeerServer.big.matches(part.value), "\(access)")
            let inner = try await client.get("kept/big", ["Range": "bytes=500-999"])
            #expect(inner.status == 206 && inner.cacheTrace?.source == .stored, "\(access)")
            #expect(inner.value.count == 500 && PeerServer.big.matches(inner.value, at: 500), "\(access)")
            let whole = try await client.get("kept/big")
            #expect(whole.status == 200 && whole.value.count == PeerServer.big.count, "\(access)")
            #expect(PeerServer.big.matches(whole.value), "\(access)")
            #expect(try await client.get("kept/big").cacheTrace?.source == .stored, "\(access)")
        }
    }

    @Test func modHeadersControlsStoring() async throws {
        try await withApache { _, client, access in
            for _ in 0..<2 {
                let response = try await client.get("no-store/small")
                #expect(response.cacheTrace?.source == .network, "\(access)")
            }
            let first = try await client.get("no-cache/small")
            #expect(first.cacheTrace?.source == .network, "\(access)")
            let second = try await client.get("no-cache/small")
            #expect(second.cacheTrace?.source == .validated, "\(access)")
        }
    }
}
#endif
