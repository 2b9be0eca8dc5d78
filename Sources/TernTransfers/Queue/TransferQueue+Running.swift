import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The attempts of a transfer of either kind, as its queue sees them.
protocol RunningAttempts: Sendable {
    /// The reason for which no bytes move at present; nil for none.
    var wait: TransferWait? { get }
    var progress: Session.Progress { get }
    /// Whether a later transfer of the item continues what this one has moved.
    var continues: Bool { get }
    /// Whether the transfer has ended because there is no network.
    var endedOffline: Bool { get }
    /// The error of the transfer when it has ended; nil after success.
    var failure: NetworkError? { get async }
    func cancel()
}

extension DurableAttempts: RunningAttempts {
    var progress: Session.Progress { Event.isUpload ? meter.upload : meter.download }

    var failure: NetworkError? {
        get async {
            do throws(NetworkError) {
                _ = try await outcome.value()
                return nil
            } catch {
                return error
            }
        }
    }
}

/// The actor of a transfer of either kind, which removes what it has left.
protocol DurableTransfer: Actor {
    /// Removes the part of a transfer that does not run.
    func removePart() async throws(NetworkError)
    /// Removes what a killed process left of a transfer that has finished.
    func removeRest() async throws
}

extension DurableDownload: DurableTransfer {}

extension DurableUpload: DurableTransfer {
    func removeRest() async throws { try await removePart() }
}

/// The transfer of an item.
struct RunningTransfer: Sendable {
    let attempts: any RunningAttempts
    /// Waits for the end and reports it to the queue. It ends with the transfer.
    let reporter: Task<Void, Never>
}

/// The limits on the rates of a queue, which its transfers share.
struct QueueThrottles {
    private(set) var limits: TransferQueue.Limits
    private let time: TransferTime
    private let overall: DownloadThrottle
    private var byHost: [String: WeakThrottle] = [:]
    /// The number of hosts at which those without transfers are removed.
    private var sweepCount = 64

    private struct WeakThrottle {
        weak var throttle: DownloadThrottle?
    }

    init(_ limits: TransferQueue.Limits, _ time: TransferTime) {
        self.limits = limits
        self.time = time
        overall = DownloadThrottle(rate: limits.bytesPerSecond, time: time)
    }

    mutating func set(_ limits: TransferQueue.Limits) {
        self.limits = limits
        overall.rate = limits.bytesPerSecond
        for host in byHost.values { host.throttle?.rate = limits.bytesPerSecondPerHost }
    }

    /// Returns the limits for a host. Only its transfers keep them alive.
    mutating func throttles(for host: String) -> [DownloadThrottle] {
        if let known = byHost[host]?.throttle { return [overall, known] }
        if byHost.count >= sweepCount {
            byHost = byHost.filter { $0.value.throttle != nil }
            sweepCount = max(64, 2 * byHost.count)
        }
        let throttle = DownloadThrottle(rate: limits.bytesPerSecondPerHost, time: time)
        byHost[host] = WeakThrottle(throttle: throttle)
        return [overall, throttle]
    }
}

/// A result that waits for the next transaction.
final class UnsavedResult {
    let id: TransferQueue.ItemID
    let result: TransferQueue.Result
    var outcome: Swift.Result<Void, TransferQueueError>?

    init(_ id: TransferQueue.ItemID, _ result: TransferQueue.Result) { (self.id, self.result) = (id, result) }
}

extension TransferQueue {
    /// Performs the actions of a decision.
    func perform(_ actions: [QueueSchedule.Action]) {
        var events: [Event] = []
        for action in actions {
            switch action {
            case .start(let id): startTransfer(id)
            case .stop(let id): transfers[id]?.attempts.cancel()
            case .changed(let id, let state): events.append(.changed(id, state))
            case .discard(let id): discards.append(id)
            case .forget: break  // Its row and its record are gone already.
            }
        }
        send(events)
        if !discards.isEmpty, discarding == nil { discarding = Task { await discard() } }
        notify()
    }

    // MARK: The life of a transfer

    private func startTransfer(_ id: ItemID) {
        guard let record = records[id] else { return }
        let attempts = startedTransfer(id, record)
        let reporter = Task {
            let failure = await attempts.failure
            transferDidEnd(id, failure, isOffline: attempts.endedOffline)
        }
        transfers[id] = RunningTransfer(attempts: attempts, reporter: reporter)
    }

    /// Starts a durable transfer. The item can have been changed in the file, so all of it is checked.
    private func startedTransfer(_ id: ItemID, _ record: QueueRecord) -> any RunningAttempts {
        let file = URL(filePath: record.fullPath(base: base))
        func refused(_ reason: String) -> any RunningAttempts {
            let error = NetworkError(.invalidRequest, reason: reason)
            return DurableDownload.started(
                .failure(error), session: session, to: file, options: DurableDownloadOptions()
            ).attempts
        }
        let options: QueueOptions
        do throws(TransferQueueError) {
            guard let stored = try openStore().options(id) else { return refused("the stored options are not valid") }
            options = stored
        } catch {
            return refused("the stored options cannot be read: \(error)")
        }
        // `try?`: the URL was checked when it was read.
        guard let target = try? Target(absolute: record.url) else { return refused("the stored URL is not valid") }
        let throttles = throttles.throttles(for: record.host)
        var retry = configuration.retry
        retry.endsOffline = true
        var credentials: (@Sendable () async throws -> Credentials)?
        if let provide = configuration.credentials {
            credentials = {
                guard let item = try await self.item(id) else { throw CancellationError() }
                return try await provide(item)
            }
        }
        switch record.kind {
        case .download:
            var request = Request(.get, target, headers: options.headers)
            request.priority = record.priority
            var download = options.download
            (download.retry, download.clock) = (retry, configuration.clock)
            download.hooks = TransferHooks(
                credentials: credentials,
                record: { result throws(TransferQueueError) in try await self.store(Result(result), of: id) },
                throttles: throttles)
            // A URL that expires while its transfer runs: the next attempt asks for credentials.
            if credentials != nil, let url = target.url { download.url = { _ in url } }
            return DurableDownload.started(
                .success(request), session: session, to: file, options: download, system: configuration.system
            ).attempts
        case .upload:
            let isPut = options.isWholeUpload && options.form == nil
            var request = Request(isPut ? .put : .post, target, headers: options.headers)
            request.priority = record.priority
            var upload = options.upload
            retry.policy.statuses.formUnion(upload.retry.policy.statuses.intersection([409, 423, 460]))
            (upload.retry, upload.clock) = (retry, configuration.clock)
            upload.hooks = TransferHooks(
                credentials: credentials,
                record: { result throws(TransferQueueError) in try await self.store(Result(result), of: id) },
                throttles: throttles)
            guard !options.isWholeUpload else {
                // A URL or a header field that expires while its transfer runs: the next attempt asks for credentials.
                if credentials != nil, let url = target.url { upload.url = { _ in url } }
                return RetriedUpload.started(
                    file, .success(request), form: options.form, session: session, options: upload,
                    system: configuration.system
                ).attempts
            }
            return DurableUpload.started(
                file, .success(request), kind: options.uploadKind, session: session, options: upload,
                system: configuration.system
            ).attempts
        }
    }

    /// Stores the result of a transfer whose file has its name. Results that arrive at the same time share a
    /// transaction.
    private func store(_ result: Result, of id: ItemID) async throws(TransferQueueError) {
        let unsaved = UnsavedResult(id, result)
        unsavedResults.append(unsaved)
        // Those who wait for the thread already are heard first.
        await Task.yield()
        if unsaved.outcome == nil { saveResults() }
        try unsaved.outcome?.get()
    }

    private func saveResults() {
        let results = unsavedResults
        unsavedResults = []
        var changes: [(id: ItemID, record: QueueRecord, outcome: Data?)] = []
        var end = lastEnd
        for unsaved in results {
            // An item that was cancelled meanwhile has ended before, and this end counts.
            guard var record = records[unsaved.id] else { continue }
            end += 1
            (record.intent, record.isRetryable, record.ended) = (.finished, false, end)
            (record.completed, record.total) = (unsaved.result.bytes, unsaved.result.bytes)
            changes.append((unsaved.id, record, Self.encoded(unsaved.result)))
        }
        let outcome = Swift.Result { () throws(TransferQueueError) in
            guard let store else { throw .closed }
            try store.update(changes)
        }
        for unsaved in results { unsaved.outcome = outcome }
        guard case .success = outcome else { return }
        lastEnd = end
        for (id, record, _) in changes {
            forgetEnd(of: id)
            records[id] = record
            recorded.insert(id)
        }
    }

    /// Records the end of a transfer.
    ///
    /// - Parameters:
    ///   - failure: Its error; nil after success.
    ///   - isOffline: Whether it ended because there was no network. The network can be back.
    private func transferDidEnd(_ id: ItemID, _ failure: NetworkError?, isOffline: Bool) {
        let attempts = transfers.removeValue(forKey: id)?.attempts
        defer { notify() }
        recorded.remove(id)
        guard var record = records[id] else { return perform(schedule.transferEnded(id, .finished)) }
        guard let failure else {
            ended.add(id, number: record.ended)
            if keys[record.key] == id { keys[record.key] = nil }
            return perform(schedule.transferEnded(id, .finished))
        }
        if let attempts {
            let progress = attempts.progress
            record.completed = attempts.continues ? min(progress.completedBytes, ControlFile.mostBytes) : 0
            record.total = progress.totalBytes.map { min($0, ControlFile.mostBytes) } ?? record.total
        }
        // A closing queue removes what it was told to remove, too.
        if schedule.isRemoved(id) { return perform(schedule.transferEnded(id, .finished)) }
        var outcome: Data?
        var actions: [QueueSchedule.Action] = []
        if !isClosing {
            if isOffline { watchNetwork() }
            let isRetryable = isRetryable(failure)
            actions = schedule.transferEnded(id, isOffline ? .offline : .failed(isRetryable: isRetryable))
            if isOffline { tryOfflineHostsLater() }
            if record.intent == .waiting, case .failed? = schedule.state(id) {
                lastEnd += 1
                (record.intent, record.isRetryable, record.ended) = (.failed, isRetryable, lastEnd)
                ended.add(id, number: lastEnd)
                outcome = Self.encoded(
                    Failure(failure.kind, "\(failure)", status: failure.status, isRetryable: isRetryable))
            }
        }
        records[id] = record
        // `try?`: the item is tried again after the next opening, and its failure is found again.
        try? store?.update([(id, record, outcome)])
        perform(actions)
    }

    /// Returns whether the same transfer can succeed later.
    private func isRetryable(_ error: NetworkError) -> Bool {
        let policy = configuration.retry.policy
        if error.kind == .status { return error.status.map { policy.statuses.contains($0) } ?? false }
        let others: Set<NetworkError.Kind> = [
            .cancelled, .fileSystem, .downloadInProgress, .uploadInProgress, .authentication,
        ]
        return policy.kinds.contains(error.kind) || others.contains(error.kind)
    }

    static func encoded(_ value: some Encodable) -> Data? {
        // `try?`: values of these types can be encoded, and an outcome that is missing loses no state.
        try? TernJSONEncoder().encode(value)
    }

    // MARK: Removed and acknowledged items

    /// Removes the parts of removed items, then the items. An item whose part cannot be removed has failed, and stays.
    private func discard() async {
        while !discards.isEmpty {
            let ids = Array(discards.prefix(256))
            discards.removeFirst(ids.count)
            var removed: [ItemID] = []
            for id in ids {
                guard let record = records[id] else { continue }
                if record.intent == .finished {
                    await removeRest(of: id, record)
                } else if let error = await removePart(of: record) {
                    let failure = (error.underlying as? FileFailure).map { TransferQueueError($0) }
                    restore(id, TransferQueueError(failure?.kind ?? .inputOutput, "\(error)"))
                    continue
                }
                removed.append(id)
            }
            do throws(TransferQueueError) {
                try store?.delete(removed)
                forget(removed)
            } catch {
                // Their rows would bring them back in the next process.
                for id in removed { restore(id, error) }
            }
            notify()
        }
        discarding = nil
        notify()
    }

    /// Removes the part of a download, or the description of an upload. Returns the error if there is one that stays.
    private func removePart(of record: QueueRecord) async -> NetworkError? {
        do throws(NetworkError) {
            try await idleTransfer(record)?.removePart()
            return nil
        } catch {
            // A part that another download continues is no longer that of the item.
            return error.kind == .downloadInProgress || error.kind == .uploadInProgress ? nil : error
        }
    }

    /// Puts back an item that could not be removed.
    private func restore(_ id: ItemID, _ error: TransferQueueError) {
        guard var record = records[id] else { return }
        let reason = "the item cannot be removed: \(error.reason)"
        unremoved[id] = TransferQueueError(error.kind, reason)
        // A finished transfer stays finished.
        if record.intent == .finished { return perform(schedule.add([Self.entry(id, record)])) }
        forgetEnd(of: id)
        lastEnd += 1
        (record.intent, record.isRetryable, record.ended) = (.failed, true, lastEnd)
        records[id] = record
        ended.add(id, number: lastEnd)
        // `try?`: the item is removed after the next opening, or fails again.
        try? store?.update([(id, record, Self.encoded(Failure(.fileSystem, reason, isRetryable: true)))])
        perform(schedule.add([Self.entry(id, record)]))
        send([.changed(id, .failed(retryable: true))])
    }

    /// Removes the file that a killed process left beside a finished one.
    func removeRest(of id: ItemID, _ record: QueueRecord) async {
        // A newer upload of the same file to the same place has a description of the same name.
        if record.kind == .upload, let owner = keys[record.key], owner != id { return }
        // `try?`: the rest costs little, and the next transfer of the file removes it.
        try? await idleTransfer(record)?.removeRest()
    }

    /// Returns a transfer that does not run, for its files.
    private func idleTransfer(_ record: QueueRecord) -> (any DurableTransfer)? {
        // `try?`: the URL was checked when it was read.
        guard let target = try? Target(absolute: record.url) else { return nil }
        let file = URL(filePath: record.fullPath(base: base))
        switch record.kind {
        case .download:
            return DurableDownload(
                .success(Request(.get, target)), session: session, to: file, options: DurableDownloadOptions(),
                system: configuration.system)
        case .upload:
            // The kind of the protocol is no part of the file's name.
            return DurableUpload(
                file, .success(Request(.post, target)), kind: .tus, session: session, options: DurableUploadOptions(),
                system: configuration.system)
        }
    }
}
