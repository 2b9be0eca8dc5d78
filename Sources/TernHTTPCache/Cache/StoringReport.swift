import Tern

/// Reports the end of storing a response: to its trace, to the statistics, and to equal requests that wait for it.
struct StoringReport: Sendable {
    let trace: TraceRecord
    let cache: CacheState
    let store: any EntryStore
    let sender: SharedExchange?
    /// The fields that select among the known variants of the response.
    let variant: VarySelection
    /// The entries that the response outdates even if it cannot be stored itself.
    let outdated: [CacheEntry]

    /// Begins the write of an entry that has arrived. Identical requests that come now wait for the write, also after a
    /// stream, whose reader they did not wait for. Returns nil if an identical request is under way.
    func beginWriting(_ entry: CacheEntry) -> SharedExchange? {
        cache.begin(SharingKey(key: entry.key, credentials: entry.properties.credentials, variant: variant))
    }

    /// Reports the result of an insert, which removes outdated entries by itself.
    func stored(_ isStored: Bool) {
        trace.finish(isStored ? .stored : .storeFailed, isStored: isStored)
        if isStored { cache.countStored() }
        sender?.end(isStored ? .stored : .notShared)
    }

    /// Reports that nothing is stored, and removes outdated entries.
    func gaveUp(_ reason: CacheReason) {
        trace.finish(reason, isStored: false)
        guard !outdated.isEmpty else {
            sender?.end(.notShared)
            return
        }
        if let memory = store as? MemoryEntryStore {
            memory.removeNow(outdated)
            sender?.end(.notShared)
            return
        }
        let number = cache.beginWrite()
        // Ends with the removal.
        Task { [store, sender, outdated, cache] in
            await store.remove(outdated)
            sender?.end(.notShared)
            cache.endWrite(number)
        }
    }
}
