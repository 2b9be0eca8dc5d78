/// A failed operation of a ``RedisStore``. A cache treats each as a miss; a removal reports it.
///
/// Its texts have neither keys nor values nor the password.
public struct RedisStoreError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of a failure. Later versions can add kinds, so a switch needs a `default`.
    public struct Kind: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The name of the kind, suitable for a metric label.
        public let rawValue: String

        /// Creates a kind from its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The name of the kind.
        public var description: String { rawValue }

        /// The server could not be reached, or closed the connection.
        public static let unreachable = Kind(rawValue: "unreachable")
        /// The server did not answer within the limits.
        public static let timedOut = Kind(rawValue: "timed-out")
        /// The server refused the user or the password, or wants one.
        public static let notPermitted = Kind(rawValue: "not-permitted")
        /// The server answered with an error.
        public static let refused = Kind(rawValue: "refused")
        /// The server sent something else than a reply to the command, or more than the limit.
        public static let malformedReply = Kind(rawValue: "malformed-reply")
        /// Nothing is sent for a while, because the last operations failed.
        public static let paused = Kind(rawValue: "paused")
        /// Too many operations wait.
        public static let busy = Kind(rawValue: "busy")
        /// The value is longer than the limit, or the key longer than its own.
        public static let tooLarge = Kind(rawValue: "too-large")
        /// The system has no more threads or memory.
        public static let noResources = Kind(rawValue: "no-resources")
    }

    /// The kind of the failure.
    public let kind: Kind
    /// A description of the cause.
    public let reason: String

    init(_ kind: Kind, _ reason: String) {
        self.kind = kind
        self.reason = reason
    }

    /// The kind and the reason, suitable for a log.
    public var description: String { "shared cache, \(kind): \(reason)" }

    /// Whether the connection cannot be used any more.
    var endsConnection: Bool { [.unreachable, .timedOut, .malformedReply, .notPermitted, .noResources].contains(kind) }
}
