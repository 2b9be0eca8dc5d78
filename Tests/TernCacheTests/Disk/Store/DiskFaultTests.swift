import CTernSQLite
import Testing

@testable import TernCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite(.timeLimit(.minutes(1)))
struct DiskFaultTests {
    /// A call that fails, the resulting error, and whether a small value (without a file) is affected.
    static let faults: [(call: String, code: Int32, kind: DiskCacheError.Kind, size: Int)] = [
        ("create", ENOSPC, .noSpace, 50_000), ("write", ENOSPC, .noSpace, 50_000), ("write", EIO, .inputOutput, 50_000),
        ("write", EDQUOT, .noSpace, 50_000), ("rename", EIO, .inputOutput, 50_000),
        ("create", EACCES, .notPermitted, 50_000), ("create", EROFS, .notPermitted, 50_000),
        ("create", EMFILE, .inputOutput, 50_000), ("INSERT INTO contents", SQLITE_FULL, .noSpace, 100),
        ("COMMIT", SQLITE_FULL, .noSpace, 100), ("COMMIT", SQLITE_IOERR, .inputOutput, 50_000),
        ("BEGIN", SQLITE_READONLY, .notPermitted, 100), ("INSERT INTO entries", SQLITE_FULL, .noSpace, 50_000),
    ]

    @Test(arguments: faults.indices)
    func aFailureIsReportedAndTheCacheRecovers(number: Int) async throws {
        let fault = Self.faults[number]
        try await withDiskFolder { folder in
            let faults = Faults()
            let cache = try await DiskCache(
                folder: folder, configuration: unlimited(), dependencies: faults.dependencies)
            try await cache.insert(bytes(fault.size, 1), for: "key")
            try await cache.insert(bytes(60_000, 2), for: "other")
            faults[fault.call] = fault.code
            await #expect {
                try await cache.insert(bytes(fault.size, 3), for: "key")
            } throws: { error in
                let error = error as? DiskCacheError
                return error?.kind == fault.kind && error?.description.contains("key") == false
            }
            // The old value stays, in memory and on the disk, and nothing is left of the new one.
            #expect(try await cache.value(for: "key") == bytes(fault.size, 1))
            #expect(try cache.leaks().isEmpty)
            try cache.enqueue(bytes(fault.size, 4), for: "queued")
            faults[fault.call] = nil
            do {
                try await cache.flush()
            } catch {
                #expect((error as? DiskCacheError)?.kind == fault.kind)
            }
            #expect(try await cache.usage.queuedBytes == 0)
            try await cache.insert(bytes(fault.size, 5), for: "key")
            #expect(try await cache.value(for: "key") == bytes(fault.size, 5))
            #expect(try await cache.value(for: "other") == bytes(60_000, 2))
            #expect(try cache.leaks().isEmpty)
            try await cache.close()
            let again = try await DiskCache(folder: folder, configuration: unlimited())
            #expect(try await again.value(for: "key") == bytes(fault.size, 5))
        }
    }

    @Test func aFailingCommandFailsAlone() async throws {
        try await withDiskFolder { folder in
            let faults = Faults()
            let cache = try await DiskCache(
                folder: folder, configuration: unlimited(), dependencies: faults.dependencies)
            faults["create"] = ENOSPC
            let failures = await withTaskGroup(of: Bool.self) { group in
                for number in 0..<60 {
                    group.addTask {
                        do {
                            try await cache.insert(bytes(number % 10 == 0 ? 20_000 : 50, number), for: "\(number)")
                            return false
                        } catch {
                            return true
                        }
                    }
                }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(failures == 6)
            #expect(try await cache.usage.count == 54)
            faults["create"] = nil
            #expect(try cache.leaks().isEmpty)
        }
    }

    @Test func aFullDiskCanBeEmptied() async throws {
        try await withDiskFolder { folder in
            var dependencies = DiskStore.Dependencies()
            let values = DiskCache.path(folder) + "/values"
            // There is room for the index's log only once the values are gone.
            dependencies.fault = { sql in
                guard sql.contains("DELETE FROM entries") else { return nil }
                // `try?`: a missing folder has no files.
                let names = (try? FileManager.default.subpathsOfDirectory(atPath: values)) ?? []
                return names.contains { $0.contains("/") } ? SQLITE_FULL : nil
            }
            let cache = try await DiskCache(folder: folder, configuration: unlimited(), dependencies: dependencies)
            for number in 0..<20 { try await cache.insert(bytes(50_000, number), for: "\(number)") }
            try await cache.removeAll()
            #expect(!cache.contains("3"))
            // The files count as used until the step that deletes them, which runs between calls.
            while try await cache.usage.fileBytes > 0 { await Task.yield() }
            try await cache.insert(bytes(50_000, 7), for: "7")
            #expect(try await cache.value(for: "7") == bytes(50_000, 7))
            #expect(try cache.leaks().isEmpty)
        }
    }

    @Test func aGroupOfItemsIsAllOrNothing() async throws {
        try await withDiskFolder { folder in
            let faults = Faults()
            let cache = try await DiskCache(
                folder: folder, configuration: unlimited(), dependencies: faults.dependencies)
            faults["create"] = EIO
            let items = (0..<10).map { DiskCache.Item(bytes($0 == 9 ? 20_000 : 10, $0), for: "\($0)") }
            await #expect(throws: DiskCacheError.self) { try await cache.insert(contentsOf: items) }
            #expect((0..<10).allSatisfy { !cache.contains("\($0)") })
            faults["create"] = nil
            try await cache.insert(contentsOf: items)
            #expect((0..<10).allSatisfy { cache.contains("\($0)") })
        }
    }

    @Test func readingFailsWithTheSystemsReason() async throws {
        try await withDiskFolder { folder in
            let faults = Faults()
            let cache = try await DiskCache(
                folder: folder, configuration: unlimited(), dependencies: faults.dependencies)
            try await cache.insert(bytes(50_000), for: "key")
            faults["read"] = EIO
            await #expect { try await cache.value(for: "key") } throws: { ($0 as? DiskCacheError)?.code == EIO }
            faults["read"] = nil
            #expect(try await cache.value(for: "key") == bytes(50_000))
        }
    }

    @Test func aFolderThatMayNotBeWrittenIsAClearError() async throws {
        try await withDiskFolder { folder in
            let faults = Faults()
            faults["makeFolder"] = EROFS
            await #expect {
                _ = try await DiskCache(folder: folder, configuration: unlimited(), dependencies: faults.dependencies)
            } throws: { ($0 as? DiskCacheError)?.kind == .notPermitted }
        }
    }

    @Test func aDeletedFolderIsReportedAndRecreated() async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            let events = cache.events
            try await cache.insert(bytes(50_000), for: "large")
            try await cache.insert(bytes(50), for: "small")
            try FileManager.default.removeItem(atPath: DiskCache.path(folder))
            await #expect {
                try await cache.insert(bytes(60_000), for: "new")
            } throws: { ($0 as? DiskCacheError)?.kind == .folderLost }
            #expect(await TernCacheTests.events(events) { $0 == .folderRecreated } == [.folderRecreated])
            #expect(!cache.contains("large"))
            try await cache.insert(bytes(60_000), for: "new")
            #expect(try await cache.value(for: "new") == bytes(60_000))
            try FileManager.default.removeItem(atPath: DiskCache.path(folder))
            // A reader detects the loss, too.
            #expect(try await cache.value(for: "new") == nil)
            try await cache.insert(bytes(10), for: "newer")
            try await cache.close()
            let again = try await DiskCache(folder: folder, configuration: unlimited())
            #expect(again.contains("newer"))
        }
    }

    @Test func aFailingWriterAbandonsItsValue() async throws {
        try await withDiskFolder { folder in
            let faults = Faults()
            let cache = try await DiskCache(
                folder: folder, configuration: unlimited(), dependencies: faults.dependencies)
            let writer = try await cache.writer(for: "key")
            try await writer.write(bytes(100_000))
            faults["write"] = ENOSPC
            await #expect { try await writer.write(bytes(10)) } throws: { ($0 as? DiskCacheError)?.kind == .noSpace }
            await #expect { try await writer.commit() } throws: { ($0 as? DiskCacheError)?.kind == .writerFinished }
            faults["write"] = nil
            #expect(try cache.leaks().isEmpty)
            let second = try await cache.writer(for: "key")
            try await second.write(bytes(100_000))
            faults["COMMIT"] = SQLITE_IOERR
            await #expect(throws: DiskCacheError.self) { try await second.commit() }
            faults["COMMIT"] = nil
            #expect(try cache.leaks().isEmpty)
            #expect(try await cache.usage.fileBytes == 0)
        }
    }
}
