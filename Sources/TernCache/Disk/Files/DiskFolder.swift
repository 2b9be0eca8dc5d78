#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The paths of a cache's files.
struct DiskFolder: Sendable, Equatable {
    let path: String

    var index: String { path + "/index.sqlite" }
    var log: String { path + "/index.sqlite-wal" }
    var setAside: String { path + "/index.sqlite.set-aside" }
    var lock: String { path + "/lock" }
    /// Exists from a clean close to the next opening.
    var clean: String { path + "/clean" }
    var values: String { path + "/values" }
    var temporary: String { path + "/temporary" }
    var trash: String { path + "/trash" }

    static let shardCount: Int64 = 64

    /// Returns `values/2a/000000000000012a`: the number of the entry, in one of 64 folders.
    func value(_ id: Int64) -> String {
        "\(shard(Int(id & (Self.shardCount - 1))))/\(Self.hexadecimal(UInt64(id), 16))"
    }

    func shard(_ number: Int) -> String { "\(values)/\(Self.hexadecimal(UInt64(number), 2))" }

    /// Returns the number in a value file's name; nil if the cache did not create the name.
    static func id(_ name: String) -> Int64? {
        guard name.utf8.count == 16, let id = Int64(name, radix: 16), DiskIndex.numbers.contains(id),
            hexadecimal(UInt64(id), 16) == name
        else { return nil }
        return id
    }

    /// Throws if a folder or a file of the index is a link, or belongs to another user, who may have put it there while
    /// the folder was open to all.
    ///
    /// Links that appear later are not followed: the folder is held open (`HeldFolder`).
    func refuseLinks(_ files: any DiskFileSystem) throws(DiskCacheError) {
        for path in [values, temporary, trash] + (0..<Int(Self.shardCount)).map({ shard($0) }) {
            guard let status = try files.status(of: path) else { continue }
            guard status.isFolder else {
                throw DiskCacheError(.notPermitted, "\(path) must be a folder, and is a link or a file")
            }
            if status.isForeign { throw Self.foreign(path) }
        }
        for path in [index, log, index + "-journal"] {
            guard let status = try files.status(of: path) else { continue }
            if status.isLink { throw Self.link(path) }
            if status.isForeign { throw Self.foreign(path) }
        }
    }

    private static func foreign(_ path: String) -> DiskCacheError {
        DiskCacheError(.notPermitted, "\(path) belongs to another user")
    }

    static func link(_ path: String) -> DiskCacheError {
        DiskCacheError(.notPermitted, "\(path) must be a file, and is a link")
    }

    private static func hexadecimal(_ number: UInt64, _ digits: Int) -> String {
        let text = String(number, radix: 16)
        return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
    }
}

/// Ensures that a folder has one owner, by a lock that the system releases when the owner ends, however it ends.
final class DiskFolderLock: Sendable {
    private let descriptor: Int32

    init(_ path: String, _ files: any DiskFileSystem) throws(DiskCacheError) {
        let descriptor = try files.openLock(path)
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let code = errno
            close(descriptor)
            guard code == EWOULDBLOCK else { throw .system("lock", path, code: code) }
            throw DiskCacheError(.inUse, "another cache, in this process or another, is using \(path)", code: code)
        }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }
}

/// A read-only folder: the closed folder of another cache, which is never written.
final class DiskReadOnlyFolder {
    let folder: DiskFolder
    let tables: DiskTables

    /// The part that look-ups need, on any thread.
    struct Entries: Sendable {
        let folder: DiskFolder
        let hasher: DiskKeyHasher
        let index: DiskIndex
    }

    let entries: Entries

    init(_ path: String, _ files: any DiskFileSystem) throws(DiskCacheError) {
        folder = DiskFolder(path: path)
        // An index with a log was not closed. The content of the log would be missing or incomplete.
        if let log = try files.status(of: folder.log), log.size > 0 {
            throw DiskCacheError(.inUse, "\(path) is in use, or was not closed")
        }
        guard try files.status(of: folder.index) != nil else {
            throw DiskCacheError(.folderLost, "\(path) does not contain a disk cache")
        }
        let database = try SQLiteDatabase(folder.index, immutable: true)
        let application = try database.number("PRAGMA application_id") ?? 0
        let version = Int(try database.number("PRAGMA user_version") ?? 0)
        guard application == DiskSchema.application, version == DiskSchema.version else {
            throw DiskCacheError(.unsupportedFormat, "\(path): the index has format \(version)")
        }
        tables = try DiskTables(database)
        let seed = UInt64(bitPattern: try database.number("SELECT value FROM facts WHERE name = 'seed'") ?? 0)
        var index = DiskIndex()
        let rows = try database.prepare("SELECT id, hash, size, trailer, allocated, expires FROM entries")
        while try rows.step() {
            let location = DiskIndex.Location(
                id: rows.number(0), size: Int(rows.number(2)), trailer: Int(rows.number(3)),
                allocated: Int(rows.number(4)), expires: rows.number(5))
            // The folder is never changed, so a damaged row stays, and its entry is a miss.
            guard location.problem == nil else { continue }
            index.insert(UInt64(bitPattern: rows.number(1)), location)
        }
        entries = Entries(folder: folder, hasher: DiskKeyHasher(seed: seed), index: index)
    }
}
