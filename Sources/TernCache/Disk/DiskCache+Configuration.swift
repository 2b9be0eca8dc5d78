#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension DiskCache {
    /// What a disk cache may use, and for how long it keeps things.
    public struct Configuration: Sendable {
        /// The most bytes that all files of the folder take on the disk together: values, the index and its log, and
        /// values that are being written. Held at all times. 256 MiB by default; nil is no limit; less than 4 MiB is
        /// raised to that.
        public var byteLimit: Int? = 256 << 20
        /// The most entries; nil, the default, is no limit.
        public var countLimit: Int?
        /// The space, in bytes, that is left free for others on the disk: entries are evicted for it, and if that does
        /// not help an insert throws `noSpace`. 64 MiB by default.
        public var minimumFreeBytes = 64 << 20
        /// How long an entry lives unless its insert says otherwise; nil, the default, is until it is evicted.
        public var timeToLive: Duration?
        /// The most bytes that `stage` keeps in memory for writing. 8 MiB by default.
        public var stagedByteLimit = 8 << 20
        /// Folders of closed disk caches, looked into in this order after the cache's own and never changed: what an
        /// application ships with.
        public var readOnlyFolders: [URL] = []
        /// The time by which entries are made and expire. Reading it must be cheap; it is asked by the caller's thread.
        public var now: @Sendable () -> Date = { Date() }
        /// Bits of a key's hash that are used: tests make keys collide.
        package var hashMask = UInt64.max

        /// The defaults.
        public init() {}
    }
}

extension Date {
    /// Milliseconds since 1970, as the format stores times.
    var milliseconds: Int64 {
        let value = (timeIntervalSince1970 * 1_000).rounded(.down)
        return value < Double(Int64.max) ? Int64(max(value, Double(Int64.min))) : .max
    }

    init(milliseconds: Int64) { self.init(timeIntervalSince1970: Double(milliseconds) / 1_000) }
}
