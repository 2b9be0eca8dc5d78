extension DiskCache {
    /// What happened in a cache that no call returned.
    public enum Event: Sendable, Hashable {
        /// Entries were evicted to stay within a limit.
        case evicted(count: Int)
        /// Expired entries were swept.
        case expired(count: Int)
        /// A value was damaged or its file was missing, and the entry was removed.
        case damagedEntryRemoved
        /// The index could not be read and was set aside; `rebuiltEntries` were found in files and are back. Values of
        /// up to 16 KiB, which live in the index, are lost.
        case indexSetAside(reason: String, rebuiltEntries: Int)
        /// The last owner ended without closing: `orphanFiles` it left behind were removed, and `missingFiles` entries
        /// whose file it had already deleted.
        case recovered(orphanFiles: Int, missingFiles: Int)
        /// The folder was gone; a new, empty one was made.
        case folderRecreated
        /// A read-only folder cannot be used; it is ignored.
        case readOnlyFolderIgnored(reason: String)
        /// Writing behind the scenes failed: a staged value, the order of use, an eviction.
        case backgroundFailure(DiskCacheError)
        /// So many events were lost here: their reader was too slow.
        case dropped(count: Int)
    }

    /// Events from now on. Each access is a stream of its own, with room for 256 events; past that they are counted in
    /// a `dropped` element. It ends when the cache is closed or gone.
    public nonisolated var events: AsyncStream<Event> { hub.stream() }
}
