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
        (entry: SQLiteStatement, contents: SQLiteStatement, use: SQLiteStatement, tags: SQLiteStatement)
    private let selectContents: SQLiteStatement
    private let selectTagged: SQLiteStatement
    private let selectTags: SQLiteStatement
    private let insertUse: SQLiteStatement
    private let countPages: SQLiteStatement
    private let countFreePages: SQLiteStatement
    private let begin: SQLiteStatement
    private let commit: SQLiteStatement

    enum Opening {
        /// The index is open. `isNew` is true if it did not exist before.
        case ready(DiskTables, isNew: Bool)
        case setAside(DiskCacheError)
    }

    /// Opens the cache's own index, and creates or migrates it as needed.
    static func open(_ path: String, fault: SQLiteDatabase.Fault?) throws(DiskCacheError) -> Opening {
        do throws(DiskCacheError) {
            let database = try SQLiteDatabase(path, fault: fault)
            // The folder's lock excludes others, so no shared memory file is needed. Vacuuming must be set before the
            // first page is written, like the page size.
            try database.execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA page_size = \(DiskSchema.pageSize)")
            // Setting INCREMENTAL (2) writes to the index even if it is already set, and fails on a full disk.
            if try database.number("PRAGMA auto_vacuum") != 2 {
                try database.execute("PRAGMA auto_vacuum = INCREMENTAL")
            }
            try database.execute("PRAGMA journal_mode = WAL")
            // A killed process loses nothing that was handed to the system, so nothing needs to be forced to the disk.
            // See Documentation/DiskCache.md on power loss.
            try database.execute("PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY")
            // Debian's SQLite would overwrite freed pages with zeros, and log that.
            try database.execute("PRAGMA secure_delete = OFF")
            try database.execute("PRAGMA cache_size = -8192; PRAGMA cell_size_check = ON")
            let application = try database.number("PRAGMA application_id") ?? 0
            let version = try database.number("PRAGMA user_version") ?? 0
            let isEmpty = try database.number("SELECT count(*) FROM sqlite_master") == 0
            let hasFacts = try database.number("SELECT count(*) FROM sqlite_master WHERE name = 'facts'") != 0
            let recorded = hasFacts ? try database.number("SELECT value FROM facts WHERE name = 'version'") : nil
            let action = DiskSchema.action(
                application: application, version: Int(version), recordedVersion: recorded.map { Int($0) },
                isEmpty: isEmpty)
            switch action {
            case .use: break
            case .migrate(let from): try DiskSchema.migrate(database, from: from)
            case .setAside:
                return .setAside(DiskCacheError(.corrupt, "the index is damaged, or the database of another program"))
            case .refuse(let version):
                throw DiskCacheError(
                    .unsupportedFormat,
                    "the index has format \(version), this library supports up to \(DiskSchema.version)")
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
        selectTags = try database.prepare(
            "SELECT DISTINCT tag FROM tags WHERE tag > ?1 AND tag < ?2 ORDER BY tag LIMIT ?3")
        insertUse = try database.prepare("INSERT OR REPLACE INTO recency VALUES(?1, ?2)")
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
            // The first failure is the one to report. Some failures have already ended the transaction.
            if database.isInTransaction { try? database.execute("ROLLBACK") }
            throw error
        }
    }

    func insert(_ item: DiskItem, hash: UInt64, location: DiskIndex.Location) throws(DiskCacheError) {
        try insert(location, hash: hash, tags: item.tags)
        if case .bytes(let value) = item.content, item.isInline {
            let checksum = DiskChecksum.row(value: item.checksum, key: item.key.bytes, metadata: item.metadata)
            try insertContents.run(
                location.id, Int64(bitPattern: checksum), item.created,
                blobs: [item.key.bytes, item.metadata, value])
        }
    }

    /// Inserts the row of an entry whose contents are in a file, and its tags.
    func insert(_ location: DiskIndex.Location, hash: UInt64, tags: [String]) throws(DiskCacheError) {
        try insertEntry.run(
            location.id, Int64(bitPattern: hash), Int64(location.size), Int64(location.trailer),
            Int64(location.allocated), location.expires, location.isTagged ? 1 : 0)
        for tag in tags { try insertTag.run(location.id, blobs: [Data(tag.utf8)]) }
    }

    func delete(_ location: DiskIndex.Location) throws(DiskCacheError) {
        try deletions.entry.run(location.id)
        if location.isInline { try deletions.contents.run(location.id) }
        if location.hasSavedUse { try deletions.use.run(location.id) }
        if location.isTagged { try deletions.tags.run(location.id) }
    }

    func deleteAll() throws(DiskCacheError) {
        try database.execute("DELETE FROM contents; DELETE FROM entries; DELETE FROM recency; DELETE FROM tags")
    }

    func saveUse(_ id: Int64, _ number: Int64) throws(DiskCacheError) { try insertUse.run(id, number) }

    /// Returns the entries of a group after `id`, at most `limit`.
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

    /// Returns the tags between two tags, in order, at most `limit`.
    func tags(after first: Data, before last: Data, limit: Int) throws(DiskCacheError) -> [Data] {
        defer { selectTags.reset() }
        try selectTags.bind(1, copying: first)
        try selectTags.bind(2, copying: last)
        selectTags.bind(3, limit)
        var found: [Data] = []
        while try selectTags.step() { found.append(selectTags.data(0)) }
        return found
    }

    func read(_ location: DiskIndex.Location, key: DiskKey) -> DiskReadResult {
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

    /// Returns up to `pages` free pages to the file system. The file shrinks with the next checkpoint.
    func vacuum(_ pages: Int) throws(DiskCacheError) { try database.execute("PRAGMA incremental_vacuum(\(pages))") }
}

/// The format of the index: the steps from each version to the next. An empty database is version 0, so that a new
/// index and an old one take the same steps.
enum DiskSchema {
    /// "Tern": distinguishes the index from any other SQLite database.
    static let application: Int64 = 0x5465_726E
    /// 16 KiB: a small value fits a page, and one insert changes few pages.
    static let pageSize = 16_384
    /// The pages of an index without entries: one for each table and each index, one for the schema, and one for the
    /// pointers that returning free pages needs.
    static let emptyPages = 8

    static let steps: [String] = [
        // 1. Narrow rows that are read at opening; their contents; the order of use, separate from both.
        """
        CREATE TABLE facts(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE entries(id INTEGER PRIMARY KEY, hash INTEGER NOT NULL, size INTEGER NOT NULL,
            trailer INTEGER NOT NULL, allocated INTEGER NOT NULL, expires INTEGER NOT NULL);
        CREATE TABLE contents(id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, created INTEGER NOT NULL,
            key BLOB NOT NULL, metadata BLOB NOT NULL, value BLOB NOT NULL);
        CREATE TABLE recency(id INTEGER PRIMARY KEY, tick INTEGER NOT NULL);
        """,
        // 2. Groups.
        """
        ALTER TABLE entries ADD COLUMN tagged INTEGER NOT NULL DEFAULT 0;
        CREATE TABLE tags(tag BLOB NOT NULL, id INTEGER NOT NULL, PRIMARY KEY(tag, id)) WITHOUT ROWID;
        CREATE INDEX tags_by_id ON tags(id);
        """,
    ]

    static var version: Int { steps.count }

    enum Action: Equatable {
        /// Uses the index, which has the current format.
        case use
        /// Runs the steps from this version on.
        case migrate(from: Int)
        /// Refuses the index of a later version, which is neither read nor destroyed.
        case refuse(version: Int)
        /// Sets the index aside, because it is not a database of this library.
        case setAside
    }

    /// Returns the action for an index. `recordedVersion` is the second copy of the version, in the table `facts`. A
    /// later version has both copies; if they differ, one of them is damaged.
    static func action(application: Int64, version: Int, recordedVersion: Int?, isEmpty: Bool) -> Action {
        if isEmpty && application == 0 && version == 0 { return .migrate(from: 0) }
        guard application == Self.application, version > 0 else { return .setAside }
        if let recordedVersion, recordedVersion != version { return .setAside }
        // Indexes of versions 1 and 2 can lack the second copy.
        if version > Self.version { return recordedVersion == nil ? .setAside : .refuse(version: version) }
        return version == Self.version ? .use : .migrate(from: version)
    }

    static func migrate(
        _ database: SQLiteDatabase, from version: Int, to target: Int = steps.count
    ) throws(DiskCacheError) {
        try database.execute("BEGIN IMMEDIATE")
        do {
            for step in steps[version..<target] { try database.execute(step) }
            try database.execute("INSERT OR REPLACE INTO facts VALUES('version', \(target))")
            try database.execute("PRAGMA application_id = \(application)")
            try database.execute("PRAGMA user_version = \(target)")
            try database.execute("COMMIT")
        } catch {
            // The first failure is the one to report. An open transaction ends with the connection.
            try? database.execute("ROLLBACK")
            throw error
        }
    }
}
