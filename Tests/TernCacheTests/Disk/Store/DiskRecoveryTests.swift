import CTernSQLite
import TernConcurrency
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

@Suite(.timeLimit(.minutes(1)))
struct DiskRecoveryTests {
    private func filled(_ folder: URL, closing: Bool = true) async throws {
        let cache = try await DiskCache(folder: folder, configuration: unlimited())
        for number in 0..<40 {
            try await cache.insert(
                bytes(number % 2 == 0 ? 20_000 + number : 500, number), for: "\(number)",
                metadata: Data([UInt8(number)]),
                tags: ["tag \(number % 4)"])
        }
        if closing { try await cache.close() }
    }

    private func entry(_ folder: URL, _ name: String) -> URL { URL(filePath: DiskCache.path(folder) + "/" + name) }

    @Test func aPipeInTheFilesPlaceIsAMiss() async throws {
        try await withDiskFolder { folder in
            try await filled(folder)
            for path in try diskFiles(folder).keys where path.contains("/values/") {
                try FileManager.default.removeItem(atPath: path)
                #expect(unsafe mkfifo(path, 0o600) == 0)
            }
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            #expect(try await cache.value(for: "0") == nil)
            #expect(try await cache.mappedValue(for: "2") == nil)
            #expect(try await cache.file(for: "4") == nil)
            #expect(try await cache.value(for: "1") == bytes(500, 1))
            #expect(!cache.contains("0"))
        }
    }

    @Test(arguments: ["values", "values/00", "values/3f", "temporary", "trash"])
    func theTargetsOfLinksStay(name: String) async throws {
        try await withDiskFolder { folder in
            try await filled(folder)
            // As a killed process leaves it.
            try FileManager.default.removeItem(at: entry(folder, "clean"))
            let others = folder.appending(path: "others")
            for path in ["1", "00/1", "00/00/1"] {
                let file = others.appending(path: path)
                try FileManager.default.createDirectory(
                    at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
                try bytes(10).write(to: file)
            }
            let path = entry(folder, name)
            if FileManager.default.fileExists(atPath: path.path) { try FileManager.default.removeItem(at: path) }
            try FileManager.default.createSymbolicLink(at: path, withDestinationURL: others)
            do throws(DiskCacheError) {
                let cache = try await DiskCache(folder: folder, configuration: unlimited())
                Issue.record("the folder is opened")
                // Values for each of the 64 folders.
                for number in 0..<64 { try await cache.insert(bytes(20_000), for: "new \(number)") }
                try await cache.close()
            } catch {
                #expect(error.kind == .notPermitted && error.reason.hasSuffix("\(name) \(notAFolder)"), "\(error)")
            }
            let found = try FileManager.default.subpathsOfDirectory(atPath: others.path).sorted()
            #expect(found == ["00", "00/00", "00/00/1", "00/1", "1"])
            for path in ["1", "00/1", "00/00/1"] {
                #expect(try Data(contentsOf: others.appending(path: path)) == bytes(10))
            }
        }
    }

    private let notAFolder = "must be a folder, and is a link or a file"

    @Test(arguments: ["index.sqlite", "index.sqlite-wal", "index.sqlite-journal", "lock"])
    func aLinkInPlaceOfAFileIsRefused(name: String) async throws {
        try await withDiskFolder { folder in
            try await filled(folder)
            let (path, target) = (entry(folder, name), folder.appending(path: "theirs"))
            if name == "index.sqlite" {
                try FileManager.default.moveItem(at: path, to: target)
            } else {
                try? FileManager.default.removeItem(at: path)  // Not every one of them exists.
                try bytes(10).write(to: target)
            }
            let before = try Data(contentsOf: target)
            try FileManager.default.createSymbolicLink(at: path, withDestinationURL: target)
            await #expect {
                _ = try await DiskCache(folder: folder, configuration: unlimited())
            } throws: { error in
                guard let error = error as? DiskCacheError else { return false }
                return error.kind == .notPermitted && error.reason.hasSuffix("\(name) must be a file, and is a link")
            }
            #expect(try Data(contentsOf: target) == before)
            // The folder is usable again without the link.
            try FileManager.default.removeItem(at: path)
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            #expect(try await cache.value(for: "0") == bytes(20_000, 0))
        }
    }

    @Test func aFolderInAValuesPlaceStaysAndIsNoOrphan() async throws {
        try await withDiskFolder { folder in
            try await filled(folder)
            let file = entry(folder, "values/00/0000000000ffff00/file")
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try bytes(10).write(to: file)
            try bytes(10).write(to: entry(folder, "values/00/0000000000fffe00"))
            // As a killed process leaves it, twice, and then without an index.
            let expected: [(removed: String, events: [DiskCache.Event])] = [
                ("clean", [.recovered(orphanFiles: 1, missingFiles: 0)]), ("clean", []),
                ("index.sqlite", [.indexSetAside(reason: DiskStore.noIndex, rebuiltEntries: 20)]),
            ]
            for (name, events) in expected {
                try FileManager.default.removeItem(at: entry(folder, name))
                #expect(try await openingEvents(folder) == events)
            }
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            #expect(try await cache.value(for: "0") == bytes(20_000, 0))
            #expect(try Data(contentsOf: file) == bytes(10))
        }
    }

    /// Opens and closes a folder. Returns the events, which occur before a cache could be asked for them.
    private func openingEvents(_ folder: URL) async throws -> [DiskCache.Event] {
        let broadcast = EventBroadcast<DiskCache.Event>(limit: 256, overflow: .reportDropped { .dropped(count: $0) })
        let events = broadcast.stream()
        let configuration = unlimited()
        let context = DiskStore.Context(
            folder: DiskFolder(path: DiskCache.path(folder)), configuration: configuration,
            shared: DiskSharedState(mask: configuration.hashMask), broadcast: broadcast,
            dependencies: DiskStore.Dependencies())
        try DiskStore.open(context).close()
        broadcast.finish()
        var all: [DiskCache.Event] = []
        for await event in events { all.append(event) }
        return all
    }

    @Test(arguments: ["values/00/theirs", "temporary/theirs", "trash/theirs/00/theirs"])
    func aForeignFolderStays(name: String) async throws {
        try await withDiskFolder { folder in
            try await filled(folder)
            // As a killed process leaves it.
            try FileManager.default.removeItem(at: entry(folder, "clean"))
            let file = entry(folder, name).appending(path: "file")
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try bytes(10).write(to: file)
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            try await cache.removeAll()
            try await cache.insert(bytes(20_000), for: "new")
            try await cache.trim(toBytes: 0)
            try await cache.insert(bytes(20_000), for: "new")
            #expect(try await cache.value(for: "new") == bytes(20_000))
            try await cache.close()
            // `removeAll` moves the folder of values to the trash, with all that is in it.
            let path = DiskCache.path(folder)
            let found = try FileManager.default.subpathsOfDirectory(atPath: path).filter { $0.hasSuffix("/file") }
            #expect(found.count == 1 && (found == ["\(name)/file"] || name.hasPrefix("values/")), "\(found)")
            for name in found { #expect(try Data(contentsOf: entry(folder, name)) == bytes(10)) }
        }
    }

    @Test func anIndexWithADamagedTableIsRebuiltWhileInUse() async throws {
        try await withDiskFolder { folder in
            try await filled(folder)
            do {
                let index = try SQLiteDatabase(DiskCache.path(folder) + "/index.sqlite")
                try index.execute("DROP TABLE contents; CREATE TABLE contents(id INTEGER PRIMARY KEY)")
            }
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            _ = try await cache.value(for: "1")
            try await cache.insert(bytes(500, 7), for: "new")
            #expect(try await cache.value(for: "new") == bytes(500, 7))
            #expect(try await cache.value(for: "0") == bytes(20_000, 0))
        }
    }

    /// Opens a folder and collects the events of opening. They occur before a stream can exist, so the test reads the
    /// state.
    @Test(arguments: ["garbage", "foreign", "truncated", "missing", "empty"])
    func anIndexThatCannotBeReadIsRebuiltFromTheFiles(damage: String) async throws {
        try await withDiskFolder { folder in
            try await filled(folder)
            let index = entry(folder, "index.sqlite")
            switch damage {
            case "garbage": try bytes(100_000).write(to: index)
            case "foreign":
                try FileManager.default.removeItem(at: index)
                let other = try SQLiteDatabase(DiskCache.path(folder) + "/index.sqlite")
                try other.execute("CREATE TABLE theirs(x); INSERT INTO theirs VALUES(1)")
            case "truncated": try Data(contentsOf: index).prefix(40_000).write(to: index)
            case "missing": try FileManager.default.removeItem(at: index)
            default: try Data().write(to: index)
            }
            // A missing index comes without the mark of a clean close: the person who removed it removed both.
            try? FileManager.default.removeItem(at: entry(folder, "clean"))
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            if damage == "missing" || damage == "empty" {
                // Nothing is set aside, and the new index is rebuilt from the files.
                #expect(!FileManager.default.fileExists(atPath: entry(folder, "index.sqlite.set-aside").path()))
            } else {
                #expect(FileManager.default.fileExists(atPath: entry(folder, "index.sqlite.set-aside").path()))
            }
            for number in 0..<40 {
                let found = try await cache.entry(for: "\(number)")
                #expect(found?.value == (number % 2 == 0 ? bytes(20_000 + number, number) : nil))
                #expect(found?.metadata == (number % 2 == 0 ? Data([UInt8(number)]) : nil))
            }
            try await cache.removeAll(tagged: "tag 2")
            #expect(!cache.contains("2"))
            #expect(cache.contains("4"))
            try await cache.insert(bytes(30_000), for: "new")
            try await cache.close()
            let again = try await DiskCache(folder: folder, configuration: unlimited { $0.byteLimit = 4 << 20 })
            #expect(again.contains("new"))
        }
    }

    @Test func anIndexThatFailsWhileRunningIsRebuilt() async throws {
        try await withDiskFolder { folder in
            let faults = Faults()
            let cache = try await DiskCache(
                folder: folder, configuration: unlimited(), dependencies: faults.dependencies)
            let events = cache.events
            try await cache.insert(bytes(30_000), for: "large")
            try await cache.insert(bytes(10), for: "small")
            faults["INSERT INTO contents"] = SQLITE_CORRUPT
            await #expect(throws: DiskCacheError.self) { try await cache.insert(bytes(20), for: "other") }
            faults["INSERT INTO contents"] = nil
            let seen = await TernCacheTests.events(events) { if case .indexSetAside = $0 { true } else { false } }
            guard case .indexSetAside(_, let count)? = seen.last else {
                Issue.record("no event")
                return
            }
            #expect(count == 1)
            #expect(try await cache.value(for: "large") == bytes(30_000))
            #expect(try await cache.value(for: "small") == nil)
            try await cache.insert(bytes(20), for: "other")
            #expect(try await cache.value(for: "other") == bytes(20))
        }
    }

    @Test func aDamagedFileIsAMissAndRemoved() async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            for (number, damage) in ["flip", "cut", "gone", "empty", "trailer"].enumerated() {
                try await cache.insert(bytes(40_000, number), for: damage)
                let path = try #require(try diskFiles(folder).keys.first { $0.contains("/values/") })
                var value = try Data(contentsOf: URL(filePath: path))
                switch damage {
                case "flip":
                    value[20_000] ^= 1
                    try value.write(to: URL(filePath: path))
                case "cut": try value.prefix(10_000).write(to: URL(filePath: path))
                case "empty": try Data().write(to: URL(filePath: path))
                case "trailer":
                    value[value.count - 30] ^= 1
                    try value.write(to: URL(filePath: path))
                default: try FileManager.default.removeItem(atPath: path)
                }
                let events = cache.events
                #expect(try await cache.value(for: damage) == nil)
                #expect(await TernCacheTests.events(events) { _ in true } == [.damagedEntryRemoved])
                #expect(!cache.contains(damage))
                #expect(try cache.leaks().isEmpty)
                #expect(try await cache.usage.fileBytes == 0)
            }
        }
    }

    @Test func aDamagedRowIsAMissAndRemoved() async throws {
        try await withDiskFolder { folder in
            try await filled(folder)
            do {
                let index = try SQLiteDatabase(DiskCache.path(folder) + "/index.sqlite")
                try index.execute("UPDATE contents SET value = zeroblob(500) WHERE id = (SELECT min(id) FROM contents)")
                try index.execute("UPDATE contents SET metadata = x'00' WHERE id = (SELECT max(id) FROM contents)")
                try index.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            }
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            #expect(try await cache.value(for: "1") == nil)
            #expect(try await cache.value(for: "39") == nil)
            #expect(!cache.contains("1"))
            #expect(try await cache.value(for: "3") == bytes(500, 3))
        }
    }

    @Test func openingRepairsTheFolderOfAKilledOwner() async throws {
        try await withDiskFolder { folder in
            try await filled(folder)
            try FileManager.default.removeItem(at: entry(folder, "clean"))
            let shard = try #require(try diskFiles(folder).keys.first { $0.contains("/values/") })
            try FileManager.default.removeItem(atPath: shard)
            try bytes(9_000).write(to: entry(folder, "temporary/9"))
            try FileManager.default.createDirectory(at: entry(folder, "values/00"), withIntermediateDirectories: true)
            try bytes(9_000).write(to: entry(folder, "values/00/0000000000ffff00"))
            try bytes(9_000).write(to: entry(folder, "values/00/stranger"))
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            #expect(try await cache.usage.count == 39)
            #expect(try cache.leaks().isEmpty)
        }
    }

    @Test func aFolderHasOneOwner() async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            try await cache.insert(bytes(10), for: "a")
            await #expect {
                _ = try await DiskCache(folder: folder, configuration: unlimited())
            } throws: { ($0 as? DiskCacheError)?.kind == .inUse }
            try await cache.insert(bytes(20), for: "a")
            try await cache.close()
            let second = try await DiskCache(folder: folder, configuration: unlimited())
            #expect(try await second.value(for: "a") == bytes(20))
        }
    }

    @Test func anEarlierFormatIsMigratedInPlace() async throws {
        try await withDiskFolder { folder in
            let path = DiskCache.path(folder)
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            do {
                let old = try SQLiteDatabase(path + "/index.sqlite")
                try old.execute("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL")
                try DiskSchema.migrate(old, from: 0, to: 1)
                let hasher = DiskKeyHasher(seed: 42)
                let key = hasher.key("old")
                let checksum = DiskChecksum.row(
                    value: DiskChecksum.of(bytes(30)), key: key.bytes, metadata: Data())
                try old.execute("INSERT INTO facts VALUES('seed', 42)")
                try old.prepare("INSERT INTO entries VALUES(?1, ?2, ?3, 0, 100, ?4)")
                    .run(1, Int64(bitPattern: key.hash), 30, .max)
                try old.prepare("INSERT INTO contents VALUES(?1, ?2, ?3, ?4, ?5, ?6)")
                    .run(1, Int64(bitPattern: checksum), 0, blobs: [key.bytes, Data(), bytes(30)])
            }
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            #expect(try await cache.value(for: "old") == bytes(30))
            try await cache.insert(bytes(5), for: "new", tags: ["group"])
            try await cache.removeAll(tagged: "group")
            #expect(!cache.contains("new"))
            #expect(cache.contains("old"))
            try await cache.close()
            let index = try SQLiteDatabase(path + "/index.sqlite")
            #expect(try index.number("PRAGMA user_version") == Int64(DiskSchema.version))
        }
    }

    @Test func aLaterFormatIsRefusedAndLeftAlone() async throws {
        try await withDiskFolder { folder in
            try await filled(folder)
            let path = DiskCache.path(folder) + "/index.sqlite"
            do {
                let index = try SQLiteDatabase(path)
                // A later version writes both copies, like this one.
                try index.execute("PRAGMA user_version = 99; UPDATE facts SET value = 99 WHERE name = 'version'")
                try index.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            }
            await #expect {
                _ = try await DiskCache(folder: folder, configuration: unlimited())
            } throws: { ($0 as? DiskCacheError)?.kind == .unsupportedFormat }
            #expect(try SQLiteDatabase(path).number("SELECT count(*) FROM entries") == 40)
        }
    }

    @Test(arguments: [0, 1, 3, 6, 66, 1 << 30, -2, Int.min >> 32], [true, false])
    func aDamagedVersionIsRebuiltLikeAnyDamage(version: Int, isNoted: Bool) async throws {
        try await withDiskFolder { folder in
            try await filled(folder)
            let path = DiskCache.path(folder) + "/index.sqlite"
            do {
                let index = try SQLiteDatabase(path)
                if !isNoted { try index.execute("DELETE FROM facts WHERE name = 'version'") }
                try index.execute("PRAGMA user_version = \(version); PRAGMA wal_checkpoint(TRUNCATE)")
            }
            // Without the second copy, the index may be of the first version, which had other tables.
            if version == 1, !isNoted { return }
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            for number in stride(from: 0, to: 40, by: 2) {
                #expect(try await cache.value(for: "\(number)") == bytes(20_000 + number, number))
            }
        }
    }

    @Test func othersMayReadNothingOfTheCache() async throws {
        func mode(_ path: String) -> mode_t {
            var status = stat()
            return unsafe lstat(path, &status) == 0 ? status.st_mode & 0o777 : 0
        }
        func widths(_ root: String) throws -> [String: mode_t] {
            var found = [root: mode(root)]
            for name in try FileManager.default.subpathsOfDirectory(atPath: root) {
                found[name] = mode(root + "/" + name)
            }
            return found.filter { $0.value & 0o077 != 0 }
        }
        try await withDiskFolder { folder in
            let path = DiskCache.path(folder)
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            try await cache.insert(bytes(50_000), for: "large")
            try await cache.insert(bytes(50), for: "small")
            #expect(try widths(path) == [:])
            try await cache.close()
            #expect(try widths(path) == [:])
            // The permissions that an earlier version left.
            for name in ["index.sqlite", "index.sqlite-wal", "lock"] { _ = unsafe chmod(path + "/" + name, 0o644) }
            _ = unsafe chmod(path, 0o755)
            let again = try await DiskCache(folder: folder, configuration: unlimited())
            try await again.insert(bytes(50), for: "other")
            #expect(try widths(path) == [:])
            #expect(try await again.value(for: "small") == bytes(50))
        }
    }

    @Test func readOnlyFoldersAreSearchedAndNeverChanged() async throws {
        try await withDiskFolder { folder in
            let seed = entry(folder, "seed")
            try await filled(seed)
            let before = try diskFiles(seed)
            let configuration = unlimited { $0.readOnlyFolders = [seed, entry(folder, "nothing")] }
            let cache = try await DiskCache(folder: entry(folder, "own"), configuration: configuration)
            #expect(cache.contains("0"))
            #expect(cache.contains("1"))
            #expect(try await cache.entry(for: "0")?.value == bytes(20_000, 0))
            #expect(try await cache.entry(for: "1")?.metadata == Data([1]))
            #expect(try await cache.mappedValue(for: "2") == bytes(20_002, 2))
            #expect(try await cache.usage.count == 0)
            // The cache's own value comes first.
            try await cache.insert(bytes(3), for: "1")
            #expect(try await cache.value(for: "1") == bytes(3))
            try await cache.remove("1")
            #expect(try await cache.value(for: "1") == bytes(500, 1))
            try await cache.close()
            #expect(try diskFiles(seed) == before)
        }
    }

    /// Changes of a row of the index, which then has a number that no cache would write.
    private static let damages = [
        "id = 9223372036854775807", "id = -1", "id = 0", "size = -1", "size = 9223372036854775807", "trailer = -80",
        "trailer = 1", "trailer = 9223372036854775807", "allocated = -1", "allocated = 9223372036854775807",
    ]

    private func damage(_ folder: URL, _ statement: String) throws {
        let index = try SQLiteDatabase(DiskCache.path(folder) + "/index.sqlite")
        try index.execute(statement)
        try index.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    }

    private func damageRow(_ folder: URL, _ change: String) throws {
        // The sum of the space of two rows would overflow.
        let count = change.hasPrefix("id") ? 1 : 2
        let rows = "SELECT id FROM entries WHERE trailer > 0 ORDER BY id LIMIT \(count)"
        try damage(folder, "UPDATE entries SET \(change) WHERE id IN (\(rows))")
    }

    @Test(arguments: damages + ["tick = 9223372036854775807", "tick = -1"])
    func anIndexWithANumberOutOfBoundsIsRebuilt(_ change: String) async throws {
        try await withDiskFolder { folder in
            try await filled(folder)
            if change.hasPrefix("tick") {
                try damage(folder, "INSERT INTO recency SELECT max(id), 0 FROM entries; UPDATE recency SET \(change)")
            } else {
                try damageRow(folder, change)
            }
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            #expect(FileManager.default.fileExists(atPath: entry(folder, "index.sqlite.set-aside").path()))
            for number in stride(from: 0, to: 40, by: 2) {
                #expect(try await cache.value(for: "\(number)") == bytes(20_000 + number, number))
            }
            try await cache.insert(bytes(30_000), for: "new")
            #expect(try await cache.value(for: "new") == bytes(30_000))
        }
    }

    @Test(arguments: damages)
    func aRowOutOfBoundsInAReadOnlyFolderIsAMiss(_ change: String) async throws {
        try await withDiskFolder { folder in
            let seed = entry(folder, "seed")
            try await filled(seed)
            try damageRow(seed, change)
            let before = try diskFiles(seed)
            let configuration = unlimited { $0.readOnlyFolders = [seed] }
            let cache = try await DiskCache(folder: entry(folder, "own"), configuration: configuration)
            #expect(try await cache.value(for: "0") == nil)
            #expect(try await cache.mappedValue(for: "0") == nil)
            #expect(try await cache.value(for: "1") == bytes(500, 1))
            #expect(try await cache.value(for: "4") == bytes(20_004, 4))
            try await cache.close()
            #expect(try diskFiles(seed) == before)
        }
    }

    @Test func aFileWithANumberOutOfBoundsIsRemoved() async throws {
        try await withDiskFolder { folder in
            try await filled(folder)
            let path = try #require(try diskFiles(folder).keys.first { $0.contains("/values/") })
            try FileManager.default.createDirectory(at: entry(folder, "values/3f"), withIntermediateDirectories: true)
            try FileManager.default.moveItem(at: URL(filePath: path), to: entry(folder, "values/3f/7fffffffffffffff"))
            try FileManager.default.removeItem(at: entry(folder, "index.sqlite"))
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            #expect(try await cache.usage.count == 19)
            #expect(try cache.leaks().isEmpty)
        }
    }
}
