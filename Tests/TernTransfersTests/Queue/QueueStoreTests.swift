import CTernSQLite
import Tern
import TernCache
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Queue: the file")
struct QueueStoreTests {
    private func item(_ name: String, _ change: (inout QueueRecord) -> Void = { _ in }) -> QueueStore.NewItem {
        var record = QueueRecord(
            kind: .download, url: "http://example.com/\(name)?key=1", host: "example.com", path: "files/\(name)")
        change(&record)
        return QueueStore.NewItem(record: record, options: Data("{}".utf8), userData: Data("7".utf8))
    }

    private func error(_ body: () throws -> Void) -> TransferQueueError? {
        do {
            try body()
            return nil
        } catch {
            return error as? TransferQueueError
        }
    }

    @Test func itemsAreReadAsTheyWereStored() async throws {
        try await inTestFolder { folder in
            let first = item("a") { record in
                (record.group, record.label, record.priority, record.total) = ("g", "ä", .high, 9)
                (record.requiresUnmetered, record.intent, record.position) = (true, .paused, -4)
            }
            do {
                let store = try QueueStore(folder: folder.path)
                #expect(try store.insert([first, item("b")]).map(\.rawValue) == [1, 2])
                try store.setDependencies(of: "g", on: ["h", "i"])
                try store.setDependencies(of: "g", on: ["h"])
                var second = item("b").record
                (second.intent, second.ended, second.completed) = (.finished, 1, 5)
                try store.update([(TransferQueue.ItemID(rawValue: 2), second, Data("r".utf8))])
            }
            let store = try QueueStore(folder: folder.path)
            let contents = try store.load()
            #expect(contents.records.map(\.id.rawValue) == [1, 2])
            #expect(contents.records.first?.record == first.record)
            #expect(contents.records.last?.record.intent == .finished)
            #expect(contents.dependencies == ["g": ["h"]])
            #expect(try store.outcome(TransferQueue.ItemID(rawValue: 2)) == Data("r".utf8))
            #expect(try store.userData(TransferQueue.ItemID(rawValue: 1)) == Data("7".utf8))
            try store.delete([TransferQueue.ItemID(rawValue: 2)])
            // A number is never used again.
            #expect(try store.insert([item("c")]).map(\.rawValue) == [3])
        }
    }

    @Test func folderHasOneOwner() async throws {
        try await inTestFolder { folder in
            let store = try QueueStore(folder: folder.path)
            let second = error { _ = try QueueStore(folder: folder.path) }
            #expect(second?.kind == .inUse)
            #expect(second?.reason.contains(folder.path) == true)
            store.close()
            _ = try QueueStore(folder: folder.path)
            #expect(error { _ = try store.load() }?.kind == .closed)
        }
    }

    @Test func filesBelongToTheirOwnerAlone() async throws {
        try await inTestFolder { folder in
            let path = folder.path + "/queue"
            let store = try QueueStore(folder: path)
            _ = try store.insert([item("a")])
            for name in try FileManager.default.contentsOfDirectory(atPath: path) {
                let attributes = try FileManager.default.attributesOfItem(atPath: "\(path)/\(name)")
                #expect((attributes[.posixPermissions] as? Int).map { $0 & 0o077 } == 0, "\(name)")
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: path).count == 3)
        }
    }

    @Test func laterVersionIsRefusedAndUnchanged() async throws {
        try await inTestFolder { folder in
            try QueueStore(folder: folder.path, steps: QueueSchema.steps + ["CREATE TABLE later(id INTEGER)"]).close()
            let later = error { _ = try QueueStore(folder: folder.path) }
            #expect(later?.kind == .unsupportedVersion)
            #expect(later?.reason.contains("version 2") == true)
            #expect(try SQLiteDatabase(folder.path + "/queue.sqlite").number("PRAGMA user_version") == 2)
        }
    }

    @Test func earlierVersionIsMigrated() async throws {
        try await inTestFolder { folder in
            do { _ = try QueueStore(folder: folder.path).insert([item("a")]) }
            let steps = QueueSchema.steps + ["ALTER TABLE items ADD COLUMN later INTEGER NOT NULL DEFAULT 7"]
            let store = try QueueStore(folder: folder.path, steps: steps)
            #expect(try store.load().records.count == 1)
            store.close()
            let database = try SQLiteDatabase(folder.path + "/queue.sqlite")
            #expect(try database.number("PRAGMA user_version") == 2)
            #expect(try database.number("SELECT later FROM items") == 7)
        }
    }

    @Test func failedMigrationChangesNothing() async throws {
        try await inTestFolder { folder in
            do { _ = try QueueStore(folder: folder.path).insert([item("a")]) }
            let steps = QueueSchema.steps + ["CREATE TABLE later(id INTEGER); no statement"]
            #expect(error { _ = try QueueStore(folder: folder.path, steps: steps) } != nil)
            #expect(try QueueStore(folder: folder.path).load().records.count == 1)
        }
    }

    @Test func schemaChoosesItsAction() {
        let tern = QueueSchema.application
        #expect(QueueSchema.action(application: 0, version: 0, isEmpty: true) == .migrate(from: 0))
        #expect(QueueSchema.action(application: tern, version: 1, isEmpty: false) == .use)
        #expect(QueueSchema.action(application: tern, version: 1, isEmpty: false, latest: 3) == .migrate(from: 1))
        #expect(QueueSchema.action(application: tern, version: 2, isEmpty: false) == .refuseLater)
        #expect(QueueSchema.action(application: tern, version: 0, isEmpty: false) == .refuseOther)
        #expect(QueueSchema.action(application: tern, version: -1, isEmpty: false) == .refuseOther)
        #expect(QueueSchema.action(application: 1, version: 1, isEmpty: false) == .refuseOther)
        #expect(QueueSchema.action(application: 0, version: 0, isEmpty: false) == .refuseOther)
    }

    /// Changes that another program could make to the file, each of which the queue refuses.
    static let damages = [
        "UPDATE items SET url = CAST('ftp://example.com/' AS BLOB)",
        "UPDATE items SET url = CAST('http://other.com/a' AS BLOB)",
        "UPDATE items SET url = CAST('http://example.com/a b' AS BLOB)",
        "UPDATE items SET url = X'FFFE'",
        "UPDATE items SET url = CAST('http://example.com/' || hex(zeroblob(40000)) AS BLOB)",
        "UPDATE items SET host = zeroblob(2000)",
        "UPDATE items SET path = CAST('files/../../etc/passwd' AS BLOB)",
        "UPDATE items SET path = CAST('../' || char(769) || 'x' AS BLOB)",
        "UPDATE items SET path = X''",
        "UPDATE items SET path = X'2F610062'",
        "UPDATE items SET path = CAST('/tmp/' AS BLOB)",
        "UPDATE items SET path = zeroblob(5000)",
        "UPDATE items SET label = zeroblob(2000)",
        "UPDATE items SET grp = zeroblob(2000)",
        "UPDATE items SET intent = 9",
        "UPDATE items SET intent = 3",
        "UPDATE items SET ended = 4",
        "UPDATE items SET ended = -1, intent = 3",
        "UPDATE items SET ended = 9223372036854775806, intent = 3",
        "UPDATE items SET priority = 77",
        "UPDATE items SET kind = 2",
        "UPDATE items SET position = 9223372036854775807",
        "UPDATE items SET completed = -1",
        "UPDATE items SET total = 9223372036854775807",
        "UPDATE items SET id = -5",
        "INSERT INTO dependencies VALUES(zeroblob(2000), X'61')",
        "INSERT INTO dependencies VALUES(X'', X'61')",
        "DROP TABLE items",
        "DROP TABLE details",
        "ALTER TABLE items RENAME COLUMN url TO link",
        "CREATE TRIGGER later AFTER UPDATE ON items BEGIN DELETE FROM items; END",
        "CREATE VIEW later AS SELECT 1",
        "PRAGMA application_id = 1",
        "PRAGMA user_version = 0",
    ]

    @Test(arguments: damages)
    func valueThatTernDidNotWriteIsRefused(damage: String) async throws {
        try await inTestFolder { folder in
            do {
                let store = try QueueStore(folder: folder.path)
                _ = try store.insert([item("a")])
                store.close()
            }
            do { try SQLiteDatabase(folder.path + "/queue.sqlite").execute(damage) }
            let found = error { _ = try QueueStore(folder: folder.path).load() }
            #expect(found?.kind == .damaged, "\(damage): \(String(describing: found))")
            #expect(found?.description.contains("key=1") != true)
        }
    }

    /// SQLite would read them.
    @Test(arguments: ["-wal", "-journal", "-shm"])
    func filesBesideTheDatabaseThatOthersCanWriteAreRefused(suffix: String) async throws {
        try await inTestFolder { folder in
            let path = folder.path + "/queue.sqlite" + suffix
            try folder.write(Data(), to: "queue.sqlite" + suffix)
            try FileManager.default.setAttributes([.posixPermissions: 0o622], ofItemAtPath: path)
            #expect(error { _ = try QueueStore(folder: folder.path) }?.kind == .notPermitted)
            try FileManager.default.removeItem(atPath: path)
            try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: folder.path + "/other")
            #expect(error { _ = try QueueStore(folder: folder.path) }?.kind == .notPermitted)
        }
    }

    /// Where all users may write, one could put another file in the place of the queue's. A sticky bit, as that of
    /// /tmp, prevents it.
    @Test(arguments: [(0o777, false), (0o702, false), (0o1777, true), (0o770, true), (0o755, true)])
    func folderInWhichAllCanReplaceFilesIsRefused(permissions: Int, isAccepted: Bool) async throws {
        try await inTestFolder { folder in
            try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: folder.path)
            let found = error { _ = try QueueStore(folder: folder.path) }
            #expect((found == nil) == isAccepted, "\(String(describing: found))")
            if let found {
                #expect(found.kind == .notPermitted && found.description.contains("all users may replace"), "\(found)")
                #expect(try folder.names.isEmpty)
            }
        }
    }

    #if os(Linux)
    /// A user who may rename the folders above cannot lead the queue, or a process of the superuser, to other files.
    @Test func aFolderInThePlaceOfTheQueuesReceivesNothing() async throws {
        try await inTestFolder { folder in
            let (own, other) = (folder.path + "/own", folder.path + "/other")
            let store = try QueueStore(folder: own)
            try FileManager.default.moveItem(atPath: own, toPath: own + ".moved")
            try FileManager.default.createDirectory(atPath: other, withIntermediateDirectories: false)
            try FileManager.default.createSymbolicLink(atPath: own, withDestinationPath: other)
            #expect(try store.insert([item("a")]).map(\.rawValue) == [1])
            store.close()
            #expect(try FileManager.default.contentsOfDirectory(atPath: other).isEmpty)
            #expect(try QueueStore(folder: own + ".moved").load().records.count == 1)
        }
    }
    #endif

    @Test func otherFilesAreRefused() async throws {
        try await inTestFolder { folder in
            try folder.write(Data("no database, and long enough to be looked at".utf8), to: "queue.sqlite")
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o666], ofItemAtPath: folder.path + "/queue.sqlite")
            #expect(error { _ = try QueueStore(folder: folder.path) }?.kind == .notPermitted)
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o600], ofItemAtPath: folder.path + "/queue.sqlite")
            #expect(error { _ = try QueueStore(folder: folder.path) }?.kind == .damaged)
            try FileManager.default.removeItem(at: folder.url("queue.sqlite"))
            try FileManager.default.createSymbolicLink(
                atPath: folder.path + "/queue.sqlite", withDestinationPath: folder.path + "/other")
            #expect(error { _ = try QueueStore(folder: folder.path) } != nil)
            #expect(!FileManager.default.fileExists(atPath: folder.path + "/other"))
        }
    }

    @Test func invalidOptionsAreNoOptions() throws {
        let transfer = TransferQueue.Transfer.download(
            try #require(URL(string: "http://example.com/a")), to: URL(filePath: "/tmp/a"))
        let valid = try QueueOptions(transfer).encoded()
        #expect(QueueOptions(valid) == QueueOptions(transfer))
        #expect(QueueOptions(Data("{}".utf8)) == nil)
        #expect(QueueOptions(Data(count: QueueOptions.limit + 1)) == nil)
        #expect(QueueOptions(Data(#"{"fields":[{"name":"Authorization","value":"x"}]}"#.utf8)) == nil)
        #expect(QueueOptions(Data(#"{"fields":[{"name":"A","value":"x\r\nB: c"}]}"#.utf8)) == nil)
        #expect(QueueOptions(Data(#"{"fields":[],"segments":99}"#.utf8)) == nil)
        #expect(QueueOptions(Data(#"{"fields":[],"checksum":"crc"}"#.utf8)) == nil)
        #expect(QueueOptions(Data(#"{"fields":[],"digest":{"algorithm":"md5","value":"0"}}"#.utf8)) == nil)
        #expect(QueueOptions(Data(#"{"fields":[],"chunkSize":0}"#.utf8)) == nil)
    }

    @Test func fullDiskStoresNothingAndSaysSo() async throws {
        try await inTestFolder { folder in
            do { try QueueStore(folder: folder.path).close() }
            let store = try QueueStore(folder: folder.path, fault: { $0 == "COMMIT" ? SQLITE_FULL : nil })
            #expect(error { _ = try store.insert([item("a")]) }?.kind == .noSpace)
            store.close()
            #expect(try QueueStore(folder: folder.path).load().records.isEmpty)
        }
    }
}
