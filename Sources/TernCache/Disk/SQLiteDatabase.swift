import CTernSQLite

/// One connection. Used by one thread at a time; closed when it is gone.
@safe final class SQLiteDatabase {
    /// Asked before each step of a statement: a result code to fail with, nil to go on. For tests.
    typealias Fault = @Sendable (_ sql: String) -> Int32?

    private let handle: OpaquePointer
    let fault: Fault?

    /// Opens or makes a database; with `immutable`, opens one that nobody changes, and writes nothing at all.
    init(_ path: String, immutable: Bool = false, fault: Fault? = nil) throws(DiskCacheError) {
        var opened: OpaquePointer?
        let name = immutable ? "file:\(Self.escaped(path))?immutable=1" : path
        let flags =
            immutable
            ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX
            : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
        let code = unsafe sqlite3_open_v2(name, &opened, flags, nil)
        guard code == SQLITE_OK, let handle = unsafe opened else {
            let system = unsafe sqlite3_system_errno(opened)
            unsafe sqlite3_close_v2(opened)
            throw .index("opening", code: code, system: system)
        }
        unsafe self.handle = handle
        self.fault = fault
        unsafe sqlite3_extended_result_codes(handle, 1)
        // SQLite would delete the log by its name when it closes, also when another index has that name by then.
        var persists: Int32 = 1
        unsafe sqlite3_file_control(handle, "main", SQLITE_FCNTL_PERSIST_WAL, &persists)
    }

    deinit { unsafe sqlite3_close_v2(handle) }

    private static func escaped(_ path: String) -> String {
        path.utf8.map { byte in
            switch byte {
            case UInt8(ascii: "?"), UInt8(ascii: "#"), UInt8(ascii: "%"):
                "%" + String(byte, radix: 16, uppercase: true)
            default: String(decoding: [byte], as: UTF8.self)
            }
        }.joined()
    }

    /// Runs statements that return nothing of interest.
    func execute(_ sql: String) throws(DiskCacheError) {
        if let code = fault?(sql) { throw .index(sql, code: code) }
        let code = unsafe sqlite3_exec(handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw failure(sql, code) }
    }

    func prepare(_ sql: String) throws(DiskCacheError) -> SQLiteStatement {
        var statement: OpaquePointer?
        let code = unsafe sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        guard code == SQLITE_OK, let statement = unsafe statement else { throw failure(sql, code) }
        return unsafe SQLiteStatement(statement, sql, self)
    }

    /// The number that a statement returns first; nil if it returns no row.
    func number(_ sql: String) throws(DiskCacheError) -> Int64? {
        let statement = try prepare(sql)
        return try statement.step() ? statement.number(0) : nil
    }

    /// Moves the log into the database and cuts it to nothing.
    func checkpoint() throws(DiskCacheError) {
        if let code = fault?("checkpoint") { throw .index("checkpoint", code: code) }
        let code = unsafe sqlite3_wal_checkpoint_v2(handle, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
        guard code == SQLITE_OK else { throw failure("checkpoint", code) }
    }

    /// Whether a transaction is open: some failures end it by themselves.
    var isInTransaction: Bool { unsafe sqlite3_get_autocommit(handle) == 0 }

    func failure(_ sql: String, _ code: Int32) -> DiskCacheError {
        // The statement's first word tells what was done; it never holds a value.
        let extended = unsafe sqlite3_extended_errcode(handle)
        return .index(
            String(sql.prefix(48)), code: extended == 0 ? code : extended, system: unsafe sqlite3_system_errno(handle))
    }
}
