import CTernSQLite
import Tern
import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The file of a queue: one connection and its statements. Confined to the thread of its queue.
///
/// A transaction is on the disk when it is committed, also after a loss of power. The folder's lock excludes other
/// owners.
final class QueueStore {
    typealias ID = TransferQueue.ItemID

    /// An item that is about to be stored.
    struct NewItem {
        var record: QueueRecord
        let options: Data
        let userData: Data
    }

    /// The contents of the file when it was opened.
    struct Contents {
        var records: [(id: ID, record: QueueRecord)] = []
        var dependencies: [String: Set<String>] = [:]
    }

    /// The connection and its statements.
    private struct Connection {
        let database: SQLiteDatabase
        let insertItem: SQLiteStatement
        let insertDetails: SQLiteStatement
        let updateState: SQLiteStatement
        let updatePlace: SQLiteStatement
        let replaceOutcome: SQLiteStatement
        let deletions: [SQLiteStatement]
        let selectOptions: SQLiteStatement
        let selectUserData: SQLiteStatement
        let selectOutcome: SQLiteStatement
        let insertDependency: SQLiteStatement
        let deleteDependencies: SQLiteStatement

        init(_ database: SQLiteDatabase) throws(DiskCacheError) {
            self.database = database
            insertItem = try database.prepare(
                """
                INSERT INTO items(intent, retryable, priority, position, unmetered, kind, ended, completed, total, url, host, path, \
                label, grp) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
                """)
            insertDetails = try database.prepare("INSERT INTO details VALUES(?1, ?2, ?3)")
            updateState = try database.prepare(
                "UPDATE items SET intent = ?2, retryable = ?3, ended = ?4, completed = ?5, total = ?6 WHERE id = ?1")
            updatePlace = try database.prepare("UPDATE items SET priority = ?2, position = ?3 WHERE id = ?1")
            replaceOutcome = try database.prepare("INSERT OR REPLACE INTO outcomes VALUES(?1, ?2)")
            deletions = [
                try database.prepare("DELETE FROM items WHERE id = ?1"),
                try database.prepare("DELETE FROM details WHERE id = ?1"),
                try database.prepare("DELETE FROM outcomes WHERE id = ?1"),
            ]
            selectOptions = try database.prepare("SELECT options FROM details WHERE id = ?1")
            selectUserData = try database.prepare("SELECT user FROM details WHERE id = ?1")
            selectOutcome = try database.prepare("SELECT outcome FROM outcomes WHERE id = ?1")
            insertDependency = try database.prepare("INSERT OR IGNORE INTO dependencies VALUES(?1, ?2)")
            deleteDependencies = try database.prepare("DELETE FROM dependencies WHERE grp = ?1")
        }
    }

    /// Nil after the end.
    private var connection: Connection?
    /// The descriptor of the lock.
    private var lock: Int32?
    /// The folder, held open from its check on, so that a user who may rename the folders above it cannot put another
    /// one in its place.
    private let folder: HeldFolder

    /// The greatest size of a stored result or failure, in bytes.
    private static let mostOutcomeBytes = 256 << 10

    // MARK: Opening

    /// Opens the file of a folder, and creates both if they are not there.
    init(
        folder: String, fault: SQLiteDatabase.Fault? = nil, steps: [String] = QueueSchema.steps
    ) throws(TransferQueueError) {
        let system = PosixFileSystem()
        let held = try Self.hold(folder, system)
        self.folder = held
        let lock = try Self.lock(held, named: folder, system)
        let path = FilePath.join(folder, "queue.sqlite")
        do {
            let place = held.databasePath("queue.sqlite") ?? path
            try Self.prepareFile(place, named: path, system)
            let database = try SQLiteDatabase(place, fault: fault)
            try QueueSchema.open(database, steps: steps)
            connection = try Connection(database)
        } catch {
            try? system.close(lock)  // The first failure is the one to report.
            throw TransferQueueError(error, path)
        }
        self.lock = lock
    }

    /// Opens a folder that no other user controls, and creates it if it is not there.
    private static func hold(_ folder: String, _ system: PosixFileSystem) throws(TransferQueueError) -> HeldFolder {
        do {
            try system.makeFolders(folder)
            let held = try HeldFolder(folder, keepsPermissions: true)
            if DiskCall.isReplaceableByOthers(held.databasePath(".") ?? folder) {
                let reason = "it belongs to another user, or all users may replace its files"
                throw FileFailure("use", folder, code: DiskCall.refused, reason: reason)
            }
            return held
        } catch {
            throw TransferQueueError(error, folder)
        }
    }

    deinit { close() }

    /// Closes the file, and then gives the folder free. The file and its log stay as they are.
    func close() {
        guard let lock else { return }
        // A log that stays is read by the next opening.
        try? connection?.database.checkpoint()
        // Before the lock: the next owner finds the file free.
        connection = nil
        try? PosixFileSystem().close(lock)
        self.lock = nil
    }

    /// Takes the lock of a folder.
    private static func lock(
        _ held: HeldFolder, named folder: String, _ system: PosixFileSystem
    ) throws(TransferQueueError) -> Int32 {
        let path = FilePath.join(folder, "lock")
        do throws(FileFailure) {
            return try openPrivate(held.databasePath("lock") ?? path, named: path, system)
        } catch {
            if error.code == DiskCall.busy {
                throw TransferQueueError(
                    .inUse, "another queue, of this process or another one, has the folder \(folder)")
            }
            throw TransferQueueError(error)
        }
    }

    /// Creates a file for its owner alone, or opens it if it is one that no other user can write to. An error names the
    /// path that the caller knows.
    private static func openPrivate(
        _ place: String, named path: String, _ system: PosixFileSystem
    ) throws(FileFailure) -> Int32 {
        do throws(FileFailure) {
            do throws(FileFailure) {
                return try system.open(place, .create)
            } catch {
                guard error.code == DiskCall.alreadyThere else { throw error }
            }
            return try system.open(place, .update)
        } catch {
            throw FileFailure(error.call, path, code: error.code, reason: error.reason)
        }
    }

    /// Creates the file for its owner alone, or checks that no other user can write to it. SQLite's own files get the
    /// same mode.
    private static func prepareFile(
        _ place: String, named path: String, _ system: PosixFileSystem
    ) throws(TransferQueueError) {
        do throws(FileFailure) {
            // Before SQLite opens the file: closing a descriptor ends the locks of a process.
            try system.close(openPrivate(place, named: path, system))
        } catch {
            throw TransferQueueError(error)
        }
        // SQLite reads the files beside it, too.
        for suffix in ["", "-wal", "-journal", "-shm"] where DiskCall.isWritableByOthers(place + suffix) {
            throw TransferQueueError(.notPermitted, "other users may write to \(path)\(suffix)")
        }
    }

    /// Reads and checks everything that is kept in memory.
    func load() throws(TransferQueueError) -> Contents {
        try call { connection in
            var contents = Contents()
            let items = try connection.database.prepare(
                """
                SELECT id, intent, retryable, priority, position, unmetered, kind, ended, completed, total, url, host, path, label, \
                grp FROM items ORDER BY id
                """)
            while try items.step() {
                guard let id = Optional(items.number(0)), id > 0, let record = Self.record(items),
                    record.problem == nil
                else {
                    throw Self.damage("item \(items.number(0)) has a value that Tern did not write")
                }
                contents.records.append((ID(rawValue: id), record))
            }
            let groups = try connection.database.prepare("SELECT grp, needs FROM dependencies")
            while try groups.step() {
                let names = [groups.text(0), groups.text(1)].compactMap(\.self)
                guard names.count == 2, names.allSatisfy({ QueueRecord.problem(ofName: $0) == nil }) else {
                    throw Self.damage("a dependency has a value that Tern did not write")
                }
                contents.dependencies[names[0], default: []].insert(names[1])
            }
            return contents
        }
    }

    private static func record(_ row: SQLiteStatement) -> QueueRecord? {
        guard let intent = QueueSchedule.Intent(rawValue: row.number(1)),
            let priority = Int(exactly: row.number(3)).flatMap({ Request.Priority(rawValue: $0) }),
            row.count(10) <= QueueRecord.mostURLBytes, row.count(12) <= QueueRecord.mostPathBytes,
            [11, 13, 14].allSatisfy({ row.count($0) <= QueueRecord.mostNameBytes }),
            let url = row.text(10), let host = row.text(11), let path = row.text(12), let label = row.text(13),
            let group = row.text(14), (0...1).contains(row.number(6))
        else { return nil }
        var record = QueueRecord(
            kind: row.number(6) == 0 ? .download : .upload, url: url, host: host, path: path,
            label: label.isEmpty ? nil : label, group: group.isEmpty ? nil : group)
        (record.priority, record.position, record.intent) = (priority, row.number(4), intent)
        (record.isRetryable, record.requiresUnmetered) = (row.number(2) != 0, row.number(5) != 0)
        (record.ended, record.completed) = (row.number(7), row.number(8))
        record.total = row.number(9) < 0 ? nil : row.number(9)
        return record
    }

    // MARK: Items

    /// Stores items, all or none. Returns their numbers.
    func insert(_ items: [NewItem]) throws(TransferQueueError) -> [ID] {
        try transaction { connection in
            var ids: [ID] = []
            for item in items {
                let record = item.record
                let texts = [record.url, record.host, record.path, record.label ?? "", record.group ?? ""]
                try connection.insertItem.run(
                    record.intent.rawValue, record.isRetryable ? 1 : 0, Int64(record.priority.rawValue),
                    record.position,
                    record.requiresUnmetered ? 1 : 0, record.kind == .download ? 0 : 1, record.ended, record.completed,
                    record.total ?? -1, blobs: texts.map { Data($0.utf8) })
                let id = connection.database.lastInsertedRow
                try connection.insertDetails.run(id, blobs: [item.options, item.userData])
                ids.append(ID(rawValue: id))
            }
            return ids
        }
    }

    /// Stores the states of items, and the outcomes of those that have one.
    func update(_ items: [(id: ID, record: QueueRecord, outcome: Data?)]) throws(TransferQueueError) {
        if items.isEmpty { return }
        try transaction { connection in
            for (id, record, outcome) in items {
                try connection.updateState.run(
                    id.rawValue, record.intent.rawValue, record.isRetryable ? 1 : 0, record.ended, record.completed,
                    record.total ?? -1)
                if let outcome { try connection.replaceOutcome.run(id.rawValue, blobs: [outcome]) }
            }
        }
    }

    /// Stores the places of items.
    func place(_ items: [(id: ID, record: QueueRecord)]) throws(TransferQueueError) {
        try transaction { connection in
            for (id, record) in items {
                try connection.updatePlace.run(id.rawValue, Int64(record.priority.rawValue), record.position)
            }
        }
    }

    func delete(_ ids: [ID]) throws(TransferQueueError) {
        if ids.isEmpty { return }
        try transaction { connection in
            for id in ids {
                for statement in connection.deletions { try statement.run(id.rawValue) }
            }
        }
    }

    // MARK: Groups

    func setDependencies(of group: String, on groups: Set<String>) throws(TransferQueueError) {
        try transaction { connection in
            try connection.deleteDependencies.run(blobs: [Data(group.utf8)])
            for other in groups { try connection.insertDependency.run(blobs: [Data(group.utf8), Data(other.utf8)]) }
        }
    }

    // MARK: Details

    /// Returns the options of an item; nil if they are not valid.
    func options(_ id: ID) throws(TransferQueueError) -> QueueOptions? {
        try value(\.selectOptions, id, limit: QueueOptions.limit).flatMap { QueueOptions($0) }
    }

    /// Returns the user data of an item; nil for none.
    func userData(_ id: ID) throws(TransferQueueError) -> Data? {
        let data = try value(\.selectUserData, id, limit: TransferQueue.Transfer.mostUserData)
        return data?.isEmpty == true ? nil : data
    }

    /// Returns the result or the failure of an item; nil for none.
    func outcome(_ id: ID) throws(TransferQueueError) -> Data? {
        try value(\.selectOutcome, id, limit: Self.mostOutcomeBytes)
    }

    private func value(
        _ statement: KeyPath<Connection, SQLiteStatement>, _ id: ID, limit: Int
    ) throws(TransferQueueError) -> Data? {
        try call { connection in
            let statement = connection[keyPath: statement]
            defer { statement.reset() }
            statement.bind(1, id.rawValue)
            guard try statement.step() else { return nil }
            guard statement.count(0) <= limit else { throw Self.damage("item \(id) has a value that is too large") }
            return statement.data(0)
        }
    }

    // MARK: Calls

    private func transaction<Value>(_ body: (Connection) throws -> Value) throws(TransferQueueError) -> Value {
        try call { connection in
            try connection.database.execute("BEGIN IMMEDIATE")
            do {
                let value = try body(connection)
                try connection.database.execute("COMMIT")
                return value
            } catch {
                // The first failure is the one to report. Some failures have already ended the transaction.
                if connection.database.isInTransaction { try? connection.database.execute("ROLLBACK") }
                throw error
            }
        }
    }

    private func call<Value>(_ body: (Connection) throws -> Value) throws(TransferQueueError) -> Value {
        guard let connection else { throw .closed }
        do {
            return try body(connection)
        } catch {
            throw TransferQueueError(error)
        }
    }

    private static func damage(_ reason: String) -> TransferQueueError { TransferQueueError(.damaged, reason) }
}
