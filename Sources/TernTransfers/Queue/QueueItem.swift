public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension TransferQueue {
    /// The number of an item, unique in its queue. It is never used again there.
    public struct ItemID: RawRepresentable, Sendable, Hashable, Comparable, Codable, CustomStringConvertible {
        /// The number, which counts from 1.
        public let rawValue: Int64

        /// Creates the number of an item, as a user types it.
        public init(rawValue: Int64) { self.rawValue = rawValue }

        /// Returns whether the item on the left was enqueued first.
        public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

        /// The digits of the number.
        public var description: String { "\(rawValue)" }
    }

    /// The state of an item.
    public enum State: Sendable, Hashable, Codable {
        /// It starts when its turn comes.
        case waiting
        /// Its transfer runs, or waits before the next attempt.
        case running
        /// It starts after `resume`.
        case paused
        /// It starts when a network is there that it may use, or when its host is tried again: ``Item/waitsFor``.
        case waitingForNetwork
        /// It has failed or was cancelled. It starts again after `retry`.
        ///
        /// - Parameter retryable: A Boolean value that indicates whether the same transfer can succeed later.
        case failed(retryable: Bool)
        /// It has succeeded.
        case finished

        /// A Boolean value that indicates whether the item has failed or finished.
        public var hasEnded: Bool {
            switch self {
            case .waiting, .running, .paused, .waitingForNetwork: false
            case .failed, .finished: true
            }
        }
    }

    /// An item at one moment.
    public struct Item: Sendable, Identifiable {
        /// The direction of a transfer.
        public enum Kind: String, Sendable, Hashable, Codable {
            /// From a URL to a file.
            case download
            /// From a file to a server.
            case upload
        }

        /// The number of the item.
        public let id: ItemID
        /// The direction.
        public let kind: Kind
        /// The URL of a download, or the URL at which an upload is created. It can hold secrets; ``redactedURL`` hides
        /// them.
        public let url: URL
        /// The URL for display, without user information, query values and fragment. It has at most 400 characters.
        public var redactedURL: String { Target.redact(url.absoluteString) }
        /// The destination of a download, or the file that is uploaded.
        public let file: URL
        /// The state.
        public let state: State
        /// The reason for which a waiting or running item moves no bytes at present; nil if it moves bytes, waits for
        /// its turn, is paused or has ended.
        public let waitsFor: TransferWait?
        /// The priority.
        public let priority: Request.Priority
        /// The group; nil for none.
        public let group: String?
        /// The name for people; nil for none.
        public let label: String?
        /// A Boolean value that indicates whether the item waits while the network is known to be metered.
        public let requiresUnmeteredNetwork: Bool
        /// The progress. It is finished when the item has ended. Its speed is nil.
        public let progress: Session.Progress
        /// The reason of a failed item; nil for others.
        public let failure: Failure?
        /// The result of a finished item; nil for others.
        public let result: Result?
    }

    /// The reason why an item failed.
    public struct Failure: Sendable, Hashable, Codable, CustomStringConvertible {
        /// The kind of the transfer's error; `.cancelled` after `cancel`.
        public let kind: NetworkError.Kind
        /// The text of the error, without secrets.
        public let reason: String
        /// The status of the server's response; nil if none was refused.
        public let status: Int?
        /// A Boolean value that indicates whether the same transfer can succeed later.
        public let isRetryable: Bool

        /// The reason.
        public var description: String { reason }

        init(_ kind: NetworkError.Kind, _ reason: String, status: Int? = nil, isRetryable: Bool) {
            (self.kind, self.reason, self.status, self.isRetryable) = (kind, reason, status, isRetryable)
        }

        private enum CodingKeys: CodingKey { case kind, reason, status, isRetryable }

        /// Reads a failure that was encoded.
        public init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: CodingKeys.self)
            kind = NetworkError.Kind(rawValue: try values.decode(String.self, forKey: .kind))
            reason = try values.decode(String.self, forKey: .reason)
            status = try values.decodeIfPresent(Int.self, forKey: .status)
            isRetryable = try values.decode(Bool.self, forKey: .isRetryable)
        }

        /// Writes the failure.
        public func encode(to encoder: any Encoder) throws {
            var values = encoder.container(keyedBy: CodingKeys.self)
            try values.encode(kind.rawValue, forKey: .kind)
            try values.encode(reason, forKey: .reason)
            try values.encodeIfPresent(status, forKey: .status)
            try values.encode(isRetryable, forKey: .isRetryable)
        }
    }

    /// The result of a finished item.
    public struct Result: Sendable, Hashable, Codable {
        /// The size of the file in bytes.
        public let bytes: Int64
        /// The number of attempts of the last process; 0 if an earlier one had moved everything.
        public let attempts: Int
        /// The time in the last process.
        public let duration: Duration
        /// The digest by which a download was verified; nil for none, and for an upload.
        public let digest: FileDigest?
        /// The URL of an upload on the server; nil for a download.
        public let uploadURL: URL?
        /// The body of an upload's last response; nil for a download, for a lost response, and for more than 64 KiB.
        public let responseBody: Data?

        static let mostResponseBytes = 64 << 10

        init(_ result: DurableDownloadResult) {
            (bytes, attempts, duration) = (result.bytes, result.attempts, result.duration)
            digest = result.digest
            (uploadURL, responseBody) = (nil, nil)
        }

        init(_ result: DurableUploadResult) {
            (bytes, attempts, duration) = (result.bytes, result.attempts, result.duration)
            digest = nil
            uploadURL = result.url
            responseBody = result.response.flatMap { $0.value.count > Self.mostResponseBytes ? nil : $0.value }
        }

        private enum CodingKeys: CodingKey { case bytes, attempts, milliseconds, algorithm, digest, url, body }

        /// Reads a result that was encoded.
        public init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: CodingKeys.self)
            bytes = try values.decode(Int64.self, forKey: .bytes)
            attempts = try values.decode(Int.self, forKey: .attempts)
            duration = .milliseconds(try values.decode(Int64.self, forKey: .milliseconds))
            let algorithm = try values.decodeIfPresent(String.self, forKey: .algorithm)
            let bytes = try values.decodeIfPresent(Data.self, forKey: .digest)
            digest = algorithm.flatMap { FileDigest.Algorithm(rawValue: $0) }.flatMap { algorithm in
                bytes.map { FileDigest(algorithm, bytes: $0) }
            }
            uploadURL = try values.decodeIfPresent(String.self, forKey: .url).flatMap { URL(string: $0) }
            responseBody = try values.decodeIfPresent(Data.self, forKey: .body)
        }

        /// Writes the result. The duration has whole milliseconds.
        public func encode(to encoder: any Encoder) throws {
            var values = encoder.container(keyedBy: CodingKeys.self)
            try values.encode(bytes, forKey: .bytes)
            try values.encode(attempts, forKey: .attempts)
            let (seconds, attoseconds) = duration.components
            try values.encode(seconds * 1_000 + attoseconds / 1_000_000_000_000_000, forKey: .milliseconds)
            try values.encodeIfPresent(digest?.algorithm.rawValue, forKey: .algorithm)
            try values.encodeIfPresent(digest?.bytes, forKey: .digest)
            try values.encodeIfPresent(uploadURL?.absoluteString, forKey: .url)
            try values.encodeIfPresent(responseBody, forKey: .body)
        }
    }
}

extension TransferQueue.Item: CustomStringConvertible, CustomReflectable {
    /// The number, the kind, the state, the URL without the values of its query, the path of the file and the label.
    public var description: String {
        "\(id): \(kind.rawValue), \(state): \(redactedURL), \(file.path)"
            + (label.map { " [\($0.printable(limit: 200))]" } ?? "")
    }

    /// An empty mirror. Without it, `dump` would show the whole URL.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension TransferQueue.Result: CustomStringConvertible, CustomReflectable {
    /// The number of bytes, of attempts, and the time. The URL of an upload is not shown.
    public var description: String { "\(bytes) bytes in \(attempts) attempts, \(duration)" }

    /// An empty mirror. Without it, `dump` would show the URL of an upload.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
