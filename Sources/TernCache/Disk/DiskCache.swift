import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Values by key on the disk: nothing acknowledged is lost to a kill, no value is ever torn, and the limits hold at all
/// times.
///
/// ```swift
/// let cache = try await DiskCache(folder: folder)
/// try await cache.insert(data, for: "avatar/7", timeToLive: .seconds(3_600))
/// let value = try await cache.value(for: "avatar/7")
/// ```
/// Values of up to 16 KiB are stored in an index (SQLite), larger ones in files of their own. Every value is verified by
/// its checksum when it is read. `insert` returns once its transaction is committed: from then on the value survives the
/// end of the process, however it ends, though not a loss of power (`Documentation/DiskCache.md` says why). Inserts that
/// come together share a transaction.
///
/// All writing happens on one thread of the cache's own, and files are read on a few others, or by the caller as far as
/// the system has them in memory; `contains`, and a look-up that finds nothing, ask the memory only. A folder has one owner at a time, in this process or another.
public actor DiskCache {
    nonisolated let shared: DiskShared
    nonisolated let hub = DiskEventHub()
    nonisolated let executor = DiskExecutor()
    nonisolated let readers = DiskReaders(count: 2)
    nonisolated let configuration: Configuration
    nonisolated let folder: DiskFolder
    nonisolated let seams: DiskStore.Seams
    nonisolated let catalogEntries = Lock<[DiskCatalog.Entries]>([])
    private var catalogs: [DiskCatalog] = []
    /// Nil after `close`, and from the loss of the folder until it could be opened again.
    var store: DiskStore?
    var writers: [Int: DiskWriting] = [:]
    var writerCount = 0
    private var isEmptyingTrash = false

    /// Opens a cache in a folder of its own, and makes the folder if it is not there. What a killed owner left behind is
    /// put right first: `Event.recovered` and `indexSetAside` tell of it.
    ///
    /// - Throws: `inUse` while another cache, in this process or another, has the folder; `notPermitted`, `noSpace` or
    ///   `inputOutput` if it cannot be written; `unsupportedFormat` if a later version of this library wrote it;
    ///   `invalidArgument` for a URL with a scheme other than `file`, whose path would mean another place.
    public init(folder: URL, configuration: Configuration = Configuration()) async throws(DiskCacheError) {
        try await self.init(folder: folder, configuration: configuration, seams: DiskStore.Seams())
    }

    package init(folder: URL, configuration: Configuration, seams: DiskStore.Seams) async throws(DiskCacheError) {
        guard folder.scheme == nil || folder.isFileURL else {
            throw DiskCacheError(.invalidArgument, "the URL of the folder is no file URL")
        }
        self.folder = DiskFolder(path: Self.path(folder))
        self.configuration = configuration
        self.seams = seams
        shared = DiskShared(mask: configuration.hashMask)
        try open()
    }

    /// The thread of the cache.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    static func path(_ url: URL) -> String {
        let path = url.path(percentEncoded: false)
        return path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    }

    private func open() throws(DiskCacheError) {
        store = try DiskStore.open(folder, configuration, shared, hub, seams)
        for folder in configuration.readOnlyFolders {
            do throws(DiskCacheError) {
                let catalog = try DiskCatalog(Self.path(folder), seams.files)
                catalogs.append(catalog)
                let entries = catalog.entries
                catalogEntries.withLock { $0.append(entries) }
            } catch {
                hub.send(.readOnlyFolderIgnored(reason: error.reason))
            }
        }
        emptyTrashLater()
    }

    /// Whether `close` was called.
    package nonisolated var isClosed: Bool { shared.state.withLock { $0.isClosed } }

    /// What the cache takes and holds now.
    public var usage: Usage {
        get throws(DiskCacheError) { try openStore().publicUsage() }
    }

    /// Commits what is staged, writes the order of use, and gives the folder free. Every later call throws `closed`;
    /// closing again does nothing. A cache that is dropped without it loses nothing acknowledged, but the next opening
    /// has to look through the folder.
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
        // What came between is committed before the end.
        while serve() {}
        for writer in writers.values { abandon(writer) }
        writers.removeAll()
        if let store {
            self.store = nil
            do throws(DiskCacheError) { try store.close() } catch { failure = failure ?? error }
        }
        hub.finish()
        if let failure { throw failure }
    }

    // MARK: The thread's work

    /// Wakes the thread, which goes on until nothing waits.
    nonisolated func wake() {
        executor.submit { self.assumeIsolated { $0.work() } }
    }

    private func work() {
        // After some transactions, others who wait for the actor get their turn.
        for _ in 0..<8 where !serve() { return }
        wake()
    }

    /// Answers the readings that wait and runs one transaction. False if nothing waited.
    private func serve() -> Bool {
        let (readings, action) = shared.next(limit: logLimit / 2)
        for reading in readings { reading.reply(read(reading)) }
        switch action {
        case .idle: return !readings.isEmpty
        case .commit(let letters): commit(letters)
        case .perform(let letter): perform(letter)
        }
        return true
    }

    private var logLimit: Int { store?.budget.logLimit ?? 1 << 20 }

    private func commit(_ letters: [DiskMailbox.Letter]) {
        finish(
            letters,
            attempt { store in
                store.commit(letters)
            } failed: { error in
                letters.map { _ in .failure(error) }
            })
    }

    private func perform(_ letter: DiskMailbox.Letter) {
        let results = attempt { store in
            do throws(DiskCacheError) {
                return [.success(try store.perform(letter.request))]
            } catch {
                return [.failure(error)]
            }
        } failed: {
            [.failure($0)]
        }
        finish([letter], results)
        if case .removeAll = letter.request { emptyTrashLater() }
    }

    /// Runs work on the store; once more on a rebuilt index if the index turns out to be damaged.
    private func attempt(
        _ body: (DiskStore) -> [Result<Void, DiskCacheError>],
        failed: (DiskCacheError) -> [Result<Void, DiskCacheError>]
    ) -> [Result<Void, DiskCacheError>] {
        for isLast in [false, true] {
            do throws(DiskCacheError) {
                let results = body(try openStore())
                guard let failure = results.lazy.compactMap(\.failure).first(where: \.isLoss) else { return results }
                let isMended = mend(failure)
                if isLast || failure.kind != .corrupt || !isMended { return results }
            } catch {
                return failed(error)
            }
        }
        return failed(DiskShared.closed)
    }

    private func finish(_ letters: [DiskMailbox.Letter], _ results: [Result<Void, DiskCacheError>]) {
        let ends = zip(letters, results).map { (letter: $0, failure: $1.failure) }
        shared.settle(ends)
        for (letter, failure) in ends {
            if let failure, letter.stagedBytes > 0 { hub.send(.backgroundFailure(failure)) }
            letter.reply(failure.map { .failure($0) } ?? .success(()))
        }
    }

    /// The store; opened again if the folder was lost before.
    func openStore() throws(DiskCacheError) -> DiskStore {
        if let store { return store }
        guard !shared.state.withLock({ $0.isClosed }) else { throw DiskShared.closed }
        let store = try DiskStore.open(folder, configuration, shared, hub, seams)
        self.store = store
        return store
    }

    /// A new folder for one that was lost, a new index for a damaged one. Whether it is there.
    private func mend(_ failure: DiskCacheError) -> Bool {
        // Its lock must go before the folder can be locked again.
        store?.lock = nil
        store = nil
        shared.state.withLock { $0.index = DiskIndex(after: $0.index) }
        do throws(DiskCacheError) {
            let reason = failure.kind == .corrupt ? failure : nil
            store = try DiskStore.open(folder, configuration, shared, hub, seams, setAside: reason)
            if failure.kind == .folderLost { hub.send(.folderRecreated) }
            return true
        } catch {
            hub.send(.backgroundFailure(error))
            return false
        }
    }

    private func read(_ reading: DiskShared.Reading) -> DiskReading {
        if let catalog = reading.catalog { return catalogs[catalog].tables.read(reading.location, key: reading.key) }
        guard let store else { return .gone }
        let result = store.tables.read(reading.location, key: reading.key)
        guard case .failed(let error) = result, error.kind == .corrupt else { return result }
        return mend(error) ? .gone : result
    }

    /// Deletes what `removeAll` has put aside, in steps between which other work is done.
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
            // What is left counts as used, and goes when room is needed, or at the next opening.
            hub.send(.backgroundFailure(error))
        }
    }
}

extension Result {
    fileprivate var failure: Failure? {
        if case .failure(let failure) = self { failure } else { nil }
    }
}

extension DiskCacheError {
    fileprivate var isLoss: Bool { kind == .corrupt || kind == .folderLost }
}
