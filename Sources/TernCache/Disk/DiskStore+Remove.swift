import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What concerns many entries at once.
extension DiskStore {
    func perform(_ request: DiskMailbox.Request) throws(DiskCacheError) {
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
            try deleteDeadRows()
        case .flush: try flush()
        }
    }

    /// One transaction, and one rename: the files are deleted afterwards, in steps.
    private func removeAll() throws(DiskCacheError) {
        do throws(DiskCacheError) {
            try emptyIndex()
        } catch {
            // On a full disk the index cannot be told before there is room, and the files are what makes it. A kill in
            // between leaves entries without a file, which are misses.
            guard error.kind == .noSpace, try deleteFiles() else { throw error }
            try emptyIndex()
        }
        deadRows.removeAll()
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

    /// Deletes the files of all values, and those in the trash. False if there was none.
    private func deleteFiles() throws(DiskCacheError) -> Bool {
        let paths = try valueFiles().map(\.path)
        guard !paths.isEmpty || trashBytes > 0 else { return false }
        for path in paths { try files.remove(path) }
        try emptyTrash(limit: .max)
        return true
    }

    private func removeAll(tagged tag: Data) throws(DiskCacheError) {
        try deleteDeadRows()
        while true {
            let rows = try tables.tagged(tag, after: 0, limit: 64)
            guard !rows.isEmpty else { return }
            var known: [DiskIndex.Location] = []
            for row in rows {
                let location = shared.state.withLock { state in
                    state.index.isHeld(row.hash, id: row.id) ? state.index.remove(row.hash) : nil
                }
                // A row that memory does not know is deleted all the same, or this would not end.
                known.append(
                    location
                        ?? DiskIndex.Location(
                            id: row.id, size: 0, trailer: 0, allocated: 0, expires: 0, isTagged: true, isRanked: true))
            }
            try drop(known)
            try deleteDeadRows()
        }
    }

    private func trim(to bytes: Int) throws(DiskCacheError) {
        while true {
            let usage = try usage()
            let used = usage.files + usage.trash + usage.setAside + usage.databasePages * DiskSchema.pageSize
            let excess = used - max(0, bytes)
            if excess <= 0 { return }
            if usage.setAside > 0 {
                try makeRoomOfSetAside()
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

    private func makeRoomOfSetAside() throws(DiskCacheError) {
        try files.remove(folder.setAside)
        setAsideBytes = 0
    }

    /// Writes the order of use, and deletes rows that wait. Evicts no entries when the disk is short of space, because
    /// the order takes less space than an entry, and reads write it, too. The cache's own limits still apply.
    func flush() throws(DiskCacheError) {
        try checkFolder()
        try deleteDeadRows()
        var ranks = shared.state.withLock { $0.index.takeTouched() }[...]
        while !ranks.isEmpty {
            let step = ranks.prefix(2_048)
            try makeRoom(DiskBudget.Need(rowBytes: 32 * step.count), mindingDisk: false)
            let log = try files.status(of: folder.log)?.size ?? 0
            if log > budget.logLimit / 2 { try tables.database.checkpoint() }
            try tables.transaction { () throws(DiskCacheError) in
                for rank in step { try tables.setRank(rank.id, rank.tick) }
            }
            ranks = ranks.dropFirst(step.count)
        }
    }

    // MARK: The trash

    /// Counts what a `removeAll` of an earlier owner left.
    func measureTrash() throws(DiskCacheError) {
        trashBytes = 0
        for folder in try trashFolders() {
            for name in try files.names(in: folder) {
                trashBytes += try files.status(of: "\(folder)/\(name)")?.allocated ?? 0
            }
        }
    }

    /// Deletes up to `limit` files of the trash. Whether something is left.
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
