#if os(Linux)
import Foundation
import Glibc
import Tern
import TernTesting
import Testing

@testable import HTTPCacheCrashChild
@testable import TernCache
@testable import TernHTTPCache

/// Kills a process that fills and updates an HTTP cache, at any instant. Each time, the folder is opened again: every
/// entry is whole, and those whose storing was acknowledged are there.
@Suite("HTTP cache: kills", .serialized, .timeLimit(.minutes(15)))
struct DiskKillTests {
    static let kills = ProcessInfo.processInfo.environment["TERN_HTTP_CACHE_KILLS"].flatMap { Int($0) } ?? 20

    /// The versions that a path can have after a kill.
    private struct Allowed {
        var acknowledged: Int?
        var begun: Set<Int> = []

        /// Returns whether a version is older than the acknowledged one. A confirmed response is not.
        func outdates(_ version: Int) -> Bool { acknowledged.map { version < $0 } ?? false }
    }

    @Test func entriesAreWholeAndAcknowledgedOnesAreThereAfterAKill() async throws {
        try await withFolder { folder in
            let journal = folder.path(percentEncoded: false) + ".journal"
            defer { unsafe unlink(journal) }
            let session = Session(configuration: .cached(.memory()) { $0.partition = "user" })
            var (lost, torn, old, found, read, port) = (0, 0, 0, 0, 0, 0)
            var allowed: [String: Allowed] = [:]
            for seed in 1...max(1, Self.kills) {
                let child = try CrashProcess([folder.path(percentEncoded: false), journal, "\(seed)", "\(port)"])
                // The child works once it has written to the journal. Beside other load it stores little in the time that
                // follows: every second child has stored a response before.
                while size(of: journal) <= read { usleep(1_000) }
                while seed.isMultiple(of: 2), try !hasAcknowledgement(journal, after: read) { usleep(1_000) }
                usleep(UInt32.random(in: 0..<100_000))
                child.kill()
                try child.ended()
                let text = try Data(contentsOf: URL(filePath: journal))
                replay(text.dropFirst(read), &allowed)
                read = text.count
                let cache = try await DiskCache(folder: folder)
                let store = DiskEntryStore(cache, entryLimit: 64 << 20)
                for (url, state) in allowed {
                    let target = try Request(.get, url).target
                    port = target.port
                    var versions: [Int] = []
                    for scope in session.tasks.cacheScopes {
                        let key = CacheKey(target, trust: scope.trust, partition: scope.partition)
                        for entry in await store.entries(for: key) {
                            if let version = await wholeVersion(of: entry, store) {
                                versions.append(version)
                                found += 1
                            } else {
                                torn += 1
                            }
                        }
                    }
                    let isThere = versions.contains { $0 == state.acknowledged || state.begun.contains($0) }
                    if state.acknowledged != nil, !isThere { lost += 1 }
                    old += versions.filter { state.outdates($0) && !state.begun.contains($0) }.count
                    allowed[url] = Allowed(acknowledged: versions.max())
                }
                try await cache.close()
            }
            print("HTTP cache: \(Self.kills) kills, \(found) entries found")
            #expect(lost == 0)
            #expect(torn == 0)
            #expect(old == 0)
            #expect(found > 0)
        }
    }

    /// Returns the version of an entry whose head and body belong together; nil if they do not.
    private func wholeVersion(of entry: CacheEntry, _ store: DiskEntryStore) async -> Int? {
        guard let version = entry.headers["X-Version"].flatMap({ Int($0) }), entry.isWhole,
            entry.headers["ETag"] == "\"\(version)\"",
            let body = await store.body(of: entry, range: 0..<entry.properties.storedLength)
        else { return nil }
        let pattern = CrashResponse(path: CrashResponse.path(entry.key.path), version: version).pattern
        return body.count == pattern.count && pattern.matches(body) ? version : nil
    }

    private func size(of path: String) -> Int {
        var status = stat()
        return unsafe stat(path, &status) == 0 ? Int(status.st_size) : 0
    }

    private func hasAcknowledgement(_ journal: String, after read: Int) throws -> Bool {
        try Data(contentsOf: URL(filePath: journal)).dropFirst(read).firstRange(of: Data("A ".utf8)) != nil
    }

    private func replay(_ text: Data, _ allowed: inout [String: Allowed]) {
        for line in String(decoding: text, as: UTF8.self).split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count == 3, let version = Int(words[2]) else { continue }
            let url = String(words[1])
            switch words[0] {
            case "B": allowed[url, default: Allowed()].begun.insert(version)
            case "A": allowed[url] = Allowed(acknowledged: version)
            default: allowed[url] = Allowed()
            }
        }
    }
}

/// A running `HTTPCacheCrashChild`.
private final class CrashProcess {
    private let process: pid_t
    private var hasEnded = false

    init(_ arguments: [String]) throws {
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let path = program[..<(program.lastIndex(of: "/") ?? program.startIndex)] + "/HTTPCacheCrashChild"
        let words: [UnsafeMutablePointer<CChar>?] =
            unsafe ([String(path)] + arguments).map { unsafe strdup($0) } + [nil]
        defer { for index in unsafe words.indices { unsafe free(words[index]) } }
        var child: pid_t = 0
        let code = unsafe posix_spawn(&child, String(path), nil, nil, words, environ)
        try #require(code == 0, "the child does not start: errno \(code)")
        process = child
    }

    /// Leaves no process behind, not even an ended one: Swift Testing looks at one ended child at a time, so that an
    /// exit test would wait forever behind one that nobody waits for.
    deinit {
        kill()
        if !hasEnded { _ = status() }
    }

    func kill() { if !hasEnded { _ = Glibc.kill(process, SIGKILL) } }

    /// Waits until the process ends by a kill, the only way in which it ends.
    func ended() throws {
        let status = status()
        try #require(status & 0x7F == SIGKILL, "the child ended by itself, status \(status)")
    }

    private func status() -> Int32 {
        var status: Int32 = 0
        while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
        hasEnded = true
        return status
    }
}
#endif
