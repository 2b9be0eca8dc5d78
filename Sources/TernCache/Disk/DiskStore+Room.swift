import TernConcurrency

/// Room is made before it is taken, step by step, so that the limits hold at every instant.
extension DiskStore {
    /// Fails if the folder, or the index in it, is not the one that was opened: the system would go on writing to files
    /// that nobody can find any more.
    func checkFolder() throws(DiskCacheError) {
        guard try files.status(of: folder.index)?.identity == identity else {
            throw DiskCacheError(.folderLost, "\(folder.path) was deleted or replaced while in use")
        }
    }

    /// Room for items and for the log of their transaction.
    func prepareRoom(_ items: [DiskItem], removals: Int) throws(DiskCacheError) {
        var need = DiskBudget.Need()
        var replaced = removals + deadRows.count
        for item in items {
            need.rowBytes += item.rowBytes
            need.count += 1
            if shared.state.withLock({ $0.index.location(item.key.hash) }) != nil {
                replaced += 1
                need.count -= 1
            }
            if case .bytes(let value) = item.content, !item.isInline {
                need.fileBytes +=
                    (value.count + DiskTrailer.headCount + item.key.bytes.count + item.metadata.count
                        + item.tags.reduce(64) { $0 + $1.utf8.count + 2 } + 4_095) & ~4_095
            }
        }
        let log = 2 * need.rowBytes + replaced * DiskBudget.removalCost + 6 * DiskSchema.pageSize
        need.logBytes = max(0, log - budget.logLimit)
        try makeRoom(need)
        let grown = try files.status(of: folder.log)?.size ?? 0
        if grown + log > budget.logLimit { try tables.database.checkpoint() }
    }

    /// Evicts entries until the need fits. With `mindingDisk`, the free space of the disk counts besides the cache's
    /// own limits.
    func makeRoom(_ need: DiskBudget.Need, mindingDisk: Bool = true) throws(DiskCacheError) {
        while true {
            var usage = try usage()
            if !mindingDisk { usage.diskFree = nil }
            switch budget.action(usage, need) {
            case .fits:
                return
            case .dropSetAside:
                try files.remove(folder.setAside)
                setAsideBytes = 0
            case .emptyTrash:
                try emptyTrash(limit: 256)
            case .shrink:
                try shrink()
            case .evict(let bytes, let count):
                try evict(bytes: bytes, count: count)
            case .refuse(let isDiskFull):
                throw isDiskFull
                    ? DiskCacheError(.noSpace, "less than \(budget.minimumFree) bytes would be left free on the disk")
                    : DiskCacheError(
                        .tooLarge, "\(need.total) bytes do not fit under the limits, even with nothing else stored")
            }
        }
    }

    /// Gives freed pages back, a step at a time, down to the file's length.
    func shrink() throws(DiskCacheError) {
        let pages = try tables.pages
        try tables.database.checkpoint()
        try tables.vacuum(budget.shrinkPages)
        try tables.database.checkpoint()
        // An index that was made without this ability keeps its freed pages, for its own use.
        if try tables.pages >= pages { canShrink = false }
    }

    /// Removes the least recently used entries: from memory first, so that no reader is sent to what goes; files before
    /// rows, so that a kill between leaves rows that opening finds without files.
    func evict(bytes: Int, count: Int) throws(DiskCacheError) {
        let victims = shared.state.withLock { state in
            let victims = state.index.victims(bytes: bytes, count: count, limit: 64)
            for victim in victims { state.index.remove(victim.hash) }
            return victims
        }
        try drop(victims.map(\.location))
        if !victims.isEmpty { hub.send(.evicted(count: victims.count)) }
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
            try? tables.database.checkpoint()  // Needs space itself, if the log holds what the index does not.
            var free = try files.freeBytes(at: folder.path)
            // Evicting the whole cache would not be enough, so nothing is evicted.
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
            hub.send(.backgroundFailure(error))
        }
        return true
    }

    /// Removes entries that are expired, at most `limit`.
    func sweep(limit: Int) throws(DiskCacheError) {
        let now = now
        let expired = shared.state.withLock { state in
            let expired = state.index.expired(now: now, limit: limit)
            for entry in expired { state.index.remove(entry.hash) }
            return expired
        }
        guard !expired.isEmpty else { return }
        try drop(expired.map(\.location))
        hub.send(.expired(count: expired.count))
    }

    /// Deletes files and rows of entries that are gone from memory. Rows of files alone wait for the next transaction:
    /// their bytes are free already.
    func drop(_ locations: [DiskIndex.Location]) throws(DiskCacheError) {
        for location in locations where !location.isInline { removeFile(location) }
        deadRows += locations
        if deadRows.count >= 256 || locations.contains(where: { $0.isInline }) { try deleteDeadRows() }
    }

    func deleteDeadRows() throws(DiskCacheError) {
        while !deadRows.isEmpty {
            let step = deadRows.prefix(budget.removalStep)
            let log = try files.status(of: folder.log)?.size ?? 0
            if log + step.count * DiskBudget.removalCost > budget.logLimit { try tables.database.checkpoint() }
            try tables.transaction { () throws(DiskCacheError) in
                for row in step { try tables.delete(row) }
            }
            deadRows.removeFirst(step.count)
        }
    }

    /// Takes an entry whose file is missing out of memory; its row goes with the next transaction.
    func forget(_ hash: UInt64, id: Int64) {
        let location = shared.state.withLock { state -> DiskIndex.Location? in
            state.index.isHeld(hash, id: id) ? state.index.remove(hash) : nil
        }
        if let location { deadRows.append(location) }
    }
}
