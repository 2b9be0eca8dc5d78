public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The error of loading, decoding, processing or encoding an image. It tells what failed, on what, and why.
///
/// The pipeline and its parts throw only this type. It contains no byte of the image and no secret: no header values,
/// no user information, and no query values.
public struct ImageError: Error, Sendable, CustomStringConvertible {
    /// The kind of an error. New kinds can be added, so a switch needs a `default`.
    public struct Kind: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The name of the kind, suitable as a metric label.
        public let rawValue: String

        /// Creates a kind from its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The kind's name.
        public var description: String { rawValue }

        /// The first bytes have no known format.
        public static let unknownFormat = Kind(rawValue: "unknown-format")
        /// The format, or a feature of it, is known and cannot be decoded here.
        public static let unsupported = Kind(rawValue: "unsupported")
        /// The bytes end before the image does.
        public static let truncated = Kind(rawValue: "truncated")
        /// The bytes violate their format.
        public static let corrupt = Kind(rawValue: "corrupt")
        /// A limit of `ImageDecodingOptions.Limits`, or one of the decoder, was exceeded.
        public static let limitExceeded = Kind(rawValue: "limit-exceeded")
        /// Memory for the image could not be allocated.
        public static let outOfMemory = Kind(rawValue: "out-of-memory")
        /// The task was cancelled.
        public static let cancelled = Kind(rawValue: "cancelled")
        /// An argument of the call is invalid, such as a frame index beyond the last.
        public static let invalidArgument = Kind(rawValue: "invalid-argument")
        /// The image cannot be encoded in this way.
        public static let encodingFailed = Kind(rawValue: "encoding-failed")
        /// There is no URL, or the URL cannot be requested.
        public static let invalidURL = Kind(rawValue: "invalid-url")
        /// The bytes could not be fetched. `network` contains the reason.
        public static let network = Kind(rawValue: "network")
        /// The bytes could not be read from a file or a closure. `underlying` contains the reason.
        public static let source = Kind(rawValue: "source")
        /// The image is in no cache that the request may read, and the request may not fetch it.
        public static let notCached = Kind(rawValue: "not-cached")
        /// The same load failed recently in a way that would only repeat itself. `underlying` is that failure.
        public static let failedBefore = Kind(rawValue: "failed-before")
        /// A processor failed.
        public static let processing = Kind(rawValue: "processing")
        /// A closure of the pipeline's configuration failed. `underlying` is its error.
        public static let hook = Kind(rawValue: "hook")
    }

    /// The kind of the error.
    public let kind: Kind
    /// The format of the file; nil if it is not known.
    public let format: ImageFormat?
    /// A sentence that says what failed and why.
    public let message: String
    /// The source of the image, without user information and query values; nil if it is not known.
    public internal(set) var origin: String?
    /// The error that caused this one.
    public let underlying: (any Error)?
    /// The errors of the request's other sources, in the order of their trials; empty if there was no other one. This
    /// error is that of the source that was tried first.
    public internal(set) var alternatives: [ImageError] = []
    /// Whether a processor of the request failed, and not its source.
    var isOfProcessor = false

    /// Creates an error. Custom decoders and processors throw it, too.
    public init(_ kind: Kind, format: ImageFormat? = nil, _ message: String, underlying: (any Error)? = nil) {
        self.kind = kind
        self.format = format
        // The message can quote codecs and servers.
        self.message = message.printable(limit: 4_096)
        self.underlying = underlying
    }

    /// The network error, for the kind `.network`.
    public var network: NetworkError? { underlying as? NetworkError }

    /// The kind, the format, the reason and the origin in one line, with those of the alternatives.
    public var description: String {
        let own =
            "image error \(kind)\(format.map { " (\($0))" } ?? ""): \(message)\(origin.map { ", loading \($0)" } ?? "")"
        return ([own] + alternatives.map(\.description)).joined(separator: "; then ")
    }
}

extension ImageError: LocalizedError {
    /// The same as ``description``, for `localizedDescription`.
    public var errorDescription: String? { description }
}

extension ImageError: Hashable {
    /// Returns whether kind, format, message and origin are equal. Underlying errors and those of alternatives are not
    /// compared.
    public static func == (one: ImageError, other: ImageError) -> Bool {
        one.kind == other.kind && one.format == other.format && one.message == other.message
            && one.origin == other.origin
    }

    /// Hashes the properties that are compared.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(kind)
        hasher.combine(format)
        hasher.combine(message)
        hasher.combine(origin)
    }
}

extension ImageError {
    /// The error of a cancelled task.
    static let cancelled = ImageError(.cancelled, "the load was cancelled")

    /// Whether another attempt at the same load would fail in the same way.
    var isFinal: Bool {
        switch kind {
        case .invalidURL, .notCached, .failedBefore, .cancelled, .unsupported, .limitExceeded: true
        default: isRemembered
        }
    }

    /// Whether the source itself is at fault: the bytes are not an image, or the server says that there is none. False
    /// for faults of a network, temporary server errors, limits and missing decoders.
    var isRemembered: Bool {
        switch kind {
        case .unknownFormat, .corrupt, .truncated: return true
        // A decoder can be registered for a format of pictures.
        case .unsupported: return format.map { !ForeignContent.isPicture($0) } ?? false
        case .network:
            guard let network else { return false }
            if network.kind == .contentType { return true }
            return network.kind == .status && (network.status.map(Self.isLasting(status:)) ?? false)
        default: return false
        }
    }

    /// Whether the server refused the request of this user (401 and 403).
    var isRefusal: Bool { kind == .network && (network?.status).map { [401, 403].contains($0) } ?? false }

    /// Returns whether a status is permanent. 408, 425 and 429 ask for another attempt later (RFC 9110 §15.5.9, RFC
    /// 8470 §5.2, RFC 6585 §4).
    private static func isLasting(status: Int) -> Bool {
        (400...499).contains(status) && ![401, 407, 408, 425, 429].contains(status)
    }

    /// Describes an error of the user's closure. Errors of Tern contain no secrets. Other errors are described by their
    /// type only, because their text can contain secrets.
    static func words(_ error: any Error) -> String {
        switch error {
        case let error as ImageError: error.description
        case let error as NetworkError: error.description
        default: "\(type(of: error))"
        }
    }

    /// Returns an error about bytes of a format that is not decoded with the type that the server gave them.
    func received(as contentType: String?) -> ImageError {
        guard let contentType, kind == .unsupported || kind == .unknownFormat else { return self }
        return ImageError(
            kind, format: format, "\(message); the server sent them as \(contentType)", underlying: underlying)
    }

    func from(_ origin: String?) -> ImageError {
        var copy = self
        if copy.origin == nil { copy.origin = origin }
        return copy
    }
}
