#if os(Linux)
import Glibc
import Testing

@testable import TernCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Two processes, one folder.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct DiskProcessesTests {
    @Test func aFolderBelongsToOneProcessUntilItEnds() async throws {
        try await withDiskFolder { folder in
            let path = DiskCache.path(folder)
            let journal = path + ".journal"
            defer { unsafe unlink(journal) }
            // A pipe in place of the journal. The child writes to it once it has the folder.
            try #require(unsafe mkfifo(journal, 0o600) == 0)
            let words = unsafe open(journal, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
            try #require(words >= 0)
            defer { close(words) }
            let child = try DiskChild([path, journal, "1", "0", "0"])
            var descriptor = pollfd(fd: words, events: Int16(POLLIN), revents: 0)
            let hasSpoken = unsafe poll(&descriptor, 1, 30_000) == 1 && descriptor.revents & Int16(POLLIN) != 0
            #expect(hasSpoken, "the child has not begun")

            await #expect {
                _ = try await DiskCache(folder: folder, configuration: unlimited())
            } throws: { ($0 as? DiskCacheError)?.kind == .inUse }

            child.kill()
            try child.ended()
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            try await cache.insert(Data("mine".utf8), for: "mine")
            #expect(try await cache.value(for: "mine") == Data("mine".utf8))
            try await cache.close()
        }
    }
}
#endif
