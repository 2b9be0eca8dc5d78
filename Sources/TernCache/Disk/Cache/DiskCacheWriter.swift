import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension DiskCache {
    /// Writes one value in pieces, directly into the cache's files. Nothing of it can be read before `commit`.
    ///
    /// Calls take effect in their order. A writer that is released without `commit` abandons its value.
    public final class Writer: Sendable {
        private let cache: DiskCache
        private let number: Int

        init(_ cache: DiskCache, _ number: Int) {
            self.cache = cache
            self.number = number
        }

        deinit {
            let (cache, number) = (cache, number)
            cache.executor.submit { cache.assumeIsolated { $0.abandonWriter(number) } }
        }

        /// Adds bytes, and returns once the system has them. Makes room for them first, so that the limits hold.
        /// The length of the value is not known before its end, so each call evicts what its own bytes need. Bytes that
        /// do not fit beside the unfinished values, even without entries, are refused before anything is evicted for
        /// them.
        /// - Throws: The errors of `insert`, after which the value is abandoned. `writerFinished` after the end.
        ///   `closed` after the cache was closed.
        @concurrent
        public func write(_ bytes: Data) async throws(DiskCacheError) { try await cache.write(bytes, number) }

        /// Stores the value under its key, and returns once that is committed. Its time to live begins now.
        /// - Throws: The errors of `insert`, after which the value is abandoned. `writerFinished` after the end.
        ///   `closed` after the cache was closed.
        @concurrent
        public func commit() async throws(DiskCacheError) { try await cache.commitWriter(number) }

        /// Abandons the value and removes the bytes that were written. After the end, it has no effect.
        @concurrent
        public func abandon() async { await cache.abandonWriter(number) }
    }

    /// Creates a writer of one value, for a download directly into the cache. The parameters are those of `insert`.
    /// - Throws: `invalidArgument`, `closed`.
    public func writer(
        for key: String, metadata: Data = Data(), tags: [String] = [], timeToLive: Duration? = nil
    ) throws(DiskCacheError) -> Writer {
        try DiskItem.validate(key: key, metadata: metadata, tags: tags)
        _ = try openStore()
        writerCount += 1
        writers[writerCount] = DiskPendingValue(key: key, metadata: metadata, tags: tags, timeToLive: timeToLive)
        return Writer(self, writerCount)
    }

    fileprivate func write(_ bytes: Data, _ number: Int) async throws(DiskCacheError) {
        guard var pending = writers.removeValue(forKey: number) else { throw missingWriter }
        do throws(DiskCacheError) {
            pending.checksum.update(bytes)
            pending.size += bytes.count
            let store = try openStore()
            if pending.file == nil, pending.size <= DiskItem.inlineLimit {
                pending.buffer.append(bytes)
            } else {
                var file: DiskTemporaryFile
                if let open = pending.file { file = open } else { file = try store.createTemporary() }
                pending.file = file
                defer { pending.file = file }
                if !pending.buffer.isEmpty {
                    try store.append(pending.buffer, to: &file)
                    pending.buffer = Data()
                }
                try store.append(bytes, to: &file)
            }
            writers[number] = pending
        } catch {
            try await abandon(pending, after: error)
            throw error
        }
    }

    fileprivate func commitWriter(_ number: Int) async throws(DiskCacheError) {
        guard var pending = writers.removeValue(forKey: number) else { throw missingWriter }
        let now = configuration.now().milliseconds
        var item = DiskItem(
            key: shared.hasher.key(pending.key), content: .bytes(pending.buffer), size: pending.size,
            checksum: pending.checksum.value, metadata: pending.metadata, tags: pending.tags, created: now,
            expires: DiskItem.expiry(pending.timeToLive ?? configuration.timeToLive, now: now))
        do throws(DiskCacheError) {
            if var file = pending.file {
                let trailer = item.trailer.encoded()
                defer { pending.file = file }
                do throws(DiskCacheError) {
                    try openStore().append(trailer, to: &file)
                } catch {
                    if error.kind == .tooLarge { try await send(.remove(item.key)) }
                    throw error
                }
                item.content = .file(path: file.path, trailer: trailer.count, allocated: file.allocated)
            }
            try await send(.insert([item]))
        } catch {
            abandon(pending)
            throw error
        }
        // The entry owns the bytes from here on.
        if let file = pending.file { dependencies.files.close(file.descriptor) }
    }

    fileprivate func abandonWriter(_ number: Int) {
        if let pending = writers.removeValue(forKey: number) { abandon(pending) }
    }

    /// Abandons a value that cannot be written. If it is too large, the old value of its key is removed, as by an
    /// insert.
    private func abandon(_ pending: DiskPendingValue, after error: DiskCacheError) async throws(DiskCacheError) {
        abandon(pending)
        if error.kind == .tooLarge { try await send(.remove(shared.hasher.key(pending.key))) }
    }

    func abandon(_ pending: DiskPendingValue) {
        guard let file = pending.file else { return }
        do throws(DiskCacheError) {
            if let store { try store.abandon(file) } else { dependencies.files.close(file.descriptor) }
        } catch {
            broadcast.send(.backgroundFailure(error))
        }
    }

    /// The error of a call on a writer that has ended.
    private var missingWriter: DiskCacheError {
        isClosed
            ? DiskSharedState.closed
            : DiskCacheError(.writerFinished, "the writer was committed or abandoned before")
    }
}

/// The value of a writer before its commit: in memory while it is small, then in a file.
struct DiskPendingValue {
    let key: String
    let metadata: Data
    let tags: [String]
    let timeToLive: Duration?
    var buffer = Data()
    var file: DiskTemporaryFile?
    var checksum = DiskChecksum()
    var size = 0
}

/// The file that a writer fills.
struct DiskTemporaryFile: Sendable {
    let path: String
    let descriptor: Int32
    /// The store that created the file. When the folder is lost or the index is rebuilt, the file is lost too.
    let store: ObjectIdentifier
    var allocated = 0
}

extension DiskStore {
    func createTemporary() throws(DiskCacheError) -> DiskTemporaryFile {
        try checkFolder()
        let path = temporaryPath()
        return DiskTemporaryFile(path: path, descriptor: try files.create(path), store: ObjectIdentifier(self))
    }

    /// Makes room for bytes and adds them to a file.
    func append(_ bytes: Data, to file: inout DiskTemporaryFile) throws(DiskCacheError) {
        guard file.store == ObjectIdentifier(self) else {
            throw DiskCacheError(.folderLost, "the file of this writer was lost with the folder or the index")
        }
        let room = (bytes.count + 8_191) & ~4_095
        try makeRoom(DiskBudget.SpaceRequest(fileBytes: room))
        try write(bytes, to: file.descriptor, path: file.path)
        let allocated = try files.status(file.descriptor, file.path).allocated
        temporaryBytes += allocated - file.allocated
        file.allocated = allocated
    }

    func abandon(_ file: DiskTemporaryFile) throws(DiskCacheError) {
        files.close(file.descriptor)
        guard file.store == ObjectIdentifier(self) else { return }
        temporaryBytes -= file.allocated
        try files.remove(file.path)
    }
}
