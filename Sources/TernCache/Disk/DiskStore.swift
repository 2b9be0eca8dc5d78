import TernConcurrency

/// The folder and its index, as the cache's thread sees them: performs what the pure parts decide. Not Sendable; the
/// actor owns it.
package final class DiskStore {
    /// What tests put between the cache and the system.
    package struct Seams: Sendable {
        package var files: any DiskFileSystem = PosixDiskFiles()
        /// Asked before each step of SQLite: a result code to fail with, nil to go on.
        package var fault: (@Sendable (_ sql: String) -> Int32?)?

        package init() {}
    }

    let folder: DiskFolder
    let files: any DiskFileSystem
    let fault: SQLiteDatabase.Fault?
    let shared: DiskShared
    let hub: DiskEventHub
    let configuration: DiskCache.Configuration
    let budget: DiskBudget
    var lock: DiskFolderLock?
    var tables: DiskTables
    /// Which file the index is: another one under its name means that the folder was deleted or replaced.
    var identity: UInt64 = 0
    /// Bytes of unfinished files.
    var temporaryBytes = 0
    var temporaryNumber = 0
    var trashBytes = 0
    var setAsideBytes = 0
    var canShrink = true
    /// Rows of entries that are gone from memory and from the files: deleted with the next transaction.
    var deadRows: [DiskIndex.Location] = []

    /// Opens the folder, makes it if it is not there, and mends what the last owner left behind.
    static func open(
        _ folder: DiskFolder, _ configuration: DiskCache.Configuration, _ shared: DiskShared, _ hub: DiskEventHub,
        _ seams: Seams, setAside given: DiskCacheError? = nil
    ) throws(DiskCacheError) -> DiskStore {
        try seams.files.makeFolder(folder.path)
        try seams.files.keepPrivate(folder.path)
        let lock = try DiskFolderLock(folder.lock)
        try seams.files.makeFolder(folder.values)
        try seams.files.makeFolder(folder.temporary)
        let isClean = try seams.files.status(of: folder.clean) != nil
        if isClean { try seams.files.remove(folder.clean) }
        var reason = given
        if given != nil { try setAside(folder, seams.files) }
        let tables = try openTables(folder, seams, &reason)
        let store = DiskStore(folder, configuration, shared, hub, seams, lock, tables)
        do {
            try store.load()
        } catch {
            guard error.kind == .corrupt, given == nil else { throw error }
            reason = error
            try setAside(folder, seams.files)
            store.tables = try openTables(folder, seams, &reason)
            try store.load()
        }
        try store.settle(isClean: isClean, setAside: reason)
        return store
    }

    static func openTables(
        _ folder: DiskFolder, _ seams: Seams, _ reason: inout DiskCacheError?
    ) throws(DiskCacheError) -> DiskTables {
        for _ in 0..<2 {
            // SQLite would create the file readable for all users, and gives its log the mode of the index.
            try seams.files.makePrivate(folder.index)
            for path in [folder.log, folder.index + "-shm", folder.index + "-journal", folder.setAside, folder.lock] {
                try seams.files.keepPrivate(path)
            }
            switch try DiskTables.open(folder.index, fault: seams.fault) {
            case .ready(let tables, let isNew):
                // Values without an index: it was deleted, and is made from them like one that was set aside.
                if isNew, reason == nil { reason = DiskCacheError(.corrupt, noIndex) }
                return tables
            case .setAside(let error):
                reason = error
                try setAside(folder, seams.files)
            }
        }
        throw reason ?? DiskCacheError(.corrupt, "the index cannot be made")
    }

    /// Why an index is rebuilt that nobody set aside.
    static let noIndex = "there was no index"

    /// A damaged or foreign index is kept for whoever wants to look at it, until its space is needed.
    static func setAside(_ folder: DiskFolder, _ files: any DiskFileSystem) throws(DiskCacheError) {
        try files.remove(folder.log)
        try files.remove(folder.index + "-journal")
        if try files.status(of: folder.index) != nil { try files.rename(folder.index, to: folder.setAside) }
    }

    private init(
        _ folder: DiskFolder, _ configuration: DiskCache.Configuration, _ shared: DiskShared, _ hub: DiskEventHub,
        _ seams: Seams, _ lock: DiskFolderLock, _ tables: DiskTables
    ) {
        self.folder = folder
        files = seams.files
        fault = seams.fault
        self.shared = shared
        self.hub = hub
        self.configuration = configuration
        budget = DiskBudget(configuration)
        self.lock = lock
        self.tables = tables
    }

    var now: Int64 { configuration.now().milliseconds }

    /// What the files take now, and what the limits count.
    func usage() throws(DiskCacheError) -> DiskBudget.Usage {
        let (bytes, count) = shared.state.withLock { ($0.index.fileBytes, $0.index.count) }
        return DiskBudget.Usage(
            files: bytes + temporaryBytes, databasePages: try tables.pages,
            freePages: canShrink ? try tables.freePages : 0,
            setAside: setAsideBytes, trash: trashBytes, count: count,
            diskFree: try files.freeBytes(at: folder.path))
    }

    func publicUsage() throws(DiskCacheError) -> DiskCache.Usage {
        let staged = shared.state.withLock { $0.stagedBytes }
        let usage = try usage()
        let log = try files.status(of: folder.log)?.allocated ?? 0
        let index = usage.databasePages * DiskSchema.pageSize + log
        let fileBytes = usage.files + usage.trash + usage.setAside
        return DiskCache.Usage(
            count: usage.count, bytes: fileBytes + index, fileBytes: fileBytes, indexBytes: index, stagedBytes: staged)
    }

    /// Ends in good order: the next opening need not look for what was left behind.
    func close() throws(DiskCacheError) {
        defer { lock = nil }
        try flush()
        try tables.database.checkpoint()
        files.close(try files.create(folder.clean))
    }
}
