#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension DiskCacheError {
    /// The kind of a failure. New kinds may be added: switch with a `default`.
    public struct Kind: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The kind's name, fit for a metric label.
        public let rawValue: String

        /// A kind by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The kind's name.
        public var description: String { rawValue }

        /// The disk, or the user's quota, is full, and evicting did not help. Nothing of the call was stored.
        public static let noSpace = Kind(rawValue: "no-space")
        /// The folder may not be read or written, or its file system is read-only.
        public static let notPermitted = Kind(rawValue: "not-permitted")
        /// The folder was deleted or replaced under the cache. It starts anew, empty, with the next call.
        public static let folderLost = Kind(rawValue: "folder-lost")
        /// Another process, or another cache of this process, holds the folder.
        public static let inUse = Kind(rawValue: "in-use")
        /// The folder was written by a later version of this library.
        public static let unsupportedFormat = Kind(rawValue: "unsupported-format")
        /// The value does not fit under the limits even if all else goes; an old value of the key is removed.
        public static let tooLarge = Kind(rawValue: "too-large")
        /// More bytes are staged than `DiskCache.Configuration.stagedByteLimit` allows. Insert, or flush first.
        public static let stagingFull = Kind(rawValue: "staging-full")
        /// The key, the metadata or a tag is longer than the format holds.
        public static let invalidArgument = Kind(rawValue: "invalid-argument")
        /// The index is damaged. Inside the cache this is mended; it surfaces only for a read-only folder.
        public static let corrupt = Kind(rawValue: "corrupt")
        /// Reading or writing failed for another reason (EIO, too many open files …); `code` is the system's.
        public static let inputOutput = Kind(rawValue: "input-output")
        /// The cache was closed.
        public static let closed = Kind(rawValue: "closed")
        /// The writer was committed or abandoned before.
        public static let writerFinished = Kind(rawValue: "writer-finished")
    }
}

/// Why a call of a `DiskCache` failed: what failed, on what, and why.
///
/// Its texts name files of the cache's folder and never a key, a tag or a value: keys are often URLs that hold secrets.
public struct DiskCacheError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What kind of failure this is.
    public let kind: Kind
    /// What failed, on which file, and why.
    public let reason: String
    /// The system's error number (`errno`), or SQLite's extended result code; 0 where there is none.
    public let code: Int32

    init(_ kind: Kind, _ reason: String, code: Int32 = 0) {
        self.kind = kind
        self.reason = reason
        self.code = code
    }

    /// The kind and the reason, fit for a log.
    public var description: String { "disk cache, \(kind): \(reason)" }
}

extension DiskCacheError: LocalizedError {
    /// The same as ``description``, for `localizedDescription`.
    public var errorDescription: String? { description }
}
