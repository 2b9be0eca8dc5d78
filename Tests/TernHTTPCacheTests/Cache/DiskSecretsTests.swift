import Foundation
import Tern
import TernTesting
import Testing

@testable import TernCache
@testable import TernHTTPCache

/// Nothing that must not be stored is in any file of the folder, at any time.
@Suite("HTTP cache: secrets on the disk", .timeLimit(.minutes(1)))
struct DiskSecretsTests {
    private static let secret = "verysecret"

    /// Returns the files of a folder that contain a text, temporary files and the log of the index included.
    private func files(with text: String, below folder: URL) throws -> [String] {
        let bytes = Data(text.utf8)
        return try files(below: folder).filter { url in
            // A file that was removed in the meantime contains nothing.
            guard let content = try? Data(contentsOf: url) else { return false }
            return content.range(of: bytes) != nil
        }.map(\.lastPathComponent)
    }

    private func files(below folder: URL) throws -> [URL] { try TernHTTPCacheTests.files(below: folder) }

    /// Returns the files and folders that others than their owner can use.
    private func foreignPermissions(_ folder: URL) throws -> [String] {
        let path = folder.path(percentEncoded: false)
        let names = try FileManager.default.subpathsOfDirectory(atPath: path).map { path + "/" + $0 }
        return try (names + [path]).filter { path in
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            let isFolder = attributes[.type] as? FileAttributeType == .typeDirectory
            return attributes[.posixPermissions] as? Int != (isFolder ? 0o700 : 0o600)
        }
    }

    /// A large body in two halves. The test looks at the folder in between.
    private func halves(
        _ headers: LoopbackServer.Fields, _ gate: LoopbackServer.Gate
    ) -> LoopbackServer.Handler {
        let half = String(repeating: Self.secret + "body ", count: 40_000)
        return { exchange in
            try exchange.writeHead(headers: headers + [("Content-Length", "\(2 * half.utf8.count)")])
            try exchange.write(half)
            try exchange.wait(for: gate)
            try exchange.write(half)
        }
    }

    @Test(arguments: [true, false])
    func aResponseThatMustNotBeStoredIsNeverInAFile(isRequest: Bool) async throws {
        let gate = LoopbackServer.Gate()
        let control = isRequest ? "max-age=60" : "no-store, max-age=60"
        try await withDisk(handler: halves([("Cache-Control", control), ("X-Token", Self.secret)], gate)) {
            cached, disk, folder in
            var request = try cached.client.request(.get, "a")
            if isRequest { request.headers["Cache-Control"] = "no-store" }
            let stream = cached.client.session.stream(request)
            var count = 0
            for try await chunk in stream.chunks {
                count += chunk.count
                guard count >= 600_000, !gate.isOpen else { continue }
                try await cached.cache.written(to: disk)
                #expect(try files(with: Self.secret, below: folder).isEmpty)
                gate.open()
            }
            #expect(count == 1_200_000)
            try await cached.cache.written(to: disk)
            #expect(try files(with: Self.secret, below: folder).isEmpty)
            let storing = try await stream.response.cacheTrace?.storing
            #expect(storing == (isRequest ? "request-no-store" : "no-store"))
        }
    }

    @Test func credentialsOfARequestAreNeverInAFile() async throws {
        let gate = LoopbackServer.Gate()
        let headers: LoopbackServer.Fields = [
            ("Cache-Control", "max-age=60"), ("Vary", "Cookie, Authorization, X-Key"),
            ("Set-Cookie", "id=newsecret; Path=/elsewhere"),
            ("ETag", "\"1\""), ("No-Vary-Search", "params=(\"utm\")"),
        ]
        try await withDisk(handler: halves(headers, gate)) { cached, disk, folder in
            var request = try cached.client.request(.get, "a")
            request.headers["Authorization"] = "Bearer tokensecret"
            request.headers["Cookie"] = "session=cookiesecret"
            // A response that sets cookies otherwise belongs to the requests that send them.
            request.cookies = CookieUse.none
            let stream = cached.client.session.stream(request)
            var (count, sawBody) = (0, false)
            let secrets = ["tokensecret", "cookiesecret", "newsecret"]
            for try await chunk in stream.chunks {
                count += chunk.count
                guard count >= 600_000, !gate.isOpen else { continue }
                try await cached.cache.written(to: disk)
                // The body is on the disk, so the search finds what is there.
                sawBody = try !files(with: Self.secret, below: folder).isEmpty
                for secret in secrets { #expect(try files(with: secret, below: folder).isEmpty) }
                #expect(try foreignPermissions(folder).isEmpty)
                gate.open()
            }
            #expect(count == 1_200_000 && sawBody)
            try await until { cached.cache.statistics.stored > 0 }
            for secret in secrets { #expect(try files(with: secret, below: folder).isEmpty) }
            #expect(try foreignPermissions(folder).isEmpty)
            let again = try await cached.client.session.response(for: request)
            #expect(again.cacheTrace?.source == .stored)
            #expect(again.value.count == 1_200_000)
            // Another user's request finds nothing of it.
            request.headers["Cookie"] = "session=other"
            gate.open()
            let other = try await cached.client.session.response(for: request)
            #expect(other.cacheTrace?.source == .network)
        }
    }
}
