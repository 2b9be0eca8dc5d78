import CTernSQLite
import Tern
import TernCache

/// The format of a queue's file: the steps from each version to the next. An empty file has version 0, so that a new
/// file and an old one take the same steps.
enum QueueSchema {
    /// "TrnQ": distinguishes the file from any other SQLite database.
    static let application: Int64 = 0x5472_6E51

    static let steps: [String] = [
        // 1. Narrow rows that are read at opening; the options and the user data; the ends; the order of groups.
        """
        CREATE TABLE items(id INTEGER PRIMARY KEY AUTOINCREMENT, intent INTEGER NOT NULL, retryable INTEGER NOT NULL,
            priority INTEGER NOT NULL, position INTEGER NOT NULL, unmetered INTEGER NOT NULL, kind INTEGER NOT NULL,
            ended INTEGER NOT NULL, completed INTEGER NOT NULL, total INTEGER NOT NULL, url BLOB NOT NULL, host BLOB NOT NULL,
            path BLOB NOT NULL, label BLOB NOT NULL, grp BLOB NOT NULL);
        CREATE TABLE details(id INTEGER PRIMARY KEY, options BLOB NOT NULL, user BLOB NOT NULL);
        CREATE TABLE outcomes(id INTEGER PRIMARY KEY, outcome BLOB NOT NULL);
        CREATE TABLE dependencies(grp BLOB NOT NULL, needs BLOB NOT NULL, PRIMARY KEY(grp, needs)) WITHOUT ROWID;
        """
    ]

    enum Action: Equatable {
        /// Uses the file, which has the current format.
        case use
        /// Runs the steps from this version on.
        case migrate(from: Int)
        /// Refuses the file of a later version, which is neither changed nor destroyed.
        case refuseLater
        /// Refuses a file that Tern did not write.
        case refuseOther
    }

    /// Returns the action for a file.
    static func action(application: Int64, version: Int64, isEmpty: Bool, latest: Int = steps.count) -> Action {
        if isEmpty, application == 0, version == 0 { return .migrate(from: 0) }
        guard application == Self.application, version > 0 else { return .refuseOther }
        if version > Int64(latest) { return .refuseLater }
        return version == Int64(latest) ? .use : .migrate(from: Int(version))
    }

    /// Sets the connection up, and creates or migrates the tables as needed.
    static func open(_ database: SQLiteDatabase, steps: [String]) throws {
        // The folder's lock excludes others, so no shared memory file is needed. The schema of a foreign file runs no
        // code.
        try database.execute(
            "PRAGMA locking_mode = EXCLUSIVE; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON")
        let application = try database.number("PRAGMA application_id") ?? 0
        let version = try database.number("PRAGMA user_version") ?? 0
        let isEmpty = try database.number("SELECT count(*) FROM sqlite_master") == 0
        let action = action(application: application, version: version, isEmpty: isEmpty, latest: steps.count)
        switch action {
        case .refuseLater:
            throw TransferQueueError(
                .unsupportedVersion,
                "the queue has version \(version), which a later version of Tern wrote; this one knows \(steps.count)")
        case .refuseOther:
            throw TransferQueueError(.damaged, "the file of the queue is the database of another program")
        case .use, .migrate:
            break
        }
        if try database.number("SELECT count(*) FROM sqlite_master WHERE type NOT IN ('table', 'index')") != 0 {
            throw TransferQueueError(.damaged, "the file of the queue has views or triggers, which Tern does not write")
        }
        try database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY")
        if case .migrate(let from) = action { try migrate(database, from: from, steps: steps) }
    }

    private static func migrate(_ database: SQLiteDatabase, from version: Int, steps: [String]) throws(DiskCacheError) {
        try database.execute("BEGIN IMMEDIATE")
        do throws(DiskCacheError) {
            for step in steps[version...] { try database.execute(step) }
            try database.execute("PRAGMA application_id = \(application)")
            try database.execute("PRAGMA user_version = \(steps.count)")
            try database.execute("COMMIT")
        } catch {
            // The first failure is the one to report. An open transaction ends with the connection.
            try? database.execute("ROLLBACK")
            throw error
        }
    }
}

extension TransferQueueError {
    static let closed = TransferQueueError(.closed, "the queue was closed")

    /// Returns the error of a failed call on the file of a queue.
    init(_ error: any Error, _ path: String = "") {
        switch error {
        case let error as TransferQueueError: self = error
        case let error as DiskCacheError: self.init(error)
        case let error as FileFailure: self.init(error)
        default: self.init(.inputOutput, "\(path): \(error)")
        }
    }

    init(_ failure: FileFailure) {
        let kind: Kind =
            switch failure.code {
            case DiskCall.noSpace, DiskCall.noQuota: .noSpace
            case DiskCall.refused, DiskCall.notPermitted, DiskCall.readOnly: .notPermitted
            default: .inputOutput
            }
        self.init(kind, "\(failure)")
    }

    init(_ error: DiskCacheError) {
        let kind: Kind =
            switch error.kind {
            case .noSpace: .noSpace
            case .notPermitted: .notPermitted
            case .corrupt: .damaged
            case .inUse: .inUse
            default: .inputOutput
            }
        guard error.code != 0, let text = unsafe sqlite3_errstr(error.code) else {
            self.init(kind, error.reason)
            return
        }
        self.init(
            kind, "the file of the queue could not be accessed: \(unsafe String(cString: text)) (SQLite \(error.code))")
    }
}
