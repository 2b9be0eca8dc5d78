/// The limits, and what must go to keep them. Pure: it is told what is used and what is needed, and says the next step.
///
/// Used is what the files take on the disk: value files by their blocks, the database by its pages, and for the log
/// the most that it may grow to, so that a limit that holds here holds at every instant between two steps, too.
struct DiskBudget {
    /// Bytes of log that removing one entry may take: a page of each table that it stands in.
    static let removalCost = 3 * 16_384
    struct Usage: Equatable {
        /// Value files, finished or not.
        var files = 0
        var databasePages = 0
        var freePages = 0
        /// A damaged index that was set aside.
        var setAside = 0
        /// Files of a `removeAll` that are not deleted yet.
        var trash = 0
        var count = 0
        /// Free bytes of the disk; nil if no limit asks for them.
        var diskFree: Int?
    }

    struct Need: Equatable {
        var fileBytes = 0
        var rowBytes = 0
        /// Log beyond what is always reserved.
        var logBytes = 0
        var count = 0
        /// New bytes of any kind: what the free space of the disk must hold.
        var total: Int { fileBytes + 2 * rowBytes + logBytes }
    }

    enum Action: Equatable {
        case fits
        case dropSetAside
        case emptyTrash
        /// Give freed pages of the index back.
        case shrink
        /// The least recently used entries, until about so many bytes and so many entries are gone.
        case evict(bytes: Int, count: Int)
        /// Nothing is left to evict. The disk is full, or else the value is too large for the limit.
        case refuse(isDiskFull: Bool)
    }

    let byteLimit: Int?
    let countLimit: Int?
    let minimumFree: Int

    init(_ configuration: DiskCache.Configuration) {
        byteLimit = configuration.byteLimit.map { max($0, 4 << 20) }
        countLimit = configuration.countLimit.map { max($0, 0) }
        minimumFree = max(configuration.minimumFreeBytes, 0)
    }

    /// The most that the log may grow to: a checkpoint comes before.
    var logLimit: Int { min(8 << 20, max(1 << 20, (byteLimit ?? .max) / 8)) }

    /// Freed pages that are given back to the file system in one step: moving one logs a few.
    var shrinkPages: Int { logLimit / (4 * DiskSchema.pageSize) }

    /// Entries whose rows are deleted in one transaction.
    var removalStep: Int { logLimit / (2 * Self.removalCost) }

    /// Bytes used at most, whatever the next transaction does to the log.
    func used(_ usage: Usage) -> Int {
        usage.files + usage.databasePages * DiskSchema.pageSize + usage.setAside + usage.trash + logLimit
    }

    func action(_ usage: Usage, _ need: Need) -> Action {
        if let countLimit, usage.count + need.count > countLimit {
            guard usage.count > 0 else { return .refuse(isDiskFull: false) }
            return .evict(bytes: 0, count: min(usage.count, usage.count + need.count - countLimit))
        }
        let freed = usage.freePages * DiskSchema.pageSize
        // Rows may fill their pages by half.
        let growth = max(0, need.rowBytes == 0 ? 0 : 2 * need.rowBytes + 4 * DiskSchema.pageSize - freed)
        if let byteLimit {
            let excess = used(usage) + growth + need.fileBytes + need.logBytes - byteLimit
            if excess > 0 { return relief(usage, excess, spare: freed - 2 * need.rowBytes, isDiskFull: false) }
        }
        if let diskFree = usage.diskFree {
            let deficit = need.total - (diskFree - minimumFree)
            // Evicting the whole cache would not be enough, so nothing is evicted for a value that cannot be stored.
            if minimumFree == 0, deficit > usage.files + usage.setAside + usage.trash {
                return .refuse(isDiskFull: true)
            }
            if deficit > 0 { return relief(usage, deficit, spare: freed - 2 * need.rowBytes, isDiskFull: true) }
        }
        return .fits
    }

    private func relief(_ usage: Usage, _ excess: Int, spare: Int, isDiskFull: Bool) -> Action {
        if usage.setAside > 0 { return .dropSetAside }
        if usage.trash > 0 { return .emptyTrash }
        // Moving pages costs a copy of each: only for a step's worth, or when nothing else is left.
        if spare >= min(excess, shrinkPages * DiskSchema.pageSize), spare >= DiskSchema.pageSize { return .shrink }
        if usage.count > 0 { return .evict(bytes: excess, count: 0) }
        return usage.freePages > 0 ? .shrink : .refuse(isDiskFull: isDiskFull)
    }
}
