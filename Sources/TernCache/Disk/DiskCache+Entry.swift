#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension DiskCache {
    /// A value with what was stored beside it.
    public struct Entry: Sendable, Hashable {
        /// The bytes, as they were inserted: their checksum was verified.
        public let value: Data
        /// What the insert gave as metadata; empty if nothing.
        public let metadata: Data
        /// When it was inserted, in milliseconds.
        public let created: Date
        /// When it expires; nil if it does not.
        public let expires: Date?
    }

    /// A value to be inserted, with what is stored beside it.
    public struct Item: Sendable {
        /// The key: up to 64 KiB of UTF-8. Two keys are the same if their bytes are.
        public var key: String
        /// The bytes. Up to 16 KiB they are stored in the index, above that in a file.
        public var value: Data
        /// Up to 64 KiB of the caller's own, returned with the value.
        public var metadata: Data
        /// Groups by which the entry can be removed; up to 64, each up to 1 KiB of UTF-8.
        public var tags: [String]
        /// How long it lives; nil is the configuration's `timeToLive`. Zero or less is expired at once.
        public var timeToLive: Duration?

        /// An item for `insert(contentsOf:)`.
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

    /// What a cache takes and holds, at one moment.
    public struct Usage: Sendable, Hashable {
        /// Entries that are committed, expired ones that are not yet swept included.
        public let count: Int
        /// Bytes that all files of the folder take on the disk: never more than `Configuration.byteLimit`.
        public let bytes: Int
        /// The part of `bytes` that is values in files of their own.
        public let fileBytes: Int
        /// The part of `bytes` that is the index, with the values inside it, and its log.
        public let indexBytes: Int
        /// Bytes of values that are staged and not yet committed. In memory, not part of `bytes`.
        public let stagedBytes: Int
    }
}
