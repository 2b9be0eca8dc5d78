/// The number of streams that a connection carries at once: that of the server's SETTINGS, or a lower one that its
/// refusals show. Pure.
///
/// A server can refuse streams that its SETTINGS allow, because it counts otherwise or has no room at the moment. Then
/// the connection carries as many as it did without the refused one, and one more each time that so many were answered.
/// Without that, refused requests would be sent and refused again at once. A connection that refuses its only stream
/// takes no more.
struct HTTP2StreamLimit {
    /// The consequence of a refused stream.
    enum Refusal: Equatable {
        case none
        /// The number has changed.
        case lowered
        /// The connection takes no further stream.
        case ended
    }

    /// The number of the newest SETTINGS; nil before the first. 0 is allowed (RFC 9113 §6.5.2).
    private var maximum: Int?
    /// The number that the refusals show; nil without one since the newest SETTINGS.
    private var observed: Int?
    /// The number of streams that were answered since `observed` changed.
    private var answers = 0

    /// The number of streams; 1 before the first SETTINGS.
    var current: Int { min(maximum ?? 1, observed ?? .max) }

    /// Takes the number of SETTINGS. Returns whether it has to be reported.
    mutating func stated(_ maximum: Int) -> Bool {
        let isFirst = self.maximum == nil
        let previous = current
        self.maximum = maximum
        observed = nil
        answers = 0
        return isFirst || current != previous
    }

    /// Takes account of a refused stream beside others.
    mutating func refused(besides others: Int) -> Refusal {
        // A stream above a limit that was not known waits for room.
        guard maximum != nil, others < current else { return .none }
        guard others > 0 else { return .ended }
        observed = others
        answers = 0
        return .lowered
    }

    /// Takes account of a whole response. Returns whether the number has changed.
    mutating func answered() -> Bool {
        guard let observed, let maximum else { return false }
        answers += 1
        guard answers >= observed else { return false }
        answers = 0
        self.observed = observed + 1 < maximum ? observed + 1 : nil
        return true
    }
}
