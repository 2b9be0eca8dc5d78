public import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// Adding, changing and reading items.

extension TransferQueue {
    // MARK: Adding

    /// Stores an item at the end of the queue. Returns its number once it is stored.
    ///
    /// - Throws: `invalidTransfer` if it cannot work or would store a secret; `duplicate` if an item that has not
    ///   finished has the same destination, or uploads the same file to the same place; an error of the file, after
    ///   which nothing is stored.
    @discardableResult
    public func enqueue(_ transfer: Transfer) throws(TransferQueueError) -> ItemID {
        guard let id = try enqueue(contentsOf: [transfer]).first else { throw .closed }
        return id
    }

    /// Stores items in one step, all or none, at the end of the queue. Returns their numbers in the same order.
    ///
    /// - Throws: As `enqueue(_:)`.
    @discardableResult
    public func enqueue(contentsOf transfers: [Transfer]) throws(TransferQueueError) -> [ItemID] {
        let store = try openStore()
        var items: [QueueStore.NewItem] = []
        var newKeys: Set<String> = []
        for transfer in transfers {
            let item = try newItem(transfer)
            if let other = keys[item.record.key] {
                throw TransferQueueError(.duplicate, "item \(other) has the same file and place: \(transfer)")
            }
            guard newKeys.insert(item.record.key).inserted else {
                throw TransferQueueError(.duplicate, "two new items have the same file and place: \(transfer)")
            }
            items.append(item)
        }
        var numbers = QueueOrder.numbers(forNew: items.count, after: lastPosition)
        if numbers == nil {
            try renumber(store)
            numbers = QueueOrder.numbers(forNew: items.count, after: lastPosition)
        }
        guard let numbers else { throw TransferQueueError(.invalidTransfer, "too many items") }
        for (index, number) in numbers.enumerated() { items[index].record.position = number }
        let ids = try store.insert(items)
        for (id, item) in zip(ids, items) {
            records[id] = item.record
            keys[item.record.key] = id
        }
        lastPosition = numbers.last ?? lastPosition
        if items.contains(where: { $0.record.requiresUnmetered }) { watchNetwork() }
        send(ids.map { .enqueued($0) })
        perform(schedule.add(zip(ids, items).map { Self.entry($0, $1.record) }))
        return ids
    }

    /// Checks a transfer.
    private func newItem(_ transfer: Transfer) throws(TransferQueueError) -> QueueStore.NewItem {
        let target: Target
        do throws(Target.Problem) {
            target = try Target(transfer.url)
        } catch {
            throw TransferQueueError(.invalidTransfer, error.reason)
        }
        func refusal(_ reason: String) -> TransferQueueError {
            TransferQueueError(.invalidTransfer, "\(reason): \(transfer)")
        }
        if target.user != nil || target.password != nil {
            throw refusal("the URL has a user or a password, which would be stored: give them with the credentials")
        }
        guard let path = Self.absolutePath(of: transfer.file) else { throw refusal("the file has no file URL") }
        if transfer.kind == .download, path.utf8.starts(with: "\(folder)/".utf8) {
            throw refusal("the destination is in the folder of the queue, whose files it could replace")
        }
        if transfer.existing == .keepBoth { throw refusal("a download of a queue cannot keep both files") }
        var record = QueueRecord(
            kind: transfer.kind, url: target.string, host: target.host, path: QueueRecord.path(of: path, base: base),
            label: transfer.label, group: transfer.group)
        (record.priority, record.requiresUnmetered) = (transfer.priority, transfer.requiresUnmeteredNetwork)
        record.intent = transfer.isPaused ? .paused : .waiting
        let options = QueueOptions(transfer)
        if let problem = options.problem { throw refusal(problem) }
        // The progress of the whole queue has a total before its items begin. `try?`: a file that comes later has its
        // size when its upload begins.
        record.total =
            transfer.kind == .upload ? try? configuration.system.length(of: path) : options.expectedBytes
        if let problem = record.problem { throw refusal(problem) }
        return QueueStore.NewItem(record: record, options: try options.encoded(), userData: transfer.userData)
    }

    // MARK: Changing

    /// Pauses the items that wait or run. The part of a download stays, unless nothing can continue it. Returns the
    /// number of items that changed.
    @discardableResult
    public func pause(_ selection: Selection) throws(TransferQueueError) -> Int {
        try change(.pause, selection)
    }

    /// Lets paused items wait for their turn. Returns the number of items that changed.
    @discardableResult
    public func resume(_ selection: Selection) throws(TransferQueueError) -> Int {
        try change(.resume, selection)
    }

    /// Lets failed items wait for their turn, cancelled ones too. Returns the number of items that changed.
    @discardableResult
    public func retry(_ selection: Selection) throws(TransferQueueError) -> Int {
        try change(.retry, selection)
    }

    /// Ends the items that have not ended: they have failed, with the kind `.cancelled`, and can be tried again. The
    /// part of a download stays, unless nothing can continue it. Returns the number of items that changed.
    @discardableResult
    public func cancel(_ selection: Selection) throws(TransferQueueError) -> Int {
        try change(.cancel, selection)
    }

    private func change(_ command: QueueSchedule.Command, _ selection: Selection) throws(TransferQueueError) -> Int {
        let store = try openStore()
        // A transfer that has stored its result has finished.
        let ids = schedule.items(for: command, among: ids(of: selection)).filter { !recorded.contains($0) }
        var changes: [(id: ItemID, record: QueueRecord, outcome: Data?)] = []
        var end = lastEnd
        for id in ids {
            guard var record = records[id] else { continue }
            var outcome: Data?
            switch command {
            case .pause: record.intent = .paused
            case .cancel:
                end += 1
                (record.intent, record.isRetryable, record.ended) = (.failed, true, end)
                outcome = Self.encoded(Failure(.cancelled, "the item was cancelled", isRetryable: true))
            default: (record.intent, record.ended) = (.waiting, 0)
            }
            changes.append((id, record, outcome))
        }
        try store.update(changes)
        for (id, record, _) in changes {
            if command == .retry { forgetEnd(of: id) }
            records[id] = record
            if record.ended > 0 { ended.add(id, number: record.ended) }
        }
        lastEnd = end
        perform(schedule.perform(command, on: ids))
        return ids.count
    }

    /// Removes an item from those that have ended.
    func forgetEnd(of id: ItemID) {
        guard let number = records[id]?.ended, number > 0 else { return }
        ended.remove(id, number: number)
    }

    /// Removes items and the parts of their downloads. Finished files stay. Returns the number of items, when all are
    /// gone.
    ///
    /// The part of an upload that a server has is left to the server. An item whose part cannot be removed stays, as a
    /// failed one.
    ///
    /// - Throws: `notPermitted` or `inputOutput`, after all others are gone, if an item stays. Its reason has the
    ///   system's words. `cancelled` if the caller is cancelled before the items are gone; they are removed when their
    ///   transfers have ended.
    @discardableResult
    public func remove(_ selection: Selection) async throws(TransferQueueError) -> Int {
        _ = try openStore()
        let ids = schedule.items(for: .remove, among: ids(of: selection))
        for id in ids { unremoved[id] = nil }
        perform(schedule.perform(.remove, on: ids))
        await changed { queue in
            queue.store == nil || ids.allSatisfy { queue.records[$0] == nil || queue.unremoved[$0] != nil }
        }
        let failures = ids.compactMap { unremoved.removeValue(forKey: $0) }
        guard let first = failures.first else {
            if ids.allSatisfy({ records[$0] == nil }) { return ids.count }
            if store == nil { throw .closed }
            throw TransferQueueError(.cancelled, "the caller was cancelled before all items were gone")
        }
        let others = failures.count > 1 ? " (and \(failures.count - 1) other items stay)" : ""
        throw TransferQueueError(first.kind, first.reason + others)
    }

    /// Forgets items that have finished or failed. Returns their number, once that is stored. The part of a failed
    /// download stays beside its destination.
    @discardableResult
    public func acknowledge(_ selection: Selection) async throws(TransferQueueError) -> Int {
        _ = try openStore()
        for id in schedule.items(for: .acknowledge, among: ids(of: selection)) {
            // One that was cancelled holds the lock of its destination until it has ended.
            await transfers[id]?.reporter.value
            guard let record = records[id], record.intent == .finished else { continue }
            await removeRest(of: id, record)
        }
        let store = try openStore()
        let ids = schedule.items(for: .acknowledge, among: ids(of: selection))
        try store.delete(ids)
        for id in ids {
            guard let record = records[id] else { continue }
            if record.intent == .finished {
                for key in Set([record.group, nil]) {
                    acknowledgedBytes[key] = Session.Progress.sum(acknowledgedBytes[key] ?? 0, record.completed)
                }
            }
        }
        let actions = schedule.perform(.acknowledge, on: ids)
        forget(ids)
        perform(actions)
        return ids.count
    }

    /// Forgets items whose rows are gone.
    func forget(_ ids: [ItemID]) {
        for id in ids {
            forgetEnd(of: id)
            guard let record = records.removeValue(forKey: id) else { continue }
            if keys[record.key] == id { keys[record.key] = nil }
        }
        send(ids.map { .removed($0) })
    }

    /// Changes the order of the queue. An item of a greater priority goes first nevertheless. Returns the number of
    /// items that moved; 0 for a place beside an item that is not there, or that itself is moved.
    @discardableResult
    public func move(_ selection: Selection, to place: Place) throws(TransferQueueError) -> Int {
        let store = try openStore()
        let ids = ids(of: selection)
        let all = records.map { QueueOrder.Position(id: $0.key, number: $0.value.position) }
        let numbers = QueueOrder.numbers(moving: ids, to: place, among: all)
        if ids.isEmpty || numbers.isEmpty { return 0 }
        try self.place(store) { id, record in numbers[id].map { record.position = $0 } != nil }
        return ids.count
    }

    /// Changes the priority of items. A transfer that runs keeps the one that it started with. Returns the number of
    /// items.
    @discardableResult
    public func setPriority(_ priority: Request.Priority, of selection: Selection) throws(TransferQueueError) -> Int {
        let ids = Set(ids(of: selection))
        try place(try openStore()) { id, record in
            record.priority = priority
            return ids.contains(id)
        }
        return ids.count
    }

    /// Gives all items new numbers in their order.
    private func renumber(_ store: QueueStore) throws(TransferQueueError) {
        let order = Dictionary(uniqueKeysWithValues: ids(of: .all).enumerated().map { ($1, $0) })
        try place(store) { id, record in
            record.position = Int64((order[id] ?? 0) + 1) * QueueOrder.gap
            return true
        }
    }

    /// Changes the places of the items for which the closure returns true.
    private func place(
        _ store: QueueStore, _ change: (ItemID, inout QueueRecord) -> Bool
    ) throws(TransferQueueError) {
        var changes: [(id: ItemID, record: QueueRecord)] = []
        for (id, old) in records {
            var record = old
            if change(id, &record) { changes.append((id, record)) }
        }
        try store.place(changes)
        for (id, record) in changes { records[id] = record }
        lastPosition = records.values.lazy.map(\.position).max()
        perform(
            schedule.place(
                Dictionary(
                    uniqueKeysWithValues: changes.map { ($0.id, ($0.record.priority.rawValue, $0.record.position)) })))
    }

    /// Lets the items of a group start when all items of other groups have finished. It replaces what was set before,
    /// is stored, and holds also for items that are enqueued later.
    ///
    /// A group without items has finished, and items that were acknowledged or removed do not count. A failed item
    /// holds the group up until it is tried again with success, acknowledged or removed.
    ///
    /// - Throws: `cyclicDependency` if the group would wait for itself.
    public func setDependencies(of group: String, on groups: Set<String>) throws(TransferQueueError) {
        let store = try openStore()
        if let problem = ([group] + groups).lazy.compactMap({ QueueRecord.problem(ofName: $0) }).first {
            throw TransferQueueError(.invalidArgument, problem)
        }
        var changed = schedule
        guard let actions = changed.setDependencies(of: group, on: groups) else {
            throw TransferQueueError(.cyclicDependency, "the group \(group.printable()) would wait for itself")
        }
        try store.setDependencies(of: group, on: groups)
        schedule = changed
        perform(actions)
    }

    // MARK: Reading

    /// All items: those that have not ended in their order, by priority and place, then the others in the order of
    /// their ends.
    public var snapshot: [Item] {
        get throws(TransferQueueError) {
            let store = try openStore()
            // An item whose result is stored already runs until its transfer has ended.
            let open = records.filter { $0.value.ended == 0 || recorded.contains($0.key) }.sorted { left, right in
                if left.value.priority != right.value.priority { return left.value.priority > right.value.priority }
                return (left.value.position, left.key) < (right.value.position, right.key)
            }
            var items: [Item] = []
            for id in open.map(\.key) + ended.ids {
                if let item = try item(id, store) { items.append(item) }
            }
            return items
        }
    }

    /// Returns an item; nil if there is none of this number.
    public func item(_ id: ItemID) throws(TransferQueueError) -> Item? { try item(id, try openStore()) }

    /// Returns the user data of an item; nil if it has none, or there is no item of this number.
    ///
    /// - Throws: `damaged` if the data are not of this type.
    public func userData<Value: Decodable & Sendable>(
        _ type: Value.Type, of id: ItemID
    ) throws(TransferQueueError) -> Value? {
        guard let data = try openStore().userData(id) else { return nil }
        do {
            return try TernJSONDecoder().decode(type, from: data)
        } catch {
            throw TransferQueueError(.damaged, "the user data of item \(id) are not of the type \(type)")
        }
    }

    func item(_ id: ItemID, _ store: QueueStore) throws(TransferQueueError) -> Item? {
        guard let record = records[id], let state = schedule.state(id) else { return nil }
        var (failure, result) = (Failure?.none, Result?.none)
        if state.hasEnded, let outcome = try store.outcome(id) {
            // `try?`: an outcome that cannot be read is missing, and the state is known without it.
            if state == .finished {
                result = try? TernJSONDecoder().decode(Result.self, from: outcome)
            } else {
                failure = try? TernJSONDecoder().decode(Failure.self, from: outcome)  // As above.
            }
        }
        return Item(
            id: id, kind: record.kind,
            // Each URL that `Target` accepts is one of Foundation.
            url: URL(string: record.url) ?? URL(filePath: "/"), file: URL(filePath: record.fullPath(base: base)),
            state: state, waitsFor: wait(of: id, record, state), priority: record.priority, group: record.group,
            label: record.label,
            requiresUnmeteredNetwork: record.requiresUnmetered, progress: progress(of: id, record, state),
            failure: failure, result: result)
    }

    private func wait(of id: ItemID, _ record: QueueRecord, _ state: State) -> TransferWait? {
        switch state {
        case .running: transfers[id]?.attempts.wait
        case .waitingForNetwork where schedule.isOffline(id):
            .route(host: record.host, nextTrial: offlineTrials.nextDelay)
        case .waitingForNetwork: .unmeteredNetwork
        case .waiting, .paused, .failed, .finished: nil
        }
    }

    private func progress(of id: ItemID, _ record: QueueRecord, _ state: State) -> Session.Progress {
        if let transfer = transfers[id], state == .running {
            let progress = transfer.attempts.progress
            return Session.Progress(
                completedBytes: progress.completedBytes, totalBytes: progress.totalBytes ?? record.total,
                attempt: progress.attempt)
        }
        return Session.Progress(
            completedBytes: record.completed, totalBytes: record.total, isFinished: state.hasEnded)
    }

    /// Every item that has finished or failed and is not acknowledged: first those of earlier processes, in the order
    /// of their ends, then each one when it ends. Each access returns a new stream, which begins with the oldest.
    ///
    /// The stream reads the file as it proceeds, so that a slow reader loses none and costs no memory. It ends when the
    /// queue is closed, or the reader is cancelled.
    public nonisolated var results: AsyncStream<Item> {
        let last = Lock(Int64(0))
        return AsyncStream {
            guard let (item, number) = await self.nextResult(after: last.withLock { $0 }) else { return nil }
            last.withLock { $0 = number }
            return item
        }
    }

    /// Returns the first end after a number; nil if a transfer whose end has a smaller number is about to end.
    private func firstEnd(after last: Int64) -> (number: Int64, id: ItemID)? {
        guard let end = ended.first(after: last) else { return nil }
        // At most as many as transfers run.
        let next = recorded.compactMap { records[$0]?.ended }.min() ?? .max
        return end.number < next ? end : nil
    }

    private func nextResult(after last: Int64) async -> (Item, Int64)? {
        var last = last
        while !Task.isCancelled {
            await changed { [last] in $0.store == nil || $0.isClosing || $0.firstEnd(after: last) != nil }
            guard let store, !isClosing, !Task.isCancelled else { return nil }
            while let end = firstEnd(after: last) {
                last = end.number
                // `try?`: an item that cannot be read stays, and is in the next stream.
                if let item = try? item(end.id, store) { return (item, last) }
            }
        }
        return nil
    }

    /// Returns the progress of items together: bytes, speed and remaining time, at most 10 times a second.
    ///
    /// The last element, for which `isFinished` is true, comes when every item of the selection has ended, or the queue
    /// is closed. The total is nil while the size of an item is not known. Acknowledged items count from the opening of
    /// the queue on.
    public nonisolated func progress(of selection: Selection = .all) -> AsyncStream<Session.Progress> {
        ProgressSampler.stream { await self.progressNow(of: selection) }
    }

    private func progressNow(of selection: Selection) -> Session.Progress {
        var all: [Session.Progress] = []
        var acknowledged: Int64 = 0
        switch selection {
        case .all: acknowledged = acknowledgedBytes[nil] ?? 0
        case .group(let name): acknowledged = acknowledgedBytes[name] ?? 0
        case .item, .items: break
        }
        all.append(Session.Progress(completedBytes: acknowledged, totalBytes: acknowledged, isFinished: true))
        let ids = if case .all = selection { Array(records.keys) } else { ids(of: selection) }
        for id in ids {
            guard let record = records[id], let state = schedule.state(id) else { continue }
            all.append(progress(of: id, record, state))
        }
        let sum = Session.Progress.combined(of: all)
        guard store == nil || isClosing else { return sum }
        return Session.Progress(completedBytes: sum.completedBytes, totalBytes: sum.totalBytes, isFinished: true)
    }
}
