#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension DiskCache {
    /// The limits of a disk cache, and the time for which it keeps entries.
    public struct Configuration: Sendable {
        /// The maximum number of bytes that all files of the folder take on the disk: values, the index and its log,
        /// and unfinished values. Held at all times. Default: 256 MiB. Nil is no limit; less than 4 MiB is raised to 4
        /// MiB.
        public var byteLimit: Int? = 256 << 20
        /// The maximum number of entries. Default: nil, no limit.
        public var countLimit: Int?
        /// The number of bytes to leave free on the disk for other users. Entries are evicted for it. If that does not
        /// help, an insert throws `noSpace`. Default: 64 MiB.
        public var minimumFreeBytes = 64 << 20
        /// The time for which an entry is valid if its insert specifies none. Default: nil, until it is evicted.
        public var timeToLive: Duration?
        /// The maximum number of bytes that `enqueue` keeps in memory until they are written. Default: 8 MiB.
        public var queuedByteLimit = 8 << 20
        /// The folders of closed disk caches, for example those that an application ships with. They are searched in
        /// this order after the cache's own folder, and never changed.
        public var readOnlyFolders: [URL] = []
        /// Returns the current time, for the creation and the expiry of entries. Called in the caller's thread; it must
        /// be cheap.
        public var now: @Sendable () -> Date = { Date() }
        /// The bits of a key's hash that are used. Tests set it so that keys collide.
        package var hashMask = UInt64.max

        /// Creates a configuration with the defaults.
        public init() {}
    }
}

extension Date {
    /// The milliseconds since 1970, as the file format stores times.
    var milliseconds: Int64 {
        let value = (timeIntervalSince1970 * 1_000).rounded(.down)
        return value < Double(Int64.max) ? Int64(max(value, Double(Int64.min))) : .max
    }

    init(milliseconds: Int64) { self.init(timeIntervalSince1970: Double(milliseconds) / 1_000) }
}
