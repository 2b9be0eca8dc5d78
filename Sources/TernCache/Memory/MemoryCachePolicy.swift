/// Which entry a memory cache gives up when it is full.
public enum MemoryCachePolicy: String, Sendable, Hashable, CaseIterable {
    /// S3-FIFO: what is used once never drives out what is used often. The better hit ratio on nearly all real traces
    /// (Yang and others, "FIFO queues are all you need for cache eviction", SOSP 2023), and the faster hit.
    case s3FIFO
    /// Least recently used: the strict order of access, over the whole cache.
    case lru
}
