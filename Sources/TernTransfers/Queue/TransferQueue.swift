public import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A list of downloads and uploads that is stored in a folder, and that finishes whatever interrupts it: a failure, a
/// machine without a network, and the end of the process.
///
/// ```swift
/// let queue = try await TransferQueue.open(folder, session: session)
/// try await queue.enqueue(.download(url, to: file))
/// for await item in queue.results {
///     print(item)
///     try await queue.acknowledge(.item(item.id))
/// }
/// ```
///
/// Each item is a durable download or upload, which continues where an earlier process left it. `enqueue` returns once
/// the item is stored, also against a loss of power. The next process that opens the folder continues all items that
/// waited or ran. The result of an item is stored before the queue forgets how to find its file, and is reported in
/// ``results`` and ``snapshot`` until it is acknowledged, so a kill loses none.
///
/// A folder has one open queue at a time, in this process or another one. The queue reads and writes its file (SQLite)
/// on a thread of its own. It holds itself while transfers run; call ``close()`` to end it. Calls take effect in the
/// order in which they are made.
public actor TransferQueue {
    nonisolated let session: Session
    nonisolated let configuration: Configuration
    /// The path of the folder.
    nonisolated let folder: String
    /// The folder of the folder, to which the stored paths are relative.
    nonisolated let base: String
    private nonisolated let broadcast = EventBroadcast<Event>(limit: 1_024, overflow: .reportDropped { .dropped($0) })
    private nonisolated let executor = QueueExecutor("tern.transfer-queue")

    /// Nil before the opening and after the end.
    private(set) var store: QueueStore?
    var schedule: QueueSchedule
    var records: [ItemID: QueueRecord] = [:]
    /// The unfinished items by the text that excludes a second one.
    var keys: [String: ItemID] = [:]
    var lastPosition: Int64?
    /// The items that have ended, in the order of their ends.
    var ended = QueueEnds()
    var lastEnd: Int64 = 0
    var transfers: [ItemID: RunningTransfer] = [:]
    /// The items whose transfer has stored its result, and is about to end.
    var recorded: Set<ItemID> = []
    var unsavedResults: [UnsavedResult] = []
    /// The bytes of finished items that were acknowledged, for progress that does not go back: by group, and all.
    var acknowledgedBytes: [String?: Int64] = [:]
    var throttles: QueueThrottles
    /// The removed items whose parts are to be removed.
    var discards: [ItemID] = []
    /// The items that could not be removed, until `remove` has said so.
    var unremoved: [ItemID: TransferQueueError] = [:]
    /// Removes the parts of removed items. It ends when none is left; `close` waits for it.
    var discarding: Task<Void, Never>?
    /// Follows the status of the network. Owned here, cancelled by `close` and with the queue.
    private var networkWatch: Task<Void, Never>?
    /// The delays after which hosts without a route are tried again.
    private(set) var offlineTrials = RouteTrials()
    /// Waits for the next trial. Owned here, cancelled by `close` and with the queue.
    private var nextTrial: Task<Void, Never>?
    var isClosing: Bool { closing != nil }
    /// Ends the queue. It holds the queue until then, and ends with its last transfer.
    private var closing: Task<Void, Never>?
    /// Those who wait for a change of the queue.
    private var waiters = WaiterList()

    private init(_ folder: String, session: Session, configuration: Configuration) {
        self.session = session
        self.configuration = configuration
        self.folder = folder
        base = FilePath.folder(of: folder)
        schedule = QueueSchedule(limits: configuration.limits.schedule)
        throttles = QueueThrottles(configuration.limits, TransferTime(configuration.clock))
    }

    deinit {
        networkWatch?.cancel()
        nextTrial?.cancel()
        broadcast.finish()
    }

    /// The executor of the queue's thread.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    // MARK: Opening and closing

    /// Opens the queue of a folder, and creates it if there is none. The items that waited or ran continue.
    ///
    /// The folder is for the queue alone. A file below the folder that contains it is stored with a relative path, so
    /// that both can be moved together. The file of the queue can hold URLs with secrets, and can be read by its owner
    /// alone.
    ///
    /// - Parameters:
    ///   - folder: The folder. Its URL has the scheme `file`.
    ///   - session: The session of the transfers.
    ///   - configuration: The settings, which are not stored.
    /// - Throws: `inUse` while another queue, of this process or another one, has the folder; `unsupportedVersion` if a
    ///   later version of Tern wrote it; `damaged` if its file has a value that Tern did not write; `notPermitted` if
    ///   another user may replace its files; `notPermitted`, `noSpace` or `inputOutput` if it cannot be written;
    ///   `invalidArgument` for another URL.
    public static func open(
        _ folder: URL, session: Session, configuration: Configuration = Configuration()
    ) async throws(TransferQueueError) -> TransferQueue {
        guard let path = absolutePath(of: folder) else {
            throw TransferQueueError(.invalidArgument, "the URL of the folder is no file URL")
        }
        let queue = TransferQueue(path, session: session, configuration: configuration)
        try await queue.load()
        return queue
    }

    private func load() throws(TransferQueueError) {
        let store = try QueueStore(folder: folder, fault: configuration.storeFault)
        let contents = try store.load()
        self.store = store
        records.reserveCapacity(contents.records.count)
        var ends: [(number: Int64, id: ItemID)] = []
        for (id, record) in contents.records {
            records[id] = record
            if record.intent != .finished { keys[record.key] = id }
            if record.ended > 0 { ends.append((record.ended, id)) }
            lastPosition = max(lastPosition ?? record.position, record.position)
        }
        ended = QueueEnds(ends)
        lastEnd = ended.lastNumber ?? 0
        for (group, others) in contents.dependencies {
            guard schedule.setDependencies(of: group, on: others) != nil else {
                throw TransferQueueError(.damaged, "a group waits for itself")
            }
        }
        if contents.records.contains(where: { $0.record.requiresUnmetered }) { watchNetwork() }
        _ = schedule.add(contents.records.map { Self.entry($0.id, $0.record) })
        if configuration.startsTransfers { start() }
    }

    /// Starts transfers, if the configuration did not say so at the opening.
    public func start() {
        if store != nil, !isClosing { perform(schedule.start()) }
    }

    /// Ends all transfers, and releases the folder when they have ended. Their parts and states stay for the next
    /// opening. Streams of the queue end, and later calls throw `closed`. A cancellation of the caller changes nothing:
    /// the folder must not have another owner while transfers run.
    public func close() async {
        if closing == nil {
            schedule.stop()
            networkWatch?.cancel()
            nextTrial?.cancel()
            for transfer in transfers.values { transfer.attempts.cancel() }
            // A task of its own is not cancelled with the caller.
            closing = Task { await release() }
        }
        await closing?.value
    }

    /// Releases the folder when nothing uses it any more.
    private func release() async {
        await changed { $0.transfers.isEmpty && $0.discarding == nil }
        store?.close()
        store = nil
        broadcast.finish()
        notify()
    }

    /// Returns the store.
    func openStore() throws(TransferQueueError) -> QueueStore {
        guard let store, !isClosing else { throw .closed }
        return store
    }

    // MARK: Streams

    /// The changes of the queue from now on. Each access returns a new stream that holds up to 1,024 events for a slow
    /// reader. One `.dropped` takes the place of further events and counts them. The stream ends when the queue is
    /// closed.
    public nonisolated var events: AsyncStream<Event> { broadcast.stream() }

    /// Publishes events.
    func send(_ events: [Event]) { broadcast.send(contentsOf: events) }

    /// Resumes all that wait for a change.
    func notify() {
        for waiter in waiters.removeAll() { waiter.resume() }
    }

    /// Returns when a condition holds, which is looked at after each change, or when the caller is cancelled.
    func changed(until isMet: (isolated TransferQueue) -> Bool) async {
        while !Task.isCancelled, !isMet(self) {
            let waiter = waiters.add()
            await waiter.wait()
            waiters.remove(waiter)
        }
    }

    /// Returns when nothing runs, and nothing is left that could start by itself: all items are paused, have failed or
    /// finished, or wait for a group of such items. An item that waits for the network counts as one that could start.
    /// Returns also when the queue is closed, or the caller is cancelled.
    public func drained() async {
        await changed { $0.store == nil || ($0.schedule.isIdle && $0.transfers.isEmpty && $0.discarding == nil) }
    }

    // MARK: Limits and the network

    /// The limits of the queue.
    public var limits: Limits { throttles.limits }

    /// Changes the limits, also for the transfers that run. More of them than the new limits allow run to their end.
    public func setLimits(_ limits: Limits) {
        throttles.set(limits)
        if store != nil { perform(schedule.setLimits(limits.schedule)) }
    }

    /// Follows the status of the network from now on.
    func watchNetwork() {
        let reachability = session.configuration.reachability
        networkChanged(reachability.status)
        guard networkWatch == nil else { return }
        networkWatch = Task { [weak self] in
            for await status in reachability.statuses { await self?.networkChanged(status) }
        }
    }

    /// Tries the hosts without a route again after a while: they can be reached without a default route, which is all
    /// that the status of the network tells.
    func tryOfflineHostsLater() {
        guard nextTrial == nil, schedule.hasOfflineHosts else { return }
        let time = TransferTime(configuration.clock)
        nextTrial = Task { [weak self, delay = offlineTrials.nextDelay] in
            // `try?`: cancelled, because the queue is closed.
            guard (try? await time.sleep(delay)) != nil else { return }
            await self?.tryOfflineHosts()
        }
    }

    private func tryOfflineHosts() {
        nextTrial = nil
        guard !isClosing else { return }
        _ = offlineTrials.next()
        perform(schedule.tryOfflineHosts())
    }

    func networkChanged(_ status: Reachability.Status) {
        if status != .unreachable { offlineTrials = RouteTrials() }
        perform(
            schedule.setNetwork(
                isUnreachable: status == .unreachable, isMetered: status == .reachable(.cellular)))
    }

    // MARK: Items

    static func entry(_ id: ItemID, _ record: QueueRecord) -> QueueSchedule.Entry {
        var entry = QueueSchedule.Entry(
            id: id, priority: record.priority.rawValue, position: record.position, host: record.host,
            group: record.group)
        (entry.requiresUnmetered, entry.intent) = (record.requiresUnmetered, record.intent)
        entry.isRetryable = record.isRetryable
        return entry
    }

    /// Returns the absolute path of a file URL; nil for another URL.
    static func absolutePath(of url: URL) -> String? {
        // `try?`: the text of the error is that of the caller.
        guard var path = try? FilePath.of(url), !path.isEmpty else { return nil }
        let slash = UInt8(ascii: "/")
        if path.utf8.first != slash { path = FilePath.join(FileManager.default.currentDirectoryPath, path) }
        let parts = path.utf8.split(separator: slash).filter { !$0.elementsEqual(".".utf8) }
        return "/" + parts.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
    }

    /// Returns the numbers of the items of a selection, each one once, in the order of the queue's places.
    func ids(of selection: Selection) -> [ItemID] {
        let found: [ItemID]
        switch selection {
        case .item(let id):
            return records[id] == nil ? [] : [id]
        case .items(let ids):
            var seen: Set<ItemID> = []
            return ids.filter { records[$0] != nil && seen.insert($0).inserted }
        case .group(let name):
            found = records.filter { $0.value.group == name }.map(\.key)
        case .all:
            found = Array(records.keys)
        }
        let places = found.map { QueueOrder.Position(id: $0, number: records[$0]?.position ?? 0) }
        return places.sorted { ($0.number, $0.id) < ($1.number, $1.id) }.map(\.id)
    }
}

extension TransferQueue: CustomReflectable {
    /// An empty mirror. Without it, `dump` would show URLs with secrets.
    public nonisolated var customMirror: Mirror { Mirror(self, children: [:]) }
}
