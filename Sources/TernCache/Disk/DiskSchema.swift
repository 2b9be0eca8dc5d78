/// The index's format: how each version is made from the one before. An empty database is version 0, so that a new
/// index and an old one take the same way.
enum DiskSchema {
    /// "Tern": tells our index from any other SQLite database.
    static let application: Int64 = 0x5465_726E
    /// 16 KiB: small values fit a page, and one insert touches few.
    static let pageSize = 16_384

    static let steps: [String] = [
        // 1. Narrow rows that are read at opening; what they describe; the order of use, away from both.
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
        /// The format is ours.
        case use
        /// Run the steps from this one on.
        case migrate(from: Int)
        /// Written by a later version: neither read nor destroyed.
        case refuse(version: Int)
        /// Not our database.
        case setAside
    }

    /// Decides what to do with an index. `noted` is the second copy of the version, in the table `facts`. A later
    /// version has both copies; if they differ, one of them is damaged.
    static func action(application: Int64, version: Int, noted: Int?, isEmpty: Bool) -> Action {
        if isEmpty && application == 0 && version == 0 { return .migrate(from: 0) }
        guard application == Self.application, version > 0 else { return .setAside }
        if let noted, noted != version { return .setAside }
        // Indexes of versions 1 and 2 can lack the second copy.
        if version > Self.version { return noted == nil ? .setAside : .refuse(version: version) }
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
            // The first failure is the one to tell; a transaction left open ends with the connection.
            try? database.execute("ROLLBACK")
            throw error
        }
    }
}
