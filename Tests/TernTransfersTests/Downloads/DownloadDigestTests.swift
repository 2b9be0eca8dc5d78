import Tern
import TernTesting
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The verification of a file before it gets its name.
@Suite("Durable downloads: verification", .timeLimit(.minutes(1)))
struct DownloadDigestTests {
    static let pattern = LoopbackServer.Pattern(count: 200_000)
    static let digest = FileDigest.sha256(sha256(pattern.bytes()))
    static let field = "sha-256=:\(digest.bytes.base64EncodedString()):"

    private func download(
        _ client: Client, _ folder: TestFolder, _ change: (inout DurableDownloadOptions) -> Void = { _ in }
    ) -> DurableDownloadTask {
        client.download("file", to: folder.url("file"), resuming: .automatically, options: .test(change))
    }

    @Test func rightDigestIsReported() async throws {
        try await withServer {
            try $0.serveFile(Self.pattern)
        } test: { _, client, folder in
            let result = try await download(client, folder) { $0.digest = Self.digest }.value
            #expect(result.digest == Self.digest)
            #expect(result.trace == [.started, .verified(Self.digest)])
        }
    }

    @Test(arguments: [FileDigest.sha256(String(repeating: "00", count: 32)), .md5(String(repeating: "00", count: 16))])
    func wrongDigestKeepsNothing(digest: FileDigest) async throws {
        try await withServer {
            try $0.serveFile(Self.pattern)
        } test: { _, client, folder in
            try folder.write(Data("old".utf8), to: "file")
            let error = try await failure { try await download(client, folder) { $0.digest = digest }.value }
            #expect(error.kind == .digestMismatch)
            #expect(try folder.names == ["file"])
            #expect(try folder.bytes("file") == Data("old".utf8))
        }
    }

    @Test func digestOfTheServerIsVerified() async throws {
        try await withServer {
            try $0.serveFile(Self.pattern, headers: [("Repr-Digest", Self.field)])
        } test: { _, client, folder in
            let result = try await download(client, folder).value
            #expect(result.digest == Self.digest)
        }
    }

    @Test func wrongDigestOfTheServerKeepsNothing() async throws {
        try await withServer {
            try $0.serveFile(Self.pattern, headers: [("Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg==")])
        } test: { _, client, folder in
            let error = try await failure { try await download(client, folder).value }
            #expect(error.kind == .digestMismatch)
            #expect(try folder.names == [])
        }
    }

    @Test func bodyInPiecesIsHashedOnce() async throws {
        try await withServer { exchange in
            let start = exchange.requestedStart
            let fields = [("Repr-Digest", Self.field)]
            if start < 150_000 { return try exchange.cut(Self.pattern, after: 50_000, from: start, headers: fields) }
            try exchange.serveFile(Self.pattern)
        } test: { _, client, folder in
            let result = try await download(client, folder).value
            #expect(result.attempts == 4 && result.digest == Self.digest)
        }
    }

    /// A later process reads the old part once, and has the digest of the first response from the control file.
    @Test(arguments: [false, true])
    func partOfAnEarlierProcessIsHashed(isDamaged: Bool) async throws {
        try await withServer { exchange in
            if exchange.number > 1 { return try exchange.serveFile(Self.pattern) }
            try exchange.cut(Self.pattern, after: 50_000, headers: [("Repr-Digest", Self.field)])
        } test: { _, client, folder in
            _ = try await failure { try await download(client, folder) { $0.retry.policy.limit = 0 }.value }
            var part = try folder.bytes(".file.tern")
            #expect(part.count == 50_000)
            if isDamaged {
                part[7] ^= 1
                try folder.write(part, to: ".file.tern")
                let error = try await failure { try await download(client, folder).value }
                #expect(error.kind == .digestMismatch)
                #expect(try folder.names == [])
            } else {
                let result = try await download(client, folder).value
                #expect(result.trace == [.continued(at: 50_000), .verified(Self.digest)])
            }
        }
    }
}

/// The file of another download, for which a download waited.
@Suite("Durable downloads: waiting", .timeLimit(.minutes(1)))
struct WaitingDownloadTests {
    static let pattern = LoopbackServer.Pattern(count: 1_000_000)

    private func download(
        _ client: Client, _ folder: TestFolder, path: String = "file",
        _ change: (inout DurableDownloadOptions) -> Void = { _ in }
    ) -> DurableDownloadTask {
        client.download(path, to: folder.url("file"), resuming: .automatically, options: .test(change))
    }

    /// The demands of a download that waits for another one.
    enum Demand: CaseIterable {
        case rightDigest, otherDigest, otherSize
    }

    @Test(arguments: Demand.allCases) func waitingDownloadVerifiesTheFileOfTheOther(demand: Demand) async throws {
        let gate = LoopbackServer.Gate()
        let digest = FileDigest.sha256(sha256(demand == .rightDigest ? Self.pattern.bytes() : [1]))
        try await withServer { exchange in
            guard exchange.number == 1 else { return try exchange.serveFile(Self.pattern) }
            try exchange.writeHead(headers: [("Content-Length", "1000000"), ("ETag", Self.pattern.etag)])
            try exchange.streamPattern(Self.pattern, in: 0..<1_000)
            try exchange.wait(for: gate)
            try exchange.streamPattern(Self.pattern, in: 1_000..<1_000_000)
        } test: { server, client, folder in
            let clock = ManualClock()
            let first = download(client, folder)
            for await progress in first.progress where progress.completedBytes == 1_000 { break }
            let second = download(client, folder) {
                ($0.contention, $0.clock) = (.wait, clock)
                if demand == .otherSize { $0.expectedSize = 1_000_001 } else { $0.digest = digest }
            }
            try await clock.waitForSleepers(1)
            gate.open()
            _ = try await first.value
            clock.advance(by: .milliseconds(100))
            if demand == .rightDigest {
                let result = try await second.value
                #expect(result.trace == [.waitedForOtherDownload, .verified(digest), .finishedByOtherDownload])
                #expect(result.digest == digest && server.counts.requestsReceived == 1)
            } else {
                // It downloads the file itself, and that of the first one stays.
                let error = try await failure { try await second.value }
                #expect(error.kind == (demand == .otherSize ? .unexpectedSize : .digestMismatch), "\(error)")
                #expect(server.counts.requestsReceived == 2)
            }
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(try folder.names == ["file"])
        }
    }

    @Test func fileOfAnotherURLIsNotTheResultOfAWaitingDownload() async throws {
        let gate = LoopbackServer.Gate()
        let other = LoopbackServer.Pattern(count: 600_000, seed: 5)
        try await withServer { exchange in
            if exchange.request.query("id") == "2" { return try exchange.serveFile(other) }
            guard exchange.number == 1 else { return try exchange.serveFile(Self.pattern) }
            try exchange.writeHead(headers: [("Content-Length", "1000000"), ("ETag", Self.pattern.etag)])
            try exchange.streamPattern(Self.pattern, in: 0..<1_000)
            try exchange.wait(for: gate)
        } test: { _, client, folder in
            let clock = ManualClock()
            let first = download(client, folder, path: "file?id=1")
            for await progress in first.progress where progress.completedBytes == 1_000 { break }
            let second = download(client, folder, path: "file?id=1") { ($0.contention, $0.clock) = (.wait, clock) }
            try await clock.waitForSleepers(1)
            first.cancel()
            _ = try await failure { try await first.value }
            // It begins and ends while the second one does not look.
            let third = download(client, folder, path: "file?id=2") { $0.replacesOtherDownload = true }
            #expect(try await third.value.bytes == 600_000)
            clock.advance(by: .milliseconds(100))
            let result = try await second.value
            #expect(result.trace == [.waitedForOtherDownload, .started] && result.bytes == 1_000_000)
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(try folder.names == ["file"])
        }
    }
}
