import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension DiskCache {
    /// Stores a value under a key, in place of the one that is there, and returns once that is committed.
    ///
    /// Inserts that wait at the same time share a transaction. An insert that has begun is finished even if its task is
    /// cancelled. The old value stays readable until the new one is committed.
    ///
    /// - Parameters:
    ///   - value: The bytes: up to 16 KiB are stored in the index, more in a file of their own.
    ///   - key: Up to 64 KiB of UTF-8, compared by its bytes.
    ///   - metadata: Up to 64 KiB of the caller's own, returned with the value.
    ///   - tags: Groups by which the entry can be removed.
    ///   - timeToLive: How long it lives; nil is the configuration's.
    /// - Throws: `noSpace`, `tooLarge`, `notPermitted`, `inputOutput`, `folderLost`, `closed`, `invalidArgument`.
    ///   Nothing is stored then, and the old value stays; but one for which the new one is too large is removed.
    @concurrent
    public nonisolated func insert(
        _ value: Data, for key: String, metadata: Data = Data(), tags: [String] = [], timeToLive: Duration? = nil
    ) async throws(DiskCacheError) {
        let item = try item(Item(value, for: key, metadata: metadata, tags: tags, timeToLive: timeToLive))
        do throws(DiskCacheError) {
            try await send(.insert([item]))
        } catch {
            if error.kind == .tooLarge { try await send(.remove(item.key)) }
            throw error
        }
    }

    /// Stores many values in one transaction: after a failure, and after a kill before it returns, none of them is there.
    /// Of two items with the same key the later one counts. The errors are those of `insert`.
    @concurrent
    public nonisolated func insert(contentsOf items: some Collection<Item> & Sendable) async throws(DiskCacheError) {
        var places: [UInt64: Int] = [:]
        var prepared: [DiskItem] = []
        prepared.reserveCapacity(items.count)
        for item in items {
            let item = try self.item(item)
            if let place = places[item.key.hash] {
                prepared[place] = item
            } else {
                places[item.key.hash] = prepared.count
                prepared.append(item)
            }
        }
        if !prepared.isEmpty { try await send(.insert(prepared)) }
    }

    /// Takes a value and returns at once: it can be read from now on, and is committed soon. `flush` tells when.
    ///
    /// - Throws: `stagingFull` when more than `Configuration.stagedByteLimit` waits; `closed`; `invalidArgument`. A
    ///   failure to write it is told by `Event.backgroundFailure` and thrown by the next `flush`.
    public nonisolated func stage(
        _ value: Data, for key: String, metadata: Data = Data(), tags: [String] = [], timeToLive: Duration? = nil
    ) throws(DiskCacheError) {
        let item = try item(Item(value, for: key, metadata: metadata, tags: tags, timeToLive: timeToLive))
        if try shared.stage(item, limit: configuration.stagedByteLimit, reply: { _ in }) { wake() }
    }

    /// Returns once all that was staged before is committed, and the order of use is written.
    /// - Throws: The first failure of a staged value since the last flush; `closed`.
    @concurrent
    public nonisolated func flush() async throws(DiskCacheError) {
        try await send(.flush)
        let failure = shared.state.withLock { $0.stagingFailure.take() }
        if let failure { throw failure }
    }

    /// Sends a letter to the thread and waits for its end. Not cancelled: what is half done cannot be taken back.
    nonisolated func send(_ request: DiskMailbox.Request) async throws(DiskCacheError) {
        let result = await withCheckedContinuation { continuation in
            do throws(DiskCacheError) {
                if try shared.push(request, reply: { continuation.resume(returning: $0) }) { wake() }
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
        try result.get()
    }

    /// Checks an item, and computes what is stored beside it, in the caller's thread.
    private nonisolated func item(_ item: Item) throws(DiskCacheError) -> DiskItem {
        try DiskItem.check(key: item.key, metadata: item.metadata, tags: item.tags)
        let now = configuration.now().milliseconds
        return DiskItem(
            key: shared.hasher.key(item.key), content: .bytes(item.value), size: item.value.count,
            checksum: DiskChecksum.of(item.value), metadata: item.metadata, tags: item.tags, created: now,
            expires: DiskItem.expiry(item.timeToLive ?? configuration.timeToLive, now: now))
    }
}
