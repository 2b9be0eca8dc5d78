/// Why a picture could not be decoded, encoded or resized. Holds no byte of the picture.
public struct ImageError: Error, Sendable, Hashable, CustomStringConvertible {
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
    }

    /// What went wrong.
    public let kind: Kind
    /// The format at work, nil if it is not known.
    public let format: ImageFormat?
    /// What failed and why, for people.
    public let message: String

    /// An error of a kind; a decoder of one's own throws it too.
    public init(_ kind: Kind, format: ImageFormat? = nil, _ message: String) {
        self.kind = kind
        self.format = format
        self.message = message
    }

    /// The kind, the format and the reason in one line.
    public var description: String {
        "image error \(kind)\(format.map { " (\($0))" } ?? ""): \(message)"
    }
}
