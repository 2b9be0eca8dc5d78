import Tern
import TernTesting
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Files of at most 256 KiB, which stay in memory until they are whole.
@Suite("Durable downloads: small files", .timeLimit(.minutes(1)))
struct SmallFileTests {
    static let pattern = LoopbackServer.Pattern(count: 200_000, seed: 8)

    private func download(
        _ client: Client, _ folder: TestFolder, system: any FileSystem = PosixFileSystem(),
        _ change: (inout DurableDownloadOptions) -> Void = { _ in }
    ) throws -> DurableDownloadTask {
        DurableDownloadTask(
            download: .started(
                .success(try client.request(.get, "file?sig=secret")), session: client.session,
                to: folder.url("file"), options: .test(change), system: system))
    }

    private func mode(_ folder: TestFolder, _ name: String) -> mode_t {
        var information = stat()
        return unsafe stat("\(folder.path)/\(name)", &information) == 0 ? information.st_mode & 0o7777 : 0
    }

    @Test func smallFileIsWrittenAndMovedOnce() async throws {
        try await withServer {
            try $0.serveFile(Self.pattern)
        } test: { _, client, folder in
            let calls = Log<String>()
            let files = FaultyFiles { call, path in
                if call != "remove" { calls.add("\(call) \(path.dropFirst(folder.path.count + 1))") }
                return nil
            }
            let result = try await download(client, folder, system: files).value
            #expect(try result.trace == [.started] && Self.pattern.matches(folder.bytes("file")))
            #expect(try folder.names == ["file"])
            #expect(calls.all.filter { $0 == "open .file.tern" }.count == 2, "looked for, then created")
            #expect(!calls.all.contains { $0.hasSuffix(".new") })
            // A process that is killed now loses no more bytes than one that is killed before.
            #expect(!calls.all.contains { $0.hasPrefix("write .file.tern.json") })
            #expect(calls.all.filter { $0.hasPrefix("rename") } == ["rename .file.tern"])
            // As any new file of the process.
            try folder.write(Data(), to: "other")
            #expect(mode(folder, "file") == mode(folder, "other"))
        }
    }

    /// While the body arrives, the folder has an empty control file, whose lock excludes other downloads.
    @Test func lockIsHeldWhileTheFileIsInMemory() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            try exchange.writeHead(headers: [("Content-Length", "\(Self.pattern.count)"), ("ETag", "\"a\"")])
            try exchange.streamPattern(Self.pattern, in: 0..<100_000)
            try exchange.wait(for: gate)
            try exchange.streamPattern(Self.pattern, in: 100_000..<Self.pattern.count)
        } test: { _, client, folder in
            let task = try download(client, folder)
            for await progress in task.progress where progress.completedBytes >= 100_000 { break }
            #expect(try folder.names == [".file.tern.json"])
            #expect(try folder.bytes(".file.tern.json").isEmpty)
            #expect(mode(folder, ".file.tern.json") == 0o600)
            let other = try await failure { try await download(client, folder).value }
            #expect(other.kind == .downloadInProgress)
            gate.open()
            _ = try await task.value
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(try folder.names == ["file"])
        }
    }

    @Test(arguments: [true, false]) func brokenDownloadIsContinued(isCancelled: Bool) async throws {
        try await withServer { exchange in
            guard exchange.number == 1 else { return try exchange.serveFile(Self.pattern) }
            guard isCancelled else { return try exchange.cut(Self.pattern, after: 100_000) }
            try exchange.writeHead(
                headers: [("Content-Length", "\(Self.pattern.count)"), ("ETag", Self.pattern.etag)])
            try exchange.streamPattern(Self.pattern, in: 0..<100_000)
            try exchange.waitForClientToClose()
        } test: { _, client, folder in
            let task = try download(client, folder) { $0.retry.policy.limit = 0 }
            if isCancelled {
                for await progress in task.progress where progress.completedBytes >= 100_000 { break }
                task.cancel()
            }
            let error = try await failure { try await task.value }
            #expect(error.reason.contains("100000 bytes are kept in \(folder.path)/.file.tern"), "\(error)")
            #expect(!"\(error)".contains("secret"))
            #expect(try folder.bytes(".file.tern") == Data(Self.pattern.bytes(in: 0..<100_000)))
            #expect(mode(folder, ".file.tern") == 0o600 && mode(folder, ".file.tern.json") == 0o600)
            let result = try await download(client, folder).value
            #expect(result.trace == [.continued(at: 100_000)])
            #expect(Self.pattern.matches(try folder.bytes("file")))
        }
    }

    /// Without a validator, the bytes are of no use.
    @Test func brokenDownloadWithoutValidatorLeavesNothing() async throws {
        try await withServer { exchange in
            try exchange.writeHead(headers: [("Content-Length", "\(Self.pattern.count)")])
            try exchange.streamPattern(Self.pattern, in: 0..<100_000)
            exchange.close()
        } test: { _, client, folder in
            let error = try await failure {
                try await download(client, folder) { $0.retry.policy.limit = 0 }.value
            }
            #expect(error.reason.contains("nothing is kept"), "\(error)")
            #expect(try folder.names.isEmpty)
        }
    }

    /// A file that cannot be moved is described, so that nothing is downloaded again.
    @Test func fileThatWasNotMovedIsFoundWhole() async throws {
        try await withServer {
            try $0.serveFile(Self.pattern)
        } test: { server, client, folder in
            let files = FaultyFiles { call, _ in call == "rename" ? EACCES : nil }
            let error = try await failure { try await download(client, folder, system: files).value }
            #expect(error.reason.contains("Permission denied"), "\(error)")
            #expect(try folder.names == [".file.tern", ".file.tern.json"])
            #expect(mode(folder, ".file.tern") == 0o600)
            // A killed process leaves the permissions of the destination.
            _ = unsafe chmod("\(folder.path)/.file.tern", 0o644)
            let requests = server.counts.requestsReceived
            let result = try await download(client, folder).value
            #expect(result.trace == [.foundWhole] && server.counts.requestsReceived == requests)
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(try folder.names == ["file"])
        }
    }

    /// The process can be killed while it writes the description.
    @Test func tornDescriptionStartsOver() async throws {
        try await withServer {
            try $0.cut(Self.pattern, after: 100_000)
        } test: { _, client, folder in
            try folder.write(Data("{\"version\":1,\"url".utf8), to: ".file.tern.json")
            try folder.write(Data(count: 200_000), to: ".file.tern")
            _ = unsafe chmod("\(folder.path)/.file.tern", 0o644)
            let task = try download(client, folder) { $0.retry.policy.limit = 0 }
            _ = try await failure { try await task.value }
            #expect(task.trace.first == .startedOver(.controlInvalid, discarded: 0))
            #expect(try folder.bytes(".file.tern") == Data(Self.pattern.bytes(in: 0..<100_000)))
            #expect(mode(folder, ".file.tern") == 0o600)
        }
    }

    @Test func fullDiskLeavesNothing() async throws {
        try await withServer {
            try $0.serveFile(Self.pattern)
        } test: { _, client, folder in
            let full = FaultyFiles { call, path in call == "write" && path.hasSuffix("/.file.tern") ? ENOSPC : nil }
            let error = try await failure { try await download(client, folder, system: full).value }
            #expect(error.kind == .fileSystem && error.reason.contains("No space left on device"), "\(error)")
            #expect(try folder.names.isEmpty)
            // Neither moved nor described.
            let other = FaultyFiles { call, path in
                call == "rename" ? EACCES : call == "write" && path.hasSuffix("/.file.tern.json") ? ENOSPC : nil
            }
            let failed = try await failure { try await download(client, folder, system: other).value }
            #expect(
                failed.reason.contains("Permission denied") && failed.reason.contains("nothing is kept"), "\(failed)")
            #expect(try folder.names.isEmpty)
            _ = try await download(client, folder).value
            #expect(Self.pattern.matches(try folder.bytes("file")))
        }
    }

    @Test func wrongDigestLeavesNothingAndSaysSo() async throws {
        try await withServer {
            try $0.serveFile(Self.pattern)
        } test: { _, client, folder in
            let wrong = FileDigest.sha256(String(repeating: "0", count: 64))
            let error = try await failure { try await download(client, folder) { $0.digest = wrong }.value }
            #expect(error.kind == .digestMismatch && error.reason.contains("nothing is kept"), "\(error)")
            #expect(try folder.names.isEmpty)
        }
    }

    /// A part that cannot be removed is named.
    @Test(arguments: [".file.tern", ".file.tern.json"]) func failedRemovalIsReported(name: String) async throws {
        let large = LoopbackServer.Pattern(count: 600_000, seed: 9)
        try await withServer {
            try $0.serveFile(large)
        } test: { _, client, folder in
            let files = FaultyFiles { call, path in call == "remove" && path.hasSuffix("/\(name)") ? EPERM : nil }
            let wrong = FileDigest.sha256(String(repeating: "0", count: 64))
            let error = try await failure {
                try await download(client, folder, system: files) { $0.digest = wrong }.value
            }
            #expect(error.kind == .digestMismatch)
            #expect(
                error.reason.contains("the part cannot be removed: remove \(folder.path)/\(name): Operation not"),
                "\(error)")
            #expect(!error.reason.contains("nothing is kept"), "\(error)")
            #expect(try folder.names.contains(name))
            let task = try download(client, folder, system: files) { $0.digest = wrong }
            let discard = try await failure { try await task.discard() }
            #expect(discard.kind == .fileSystem && discard.reason.contains("Operation not permitted"), "\(discard)")
            try await download(client, folder) { $0.digest = wrong }.discard()
            #expect(try folder.names.isEmpty)
        }
    }
}
