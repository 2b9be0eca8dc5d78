import CTernSQLite

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension DiskCacheError {
    /// The kind of a failure. Later versions can add kinds, so a switch needs a `default`.
    public struct Kind: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The name of the kind, suitable for a metric label.
        public let rawValue: String

        /// Creates a kind from its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The name of the kind.
        public var description: String { rawValue }

        /// The disk, or the user's quota, is full, and evicting entries did not help. Nothing of the call was stored.
        public static let noSpace = Kind(rawValue: "no-space")
        /// The folder may not be read or written, or its file system is read-only.
        public static let notPermitted = Kind(rawValue: "not-permitted")
        /// The folder was deleted or replaced while in use. The next call starts with an empty folder.
        public static let folderLost = Kind(rawValue: "folder-lost")
        /// Another process, or another cache of this process, is using the folder.
        public static let inUse = Kind(rawValue: "in-use")
        /// A later version of this library wrote the folder.
        public static let unsupportedFormat = Kind(rawValue: "unsupported-format")
        /// The values of the call do not fit under the limits, even without other entries. The old values of their keys
        /// are removed, because they are outdated. No other entry is evicted.
        public static let tooLarge = Kind(rawValue: "too-large")
        /// More bytes are queued than `DiskCache.Configuration.queuedByteLimit` allows. Use `insert`, or flush first.
        public static let queueFull = Kind(rawValue: "queue-full")
        /// The key, the metadata or a tag is longer than the format allows, there are too many tags, or the URL of the
        /// folder is not a file URL.
        public static let invalidArgument = Kind(rawValue: "invalid-argument")
        /// The index is damaged. A call that changes or finds entries rebuilds the cache's own index first, and throws
        /// this error only if that fails. `usage`, `close`, `Writer.write`, and a look-up in a read-only folder throw
        /// it directly.
        public static let corrupt = Kind(rawValue: "corrupt")
        /// Reading or writing failed for another reason (EIO, too many open files …). `code` is the system's.
        public static let inputOutput = Kind(rawValue: "input-output")
        /// The cache was closed.
        public static let closed = Kind(rawValue: "closed")
        /// The writer was committed or abandoned before.
        public static let writerFinished = Kind(rawValue: "writer-finished")
    }
}

/// A failed call of a `DiskCache`: what failed, on which file, and why.
///
/// Its texts name files of the cache's folder and never a key, a tag or a value, because keys are often URLs with
/// secrets.
public struct DiskCacheError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of the failure.
    public let kind: Kind
    /// A description of the failed operation, its file, and the cause.
    public let reason: String
    /// The system's error number (`errno`), or SQLite's extended result code; 0 if there is none.
    public let code: Int32

    init(_ kind: Kind, _ reason: String, code: Int32 = 0) {
        self.kind = kind
        self.reason = reason
        self.code = code
    }

    /// The kind and the reason, suitable for a log.
    public var description: String { "disk cache, \(kind): \(reason)" }
}

extension DiskCacheError: LocalizedError {
    /// The same text as ``description``, for `localizedDescription`.
    public var errorDescription: String? { description }
}

extension DiskCacheError {
    /// Returns the error of a failed system call on a path, with `errno` unless a code is given.
    static func system(_ call: String, _ path: String, code: Int32 = errno) -> DiskCacheError {
        let kind: Kind =
            switch code {
            case ENOSPC, EDQUOT, EFBIG: .noSpace
            case EACCES, EPERM, EROFS: .notPermitted
            case ENOENT, ENOTDIR, ESTALE: .folderLost
            default: .inputOutput
            }
        let text = unsafe String(cString: strerror(code))
        return DiskCacheError(kind, "could not \(call) \(path): \(text) (errno \(code))", code: code)
    }

    /// Returns the error of a failed SQLite call, from its extended result code.
    static func index(_ call: String, code: Int32, system: Int32 = 0) -> DiskCacheError {
        let kind: Kind =
            switch code & 0xFF {
            case SQLITE_FULL: .noSpace
            case SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH: .notPermitted
            // The cache's statements are correct, so an error that SQLite finds in one is an error of the tables.
            case SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_FORMAT, SQLITE_ERROR: .corrupt
            case SQLITE_BUSY, SQLITE_LOCKED: .inUse
            case SQLITE_IOERR where system == ENOSPC || system == EDQUOT: .noSpace
            case SQLITE_CANTOPEN where system == ENOSPC || system == EDQUOT: .noSpace
            case SQLITE_CANTOPEN where system == EACCES || system == EROFS: .notPermitted
            default: .inputOutput
            }
        let text = unsafe String(cString: sqlite3_errstr(code))
        return DiskCacheError(
            kind, "the cache index could not be accessed (\(call)): \(text) (SQLite \(code), errno \(system))",
            code: code)
    }

    /// Whether the file or folder of the call does not exist.
    var isAbsence: Bool { code == ENOENT && kind == .folderLost }

    /// Whether a link is in the place of a file, or of a folder above it. Links are not followed.
    var isOfLink: Bool { code == ELOOP && kind == .inputOutput || code == ENOTDIR && kind == .folderLost }
}
