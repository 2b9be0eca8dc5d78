public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension TransferQueue {
    /// The limits of a queue. They are not stored.
    public struct Limits: Sendable, Hashable {
        /// The number of transfers that run at the same time. 4 by default; a number below 1 counts as 1.
        public var transfers = 4
        /// The number of transfers from and to one host that run at the same time. 2 by default; a number below 1
        /// counts as 1.
        public var transfersPerHost = 2
        /// The rate of all downloads and uploads together, in bytes per second; nil, the default, for no limit. A
        /// number below 1 counts as 1.
        public var bytesPerSecond: Int?
        /// The rate of all transfers from and to each host together, in bytes per second; nil, the default, for no
        /// limit. A number below 1 counts as 1.
        public var bytesPerSecondPerHost: Int?

        /// Creates limits with the defaults of their properties.
        public init() {}

        var schedule: QueueSchedule.Limits {
            QueueSchedule.Limits(transfers: max(1, transfers), perHost: max(1, transfersPerHost))
        }
    }

    /// The credentials of one attempt. They are never stored.
    public struct Credentials: Sendable {
        /// Header fields that replace those of the item.
        public var headers: Headers
        /// The URL in place of that of the item, such as a signed one; nil, the default, for that of the item. A
        /// download continues if it is the same file. For an upload, it is the URL at which the upload is created; the
        /// fields are sent to its origin alone.
        public var url: URL?

        /// Creates credentials.
        public init(headers: Headers = [:], url: URL? = nil) {
            self.headers = headers
            self.url = url
        }
    }

    /// The settings of an open queue. They are not stored.
    public struct Configuration: Sendable {
        /// A Boolean value that indicates whether transfers start when the queue is opened. True by default; with
        /// false, a program can read and change the queue, and transfers start after `start()`.
        public var startsTransfers = true
        /// The limits at first. `setLimits(_:)` changes them.
        public var limits = Limits()
        /// The failures after which a transfer is taken up again by itself, and its limits. Its wait for the network
        /// has no meaning here: an item without a network gives its place to others.
        public var retry = TransferRetry()
        /// Returns the credentials of an item at the start of each of its attempts; nil, the default, for none. The
        /// attempt fails if it throws, with an error of kind ``Tern/NetworkError/Kind/authentication``.
        public var credentials: (@Sendable (_ item: Item) async throws -> Credentials)?
        /// The clock of the delays and of the limits on the rate.
        public var clock: any Clock<Duration> = ContinuousClock()
        /// The file system of the transfers.
        var system: any FileSystem = PosixFileSystem()
        /// Called before each step of a statement on the queue's own file. Returns a result code of SQLite to fail
        /// with, or nil to continue. For tests.
        var storeFault: (@Sendable (_ statement: String) -> Int32?)?

        /// Creates a configuration with the defaults of its properties.
        public init() {}
    }

    /// Items of a queue.
    public enum Selection: Sendable, Hashable {
        /// One item.
        case item(ItemID)
        /// Several items.
        case items([ItemID])
        /// The items of a group.
        case group(String)
        /// All items.
        case all
    }

    /// A place in the order of a queue.
    public enum Place: Sendable, Hashable {
        /// Before all other items.
        case first
        /// After all other items.
        case last
        /// Directly before an item.
        case before(ItemID)
        /// Directly after an item.
        case after(ItemID)
    }

    /// An event of a queue. New cases can be added, so a switch needs a `default`.
    public enum Event: Sendable, Hashable {
        /// An item was stored.
        case enqueued(ItemID)
        /// The state of an item changed.
        case changed(ItemID, State)
        /// An item was removed or acknowledged.
        case removed(ItemID)
        /// The number of events that did not fit into this stream's buffer.
        case dropped(Int)
    }
}

extension TransferQueue.Credentials: CustomStringConvertible, CustomReflectable {
    /// The names of the fields, and the URL without the values of its query.
    public var description: String {
        let names = headers.map { "\($0.name)" }.joined(separator: ", ")
        return "credentials [\(names)]" + (url.map { " for \(Target.redact($0.absoluteString))" } ?? "")
    }

    /// An empty mirror. Without it, `dump` would show the values of the fields and the whole URL.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// A failed call of a ``TransferQueue``. Its texts never show the values of a query, a field or user data.
public struct TransferQueueError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of the failure. Later versions can add kinds, so a switch needs a `default`.
    public struct Kind: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The name of the kind, suitable for a metric label.
        public let rawValue: String

        /// Creates a kind from its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The name of the kind.
        public var description: String { rawValue }

        /// Another queue, of this process or another one, has the folder.
        public static let inUse = Kind(rawValue: "in-use")
        /// A later version of Tern wrote the folder. Nothing of it was changed.
        public static let unsupportedVersion = Kind(rawValue: "unsupported-version")
        /// The file of the queue is damaged, or Tern did not write it. Nothing of it was changed.
        public static let damaged = Kind(rawValue: "damaged")
        /// A transfer that was to be enqueued cannot work, or would store a secret.
        public static let invalidTransfer = Kind(rawValue: "invalid-transfer")
        /// An item that has not finished has the same destination, or uploads the same file to the same place.
        public static let duplicate = Kind(rawValue: "duplicate")
        /// A group would wait for itself.
        public static let cyclicDependency = Kind(rawValue: "cyclic-dependency")
        /// An argument has no meaning, such as a folder that is no file URL.
        public static let invalidArgument = Kind(rawValue: "invalid-argument")
        /// The folder may not be read or written, or another user could change or replace its files.
        public static let notPermitted = Kind(rawValue: "not-permitted")
        /// The disk, or the user's quota, is full. Nothing of the call was stored.
        public static let noSpace = Kind(rawValue: "no-space")
        /// Reading or writing failed for another reason.
        public static let inputOutput = Kind(rawValue: "input-output")
        /// The caller was cancelled before the call was done.
        public static let cancelled = Kind(rawValue: "cancelled")
        /// The queue was closed.
        public static let closed = Kind(rawValue: "closed")
    }

    /// The kind of the failure.
    public let kind: Kind
    /// A description of the failed operation and its cause.
    public let reason: String

    init(_ kind: Kind, _ reason: String) {
        self.kind = kind
        self.reason = reason
    }

    /// The kind and the reason, suitable for a log.
    public var description: String { "transfer queue, \(kind): \(reason)" }
}

extension TransferQueueError: LocalizedError {
    /// The same text as ``description``, for `localizedDescription`.
    public var errorDescription: String? { description }
}
