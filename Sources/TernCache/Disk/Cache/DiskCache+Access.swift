import TernConcurrency

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

// MARK: - Reading

extension DiskCache {
    /// Returns whether a value is stored or queued under the key, and not expired: from memory, without a system call.
    ///
    /// Keys are compared by 64 bits of a seeded hash here, and by all their bytes when a value is read. A false
    /// positive is as likely as drawing the hash of one of the stored keys by chance. Does not count as a use. False
    /// after `close`.
    public nonisolated func contains(_ key: String) -> Bool {
        let now = configuration.now().milliseconds
        if shared.contains(shared.hasher.hash(key), now: now) { return true }
        guard !configuration.readOnlyFolders.isEmpty, !isClosed else { return false }
        let folders = readOnlyEntries.withLock { $0 }
        return folders.contains { $0.index.find($0.hasher.hash(key), now: now) != nil }
    }

    /// Returns the number of a stored value, which no other value of the cache has or gets; nil without one, and while
    /// it is queued. From memory, without a system call.
    ///
    /// - Parameter isUse: Whether the call counts as a use of the value: a caller that holds the decoded value with its
    ///   number need not read it again.
    package nonisolated func number(of key: String, isUse: Bool) -> Int64? {
        let (key, now) = (shared.hasher.key(key), configuration.now().milliseconds)
        guard isUse else { return shared.number(key, now: now) }
        // A closed cache has no values.
        guard let (found, mustFlush) = try? shared.lookUp(key, now: now) else { return nil }
        // The order of use is lost at worst.
        if mustFlush, (try? shared.push(.flush, reply: { _ in })) == true { wake() }
        guard case .stored(let location)? = found else { return nil }
        return location.id
    }

    /// Returns the verified value of a key; nil if there is none, if it has expired, or if it was damaged, in which
    /// case it is removed. Counts as a use.
    ///
    /// - Throws: `inputOutput` or `notPermitted` if it exists and cannot be read; `closed`.
    @concurrent
    public nonisolated func value(for key: String) async throws(DiskCacheError) -> Data? {
        try await entry(for: key)?.value
    }

    /// Returns the value of a key with its metadata and times. Otherwise like `value(for:)`.
    @concurrent
    public nonisolated func entry(for key: String) async throws(DiskCacheError) -> Entry? {
        try await lookUp(key, reader: .copying)
    }

    /// Returns the value as the mapped bytes of its file, without copying them into memory: for large values of which
    /// only parts are read, or not at once. Verified like any other value. It stays readable after the entry is
    /// removed; the disk space is freed once the bytes are released. Small values are copied.
    @concurrent
    public nonisolated func mappedValue(for key: String) async throws(DiskCacheError) -> Data? {
        try await lookUp(key, reader: .opening { file, target in file.map(target) })?.value
    }

    /// Returns a part of a value of a known length; nil in the cases of `mappedValue(for:)`, and for another length.
    /// Only the part is mapped, or copied if it is small. The whole is read once, in pieces, to verify it.
    @concurrent
    package nonisolated func mappedPart(
        of key: String, _ range: Range<Int>, length: Int
    ) async throws(DiskCacheError) -> Data? {
        guard range.lowerBound >= 0, range.upperBound <= length else { return nil }
        let reader = DiskValueReader.opening { file, target in
            // Empty, which is not the part.
            guard file.trailer.size == length else { return .found(file.trailer.entry(Data(), target.location)) }
            return range == 0..<length ? file.map(target) : file.map(target, range)
        }
        guard let value = try await lookUp(key, reader: reader)?.value else { return nil }
        // A small or queued value is read as a whole.
        if value.count == length, range.count < length {
            let start = value.startIndex
            return Data(value[start + range.lowerBound..<start + range.upperBound])
        }
        return value.count == range.count ? value : nil
    }

    /// Returns the value of a key as an open file; nil in the cases of `value(for:)`. Verified before it is returned. A
    /// small or queued value is written to a file without a name.
    @concurrent
    public nonisolated func file(for key: String) async throws(DiskCacheError) -> File? {
        let holder = DescriptorHolder()
        let reader = DiskValueReader.opening { file, target in
            let result = file.map(target)
            if case .found = result { holder.store(fcntl(file.descriptor, F_DUPFD_CLOEXEC, 0)) }
            return result
        }
        guard let entry = try await lookUp(key, reader: reader) else { return nil }
        if let descriptor = holder.take() {
            guard descriptor >= 0 else { throw .system("duplicate the descriptor of", folder.values) }
            return File(descriptor: descriptor, entry: entry, files: dependencies.files)
        }
        return File(descriptor: try await unnamedFile(entry.value), entry: entry, files: dependencies.files)
    }

    private func unnamedFile(_ value: Data) throws(DiskCacheError) -> Int32 {
        let store = try openStore()
        let path = store.temporaryPath()
        let descriptor = try store.files.create(path)
        do throws(DiskCacheError) {
            try store.files.remove(path)
            try store.write(value, to: descriptor, path: path)
            return descriptor
        } catch {
            store.files.close(descriptor)
            throw error
        }
    }

    /// Looks a key up in memory, reads the value that it finds with `reader`, and removes a damaged one.
    private nonisolated func lookUp(
        _ text: String, reader: DiskValueReader
    ) async throws(DiskCacheError) -> Entry? {
        let now = configuration.now().milliseconds
        while true {
            let key = shared.hasher.key(text)
            let (found, mustFlush) = try shared.lookUp(key, now: now)
            if mustFlush, try shared.push(.flush, reply: { _ in }) { wake() }
            switch found {
            case nil:
                return try await lookUpInReadOnlyFolders(text, now: now, reader: reader)
            case .queued(let item):
                guard case .bytes(let value) = item.content else { return nil }
                return Entry(
                    value: value, metadata: item.metadata, created: Date(milliseconds: item.created),
                    expires: item.expires == .max ? nil : Date(milliseconds: item.expires))
            case .stored(let location):
                switch await read(location, key: key, readOnlyFolder: nil, folder: folder, reader: reader) {
                case .found(let entry): return entry
                case .otherKey: return try await lookUpInReadOnlyFolders(text, now: now, reader: reader)
                case .failed(let error): throw error
                // The entry was replaced or removed in the meantime. The current state is the answer.
                case .gone where !shared.state.withLock({ $0.index.isHeld(key.hash, id: location.id) }): continue
                case .gone, .damaged:
                    try await discard(key, location)
                    return try await lookUpInReadOnlyFolders(text, now: now, reader: reader)
                }
            }
        }
    }

    private nonisolated func discard(_ key: DiskKey, _ location: DiskIndex.Location) async throws(DiskCacheError) {
        broadcast.send(.damagedEntryRemoved)
        do throws(DiskCacheError) {
            try await send(.discard(hash: key.hash, id: location.id))
        } catch  where error.kind == .folderLost {
            // The entry was lost with all others, and a new folder was created.
        }
    }

    private nonisolated func read(
        _ location: DiskIndex.Location, key: DiskKey, readOnlyFolder: Int?, folder: DiskFolder,
        reader: DiskValueReader
    ) async -> DiskReadResult {
        if location.isInline {
            return await withCheckedContinuation { continuation in
                let request = DiskSharedState.ReadRequest(
                    readOnlyFolder: readOnlyFolder, location: location, key: key
                ) {
                    continuation.resume(returning: $0)
                }
                switch shared.push(request) {
                case true?: wake()
                case false?: break
                case nil: continuation.resume(returning: .failed(DiskSharedState.closed))
                }
            }
        }
        let files = readOnlyFolder == nil ? shared.state.withLock { $0.files } : nil
        let target = DiskReadTarget(
            path: folder.value(location.id), location: location, key: key, files: files ?? dependencies.files)
        if let result = reader.readCached(target) { return result }
        return await readers.run(location.id) { reader.read(target) }
    }

    /// Looks a key up in the read-only folders, in their order. Removes nothing from them, not even damaged entries.
    private nonisolated func lookUpInReadOnlyFolders(
        _ text: String, now: Int64, reader: DiskValueReader
    ) async throws(DiskCacheError) -> Entry? {
        guard !configuration.readOnlyFolders.isEmpty else { return nil }
        for (number, entries) in readOnlyEntries.withLock({ $0 }).enumerated() {
            let key = entries.hasher.key(text)
            guard let location = entries.index.find(key.hash, now: now) else { continue }
            switch await read(location, key: key, readOnlyFolder: number, folder: entries.folder, reader: reader) {
            case .found(let entry): return entry
            case .failed(let error): throw error
            case .gone, .damaged, .otherKey: continue
            }
        }
        return nil
    }
}

// MARK: - Inserting

extension DiskCache {
    /// Stores a value under a key, in place of an existing one, and returns once that is committed.
    ///
    /// Inserts that wait at the same time share a transaction. An insert that has begun is completed even if its task
    /// is cancelled. The old value stays readable until the new one is committed.
    ///
    /// - Parameters:
    ///   - value: The bytes. Up to 16 KiB are stored in the index, more in a file of their own.
    ///   - key: Up to 64 KiB of UTF-8, compared by its bytes.
    ///   - metadata: Up to 64 KiB of the caller's data, returned with the value.
    ///   - tags: The groups by which the entry can be removed.
    ///   - timeToLive: The time for which the entry is valid; nil uses the configuration's.
    /// - Throws: `noSpace`, `tooLarge`, `notPermitted`, `inputOutput`, `folderLost`, `closed`, `invalidArgument`.
    ///   Nothing is stored then, and the old value stays, except that it is removed after `tooLarge`. No other entry is
    ///   evicted for a value that is too large.
    @concurrent
    public nonisolated func insert(
        _ value: Data, for key: String, metadata: Data = Data(), tags: [String] = [], timeToLive: Duration? = nil
    ) async throws(DiskCacheError) {
        let item = try item(Item(value, for: key, metadata: metadata, tags: tags, timeToLive: timeToLive))
        try await send(.insert([item]))
    }

    /// Stores many values in one transaction. After a failure, or a kill before it returns, none of them is stored. Of
    /// two items with the same key, the later one counts. The errors are those of `insert`. `tooLarge` is thrown if the
    /// items do not fit together; the old values of all their keys are then removed.
    @concurrent
    public nonisolated func insert(contentsOf items: some Collection<Item> & Sendable) async throws(DiskCacheError) {
        var positions: [UInt64: Int] = [:]
        var prepared: [DiskItem] = []
        prepared.reserveCapacity(items.count)
        for item in items {
            let item = try self.item(item)
            if let position = positions[item.key.hash] {
                prepared[position] = item
            } else {
                positions[item.key.hash] = prepared.count
                prepared.append(item)
            }
        }
        guard !prepared.isEmpty || isClosed else { return }
        try await send(.insert(prepared))
    }

    /// Accepts a value and returns at once. The value can be read from now on, and is committed soon: see `flush`.
    ///
    /// - Throws: `queueFull` when more than `Configuration.queuedByteLimit` waits; `closed`; `invalidArgument`.
    ///   `Event.backgroundFailure` reports a failure to write the value, and the next `flush` throws it. An
    ///   old value of the key stays then, except after `tooLarge`.
    public nonisolated func enqueue(
        _ value: Data, for key: String, metadata: Data = Data(), tags: [String] = [], timeToLive: Duration? = nil
    ) throws(DiskCacheError) {
        let item = try item(Item(value, for: key, metadata: metadata, tags: tags, timeToLive: timeToLive))
        if try shared.enqueue(item, limit: configuration.queuedByteLimit, reply: { _ in }) { wake() }
    }

    /// Returns once all values queued before are committed, and the order of use is written.
    /// - Throws: The first failure of a queued value since the last flush; `closed`.
    @concurrent
    public nonisolated func flush() async throws(DiskCacheError) {
        try await send(.flush)
        let failure = shared.state.withLock { $0.queueFailure.take() }
        if let failure { throw failure }
    }

    /// Sends a request to the thread and waits until it is completed. Ignores cancellation: a half-done request cannot
    /// be taken back.
    nonisolated func send(_ request: DiskCommandQueue.Request) async throws(DiskCacheError) {
        let result = await withCheckedContinuation { continuation in
            do throws(DiskCacheError) {
                if try shared.push(request, reply: { continuation.resume(returning: $0) }) { wake() }
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
        try result.get()
    }

    /// Validates an item, and computes the data that is stored beside it, in the caller's thread.
    private nonisolated func item(_ item: Item) throws(DiskCacheError) -> DiskItem {
        try DiskItem.validate(key: item.key, metadata: item.metadata, tags: item.tags)
        let now = configuration.now().milliseconds
        return DiskItem(
            key: shared.hasher.key(item.key), content: .bytes(item.value), size: item.value.count,
            checksum: DiskChecksum.of(item.value), metadata: item.metadata, tags: item.tags, created: now,
            expires: DiskItem.expiry(item.timeToLive ?? configuration.timeToLive, now: now))
    }
}

// MARK: - Removing

extension DiskCache {
    /// Removes the value of a key, queued or stored, and returns once that is committed. A missing value is not an
    /// error. Values of read-only folders stay.
    @concurrent
    public nonisolated func remove(_ key: String) async throws(DiskCacheError) {
        try await send(.remove(shared.hasher.key(key)))
    }

    /// Removes all entries, and returns once that is committed. It takes one transaction and one rename. The files are
    /// deleted afterwards, in steps between other work, and count as used until then.
    @concurrent
    public nonisolated func removeAll() async throws(DiskCacheError) { try await send(.removeAll) }

    /// Removes the entries that were inserted with a tag, and returns once that is committed. A kill in the meantime
    /// can leave some of them.
    @concurrent
    public nonisolated func removeAll(tagged tag: String) async throws(DiskCacheError) {
        try await send(.removeTag(Data(tag.utf8)))
    }

    /// Removes expired entries. Expired entries are never found, and each insert sweeps a few of them in any case.
    @concurrent
    public nonisolated func removeExpired() async throws(DiskCacheError) { try await send(.sweep) }

    /// Evicts the least recently used entries until the files take at most `bytes`, without the index's log.
    @concurrent
    public nonisolated func trim(toBytes bytes: Int) async throws(DiskCacheError) {
        try await send(.trim(bytes: bytes))
    }
}

extension DiskCache {
    /// Returns tags of stored entries that begin with a prefix, in the order of their bytes.
    ///
    /// - Parameters:
    ///   - prefix: The beginning of the tags. It is ASCII, and not empty.
    ///   - last: The tag after which the search begins; nil for the first one.
    ///   - limit: The greatest number of tags.
    package func tags(prefix: String, after last: String?, limit: Int) throws(DiskCacheError) -> [String] {
        let first = Data((last ?? prefix).utf8)
        // No byte of UTF-8 is 0xFF.
        let end = Data(prefix.utf8) + [0xFF]
        return try openStore().tables.tags(after: first, before: end, limit: limit)
            .map { String(decoding: $0, as: UTF8.self) }
    }
}
