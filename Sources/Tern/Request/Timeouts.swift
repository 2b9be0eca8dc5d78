/// Time limits of a request. Each one names itself in the error that it causes; a paused task's clocks stand still.
///
/// A request with a negative limit fails with an error of kind `.invalidRequest` before anything is sent.
public struct Timeouts: Sendable, Hashable {
    /// From the start on the wire until the connection can carry the request: name look-up, connect and TLS together.
    /// 15 seconds by default; nil for none.
    public var connect: Duration?
    /// Without any byte moved in either direction, once connected. Time in which the *reader* of a streamed response,
    /// or the producer of a streamed body, holds the transfer up does not count. 60 seconds by default; nil for none.
    public var idle: Duration?
    /// The time from the task's start to the last byte of the body, including the wait for a connection, redirects and
    /// challenges. A retry starts with the whole limit again. nil, the default, means no limit: the time that a
    /// response takes depends on its size, and one limit for all responses would end downloads that make progress.
    ///
    /// Set a limit when the size is known. 60 seconds are enough for most API calls. Without a limit, a server that
    /// sends one byte every 59 seconds can keep a task alive indefinitely.
    public var total: Duration?
    /// What redirects and challenges before this attempt took of `total`.
    var spent = Duration.zero

    /// Limits as given; the defaults are 15 seconds, 60 seconds and none.
    public init(connect: Duration? = .seconds(15), idle: Duration? = .seconds(60), total: Duration? = nil) {
        self.connect = connect
        self.idle = idle
        self.total = total
    }

    /// The reason why no request can meet the limits; nil when the limits are valid.
    var problem: String? {
        let limits = [("connect", connect), ("idle", idle), ("total", total)]
        guard let wrong = limits.first(where: { $0.1.map { $0 < .zero } ?? false }) else { return nil }
        return "the time limit \(wrong.0) is negative"
    }

    /// The limit that ran out.
    public enum Phase: String, Sendable, Hashable {
        /// Name look-up, connect or TLS took longer than `connect`.
        case connect
        /// No byte moved for `idle`.
        case idle
        /// The whole task took longer than `total`.
        case total
    }
}
