import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// MARK: - Transactions

extension DiskStore {
    /// A change in memory after its transaction is committed.
    private enum Change: Sendable {
        case put(UInt64, DiskIndex.Location)
        case remove(UInt64)
    }

    /// Commits the commands together. If that fails, commits each alone, so that a command that cannot succeed fails
    /// alone.
    ///
    /// If the disk is full, the least recently used entries are evicted, and the transaction is tried again. If values
    /// are too large for the cache, the entries that they were to replace are removed, and no others.
    func commit(_ commands: [DiskCommandQueue.Command]) -> [Result<Void, DiskCacheError>] {
        do throws(DiskCacheError) {
            try commitMakingSpace(commands)
            return commands.map { _ in .success(()) }
        } catch {
            guard commands.count > 1, error.kind != .corrupt, error.kind != .folderLost else {
                let failure = removalFailure(after: error, of: commands) ?? error
                return commands.map { _ in .failure(failure) }
            }
            return commands.flatMap { commit([$0]) }
        }
    }

    /// Removes the entries that items too large for the cache were to replace, because their values are outdated.
    /// Returns the failure of the removal; nil if there was none.
    private func removalFailure(
        after error: DiskCacheError, of commands: [DiskCommandQueue.Command]
    ) -> DiskCacheError? {
        guard error.kind == .tooLarge else { return nil }
        for case .insert(let items) in commands.map(\.request) {
            for item in items where current(item.key.hash) != nil {
                let removal = DiskCommandQueue.Command(request: .remove(item.key), sequence: 0, queuedBytes: 0) { _ in }
                do throws(DiskCacheError) { try commitMakingSpace([removal]) } catch { return error }
            }
        }
        return nil
    }

    private func commitMakingSpace(_ commands: [DiskCommandQueue.Command]) throws(DiskCacheError) {
        var space = Self.space(for: commands)
        for _ in 0..<8 {
            do throws(DiskCacheError) {
                return try commitTogether(commands)
            } catch {
                guard error.kind == .noSpace, freeSpace(space) else { throw error }
            }
            space *= 2
        }
        try commitTogether(commands)
    }

    /// Returns the bytes that values and rows take, and a log of the changed pages.
    private static func space(for commands: [DiskCommandQueue.Command]) -> Int {
        var bytes = commands.count * DiskBudget.removalCost + 6 * DiskSchema.pageSize
        for case .insert(let items) in commands.map(\.request) {
            for item in items {
                bytes += 2 * item.rowBytes
                // The file of a writer is already on the disk.
                if case .bytes = item.content, !item.isInline { bytes += item.size + 8_191 }
            }
        }
        return bytes
    }

    private func commitTogether(_ commands: [DiskCommandQueue.Command]) throws(DiskCacheError) {
        try checkFolder()
        try sweep(limit: 32)
        let items = commands.flatMap { command -> [DiskItem] in
            if case .insert(let items) = command.request { items } else { [] }
        }
        try prepareRoom(for: items, removals: commands.count)
        var written: [(item: DiskItem, location: DiskIndex.Location)] = []
        var replaced: [DiskIndex.Location] = []
        var changes: [Change] = []
        do {
            for item in items { written.append((item, try write(item))) }
            // A file can take more space than its length suggests.
            try makeRoom(DiskBudget.SpaceRequest(rowBytes: items.reduce(0) { $0 + $1.rowBytes }))
            try tables.transaction { () throws(DiskCacheError) in
                for row in obsoleteRows { try tables.delete(row) }
                for (item, location) in written {
                    if let old = current(item.key.hash) { replaced.append(old) }
                    try tables.insert(item, hash: item.key.hash, location: location)
                    changes.append(.put(item.key.hash, location))
                }
                for command in commands {
                    guard let (hash, location) = try removal(command.request) else { continue }
                    replaced.append(location)
                    changes.append(.remove(hash))
                }
                for old in replaced { try tables.delete(old) }
            }
        } catch {
            for (item, location) in written where !location.isInline {
                if case .file(let path, _, _) = item.content {
                    try? files.rename(folder.value(location.id), to: path)  // The writer removes it.
                } else {
                    temporaryBytes -= location.allocated
                    // The first failure is the one to report. The next opening removes an orphan.
                    try? files.remove(folder.value(location.id))
                }
            }
            throw error
        }
        obsoleteRows.removeAll()
        publish(changes)
        for (_, location) in written where !location.isInline { temporaryBytes -= location.allocated }
        for old in replaced where !old.isInline { removeFile(old) }
    }

    private func current(_ hash: UInt64) -> DiskIndex.Location? {
        shared.state.withLock { $0.index.location(hash) }
    }

    /// Returns the entry that a request removes; nil if it does not exist or belongs to another key.
    private func removal(
        _ request: DiskCommandQueue.Request
    ) throws(DiskCacheError) -> (hash: UInt64, location: DiskIndex.Location)? {
        switch request {
        case .remove(let key): return current(key.hash).map { (key.hash, $0) }
        case .discard(let hash, let id): return current(hash).flatMap { $0.id == id ? (hash, $0) : nil }
        default: return nil
        }
    }

    private func publish(_ changes: [Change]) {
        shared.state.withLock { state in
            for change in changes {
                switch change {
                case .put(let hash, let location): state.index.insert(hash, location)
                case .remove(let hash): state.index.remove(hash)
                }
            }
        }
    }
}

// MARK: - Value files

extension DiskStore {
    /// Moves a large value to its place. Its row follows; a kill in between leaves a file without a row.
    private func write(_ item: DiskItem) throws(DiskCacheError) -> DiskIndex.Location {
        let id = shared.state.withLock { $0.index.nextNumber() }
        var location = DiskIndex.Location(
            id: id, size: item.size, trailer: 0, allocated: item.rowBytes, expires: item.expires,
            isTagged: !item.tags.isEmpty)
        if item.isInline { return location }
        switch item.content {
        case .bytes(let value):
            let trailer = item.trailer.encoded()
            let path = temporaryPath()
            let descriptor = try files.create(path)
            defer { files.close(descriptor) }
            do {
                try write(value, to: descriptor, path: path)
                try write(trailer, to: descriptor, path: path)
                location.allocated = try files.status(descriptor, path).allocated
                try place(path, id)
            } catch {
                try? files.remove(path)  // The first failure is the one to report. Opening empties this folder.
                throw error
            }
            location.trailer = trailer.count
            temporaryBytes += location.allocated
        case .file(let path, let trailer, let allocated):
            location.trailer = trailer
            location.allocated = allocated
            try place(path, id)
        }
        return location
    }

    /// Moves a finished file to its place in one step, and creates the shard's folder for its first file.
    private func place(_ path: String, _ id: Int64) throws(DiskCacheError) {
        do {
            try files.rename(path, to: folder.value(id))
        } catch {
            guard error.isAbsence else { throw error }
            try files.makeFolder(folder.shard(Int(id & (DiskFolder.shardCount - 1))))
            try files.rename(path, to: folder.value(id))
        }
    }

    func write(_ bytes: Data, to descriptor: Int32, path: String) throws(DiskCacheError) {
        let result = unsafe bytes.withUnsafeBytes { buffer in
            Result { () throws(DiskCacheError) in unsafe try files.write(buffer, to: descriptor, path: path) }
        }
        try result.get()
    }

    func temporaryPath() -> String {
        temporaryNumber += 1
        return "\(folder.temporary)/\(temporaryNumber)"
    }

    func removeFile(_ location: DiskIndex.Location) {
        do throws(DiskCacheError) {
            try files.remove(folder.value(location.id))
        } catch {
            broadcast.send(.backgroundFailure(error))
        }
    }
}

// MARK: - Requests that concern many entries

extension DiskStore {
    func perform(_ request: DiskCommandQueue.Request) throws(DiskCacheError) {
        try checkFolder()
        switch request {
        case .insert, .remove, .discard: return
        case .removeAll: try removeAll()
        case .removeTag(let tag): try removeAll(tagged: tag)
        case .trim(let bytes): try trim(to: bytes)
        case .sweep:
            let now = now
            while shared.state.withLock({ $0.index.hasExpired(now) }) {
                try sweep(limit: 64)
            }
            try deleteObsoleteRows()
        case .flush: try flush()
        }
    }

    /// Removes all entries in one transaction and one rename. The files are deleted afterwards, in steps.
    private func removeAll() throws(DiskCacheError) {
        do throws(DiskCacheError) {
            try emptyIndex()
        } catch {
            // On a full disk, the index cannot change before there is room, and deleting the files makes room. A kill
            // in between leaves entries without a file, which are misses.
            guard error.kind == .noSpace, try deleteFiles() else { throw error }
            try emptyIndex()
        }
        obsoleteRows.removeAll()
        let bytes = shared.state.withLock { state in
            defer { state.index = DiskIndex(after: state.index) }
            return state.index.fileBytes
        }
        guard bytes > 0 else { return }
        try files.makeFolder(folder.trash)
        trashBytes += bytes
        try files.rename(folder.values, to: "\(folder.trash)/\(UInt64.random(in: 0 ... .max))")
        try files.makeFolder(folder.values)
    }

    private func emptyIndex() throws(DiskCacheError) {
        let log = try files.status(of: folder.log)?.size ?? 0
        if log > budget.logLimit / 2 { try tables.database.checkpoint() }
        try tables.transaction { () throws(DiskCacheError) in try tables.deleteAll() }
    }

    /// Deletes the files of all values, and those in the trash. Returns false if there were none.
    private func deleteFiles() throws(DiskCacheError) -> Bool {
        let paths = try valueFiles().map(\.path)
        guard !paths.isEmpty || trashBytes > 0 else { return false }
        for path in paths { try files.remove(path) }
        try emptyTrash(limit: .max)
        return true
    }

    private func removeAll(tagged tag: Data) throws(DiskCacheError) {
        try deleteObsoleteRows()
        while true {
            let rows = try tables.tagged(tag, after: 0, limit: 64)
            guard !rows.isEmpty else { return }
            var known: [DiskIndex.Location] = []
            for row in rows {
                let location = shared.state.withLock { state in
                    state.index.isHeld(row.hash, id: row.id) ? state.index.remove(row.hash) : nil
                }
                // A row without an entry in memory is deleted too. Otherwise, the loop would not end.
                known.append(
                    location
                        ?? DiskIndex.Location(
                            id: row.id, size: 0, trailer: 0, allocated: 0, expires: 0, isTagged: true, hasSavedUse: true
                        ))
            }
            try delete(known)
            try deleteObsoleteRows()
        }
    }

    private func trim(to bytes: Int) throws(DiskCacheError) {
        while true {
            let usage = try usage()
            let used =
                usage.files + usage.unfinished + usage.trash + usage.setAside + usage.databasePages
                * DiskSchema.pageSize
            let excess = used - max(0, bytes)
            if excess <= 0 { return }
            if usage.setAside > 0 {
                try removeSetAside()
            } else if usage.trash > 0 {
                try emptyTrash(limit: 256)
            } else if usage.freePages >= min(budget.shrinkPages, excess / DiskSchema.pageSize + 1) {
                try shrink()
            } else if usage.count > 0 {
                try evict(bytes: excess, count: 0)
            } else if usage.freePages > 0 {
                try shrink()
            } else {
                return
            }
        }
    }

    /// Writes the order of use, and deletes obsolete rows. Evicts no entries when the disk is short of space, because
    /// the order takes less space than an entry, and reads write it, too. The cache's own limits still apply.
    func flush() throws(DiskCacheError) {
        try checkFolder()
        try deleteObsoleteRows()
        var uses = shared.state.withLock { $0.index.takeUnsavedUses() }[...]
        while !uses.isEmpty {
            let step = uses.prefix(2_048)
            try makeRoom(DiskBudget.SpaceRequest(rowBytes: 32 * step.count), mindingDisk: false)
            let log = try files.status(of: folder.log)?.size ?? 0
            if log > budget.logLimit / 2 { try tables.database.checkpoint() }
            try tables.transaction { () throws(DiskCacheError) in
                for use in step { try tables.saveUse(use.id, use.useNumber) }
            }
            uses = uses.dropFirst(step.count)
        }
    }
}
