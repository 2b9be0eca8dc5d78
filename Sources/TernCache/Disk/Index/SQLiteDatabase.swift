import CTernSQLite

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// A connection to a database. Used by one thread at a time, and closed when it is released.
@safe package final class SQLiteDatabase {
    /// Called before each step of a statement. Returns a result code to fail with, or nil to continue. For tests.
    package typealias Fault = @Sendable (_ sql: String) -> Int32?

    private let handle: OpaquePointer
    let fault: Fault?

    /// Opens or creates a database. With `immutable`, opens a database that nobody changes, and writes nothing. A path
    /// in a held folder (`DiskFileSystem.databasePath(_:)`) is used as it is, and no link is followed.
    ///
    /// The file is untrusted: functions and virtual tables that its schema names must be harmless ones.
    package init(_ path: String, immutable: Bool = false, fault: Fault? = nil) throws(DiskCacheError) {
        var opened: OpaquePointer?
        let name = immutable ? "file:\(Self.escaped(path))?immutable=1" : path
        var flags =
            immutable
            ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX
            : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
        let files = unsafe HeldFolder.holds(path) ? tern_sqlite_held_files() : nil
        if unsafe files != nil { flags |= SQLITE_OPEN_NOFOLLOW }
        let code = unsafe sqlite3_open_v2(name, &opened, flags, files)
        guard code == SQLITE_OK, let handle = unsafe opened else {
            let system = unsafe sqlite3_system_errno(opened)
            unsafe sqlite3_close_v2(opened)
            throw .index("open", code: code, system: system)
        }
        unsafe self.handle = handle
        self.fault = fault
        unsafe sqlite3_extended_result_codes(handle, 1)
        // SQLite would delete the log by its name when it closes, even if another index has that name by then.
        var persists: Int32 = 1
        unsafe sqlite3_file_control(handle, "main", SQLITE_FCNTL_PERSIST_WAL, &persists)
        try execute("PRAGMA trusted_schema = OFF")
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

    /// Runs statements whose results are ignored.
    package func execute(_ sql: String) throws(DiskCacheError) {
        if let code = fault?(sql) { throw .index(sql, code: code) }
        let code = unsafe sqlite3_exec(handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw failure(sql, code) }
    }

    package func prepare(_ sql: String) throws(DiskCacheError) -> SQLiteStatement {
        var statement: OpaquePointer?
        let code = unsafe sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        guard code == SQLITE_OK, let statement = unsafe statement else { throw failure(sql, code) }
        return unsafe SQLiteStatement(statement, sql: sql, database: self)
    }

    /// Returns the first number of a statement's first row; nil if it has no row.
    package func number(_ sql: String) throws(DiskCacheError) -> Int64? {
        let statement = try prepare(sql)
        return try statement.step() ? statement.number(0) : nil
    }

    /// Moves the log into the database and truncates it.
    package func checkpoint() throws(DiskCacheError) {
        if let code = fault?("checkpoint") { throw .index("checkpoint", code: code) }
        let code = unsafe sqlite3_wal_checkpoint_v2(handle, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
        guard code == SQLITE_OK else { throw failure("checkpoint", code) }
    }

    /// The number of the row that was inserted last.
    package var lastInsertedRow: Int64 { unsafe sqlite3_last_insert_rowid(handle) }

    /// Whether a transaction is open. Some failures end it.
    package var isInTransaction: Bool { unsafe sqlite3_get_autocommit(handle) == 0 }

    func failure(_ sql: String, _ code: Int32) -> DiskCacheError {
        // The beginning of the statement names the operation. It never contains a value.
        let extended = unsafe sqlite3_extended_errcode(handle)
        return .index(
            String(sql.prefix(48)), code: extended == 0 ? code : extended, system: unsafe sqlite3_system_errno(handle))
    }
}

/// A prepared statement that is used repeatedly.
@safe package final class SQLiteStatement {
    private let handle: OpaquePointer
    private let sql: String
    private let database: SQLiteDatabase

    init(_ handle: OpaquePointer, sql: String, database: SQLiteDatabase) {
        unsafe self.handle = handle
        self.sql = sql
        self.database = database
    }

    deinit { unsafe sqlite3_finalize(handle) }

    package func bind(_ index: Int32, _ value: Int64) { unsafe sqlite3_bind_int64(handle, index, value) }

    package func bind(_ index: Int32, _ value: Int) { bind(index, Int64(value)) }

    /// Binds bytes that the caller keeps alive until `reset`.
    private func bind(_ index: Int32, _ bytes: UnsafeRawBufferPointer) {
        unsafe tern_sqlite_bind_blob(handle, index, bytes.baseAddress, bytes.count)
    }

    /// Binds bytes that SQLite copies.
    package func bind(_ index: Int32, copying bytes: Data) throws(DiskCacheError) {
        let code = unsafe bytes.withUnsafeBytes { bytes in
            unsafe tern_sqlite_bind_copy(handle, index, bytes.baseAddress, bytes.count)
        }
        guard code == SQLITE_OK else { throw database.failure(sql, code) }
    }

    /// Returns true for a row, and false at the end.
    package func step() throws(DiskCacheError) -> Bool {
        if let code = database.fault?(sql) { throw .index(String(sql.prefix(48)), code: code) }
        switch unsafe sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code: throw database.failure(sql, code)
        }
    }

    package func reset() { unsafe sqlite3_reset(handle) }

    /// Binds the numbers from 1 on, runs to the end, and resets the statement.
    package func run(_ numbers: Int64...) throws(DiskCacheError) {
        for (index, number) in numbers.enumerated() { bind(Int32(index + 1), number) }
        defer { reset() }
        while try step() {}
    }

    /// Binds the numbers and then the blobs, runs to the end, and resets the statement. Copies no blob.
    package func run(_ numbers: Int64..., blobs: [Data]) throws(DiskCacheError) {
        for (index, number) in numbers.enumerated() { bind(Int32(index + 1), number) }
        try run(blobs[...], at: Int32(numbers.count + 1))
    }

    private func run(_ blobs: ArraySlice<Data>, at index: Int32) throws(DiskCacheError) {
        guard let blob = blobs.first else {
            defer { reset() }
            while try step() {}
            return
        }
        // Nested, so that all bytes stay in place until the statement has run.
        let result = unsafe blob.withUnsafeBytes { bytes in
            unsafe bind(index, bytes)
            return Result { () throws(DiskCacheError) in try run(blobs.dropFirst(), at: index + 1) }
        }
        try result.get()
    }

    package func number(_ column: Int32) -> Int64 { unsafe sqlite3_column_int64(handle, column) }

    package func data(_ column: Int32) -> Data {
        let count = unsafe Int(sqlite3_column_bytes(handle, column))
        guard count > 0, let bytes = unsafe sqlite3_column_blob(handle, column) else { return Data() }
        return unsafe Data(bytes: bytes, count: count)
    }

    /// Returns the number of bytes of a value, which needs no copy of it.
    package func count(_ column: Int32) -> Int { unsafe Int(sqlite3_column_bytes(handle, column)) }

    /// Returns the text of a value that was bound as UTF-8; nil for bytes that are none.
    package func text(_ column: Int32) -> String? {
        let count = unsafe Int(sqlite3_column_bytes(handle, column))
        guard count > 0, let bytes = unsafe sqlite3_column_blob(handle, column) else { return "" }
        return unsafe String(validating: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
    }
}
