import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The folder and its index, on the cache's thread. Performs the actions that the pure parts decide. Not Sendable; the
/// actor owns it.
package final class DiskStore {
    /// The system calls that tests replace.
    package struct Dependencies: Sendable {
        package var files: any DiskFileSystem = PosixDiskFiles()
        /// Called before each step of SQLite. Returns a result code to fail with, or nil to continue.
        package var fault: (@Sendable (_ sql: String) -> Int32?)?

        package init() {}
    }

    /// The parts of a cache that its store needs.
    struct Context {
        let folder: DiskFolder
        let configuration: DiskCache.Configuration
        let shared: DiskSharedState
        let broadcast: EventBroadcast<DiskCache.Event>
        let dependencies: Dependencies
    }

    let folder: DiskFolder
    let files: any DiskFileSystem
    let shared: DiskSharedState
    let broadcast: EventBroadcast<DiskCache.Event>
    let configuration: DiskCache.Configuration
    let budget: DiskBudget
    var lock: DiskFolderLock?
    var tables: DiskTables
    /// The identity of the index file. Another file under its name means that the folder was deleted or replaced.
    var identity: UInt64 = 0
    /// The bytes of unfinished files.
    var temporaryBytes = 0
    var temporaryNumber = 0
    var trashBytes = 0
    var setAsideBytes = 0
    var canShrink = true
    /// The rows of entries that are no longer in memory or in files. The next transaction deletes them.
    var obsoleteRows: [DiskIndex.Location] = []

    /// Opens the folder, creates it if it does not exist, and repairs what the last owner left behind.
    /// - Parameter given: The damage for which the existing index is set aside first.
    static func open(_ context: Context, setAside given: DiskCacheError? = nil) throws(DiskCacheError) -> DiskStore {
        let folder = context.folder
        var dependencies = context.dependencies
        try dependencies.files.makeFolder(folder.path)
        // From here on, no other folder can take its place.
        let files = try dependencies.files.holding(folder.path)
        dependencies.files = files
        let lock = try DiskFolderLock(folder.lock, files)
        try files.makeFolder(folder.values)
        try files.makeFolder(folder.temporary)
        try folder.refuseLinks(files)
        let isClean = try files.status(of: folder.clean) != nil
        if isClean { try files.remove(folder.clean) }
        var reason = given
        if given != nil { try setAside(folder, files) }
        let tables = try openTables(folder, dependencies, reason: &reason)
        let store = DiskStore(context, files: files, lock: lock, tables: tables)
        do {
            try store.load()
        } catch {
            guard error.kind == .corrupt, given == nil else { throw error }
            reason = error
            try setAside(folder, files)
            store.tables = try openTables(folder, dependencies, reason: &reason)
            try store.load()
        }
        try store.finishOpening(isClean: isClean, setAside: reason)
        return store
    }

    private static func openTables(
        _ folder: DiskFolder, _ dependencies: Dependencies, reason: inout DiskCacheError?
    ) throws(DiskCacheError) -> DiskTables {
        for _ in 0..<2 {
            // SQLite would create the file readable for all users, and gives its log the mode of the index.
            try dependencies.files.makePrivate(folder.index)
            for path in [folder.log, folder.index + "-shm", folder.index + "-journal", folder.setAside, folder.lock] {
                try dependencies.files.keepPrivate(path)
            }
            switch try DiskTables.open(dependencies.files.databasePath(folder.index), fault: dependencies.fault) {
            case .ready(let tables, let isNew):
                // Values without an index: the index was deleted, and is rebuilt like one that was set aside.
                if isNew, reason == nil { reason = DiskCacheError(.corrupt, noIndex) }
                return tables
            case .setAside(let error):
                reason = error
                try setAside(folder, dependencies.files)
            }
        }
        throw reason ?? DiskCacheError(.corrupt, "the index cannot be created")
    }

    /// The reason for rebuilding an index that was not set aside.
    static let noIndex = "there was no index"

    /// Renames a damaged or foreign index, which can then be examined until its space is needed.
    private static func setAside(_ folder: DiskFolder, _ files: any DiskFileSystem) throws(DiskCacheError) {
        try files.remove(folder.log)
        try files.remove(folder.index + "-journal")
        if try files.status(of: folder.index) != nil { try files.rename(folder.index, to: folder.setAside) }
    }

    private init(_ context: Context, files: any DiskFileSystem, lock: DiskFolderLock, tables: DiskTables) {
        folder = context.folder
        self.files = files
        shared = context.shared
        broadcast = context.broadcast
        configuration = context.configuration
        budget = DiskBudget(context.configuration)
        self.lock = lock
        self.tables = tables
    }

    var now: Int64 { configuration.now().milliseconds }

    /// Returns the current disk usage, as the limits count it.
    func usage() throws(DiskCacheError) -> DiskBudget.Usage {
        let (bytes, count) = shared.state.withLock { ($0.index.fileBytes, $0.index.count) }
        let pages = try tables.pages
        return DiskBudget.Usage(
            files: bytes, unfinished: temporaryBytes, databasePages: pages,
            freePages: canShrink ? try tables.freePages : 0,
            minimumPages: canShrink ? min(pages, DiskSchema.emptyPages) : pages, setAside: setAsideBytes,
            trash: trashBytes, count: count,
            diskFree: try files.freeBytes(at: folder.path))
    }

    func publicUsage() throws(DiskCacheError) -> DiskCache.Usage {
        let queued = shared.state.withLock { $0.queuedBytes }
        let usage = try usage()
        let log = try files.status(of: folder.log)?.allocated ?? 0
        let index = usage.databasePages * DiskSchema.pageSize + log
        let fileBytes = usage.files + usage.unfinished + usage.trash + usage.setAside
        return DiskCache.Usage(
            count: usage.count, bytes: fileBytes + index, fileBytes: fileBytes, indexBytes: index, queuedBytes: queued)
    }

    /// Closes the folder cleanly, so that the next opening need not scan it.
    func close() throws(DiskCacheError) {
        defer { lock = nil }
        try flush()
        try tables.database.checkpoint()
        files.close(try files.create(folder.clean))
    }
}

// MARK: - Loading and recovery

extension DiskStore {
    /// Reads the index into memory, in the order of use.
    private func load() throws(DiskCacheError) {
        let seed = try loadSeed()
        // Both tables are read in the order of the numbers, side by side.
        let uses = try tables.database.prepare("SELECT id, tick FROM recency ORDER BY id")
        var hasUse = try uses.step()
        var isInOrder = true
        var rows: [(useNumber: Int64, hash: UInt64, location: DiskIndex.Location)] = []
        let entries = try tables.database.prepare(
            "SELECT id, hash, size, trailer, allocated, expires, tagged FROM entries ORDER BY id")
        while try entries.step() {
            let id = entries.number(0)
            while hasUse, uses.number(0) < id { hasUse = try uses.step() }
            let useNumber = hasUse && uses.number(0) == id ? uses.number(1) : nil
            if let useNumber, !DiskIndex.numbers.contains(useNumber) {
                throw DiskCacheError(.corrupt, "the index is damaged: the number of a use is \(useNumber)")
            }
            let location = DiskIndex.Location(
                id: id, size: Int(entries.number(2)), trailer: Int(entries.number(3)),
                allocated: Int(entries.number(4)), expires: entries.number(5), isTagged: entries.number(6) != 0,
                hasSavedUse: useNumber != nil)
            if let problem = location.problem {
                throw DiskCacheError(.corrupt, "the index is damaged: \(problem)")
            }
            let place = max(id, useNumber ?? 0)
            if let last = rows.last, last.useNumber > place { isInOrder = false }
            rows.append((place, UInt64(bitPattern: entries.number(1)), location))
        }
        if !isInOrder { rows.sort { $0.useNumber < $1.useNumber } }
        var index = DiskIndex()
        index.reserve(rows.count)
        for row in rows {
            // The cache never writes two rows of one hash. In a damaged index, the later entry counts.
            if let other = index.location(row.hash) {
                obsoleteRows.append(other.id < row.location.id ? other : row.location)
                if other.id > row.location.id { continue }
            }
            index.insert(row.hash, row.location, useNumber: row.useNumber)
            index.reserveNumbers(upTo: max(row.useNumber, row.location.id))
        }
        shared.setSeed(seed)
        let loaded = index
        shared.state.withLock { state in
            state.index = loaded
            state.files = files
        }
    }

    private func loadSeed() throws(DiskCacheError) -> UInt64 {
        if let seed = try tables.database.number("SELECT value FROM facts WHERE name = 'seed'") {
            return UInt64(bitPattern: seed)
        }
        // Commands that wait while a lost or damaged index is created anew have the hashes of the present seed.
        let seed = shared.presentSeed ?? UInt64.random(in: 1 ... .max)
        try tables.database.prepare("INSERT INTO facts VALUES('seed', ?1)").run(Int64(bitPattern: seed))
        return seed
    }

    /// Makes the files and the index consistent after opening.
    private func finishOpening(isClean: Bool, setAside reason: DiskCacheError?) throws(DiskCacheError) {
        identity = try files.status(of: folder.index)?.identity ?? 0
        for name in try files.names(in: folder.temporary) { try files.remove("\(folder.temporary)/\(name)") }
        setAsideBytes = try files.status(of: folder.setAside)?.allocated ?? 0
        try measureTrash()
        if let reason {
            let count = try rebuild()
            // A new folder is not an event.
            if count > 0 || reason.reason != Self.noIndex {
                broadcast.send(.indexSetAside(reason: reason.reason, rebuiltEntries: count))
            }
        } else if !isClean {
            let (orphans, missing) = try reconcile()
            if orphans + missing > 0 { broadcast.send(.recovered(orphanFiles: orphans, missingFiles: missing)) }
        }
        do throws(DiskCacheError) {
            try makeRoom(DiskBudget.SpaceRequest(), mindingDisk: false)
            try deleteObsoleteRows()
        } catch {
            // A full disk can still be read. The next transaction removes the rows.
            guard error.kind == .noSpace else { throw error }
            broadcast.send(.backgroundFailure(error))
        }
    }

    /// Removes files without a row (their insert was not acknowledged, or their removal was interrupted), and rows
    /// without a file (their eviction was interrupted). Compares names only, and opens no file.
    private func reconcile() throws(DiskCacheError) -> (orphans: Int, missing: Int) {
        let index = shared.state.withLock { $0.index }
        var expected = index.files
        var orphans = 0
        for (path, id) in try valueFiles() where id.flatMap({ expected.removeValue(forKey: $0) }) == nil {
            try files.remove(path)
            // A folder in a file's place stays, and is none of the cache's.
            if try files.status(of: path) == nil { orphans += 1 }
        }
        for (id, hash) in expected { removeMissing(hash, id: id) }
        return (orphans, expected.count)
    }

    /// Recreates the rows from the files' trailers, and returns their number. Of two files of one key, the later one
    /// stays.
    private func rebuild() throws(DiskCacheError) -> Int {
        var found: [(trailer: DiskTrailer, hash: UInt64, location: DiskIndex.Location)] = []
        let hasher = shared.hasher
        for (path, id) in try valueFiles() {
            guard let id, let (trailer, location) = try readTrailer(of: path, id: id) else {
                try files.remove(path)
                continue
            }
            found.append((trailer, hasher.key(trailer.key).hash, location))
        }
        found.sort { $0.location.id < $1.location.id }
        var latest: [UInt64: Int] = [:]
        for (number, entry) in found.enumerated() {
            if let older = latest.updateValue(number, forKey: entry.hash) {
                try files.remove(folder.value(found[older].location.id))
            }
        }
        let kept = latest.values.sorted()
        for start in stride(from: 0, to: kept.count, by: 1_000) {
            let step = kept[start..<min(start + 1_000, kept.count)]
            try tables.transaction { () throws(DiskCacheError) in
                for number in step {
                    let entry = found[number]
                    try tables.insert(entry.location, hash: entry.hash, tags: entry.trailer.tags)
                }
            }
            try tables.database.checkpoint()
        }
        let entries = kept.map { (found[$0].hash, found[$0].location) }
        shared.state.withLock { state in
            for (hash, location) in entries {
                state.index.insert(hash, location)
                state.index.reserveNumbers(upTo: location.id)
            }
        }
        return kept.count
    }

    /// Reads the trailer of a value file; nil if it is damaged.
    private func readTrailer(
        of path: String, id: Int64
    ) throws(DiskCacheError) -> (DiskTrailer, DiskIndex.Location)? {
        let descriptor: Int32
        do throws(DiskCacheError) {
            descriptor = try files.open(path)
        } catch {
            if error.isOfLink { return nil }
            throw error
        }
        defer { files.close(descriptor) }
        let status = try files.status(descriptor, path)
        func lastBytes(_ count: Int) throws(DiskCacheError) -> Data? {
            try read(descriptor, count: count, at: status.size - count, path: path)
        }
        // The index that would have named it is gone, and anybody can have put it there.
        if status.isForeign { return nil }
        guard let footer = try lastBytes(DiskTrailer.footerCount), let count = DiskTrailer.count(footer: footer),
            let trailer = try lastBytes(count).flatMap({ DiskTrailer($0) }), trailer.size == status.size - count
        else { return nil }
        let location = DiskIndex.Location(
            id: id, size: trailer.size, trailer: count, allocated: status.allocated, expires: trailer.expires,
            isTagged: !trailer.tags.isEmpty)
        return location.problem == nil ? (trailer, location) : nil
    }

    private func read(
        _ descriptor: Int32, count: Int, at offset: Int, path: String
    ) throws(DiskCacheError) -> Data? {
        guard offset >= 0 else { return nil }
        var data = Data(count: count)
        let result = unsafe data.withUnsafeMutableBytes { buffer in
            Result { () throws(DiskCacheError) in
                unsafe try files.read(descriptor, into: buffer, at: offset, path: path)
            }
        }
        return try result.get() == count ? data : nil
    }

    /// Returns every file in the folders of values with its number, which is nil if the name is not that of a value.
    func valueFiles() throws(DiskCacheError) -> [(path: String, id: Int64?)] {
        var found: [(path: String, id: Int64?)] = []
        for number in 0..<Int(DiskFolder.shardCount) {
            let shard = folder.shard(number)
            for name in try files.names(in: shard) {
                let id = DiskFolder.id(name).flatMap { Int($0 & (DiskFolder.shardCount - 1)) == number ? $0 : nil }
                found.append(("\(shard)/\(name)", id))
            }
        }
        return found
    }
}
