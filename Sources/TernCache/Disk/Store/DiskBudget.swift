/// The limits, and the next action that keeps them. A pure value, which receives the usage and a request for space.
///
/// The usage is the space that the files take on the disk: value files by their blocks, the database by its pages, and
/// the maximum size of the log. A limit that holds here therefore also holds at every instant between two steps.
struct DiskBudget {
    /// The maximum number of log bytes for removing one entry: a page of each table that contains it.
    static let removalCost = 3 * 16_384

    struct Usage: Equatable {
        /// The bytes of the value files of entries.
        var files = 0
        /// The bytes of value files that are being written. Evicting entries does not free them.
        var unfinished = 0
        var databasePages = 0
        var freePages = 0
        /// The pages that the index keeps when it has no entries.
        var minimumPages = DiskSchema.emptyPages
        /// The bytes of a damaged index that was set aside.
        var setAside = 0
        /// The bytes of files that a `removeAll` has not deleted yet.
        var trash = 0
        var count = 0
        /// The free bytes of the disk; nil if no limit needs them.
        var diskFree: Int?
    }

    struct SpaceRequest: Equatable {
        var fileBytes = 0
        var rowBytes = 0
        /// The log bytes beyond those that are always reserved.
        var logBytes = 0
        /// The number by which the entries increase.
        var count = 0
        /// The number of entries to store, including those that replace another.
        var stored = 0
        /// The new bytes of any kind, which must fit into the free space of the disk.
        var total: Int { fileBytes + 2 * rowBytes + logBytes }
    }

    enum Action: Equatable {
        case fits
        case dropSetAside
        case emptyTrash
        /// Returns free pages of the index to the file system.
        case shrink
        /// Evicts the least recently used entries until about this many bytes and entries are removed.
        case evict(bytes: Int, count: Int)
        /// Refuses the request: the disk is full and nothing is left to evict, or the request is too large even for an
        /// empty cache. In the second case, nothing is evicted first.
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

    /// The maximum size of the log. A checkpoint prevents more.
    var logLimit: Int { min(8 << 20, max(1 << 20, (byteLimit ?? .max) / 8)) }

    /// The number of free pages to return to the file system in one step. Moving a page logs a few pages.
    var shrinkPages: Int { logLimit / (4 * DiskSchema.pageSize) }

    /// The number of entries whose rows are deleted in one transaction.
    var removalStep: Int { logLimit / (2 * Self.removalCost) }

    /// Returns the maximum number of bytes in use, for any effect of the next transaction on the log.
    func used(_ usage: Usage) -> Int {
        usage.files + usage.unfinished + usage.databasePages * DiskSchema.pageSize + usage.setAside + usage.trash
            + logLimit
    }

    /// Returns whether the request stays within the limits after everything that can be removed is removed.
    private func fitsEmptyCache(_ usage: Usage, _ request: SpaceRequest) -> Bool {
        if let countLimit, max(request.stored, request.count) > countLimit { return false }
        guard let byteLimit else { return true }
        let empty = Usage(unfinished: usage.unfinished, databasePages: usage.minimumPages)
        return used(empty) + growth(request, freePages: 0) + request.fileBytes + request.logBytes <= byteLimit
    }

    /// Returns the number of bytes by which the index grows. Rows can fill their pages by half.
    private func growth(_ request: SpaceRequest, freePages: Int) -> Int {
        guard request.rowBytes > 0 else { return 0 }
        return max(0, 2 * request.rowBytes + (4 - freePages) * DiskSchema.pageSize)
    }

    func action(_ usage: Usage, _ request: SpaceRequest) -> Action {
        // Otherwise, a value that cannot be stored would empty the cache.
        guard fitsEmptyCache(usage, request) else { return .refuse(isDiskFull: false) }
        if let countLimit, usage.count + request.count > countLimit {
            guard usage.count > 0 else { return .refuse(isDiskFull: false) }
            return .evict(bytes: 0, count: min(usage.count, usage.count + request.count - countLimit))
        }
        let freed = usage.freePages * DiskSchema.pageSize
        if let byteLimit {
            let excess =
                used(usage) + growth(request, freePages: usage.freePages) + request.fileBytes + request.logBytes
                - byteLimit
            if excess > 0 {
                return actionToFreeSpace(usage, excess: excess, spare: freed - 2 * request.rowBytes, isDiskFull: false)
            }
        }
        if let diskFree = usage.diskFree {
            let deficit = request.total - (diskFree - minimumFree)
            // If evicting the whole cache is not enough, nothing is evicted for a value that cannot be stored.
            if minimumFree == 0, deficit > usage.files + usage.setAside + usage.trash {
                return .refuse(isDiskFull: true)
            }
            if deficit > 0 {
                return actionToFreeSpace(usage, excess: deficit, spare: freed - 2 * request.rowBytes, isDiskFull: true)
            }
        }
        return .fits
    }

    private func actionToFreeSpace(_ usage: Usage, excess: Int, spare: Int, isDiskFull: Bool) -> Action {
        if usage.setAside > 0 { return .dropSetAside }
        if usage.trash > 0 { return .emptyTrash }
        // Moving pages copies each of them: only for a whole step, or when nothing else is left.
        if spare >= min(excess, shrinkPages * DiskSchema.pageSize), spare >= DiskSchema.pageSize { return .shrink }
        if usage.count > 0 { return .evict(bytes: excess, count: 0) }
        return usage.freePages > 0 ? .shrink : .refuse(isDiskFull: isDiskFull)
    }
}
