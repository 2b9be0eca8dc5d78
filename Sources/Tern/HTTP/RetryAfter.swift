#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The wait that a server asks for with `Retry-After` (RFC 9110 §10.2.3). Everything that waits for a server reads the
/// field here: retries, event streams, WebSockets, durable transfers and refreshes of the HTTP cache.
package enum RetryAfter: Sendable, Hashable {
    /// Wait at least this long. A date that has passed, and a number of zero, ask for no wait.
    case delay(Duration)
    /// The value is neither a number of seconds nor a date. It counts as no field: the wait is that of the policy.
    case invalid

    /// The longest delay, 136 years. Longer ones count as this one.
    private static let longest: Int64 = 1 << 32

    /// Reads a value: digits of any length, or a date of RFC 9110 §5.6.7. White space around it is ignored.
    package init(_ value: String, now: Date) {
        var bytes = Substring(value).utf8.drop(while: \.isHTTPWhitespace)
        while let last = bytes.last, last.isHTTPWhitespace { bytes.removeLast() }
        if !bytes.isEmpty, bytes.allSatisfy(\.isASCIIDigit) {
            // Digits that do not fit are a long wait and not a short one.
            let seconds = Int64(Substring(bytes)) ?? Self.longest
            self = .delay(.seconds(min(seconds, Self.longest)))
        } else if let date = HTTPDate.date(from: String(Substring(bytes)), now: now) {
            self = .delay(.seconds(min(max(0, date.timeIntervalSince(now)), Double(Self.longest))))
        } else {
            self = .invalid
        }
    }

    /// Returns the wait that a response asks for; nil without the field, and for an invalid one. Of several fields, the
    /// first counts.
    package static func delay(in headers: Headers, now: Date) -> Duration? {
        guard let value = headers["Retry-After"], case .delay(let delay) = RetryAfter(value, now: now) else {
            return nil
        }
        return delay
    }
}
