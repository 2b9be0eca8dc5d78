import TernConcurrency

// The store makes room before it uses it, step by step, so that the limits hold at every instant.
extension DiskStore {
    /// Throws if the folder, or the index in it, is not the one that was opened. The system would continue to write to
    /// files that can no longer be found.
    func checkFolder() throws(DiskCacheError) {
        guard files.isFolderInPlace, try files.status(of: folder.index)?.identity == identity else {
            throw DiskCacheError(.folderLost, "\(folder.path) was deleted or replaced while in use")
        }
    }

    /// Makes room for items and for the log of their transaction.
    func prepareRoom(for items: [DiskItem], removals: Int) throws(DiskCacheError) {
        var (request, log) = spaceRequest(for: items, removals: removals)
        // An eviction can remove an entry that an item was to replace. The item then increases the number of entries.
        while try makeRoom(request) { (request, log) = spaceRequest(for: items, removals: removals) }
        let grown = try files.status(of: folder.log)?.size ?? 0
        if grown + log > budget.logLimit { try tables.database.checkpoint() }
    }

    private func spaceRequest(for items: [DiskItem], removals: Int) -> (request: DiskBudget.SpaceRequest, log: Int) {
        var request = DiskBudget.SpaceRequest(stored: items.count)
        var replaced = removals + obsoleteRows.count
        for item in items {
            request.rowBytes += item.rowBytes
            request.count += 1
            if shared.state.withLock({ $0.index.location(item.key.hash) }) != nil {
                replaced += 1
                request.count -= 1
            }
            if case .bytes(let value) = item.content, !item.isInline {
                request.fileBytes +=
                    (value.count + DiskTrailer.headCount + item.key.bytes.count + item.metadata.count
                        + item.tags.reduce(64) { $0 + $1.utf8.count + 2 } + 4_095) & ~4_095
            }
        }
        let log = 2 * request.rowBytes + replaced * DiskBudget.removalCost + 6 * DiskSchema.pageSize
        request.logBytes = max(0, log - budget.logLimit)
        return (request, log)
    }

    /// Evicts entries until the request fits, and returns whether any were evicted. With `mindingDisk`, the free space
    /// of the disk counts besides the cache's own limits.
    @discardableResult
    func makeRoom(_ request: DiskBudget.SpaceRequest, mindingDisk: Bool = true) throws(DiskCacheError) -> Bool {
        var hasEvicted = false
        while true {
            var usage = try usage()
            if !mindingDisk { usage.diskFree = nil }
            switch budget.action(usage, request) {
            case .fits:
                return hasEvicted
            case .dropSetAside:
                try removeSetAside()
            case .emptyTrash:
                try emptyTrash(limit: 256)
            case .shrink:
                try shrink()
            case .evict(let bytes, let count):
                try evict(bytes: bytes, count: count)
                hasEvicted = true
            case .refuse(let isDiskFull):
                throw isDiskFull
                    ? DiskCacheError(.noSpace, "less than \(budget.minimumFree) bytes would be left free on the disk")
                    : DiskCacheError(.tooLarge, Self.tooLarge(request))
            }
        }
    }

    private static func tooLarge(_ request: DiskBudget.SpaceRequest) -> String {
        "\(request.total) bytes in \(request.stored) entries exceed the limits, even without other entries"
    }

    func removeSetAside() throws(DiskCacheError) {
        try files.remove(folder.setAside)
        setAsideBytes = 0
    }

    /// Returns one step of free pages to the file system.
    func shrink() throws(DiskCacheError) {
        let pages = try tables.pages
        try tables.database.checkpoint()
        try tables.vacuum(budget.shrinkPages)
        try tables.database.checkpoint()
        // An index that was created without this ability keeps its free pages for its own use.
        if try tables.pages >= pages { canShrink = false }
    }

    // MARK: Eviction

    /// Removes the least recently used entries. Memory comes first, so that no reader finds them; files come before
    /// rows, because a kill in between leaves rows without files, which opening repairs.
    func evict(bytes: Int, count: Int) throws(DiskCacheError) {
        let victims = shared.state.withLock { state in
            let victims = state.index.victims(bytes: bytes, count: count, limit: 64)
            for victim in victims { state.index.remove(victim.hash) }
            return victims
        }
        try delete(victims.map(\.location))
        if !victims.isEmpty { broadcast.send(.evicted(count: victims.count)) }
    }

    /// Frees disk space for a transaction that failed because the disk was full: first the log, then the least recently
    /// used entries. Returns false if trying again cannot help: the disk already has the space, or the log frees none
    /// and evicting every entry would not free enough.
    ///
    /// - Parameter bytes: The number of bytes that must be free.
    func freeSpace(_ bytes: Int) -> Bool {
        do throws(DiskCacheError) {
            let before = try files.freeBytes(at: folder.path)
            guard before < bytes else { return false }
            try? tables.database.checkpoint()  // Needs space itself if the log holds pages that the index lacks.
            var free = try files.freeBytes(at: folder.path)
            // If evicting the whole cache is not enough, nothing is evicted.
            guard bytes - free <= shared.state.withLock({ $0.index.fileBytes }) else { return free > before }
            while free < bytes, shared.state.withLock({ $0.index.count }) > 0 {
                do throws(DiskCacheError) {
                    try evict(bytes: bytes - free, count: 1)
                } catch {
                    // The files are removed. Removing their rows needs space, and happens with the next transaction.
                    guard error.kind == .noSpace else { throw error }
                }
                free = try files.freeBytes(at: folder.path)
            }
        } catch {
            broadcast.send(.backgroundFailure(error))
        }
        return true
    }

    /// Removes expired entries, at most `limit`.
    func sweep(limit: Int) throws(DiskCacheError) {
        let now = now
        let expired = shared.state.withLock { state in
            let expired = state.index.expired(now: now, limit: limit)
            for entry in expired { state.index.remove(entry.hash) }
            return expired
        }
        guard !expired.isEmpty else { return }
        try delete(expired.map(\.location))
        broadcast.send(.expired(count: expired.count))
    }

    // MARK: Deletion

    /// Deletes the files and rows of entries that are no longer in memory. If all of them are files, their rows wait
    /// for the next transaction, because their bytes are already free.
    func delete(_ locations: [DiskIndex.Location]) throws(DiskCacheError) {
        for location in locations where !location.isInline { removeFile(location) }
        obsoleteRows += locations
        if obsoleteRows.count >= 256 || locations.contains(where: { $0.isInline }) { try deleteObsoleteRows() }
    }

    func deleteObsoleteRows() throws(DiskCacheError) {
        while !obsoleteRows.isEmpty {
            let step = obsoleteRows.prefix(budget.removalStep)
            let log = try files.status(of: folder.log)?.size ?? 0
            if log + step.count * DiskBudget.removalCost > budget.logLimit { try tables.database.checkpoint() }
            try tables.transaction { () throws(DiskCacheError) in
                for row in step { try tables.delete(row) }
            }
            obsoleteRows.removeFirst(step.count)
        }
    }

    /// Removes an entry without a file from memory. The next transaction removes its row.
    func removeMissing(_ hash: UInt64, id: Int64) {
        let location = shared.state.withLock { state -> DiskIndex.Location? in
            state.index.isHeld(hash, id: id) ? state.index.remove(hash) : nil
        }
        if let location { obsoleteRows.append(location) }
    }

    // MARK: The trash

    /// Measures the files that a `removeAll` of an earlier owner left.
    func measureTrash() throws(DiskCacheError) {
        trashBytes = 0
        for folder in try trashFolders() {
            for name in try files.names(in: folder) {
                trashBytes += try files.status(of: "\(folder)/\(name)")?.allocated ?? 0
            }
        }
    }

    /// Deletes up to `limit` files of the trash. Returns whether any are left.
    @discardableResult
    func emptyTrash(limit: Int) throws(DiskCacheError) -> Bool {
        var rest = limit
        for folder in try trashFolders() {
            for name in try files.names(in: folder) {
                guard rest > 0 else { return true }
                let path = "\(folder)/\(name)"
                let bytes = try files.status(of: path)?.allocated ?? 0
                try files.remove(path)
                trashBytes = max(0, trashBytes - bytes)
                rest -= 1
            }
            try files.removeFolder(folder)
        }
        for name in try files.names(in: self.folder.trash) { try files.removeFolder("\(self.folder.trash)/\(name)") }
        try files.removeFolder(self.folder.trash)
        trashBytes = 0
        return false
    }

    private func trashFolders() throws(DiskCacheError) -> [String] {
        var found: [String] = []
        for name in try files.names(in: folder.trash) {
            let path = "\(folder.trash)/\(name)"
            found += try files.names(in: path).map { "\(path)/\($0)" }
        }
        return found
    }
}
