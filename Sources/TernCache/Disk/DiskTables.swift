#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The index on the disk: one connection and its statements.
final class DiskTables {
    let database: SQLiteDatabase
    private let insertEntry: SQLiteStatement
    private let insertContents: SQLiteStatement
    private let insertTag: SQLiteStatement
    private let deletions:
        (entry: SQLiteStatement, contents: SQLiteStatement, rank: SQLiteStatement, tags: SQLiteStatement)
    private let selectContents: SQLiteStatement
    private let selectTagged: SQLiteStatement
    private let rank: SQLiteStatement
    private let countPages: SQLiteStatement
    private let countFreePages: SQLiteStatement
    private let begin: SQLiteStatement
    private let commit: SQLiteStatement

    enum Opening {
        /// `isNew` if there was none before.
        case ready(DiskTables, isNew: Bool)
        case setAside(DiskCacheError)
    }

    /// The cache's own index, made or migrated as needed.
    static func open(_ path: String, fault: SQLiteDatabase.Fault?) throws(DiskCacheError) -> Opening {
        do throws(DiskCacheError) {
            let database = try SQLiteDatabase(path, fault: fault)
            // The folder's lock keeps others away: no shared memory file is needed. Vacuuming must be set before the
            // first page is written, like the size of a page.
            try database.execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA page_size = \(DiskSchema.pageSize)")
            // Setting INCREMENTAL (2) writes to the index even if it is already set, and fails on a full disk.
            if try database.number("PRAGMA auto_vacuum") != 2 {
                try database.execute("PRAGMA auto_vacuum = INCREMENTAL")
            }
            try database.execute("PRAGMA journal_mode = WAL")
            // A killed process loses nothing that was handed to the system, so nothing needs to be forced to the disk:
            // see Documentation/DiskCache.md on power loss.
            try database.execute("PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY")
            // Debian's SQLite would write zeros over what is freed, and log that.
            try database.execute("PRAGMA secure_delete = OFF")
            try database.execute("PRAGMA cache_size = -8192; PRAGMA cell_size_check = ON")
            let application = try database.number("PRAGMA application_id") ?? 0
            let version = try database.number("PRAGMA user_version") ?? 0
            let isEmpty = try database.number("SELECT count(*) FROM sqlite_master") == 0
            let hasFacts = try database.number("SELECT count(*) FROM sqlite_master WHERE name = 'facts'") != 0
            let noted = hasFacts ? try database.number("SELECT value FROM facts WHERE name = 'version'") : nil
            let action = DiskSchema.action(
                application: application, version: Int(version), noted: noted.map { Int($0) }, isEmpty: isEmpty)
            switch action {
            case .use: break
            case .migrate(let from): try DiskSchema.migrate(database, from: from)
            case .setAside:
                return .setAside(DiskCacheError(.corrupt, "the index is damaged, or another program's database"))
            case .refuse(let version):
                throw DiskCacheError(
                    .unsupportedFormat, "the index has format \(version), this library knows \(DiskSchema.version)")
            }
            return .ready(try DiskTables(database), isNew: isEmpty)
        } catch {
            guard error.kind == .corrupt else { throw error }
            return .setAside(error)
        }
    }

    init(_ database: SQLiteDatabase) throws(DiskCacheError) {
        self.database = database
        insertEntry = try database.prepare("INSERT INTO entries VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")
        insertContents = try database.prepare("INSERT INTO contents VALUES(?1, ?2, ?3, ?4, ?5, ?6)")
        insertTag = try database.prepare("INSERT OR IGNORE INTO tags(id, tag) VALUES(?1, ?2)")
        deletions = (
            try database.prepare("DELETE FROM entries WHERE id = ?1"),
            try database.prepare("DELETE FROM contents WHERE id = ?1"),
            try database.prepare("DELETE FROM recency WHERE id = ?1"),
            try database.prepare("DELETE FROM tags WHERE id = ?1")
        )
        selectContents = try database.prepare(
            "SELECT checksum, created, key, metadata, value FROM contents WHERE id = ?1")
        selectTagged = try database.prepare(
            "SELECT e.hash, e.id FROM tags t JOIN entries e ON e.id = t.id WHERE t.tag = ?1 AND e.id > ?2 LIMIT ?3")
        rank = try database.prepare("INSERT OR REPLACE INTO recency VALUES(?1, ?2)")
        countPages = try database.prepare("PRAGMA page_count")
        countFreePages = try database.prepare("PRAGMA freelist_count")
        begin = try database.prepare("BEGIN IMMEDIATE")
        commit = try database.prepare("COMMIT")
    }

    func transaction(_ body: () throws(DiskCacheError) -> Void) throws(DiskCacheError) {
        try begin.run()
        do {
            try body()
            try commit.run()
        } catch {
            // The first failure is the one to tell; some of them have ended the transaction already.
            if database.isInTransaction { try? database.execute("ROLLBACK") }
            throw error
        }
    }

    func insert(_ item: DiskItem, hash: UInt64, _ location: DiskIndex.Location) throws(DiskCacheError) {
        try insertEntry.run(
            location.id, Int64(bitPattern: hash), Int64(location.size), Int64(location.trailer),
            Int64(location.allocated), location.expires, location.isTagged ? 1 : 0)
        if case .bytes(let value) = item.content, item.isInline {
            let checksum = DiskChecksum.row(value: item.checksum, key: item.key.bytes, metadata: item.metadata)
            try insertContents.run(
                location.id, Int64(bitPattern: checksum), item.created,
                blobs: [item.key.bytes, item.metadata, value])
        }
        for tag in item.tags { try insertTag.run(location.id, blobs: [Data(tag.utf8)]) }
    }

    func insert(_ trailer: DiskTrailer, hash: UInt64, _ location: DiskIndex.Location) throws(DiskCacheError) {
        try insertEntry.run(
            location.id, Int64(bitPattern: hash), Int64(location.size), Int64(location.trailer),
            Int64(location.allocated), location.expires, location.isTagged ? 1 : 0)
        for tag in trailer.tags { try insertTag.run(location.id, blobs: [Data(tag.utf8)]) }
    }

    func delete(_ location: DiskIndex.Location) throws(DiskCacheError) {
        try deletions.entry.run(location.id)
        if location.isInline { try deletions.contents.run(location.id) }
        if location.isRanked { try deletions.rank.run(location.id) }
        if location.isTagged { try deletions.tags.run(location.id) }
    }

    func deleteAll() throws(DiskCacheError) {
        try database.execute("DELETE FROM contents; DELETE FROM entries; DELETE FROM recency; DELETE FROM tags")
    }

    func setRank(_ id: Int64, _ tick: Int64) throws(DiskCacheError) { try rank.run(id, tick) }

    /// Entries of a group from `id` on, at most `limit`.
    func tagged(_ tag: Data, after id: Int64, limit: Int) throws(DiskCacheError) -> [(hash: UInt64, id: Int64)] {
        defer { selectTagged.reset() }
        selectTagged.bind(2, id)
        selectTagged.bind(3, limit)
        var found: [(hash: UInt64, id: Int64)] = []
        try selectTagged.bind(1, copying: tag)
        while try selectTagged.step() {
            found.append((UInt64(bitPattern: selectTagged.number(0)), selectTagged.number(1)))
        }
        return found
    }

    func read(_ location: DiskIndex.Location, key: DiskKey) -> DiskReading {
        defer { selectContents.reset() }
        selectContents.bind(1, location.id)
        do throws(DiskCacheError) {
            guard try selectContents.step() else { return .gone }
            let (stored, metadata) = (selectContents.data(2), selectContents.data(3))
            let value = selectContents.data(4)
            let checksum = DiskChecksum.row(value: DiskChecksum.of(value), key: stored, metadata: metadata)
            guard checksum == UInt64(bitPattern: selectContents.number(0)) else { return .damaged }
            guard stored == key.bytes else { return .otherKey }
            return .found(
                DiskCache.Entry(
                    value: value, metadata: metadata, created: Date(milliseconds: selectContents.number(1)),
                    expires: location.expires == .max ? nil : Date(milliseconds: location.expires)))
        } catch {
            return .failed(error)
        }
    }

    var pages: Int {
        get throws(DiskCacheError) { try Self.first(countPages) }
    }

    var freePages: Int {
        get throws(DiskCacheError) { try Self.first(countFreePages) }
    }

    private static func first(_ statement: SQLiteStatement) throws(DiskCacheError) -> Int {
        defer { statement.reset() }
        return try statement.step() ? Int(statement.number(0)) : 0
    }

    /// Gives up to `pages` freed pages back; the file shrinks with the next checkpoint.
    func vacuum(_ pages: Int) throws(DiskCacheError) { try database.execute("PRAGMA incremental_vacuum(\(pages))") }
}
