public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Why a picture could not be loaded, decoded, processed or encoded: what failed, on what, and why.
///
/// The one error type of the pipeline and its parts. Holds no byte of the picture and no secret: no header values, no user
/// information, no values of a query.
public struct ImageError: Error, Sendable, CustomStringConvertible {
    /// What went wrong, as one of a few words. New kinds may be added: switch with a `default`.
    public struct Kind: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The kind's name, fit for a metric label.
        public let rawValue: String

        /// A kind by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The kind's name.
        public var description: String { rawValue }

        /// The first bytes are of no known format.
        public static let unknownFormat = Kind(rawValue: "unknown-format")
        /// The format, or a feature of it, is known and cannot be decoded here.
        public static let unsupported = Kind(rawValue: "unsupported")
        /// The bytes end before the picture does.
        public static let truncated = Kind(rawValue: "truncated")
        /// The bytes contradict their format.
        public static let corrupt = Kind(rawValue: "corrupt")
        /// A limit of `ImageDecodingOptions.Limits` was passed.
        public static let limitExceeded = Kind(rawValue: "limit-exceeded")
        /// Memory for the picture could not be had.
        public static let outOfMemory = Kind(rawValue: "out-of-memory")
        /// The task was cancelled.
        public static let cancelled = Kind(rawValue: "cancelled")
        /// An argument of the call makes no sense, as a frame index past the last.
        public static let invalidArgument = Kind(rawValue: "invalid-argument")
        /// The picture cannot be encoded so.
        public static let encodingFailed = Kind(rawValue: "encoding-failed")
        /// There is no URL, or none that can be requested.
        public static let invalidURL = Kind(rawValue: "invalid-url")
        /// The bytes could not be fetched; `network` says why.
        public static let network = Kind(rawValue: "network")
        /// The bytes could not be read from a file or a closure; `underlying` says why.
        public static let source = Kind(rawValue: "source")
        /// It is in no cache that the request may read, and the request may not fetch it.
        public static let notCached = Kind(rawValue: "not-cached")
        /// It failed a short while ago in a way that would only repeat itself; `underlying` is that failure.
        public static let failedBefore = Kind(rawValue: "failed-before")
        /// A processor failed.
        public static let processing = Kind(rawValue: "processing")
        /// A closure of the pipeline's configuration failed; `underlying` is what it threw.
        public static let hook = Kind(rawValue: "hook")
    }

    /// What went wrong.
    public let kind: Kind
    /// The format at work, nil if it is not known.
    public let format: ImageFormat?
    /// What failed and why, for people.
    public let message: String
    /// What it was to be loaded from, without user information and query values; nil where that is not known.
    public internal(set) var origin: String?
    /// The error that led to this one.
    public let underlying: (any Error)?

    /// An error of a kind; a decoder or processor of one's own throws it too.
    public init(_ kind: Kind, format: ImageFormat? = nil, _ message: String, underlying: (any Error)? = nil) {
        self.kind = kind
        self.format = format
        // The message can quote codecs and servers.
        self.message = message.printable(limit: 4_096)
        self.underlying = underlying
    }

    /// The failure of the network, for the kind `.network`.
    public var network: NetworkError? { underlying as? NetworkError }

    /// The kind, the format, the reason and the origin in one line.
    public var description: String {
        "image error \(kind)\(format.map { " (\($0))" } ?? ""): \(message)\(origin.map { ", loading \($0)" } ?? "")"
    }
}

extension ImageError: LocalizedError {
    /// The same as ``description``, for `localizedDescription`.
    public var errorDescription: String? { description }
}

extension ImageError: Hashable {
    /// Whether both say the same: kind, format, message and origin. What led to them is not compared.
    public static func == (one: ImageError, other: ImageError) -> Bool {
        one.kind == other.kind && one.format == other.format && one.message == other.message
            && one.origin == other.origin
    }

    /// Feeds what is compared.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(kind)
        hasher.combine(format)
        hasher.combine(message)
        hasher.combine(origin)
    }
}

extension ImageError {
    /// Of a task that was cancelled.
    static let cancelled = ImageError(.cancelled, "the load was cancelled")

    /// Whether another attempt at the same load would end the same: who waits for it need not make it again.
    var isFinal: Bool {
        switch kind {
        case .invalidURL, .notCached, .failedBefore, .cancelled, .unsupported, .limitExceeded: true
        default: isRemembered
        }
    }

    /// Whether the source is to blame, for whoever asks: the bytes are no picture, or the server says that there is none. Not
    /// what a network, a server's bad day, a limit or a missing decoder is to blame for.
    var isRemembered: Bool {
        switch kind {
        case .unknownFormat, .corrupt, .truncated: return true
        case .network:
            guard let network else { return false }
            if network.kind == .contentType { return true }
            return network.kind == .status && (network.status.map(Self.isLasting(status:)) ?? false)
        default: return false
        }
    }

    /// 408, 425 and 429 ask to be tried again later (RFC 9110 §15.5.9, RFC 8470 §5.2, RFC 6585 §4).
    private static func isLasting(status: Int) -> Bool {
        (400...499).contains(status) && ![401, 407, 408, 425, 429].contains(status)
    }

    /// What a closure of the user's threw. Our own errors hold no secret; of any other its type alone, since what it says
    /// may.
    static func words(_ error: any Error) -> String {
        switch error {
        case let error as ImageError: error.description
        case let error as NetworkError: error.description
        default: "\(type(of: error))"
        }
    }

    func from(_ origin: String?) -> ImageError {
        var copy = self
        if copy.origin == nil { copy.origin = origin }
        return copy
    }
}
