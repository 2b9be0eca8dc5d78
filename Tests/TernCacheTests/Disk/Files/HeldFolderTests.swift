import Testing

@testable import TernCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests that the folder of a cache is this user's, and stays the one that was checked.
@Suite(.timeLimit(.minutes(1))) struct HeldFolderTests {
    private static let isSuperuser = geteuid() == 0
    /// A user that need not exist.
    private let other: uid_t = 54_321

    private func owner(_ path: String, is user: uid_t) { #expect(unsafe lchown(path, user, user) == 0) }

    private func files(in folder: String) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: folder).sorted()
    }

    @Test(.enabled(if: isSuperuser)) func aFolderOfAnotherUserIsRefusedToTheSuperuserToo() async throws {
        try await withDiskFolder { folder in
            let path = DiskCache.path(folder)
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            owner(path, is: other)
            await #expect {
                _ = try await DiskCache(folder: folder, configuration: unlimited())
            } throws: { error in
                (error as? DiskCacheError)?.kind == .notPermitted
            }
            #expect(try files(in: path).isEmpty)
        }
    }

    @Test(.enabled(if: isSuperuser), arguments: ["values", "values/2a", "temporary", "index.sqlite"])
    func aPartOfAnotherUserIsRefused(name: String) async throws {
        try await withDiskFolder { folder in
            let path = DiskCache.path(folder)
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            for number in 0..<64 { try await cache.insert(bytes(20_000), for: "\(number)") }
            try await cache.close()
            owner("\(path)/\(name)", is: other)
            await #expect {
                _ = try await DiskCache(folder: folder, configuration: unlimited())
            } throws: { error in
                (error as? DiskCacheError)?.kind == .notPermitted
            }
        }
    }

    @Test(.enabled(if: isSuperuser)) func aLinkOfAnotherUserIsRefused() async throws {
        try await withDiskFolder { folder in
            let path = DiskCache.path(folder)
            let target = path + "/target"
            try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(atPath: path + "/link", withDestinationPath: target)
            let link = folder.appending(path: "link")
            let cache = try await DiskCache(folder: link, configuration: unlimited())
            try await cache.insert(bytes(20_000), for: "a")
            try await cache.close()
            owner(path + "/link", is: other)
            await #expect {
                _ = try await DiskCache(folder: link, configuration: unlimited())
            } throws: { error in
                (error as? DiskCacheError)?.kind == .notPermitted
            }
        }
    }

    @Test(.enabled(if: isSuperuser)) func aFolderThatIsReplacedByAnothersLinkReceivesNothing() async throws {
        try await withDiskFolder { parent in
            let path = DiskCache.path(parent)
            let victim = path + "/victim"
            try FileManager.default.createDirectory(atPath: victim, withIntermediateDirectories: true)
            let cache = try await DiskCache(folder: parent.appending(path: "cache"), configuration: unlimited())
            try await cache.insert(bytes(20_000), for: "a")
            #expect(unsafe rename(path + "/cache", path + "/old") == 0)
            try FileManager.default.createSymbolicLink(atPath: path + "/cache", withDestinationPath: victim)
            owner(path + "/cache", is: other)
            await #expect(throws: DiskCacheError.self) { try await cache.insert(bytes(20_000), for: "b") }
            await #expect(throws: DiskCacheError.self) { try await cache.insert(bytes(10), for: "c") }
            #expect(try files(in: victim).isEmpty)
            // The folder comes back.
            #expect(unsafe unlink(path + "/cache") == 0)
            try await cache.insert(bytes(20_000), for: "b")
            #expect(try await cache.value(for: "b") == bytes(20_000))
            try await cache.close()
        }
    }

    @Test func aFolderThatIsReplacedIsLostThoughItsFilesAreOpen() async throws {
        try await withDiskFolder { parent in
            let path = DiskCache.path(parent)
            let cache = try await DiskCache(folder: parent.appending(path: "cache"), configuration: unlimited())
            try await cache.insert(bytes(20_000), for: "a")
            #expect(unsafe rename(path + "/cache", path + "/old") == 0)
            let before = try files(in: path + "/old")
            // Created anew in its place.
            await #expect(throws: DiskCacheError.self) { try await cache.insert(bytes(20_000), for: "b") }
            try await cache.insert(bytes(20_000), for: "b")
            #expect(try await cache.value(for: "b") == bytes(20_000))
            #expect(try await cache.value(for: "a") == nil)
            #expect(try files(in: path + "/old") == before)
            try await cache.close()
        }
    }

    @Test func aFolderOfValuesThatBecomesALinkIsNotFollowed() async throws {
        try await withDiskFolder { parent in
            let path = DiskCache.path(parent)
            let victim = path + "/victim"
            try FileManager.default.createDirectory(atPath: victim, withIntermediateDirectories: true)
            let cache = try await DiskCache(folder: parent.appending(path: "cache"), configuration: unlimited())
            for number in 0..<64 { try await cache.insert(bytes(20_000), for: "\(number)") }
            // The same files in another folder.
            for number in 0..<64 {
                let shard = cache.folder.shard(number)
                #expect(unsafe rename(shard, "\(victim)/\(number)") == 0)
                try FileManager.default.createSymbolicLink(
                    atPath: shard, withDestinationPath: "\(victim)/\(number)")
            }
            let before = try files(in: victim)
            #expect(before.count == 128)
            for number in 0..<64 {
                await #expect(throws: DiskCacheError.self) { try await cache.insert(bytes(20_000), for: "n\(number)") }
                // An error, or no value.
                #expect((try? await cache.value(for: "\(number)")) == nil)
            }
            #expect(try files(in: victim) == before)
            try? await cache.close()
        }
    }

    @Test func aValueThatBecomesALinkIsNotFollowed() async throws {
        try await withDiskFolder { parent in
            let path = DiskCache.path(parent)
            let cache = try await DiskCache(folder: parent.appending(path: "cache"), configuration: unlimited())
            try await cache.insert(bytes(20_000), for: "a")
            let name = try #require(try files(in: cache.folder.values).first { $0.contains("/") })
            let file = "\(cache.folder.values)/\(name)"
            #expect(unsafe rename(file, path + "/moved") == 0)
            try FileManager.default.createSymbolicLink(atPath: file, withDestinationPath: path + "/moved")
            #expect(try await cache.value(for: "a") == nil)
            #expect(FileManager.default.fileExists(atPath: path + "/moved"))
            try await cache.close()
        }
    }

    @Test(.enabled(if: isSuperuser)) func valuesOfAnotherUserAreNotRestored() async throws {
        try await withDiskFolder { folder in
            let path = DiskCache.path(folder)
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            for key in ["a", "b"] { try await cache.insert(bytes(20_000), for: key) }
            let values = try files(in: cache.folder.values).filter { $0.contains("/") }
            try await cache.close()
            owner("\(path)/values/\(try #require(values.first))", is: other)
            #expect(unsafe unlink(path + "/index.sqlite") == 0)
            let opened = try await DiskCache(folder: folder, configuration: unlimited())
            #expect(try await opened.value(for: "a") == nil)
            #expect(try await opened.value(for: "b") == bytes(20_000))
            try await opened.close()
        }
    }
}
