import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A cache of values on the disk by key. A kill loses nothing that was acknowledged, no value is ever incomplete, and
/// the limits hold at all times.
///
/// ```swift
/// let cache = try await DiskCache(folder: folder)
/// try await cache.insert(data, for: "avatar/7", timeToLive: .seconds(3_600))
/// let value = try await cache.value(for: "avatar/7")
/// ```
/// Values of up to 16 KiB are stored in an index (SQLite), larger values in files of their own. The checksum of each
/// value is verified when it is read. `insert` returns once its transaction is committed. From then on, the value
/// survives the end of the process, however it ends, though not a loss of power (see `Documentation/DiskCache.md`).
/// Concurrent inserts share a transaction.
///
/// A serial queue of the cache does all writing. Two other queues read files, or the caller does if the system has them
/// in memory. `contains`, and a look-up that finds nothing, only access memory. A folder has one owner at a time, in
/// this process or another.
public actor DiskCache {
    nonisolated let shared: DiskSharedState
    nonisolated let broadcast = EventBroadcast<Event>(limit: 256, overflow: .reportDropped { .dropped(count: $0) })
    nonisolated let executor = QueueExecutor("tern.disk-cache")
    nonisolated let readers = DiskReadQueues(count: 2)
    nonisolated let configuration: Configuration
    nonisolated let folder: DiskFolder
    nonisolated let dependencies: DiskStore.Dependencies
    nonisolated let readOnlyEntries = Lock<[DiskReadOnlyFolder.Entries]>([])
    private var readOnlyFolders: [DiskReadOnlyFolder] = []
    /// Nil after `close`, and while a lost folder could not be opened again.
    var store: DiskStore?
    var writers: [Int: DiskPendingValue] = [:]
    var writerCount = 0
    private var isEmptyingTrash = false

    /// Opens a cache in a folder of its own, and creates the folder if it does not exist. It first repairs what a
    /// killed owner left behind, and reports that in `Event.recovered` and `indexSetAside`.
    ///
    /// - Throws: `inUse` while another cache, in this process or another, is using the folder; `notPermitted`,
    ///   `noSpace` or `inputOutput` if it cannot be written; `unsupportedFormat` if a later version of this library
    ///   wrote it; `invalidArgument` for a URL with a scheme other than `file`, whose path would mean another place.
    public init(folder: URL, configuration: Configuration = Configuration()) async throws(DiskCacheError) {
        try await self.init(folder: folder, configuration: configuration, dependencies: DiskStore.Dependencies())
    }

    package init(
        folder: URL, configuration: Configuration, dependencies: DiskStore.Dependencies
    ) async throws(DiskCacheError) {
        guard folder.scheme == nil || folder.isFileURL else {
            throw DiskCacheError(.invalidArgument, "the URL of the folder is not a file URL")
        }
        self.folder = DiskFolder(path: Self.path(folder))
        self.configuration = configuration
        self.dependencies = dependencies
        shared = DiskSharedState(mask: configuration.hashMask)
        try open()
    }

    /// The executor of the cache's serial queue.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    static func path(_ url: URL) -> String {
        let path = url.path(percentEncoded: false)
        return path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    }

    private var storeContext: DiskStore.Context {
        DiskStore.Context(
            folder: folder, configuration: configuration, shared: shared, broadcast: broadcast,
            dependencies: dependencies)
    }

    private func open() throws(DiskCacheError) {
        store = try DiskStore.open(storeContext)
        for url in configuration.readOnlyFolders {
            do throws(DiskCacheError) {
                let folder = try DiskReadOnlyFolder(Self.path(url), dependencies.files)
                readOnlyFolders.append(folder)
                let entries = folder.entries
                readOnlyEntries.withLock { $0.append(entries) }
            } catch {
                broadcast.send(.readOnlyFolderIgnored(reason: error.reason))
            }
        }
        emptyTrashLater()
    }

    /// The events from now on. Each access returns a stream of its own, which holds up to 256 events. A `dropped`
    /// element counts the events that do not fit. The stream ends when the cache is closed or released.
    public nonisolated var events: AsyncStream<Event> { broadcast.stream() }

    /// Whether `close` was called.
    package nonisolated var isClosed: Bool { shared.state.withLock { $0.isClosed } }

    /// The current disk usage and number of entries.
    public var usage: Usage {
        get throws(DiskCacheError) { try openStore().publicUsage() }
    }

    /// Commits queued values, writes the order of use, and releases the folder. Every later call throws `closed`, also
    /// those of a `Writer`; `contains` returns false, and closing again has no effect. A `File` or a mapped value that
    /// was returned before stays readable. A cache that is released without `close` loses nothing acknowledged, but the
    /// next opening has to scan the folder.
    public func close() async throws(DiskCacheError) {
        var failure: DiskCacheError?
        do throws(DiskCacheError) {
            try await flush()
        } catch {
            if error.kind == .closed { return }
            failure = error
        }
        let isFirst = shared.state.withLock { state in
            defer { state.isClosed = true }
            return !state.isClosed
        }
        guard isFirst else { return }
        // Commit the commands that arrived in the meantime.
        while processNext() {}
        for writer in writers.values { abandon(writer) }
        writers.removeAll()
        if let store {
            self.store = nil
            do throws(DiskCacheError) { try store.close() } catch { failure = failure ?? error }
        }
        // Releases the folder's descriptor.
        shared.state.withLock { $0.files = nil }
        broadcast.finish()
        if let failure { throw failure }
    }

    /// Returns the store, and opens it again if the folder was lost before.
    func openStore() throws(DiskCacheError) -> DiskStore {
        if let store { return store }
        guard !shared.state.withLock({ $0.isClosed }) else { throw DiskSharedState.closed }
        let store = try DiskStore.open(storeContext)
        self.store = store
        return store
    }
}

// MARK: - The thread's work

extension DiskCache {
    /// Wakes the thread, which continues until no command waits.
    nonisolated func wake() {
        executor.submit { self.assumeIsolated { $0.processCommands() } }
    }

    private func processCommands() {
        // After several transactions, other callers of the actor get their turn.
        for _ in 0..<8 where !processNext() { return }
        wake()
    }

    /// Answers the waiting read requests and runs one transaction. Returns false if nothing waited.
    private func processNext() -> Bool {
        let (readRequests, action) = shared.next(limit: logLimit / 2)
        for request in readRequests { request.reply(read(request)) }
        switch action {
        case .idle: return !readRequests.isEmpty
        case .commit(let commands): commit(commands)
        case .perform(let command): perform(command)
        }
        return true
    }

    private var logLimit: Int { store?.budget.logLimit ?? 1 << 20 }

    private func commit(_ commands: [DiskCommandQueue.Command]) {
        finish(
            commands,
            withStore { store in
                store.commit(commands)
            } failed: { error in
                commands.map { _ in .failure(error) }
            })
    }

    private func perform(_ command: DiskCommandQueue.Command) {
        let results = withStore { store in
            [Result { () throws(DiskCacheError) in try store.perform(command.request) }]
        } failed: {
            [.failure($0)]
        }
        finish([command], results)
        if case .removeAll = command.request { emptyTrashLater() }
    }

    /// Runs `body` on the store, and once more on a rebuilt index if the index turns out to be damaged.
    private func withStore(
        _ body: (DiskStore) -> [Result<Void, DiskCacheError>],
        failed: (DiskCacheError) -> [Result<Void, DiskCacheError>]
    ) -> [Result<Void, DiskCacheError>] {
        for isLast in [false, true] {
            do throws(DiskCacheError) {
                let results = body(try openStore())
                guard let failure = results.lazy.compactMap(\.failure).first(where: \.requiresReopening) else {
                    return results
                }
                let isReopened = reopen(after: failure)
                if isLast || failure.kind != .corrupt || !isReopened { return results }
            } catch {
                return failed(error)
            }
        }
        return failed(DiskSharedState.closed)
    }

    private func finish(_ commands: [DiskCommandQueue.Command], _ results: [Result<Void, DiskCacheError>]) {
        let outcomes = zip(commands, results).map { (command: $0, failure: $1.failure) }
        shared.complete(outcomes)
        for (command, failure) in outcomes {
            if let failure, command.queuedBytes > 0 { broadcast.send(.backgroundFailure(failure)) }
            command.reply(failure.map { .failure($0) } ?? .success(()))
        }
    }

    /// Creates a new folder for a lost one, or a new index for a damaged one. Returns whether that succeeded.
    private func reopen(after failure: DiskCacheError) -> Bool {
        // The folder cannot be locked again before its lock is released.
        store?.lock = nil
        store = nil
        shared.state.withLock { $0.index = DiskIndex(after: $0.index) }
        do throws(DiskCacheError) {
            store = try DiskStore.open(storeContext, setAside: failure.kind == .corrupt ? failure : nil)
            if failure.kind == .folderLost { broadcast.send(.folderRecreated) }
            return true
        } catch {
            broadcast.send(.backgroundFailure(error))
            return false
        }
    }

    private func read(_ request: DiskSharedState.ReadRequest) -> DiskReadResult {
        if let number = request.readOnlyFolder {
            return readOnlyFolders[number].tables.read(request.location, key: request.key)
        }
        guard let store else { return .gone }
        let result = store.tables.read(request.location, key: request.key)
        guard case .failed(let error) = result, error.kind == .corrupt else { return result }
        return reopen(after: error) ? .gone : result
    }

    /// Deletes the files that `removeAll` set aside, in steps. Other work runs between the steps.
    private func emptyTrashLater() {
        guard !isEmptyingTrash, let store, store.trashBytes > 0 else { return }
        isEmptyingTrash = true
        executor.submit { self.assumeIsolated { $0.emptyTrashStep() } }
    }

    private func emptyTrashStep() {
        isEmptyingTrash = false
        do throws(DiskCacheError) {
            if try store?.emptyTrash(limit: 64) == true { emptyTrashLater() }
        } catch {
            // The remaining files count as used. They are deleted when room is needed, or at the next opening.
            broadcast.send(.backgroundFailure(error))
        }
    }
}

extension Result {
    fileprivate var failure: Failure? {
        if case .failure(let failure) = self { failure } else { nil }
    }
}

extension DiskCacheError {
    fileprivate var requiresReopening: Bool { kind == .corrupt || kind == .folderLost }
}
