import CTernSQLite

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension DiskCacheError {
    /// A failed system call; `errno` unless a code is given.
    static func system(_ call: String, _ path: String, code: Int32 = errno) -> DiskCacheError {
        let kind: Kind =
            switch code {
            case ENOSPC, EDQUOT, EFBIG: .noSpace
            case EACCES, EPERM, EROFS: .notPermitted
            case ENOENT, ENOTDIR, ESTALE: .folderLost
            default: .inputOutput
            }
        let text = unsafe String(cString: strerror(code))
        return DiskCacheError(kind, "\(call) \(path): \(text) (errno \(code))", code: code)
    }

    /// A failed call of SQLite, by its extended result code.
    static func index(_ call: String, code: Int32, system: Int32 = 0) -> DiskCacheError {
        let kind: Kind =
            switch code & 0xFF {
            case SQLITE_FULL: .noSpace
            case SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH: .notPermitted
            // Our statements are right: what SQLite finds wrong with one is wrong with the tables.
            case SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_FORMAT, SQLITE_ERROR: .corrupt
            case SQLITE_BUSY, SQLITE_LOCKED: .inUse
            case SQLITE_IOERR where system == ENOSPC || system == EDQUOT: .noSpace
            case SQLITE_CANTOPEN where system == ENOSPC || system == EDQUOT: .noSpace
            case SQLITE_CANTOPEN where system == EACCES || system == EROFS: .notPermitted
            default: .inputOutput
            }
        let text = unsafe String(cString: sqlite3_errstr(code))
        return DiskCacheError(kind, "\(call) of the index: \(text) (SQLite \(code), errno \(system))", code: code)
    }

    /// Whether the file or folder of the call is not there.
    var isAbsence: Bool { code == ENOENT && kind == .folderLost }
}
