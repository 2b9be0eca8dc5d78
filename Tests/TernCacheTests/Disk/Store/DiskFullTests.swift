#if os(Linux)
import Foundation
import Testing

@testable import TernCache

/// Tests a cache on a file system that is full: a tmpfs of a few MiB.
@Suite(
    .serialized, .timeLimit(.minutes(1)),
    .enabled(if: SmallDisk.isPermitted, "this user may not mount a tmpfs"))
struct DiskFullTests {
    @Test func aFullDiskOpensForReading() async throws {
        try await SmallDisk.with(mebibytes: 16) { disk in
            let folder = disk.appending(path: "cache")
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            for number in 0..<20 { try await cache.insert(bytes(100_000, number), for: "\(number)") }
            for number in 20..<40 { try await cache.insert(bytes(100, number), for: "\(number)") }
            try await cache.close()
            try SmallDisk.fill(disk)
            // Also with space that must be left free: opening evicts nothing.
            for free in [0, 8 << 20] {
                let again = try await DiskCache(folder: folder, configuration: unlimited { $0.minimumFreeBytes = free })
                for number in 0..<40 {
                    #expect(try await again.value(for: "\(number)") == bytes(number < 20 ? 100_000 : 100, number))
                }
                // On a full disk, the mark of a clean close can be missing, and the index is unchanged.
                do { try await again.close() } catch { #expect((error as? DiskCacheError)?.kind == .noSpace) }
            }
        }
    }

    @Test func aFullDiskOpensForReadingAfterAKill() async throws {
        try await SmallDisk.with(mebibytes: 16) { disk in
            let folder = disk.appending(path: "cache")
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            for number in 0..<20 { try await cache.insert(bytes(100_000, number), for: "\(number)") }
            for number in 20..<40 { try await cache.insert(bytes(100, number), for: "\(number)") }
            // The state that a killed process leaves: a log with all transactions, and no mark of a clean close.
            let killed = disk.appending(path: "killed")
            try FileManager.default.copyItem(at: folder, to: killed)
            try await cache.close()
            try SmallDisk.fill(disk)
            let again = try await DiskCache(folder: killed, configuration: unlimited())
            for number in 0..<40 {
                #expect(try await again.value(for: "\(number)") == bytes(number < 20 ? 100_000 : 100, number))
            }
        }
    }

    @Test func aNewCacheOnAFullDiskIsRefusedUntilThereIsRoom() async throws {
        try await SmallDisk.with(mebibytes: 16) { disk in
            let folder = disk.appending(path: "cache")
            try SmallDisk.fill(disk)
            await #expect {
                _ = try await DiskCache(folder: folder, configuration: unlimited())
            } throws: { ($0 as? DiskCacheError)?.kind == .noSpace }
            try FileManager.default.removeItem(at: disk.appending(path: "filler"))
            // The next opening completes what the refused one left behind, and finds no damage.
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            try await cache.insert(bytes(100, 1), for: "a")
            #expect(try await cache.value(for: "a") == bytes(100, 1))
            try await cache.close()
        }
    }

    @Test(arguments: [100_000, 300])
    func anInsertOnAFullDiskEvictsAndSucceeds(size: Int) async throws {
        try await SmallDisk.with(mebibytes: 16) { disk in
            let folder = disk.appending(path: "cache")
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            for number in 0..<60 { try await cache.insert(bytes(100_000, number), for: "\(number)") }
            try SmallDisk.fill(disk)
            for number in 60..<90 {
                try await cache.insert(bytes(size, number), for: "\(number)")
                #expect(try await cache.value(for: "\(number)") == bytes(size, number))
            }
            // The least recently used entries were evicted, and no more than necessary.
            #expect(!cache.contains("0") && cache.contains("59"))
            #expect(try cache.leaks().isEmpty)
        }
    }

    @Test func aDiskFullOfOtherFilesIsReportedAndLeavesTheCacheUsable() async throws {
        try await SmallDisk.with(mebibytes: 16) { disk in
            let folder = disk.appending(path: "cache")
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            try await cache.insert(bytes(50, 1), for: "small")
            try SmallDisk.fill(disk)
            await #expect {
                try await cache.insert(bytes(1 << 20), for: "large")
            } throws: { ($0 as? DiskCacheError)?.kind == .noSpace }
            try FileManager.default.removeItem(at: disk.appending(path: "filler"))
            try await cache.insert(bytes(1 << 20), for: "large")
            #expect(try await cache.value(for: "large") == bytes(1 << 20))
        }
    }
}

/// A small file system for one test.
enum SmallDisk {
    static let isPermitted: Bool = {
        let folder = "/tmp/tern-small-\(UInt64.random(in: 0 ... .max))"
        // If the file system cannot be mounted or unmounted here, the tests are skipped.
        try? FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        guard run("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", folder]) else { return false }
        return run("umount", [folder])
    }()

    static func with(mebibytes: Int, _ test: (URL) async throws -> Void) async throws {
        let folder = "/tmp/tern-small-\(UInt64.random(in: 0 ... .max))"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try #require(run("mount", ["-t", "tmpfs", "-o", "size=\(mebibytes)m", "tmpfs", folder]))
        defer {
            _ = run("umount", ["-l", folder])
            try? FileManager.default.removeItem(atPath: folder)  // A test's own folder: nothing depends on it.
        }
        try await test(URL(filePath: folder))
    }

    /// Writes until nothing fits.
    static func fill(_ disk: URL) throws {
        let path = disk.appending(path: "filler")
        _ = FileManager.default.createFile(atPath: path.path, contents: nil)
        let file = try FileHandle(forWritingTo: path)
        var size = 1 << 20
        while size >= 512 {
            do { try file.write(contentsOf: Data(count: size)) } catch { size /= 2 }
        }
        try file.close()
    }

    private static func run(_ program: String, _ arguments: [String]) -> Bool {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [program] + arguments
        (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
        // A missing program counts as a failure.
        do { try process.run() } catch { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}
#endif
