#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension DiskCache {
    /// A value with the data that is stored beside it.
    public struct Entry: Sendable, Hashable {
        /// The bytes as they were inserted. Their checksum was verified.
        public let value: Data
        /// The metadata given to the insert; empty if there was none.
        public let metadata: Data
        /// The time of the insert, in milliseconds.
        public let created: Date
        /// The time of expiry; nil for none.
        public let expires: Date?
    }

    /// A value to insert, with the data that is stored beside it.
    public struct Item: Sendable {
        /// The key: up to 64 KiB of UTF-8. Two keys are equal if their bytes are equal.
        public var key: String
        /// The bytes. Up to 16 KiB are stored in the index, more in a file.
        public var value: Data
        /// Up to 64 KiB of the caller's data, returned with the value.
        public var metadata: Data
        /// The groups by which the entry can be removed: up to 64, each up to 1 KiB of UTF-8.
        public var tags: [String]
        /// The time for which the entry is valid; nil uses the configuration's `timeToLive`. An entry with zero or less
        /// is expired at once.
        public var timeToLive: Duration?

        /// Creates an item for `insert(contentsOf:)`.
        public init(
            _ value: Data, for key: String, metadata: Data = Data(), tags: [String] = [], timeToLive: Duration? = nil
        ) {
            self.key = key
            self.value = value
            self.metadata = metadata
            self.tags = tags
            self.timeToLive = timeToLive
        }
    }

    /// The disk usage and the content of a cache at one moment.
    public struct Usage: Sendable, Hashable {
        /// The number of committed entries, including expired entries that are not swept yet.
        public let count: Int
        /// The number of bytes that all files of the folder take on the disk. Never more than
        /// `Configuration.byteLimit`, where a limit of less than 4 MiB counts as 4 MiB.
        public let bytes: Int
        /// The part of `bytes` outside the index: values in files of their own, unfinished values, files that
        /// `removeAll` has not deleted yet, and an index that was set aside.
        public let fileBytes: Int
        /// The part of `bytes` that is the index, with the values inside it, and its log.
        public let indexBytes: Int
        /// The number of bytes of queued values that are not committed yet. They are in memory, and not part of
        /// `bytes`.
        public let queuedBytes: Int
    }
}

extension DiskCache {
    /// An event in a cache that no call reports.
    public enum Event: Sendable, Hashable {
        /// Entries were evicted to stay within a limit.
        case evicted(count: Int)
        /// Expired entries were swept.
        case expired(count: Int)
        /// A value was damaged or its file was missing, and the entry was removed.
        case damagedEntryRemoved
        /// The index could not be read and was set aside. `rebuiltEntries` entries were restored from files. Values of
        /// up to 16 KiB, which are stored in the index, are lost.
        case indexSetAside(reason: String, rebuiltEntries: Int)
        /// The last owner ended without closing. `orphanFiles` files that it left behind were removed, and
        /// `missingFiles` entries whose files it had already deleted.
        case recovered(orphanFiles: Int, missingFiles: Int)
        /// The folder was lost, and a new, empty one was created.
        case folderRecreated
        /// A read-only folder cannot be used, and is ignored.
        case readOnlyFolderIgnored(reason: String)
        /// Background work failed: writing a queued value or the order of use, or an eviction.
        case backgroundFailure(DiskCacheError)
        /// The number of events that were lost here, because their reader was too slow.
        case dropped(count: Int)
    }
}

extension DiskCache {
    /// An open value, whose bytes can be sent from the file (`sendfile`, `read`) without passing through memory.
    ///
    /// It stays readable after the entry is removed or replaced, and is closed when it is released.
    public final class File: Sendable {
        /// A descriptor that is open for reading. The value's bytes are those from 0 to `length`; the rest of the file
        /// belongs to the cache. The caller must not close it. Read it by offset (`pread`), because others may share
        /// it.
        public let descriptor: Int32
        /// The length of the value in bytes.
        public let length: Int
        /// The metadata given to the insert.
        public let metadata: Data
        /// The time at which the value was inserted.
        public let created: Date
        private let files: any DiskFileSystem

        init(descriptor: Int32, entry: Entry, files: any DiskFileSystem) {
            self.descriptor = descriptor
            length = entry.value.count
            metadata = entry.metadata
            created = entry.created
            self.files = files
        }

        deinit { files.close(descriptor) }
    }
}
