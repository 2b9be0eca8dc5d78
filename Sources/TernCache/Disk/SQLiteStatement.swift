import CTernSQLite

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A prepared statement, used over and over.
@safe final class SQLiteStatement {
    private let handle: OpaquePointer
    private let sql: String
    private let database: SQLiteDatabase

    init(_ handle: OpaquePointer, _ sql: String, _ database: SQLiteDatabase) {
        unsafe self.handle = handle
        self.sql = sql
        self.database = database
    }

    deinit { unsafe sqlite3_finalize(handle) }

    func bind(_ index: Int32, _ value: Int64) { unsafe sqlite3_bind_int64(handle, index, value) }

    func bind(_ index: Int32, _ value: Int) { bind(index, Int64(value)) }

    /// Binds bytes that the caller keeps alive until `reset`.
    private func bind(_ index: Int32, _ bytes: UnsafeRawBufferPointer) {
        unsafe tern_sqlite_bind_blob(handle, index, bytes.baseAddress, bytes.count)
    }

    /// Binds bytes that SQLite copies.
    func bind(_ index: Int32, copying bytes: Data) throws(DiskCacheError) {
        let code = unsafe bytes.withUnsafeBytes { bytes in
            unsafe tern_sqlite_bind_copy(handle, index, bytes.baseAddress, bytes.count)
        }
        guard code == SQLITE_OK else { throw database.failure(sql, code) }
    }

    /// True for a row, false at the end.
    func step() throws(DiskCacheError) -> Bool {
        if let code = database.fault?(sql) { throw .index(String(sql.prefix(48)), code: code) }
        switch unsafe sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code: throw database.failure(sql, code)
        }
    }

    func reset() { unsafe sqlite3_reset(handle) }

    /// Binds the numbers from 1 on, runs to the end, and is ready for the next use.
    func run(_ numbers: Int64...) throws(DiskCacheError) {
        for (index, number) in numbers.enumerated() { bind(Int32(index + 1), number) }
        defer { reset() }
        while try step() {}
    }

    /// The same with blobs behind the numbers. No blob is copied.
    func run(_ numbers: Int64..., blobs: [Data]) throws(DiskCacheError) {
        for (index, number) in numbers.enumerated() { bind(Int32(index + 1), number) }
        try run(blobs[...], at: Int32(numbers.count + 1))
    }

    private func run(_ blobs: ArraySlice<Data>, at index: Int32) throws(DiskCacheError) {
        guard let blob = blobs.first else {
            defer { reset() }
            while try step() {}
            return
        }
        // Nested, so that every blob's bytes stand still until the statement has run.
        let result = unsafe blob.withUnsafeBytes { bytes -> Result<Void, DiskCacheError> in
            unsafe bind(index, bytes)
            do throws(DiskCacheError) {
                return .success(try run(blobs.dropFirst(), at: index + 1))
            } catch {
                return .failure(error)
            }
        }
        try result.get()
    }

    func number(_ column: Int32) -> Int64 { unsafe sqlite3_column_int64(handle, column) }

    func data(_ column: Int32) -> Data {
        let count = unsafe Int(sqlite3_column_bytes(handle, column))
        guard count > 0, let bytes = unsafe sqlite3_column_blob(handle, column) else { return Data() }
        return unsafe Data(bytes: bytes, count: count)
    }
}
