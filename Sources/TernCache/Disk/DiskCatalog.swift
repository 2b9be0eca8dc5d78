/// A read-only folder: the closed folder of another cache, never written to.
final class DiskCatalog {
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
        // An index with a log beside it was not closed: what is in the log would be missing, or half there.
        if let log = try files.status(of: folder.log), log.size > 0 {
            throw DiskCacheError(.inUse, "\(path) is in use, or was not closed")
        }
        guard try files.status(of: folder.index) != nil else {
            throw DiskCacheError(.folderLost, "\(path) holds no disk cache")
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
            index.insert(UInt64(bitPattern: rows.number(1)), location)
        }
        entries = Entries(folder: folder, hasher: DiskKeyHasher(seed: seed), index: index)
    }
}
