#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A value that is being written: in memory while it is small, then in a file.
struct DiskWriting {
    let key: String
    let metadata: Data
    let tags: [String]
    let timeToLive: Duration?
    var buffer = Data()
    var file: DiskTemporary?
    var checksum = DiskChecksum()
    var size = 0
}

extension DiskCache {
    /// Writes one value in pieces, straight into the cache's files. Nothing of it can be read before `commit`.
    ///
    /// Calls take effect in their order. A writer that is dropped without `commit` abandons its value.
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

        /// Adds bytes; returns once the system has them. Room for them is made first, so the limits hold meanwhile.
        /// - Throws: As `insert`; the value is abandoned then. `writerFinished` after the end.
        @concurrent
        public func write(_ bytes: Data) async throws(DiskCacheError) { try await cache.write(bytes, number) }

        /// Puts the value under its key; returns once that is committed. Its life begins now.
        /// - Throws: As `insert`; the value is abandoned then. `writerFinished` after the end.
        @concurrent
        public func commit() async throws(DiskCacheError) { try await cache.commitWriter(number) }

        /// Gives the value up and removes what was written. After the end it does nothing.
        @concurrent
        public func abandon() async { await cache.abandonWriter(number) }
    }

    /// A writer of one value, for a download that goes straight into the cache. The parameters are those of `insert`.
    /// - Throws: `invalidArgument`, `closed`.
    public func writer(
        for key: String, metadata: Data = Data(), tags: [String] = [], timeToLive: Duration? = nil
    ) throws(DiskCacheError) -> Writer {
        try DiskItem.check(key: key, metadata: metadata, tags: tags)
        _ = try openStore()
        writerCount += 1
        writers[writerCount] = DiskWriting(key: key, metadata: metadata, tags: tags, timeToLive: timeToLive)
        return Writer(self, writerCount)
    }

    fileprivate func write(_ bytes: Data, _ number: Int) throws(DiskCacheError) {
        guard var writing = writers.removeValue(forKey: number) else { throw Self.finished }
        do throws(DiskCacheError) {
            writing.checksum.update(bytes)
            writing.size += bytes.count
            let store = try openStore()
            if writing.file == nil, writing.size <= DiskItem.inlineLimit {
                writing.buffer.append(bytes)
            } else {
                var file: DiskTemporary
                if let open = writing.file { file = open } else { file = try store.createTemporary() }
                writing.file = file
                defer { writing.file = file }
                if !writing.buffer.isEmpty {
                    try store.append(writing.buffer, to: &file)
                    writing.buffer = Data()
                }
                try store.append(bytes, to: &file)
            }
            writers[number] = writing
        } catch {
            abandon(writing)
            throw error
        }
    }

    fileprivate func commitWriter(_ number: Int) async throws(DiskCacheError) {
        guard var writing = writers.removeValue(forKey: number) else { throw Self.finished }
        let now = configuration.now().milliseconds
        var item = DiskItem(
            key: shared.hasher.key(writing.key), content: .bytes(writing.buffer), size: writing.size,
            checksum: writing.checksum.value, metadata: writing.metadata, tags: writing.tags, created: now,
            expires: DiskItem.expiry(writing.timeToLive ?? configuration.timeToLive, now: now))
        do throws(DiskCacheError) {
            if var file = writing.file {
                let trailer = item.trailer.encoded()
                defer { writing.file = file }
                try openStore().append(trailer, to: &file)
                item.content = .file(path: file.path, trailer: trailer.count, allocated: file.allocated)
            }
            try await send(.insert([item]))
        } catch {
            abandon(writing)
            throw error
        }
        // From here on its bytes are the entry's.
        if let file = writing.file { seams.files.close(file.descriptor) }
    }

    fileprivate func abandonWriter(_ number: Int) {
        if let writing = writers.removeValue(forKey: number) { abandon(writing) }
    }

    func abandon(_ writing: DiskWriting) {
        guard let file = writing.file else { return }
        do throws(DiskCacheError) {
            if let store { try store.abandon(file) } else { seams.files.close(file.descriptor) }
        } catch {
            hub.send(.backgroundFailure(error))
        }
    }

    private static let finished = DiskCacheError(.writerFinished, "the writer was committed or abandoned before")
}
