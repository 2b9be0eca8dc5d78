package import Tern

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// A time in milliseconds since 1970, limited so that no difference overflows.
struct CacheTime: Sendable, Hashable, Comparable {
    let milliseconds: Int64

    /// The greatest number of seconds of a directive, an age or a lifetime: 2³¹ (RFC 9111 §1.2.2).
    static let longestSeconds: Int64 = 1 << 31
    /// The time that `longestSeconds` stands for.
    static let longest = Duration.seconds(longestSeconds)
    private static let limit: Int64 = 1 << 53

    init(milliseconds: Int64) { self.milliseconds = min(max(milliseconds, -Self.limit), Self.limit) }

    init(_ date: Date) {
        let value = (date.timeIntervalSince1970 * 1_000).rounded(.down)
        // NaN counts as 1970.
        self.init(milliseconds: value.isNaN ? 0 : Int64(min(max(value, -0x1p53), 0x1p53)))
    }

    var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1_000) }

    /// Returns the time from another to this one, at most 2³¹ seconds; negative if the other one is later.
    func since(_ other: CacheTime) -> Duration {
        let difference = Duration.milliseconds(milliseconds - other.milliseconds)
        return min(max(difference, .zero - Self.longest), Self.longest)
    }

    static func < (left: CacheTime, right: CacheTime) -> Bool { left.milliseconds < right.milliseconds }
}

extension Duration {
    /// The whole seconds, rounded down, from 0 to 2³¹: the value of an `Age` field.
    var wholeSeconds: Int64 { min(max(0, components.seconds), CacheTime.longestSeconds) }
}

/// Reads the dates of header fields for calculations of freshness.
enum CacheDates {
    /// Returns the time of a date in one of the three forms of RFC 9110 §5.6.7, without regard to case (RFC 9111 §4.2);
    /// nil for anything else, and for a zone other than GMT. Only the form of `asctime` has two spaces in a row.
    static func time(_ text: String, now: CacheTime) -> CacheTime? {
        // The spelling of nearly all servers.
        if let date = HTTPDate.preferredDate(from: text) { return CacheTime(date) }
        let bytes = text.utf8
        guard bytes.count <= 64 else { return nil }
        let hasWideGap = zip(bytes, bytes.dropFirst()).contains { $0 == 0x20 && $1 == 0x20 }
        if hasWideGap, bytes.contains(.comma) { return nil }
        return HTTPDate.date(from: cased(text), now: now.date).map { CacheTime($0) }
    }

    /// Returns the time of a field that a message has once; nil if it is missing or invalid.
    static func time(of name: String, in headers: Headers, now: CacheTime) -> CacheTime? {
        headers[name].flatMap { time($0, now: now) }
    }

    /// Returns the text with each word in the case of a date: `Sun`, `Nov` and `GMT`.
    private static func cased(_ text: String) -> String {
        var result: [UInt8] = []
        var isFirst = true
        for byte in text.utf8 {
            let letter = byte.asciiLowercased
            let isLetter = (0x61...0x7A).contains(letter)
            result.append(isLetter && isFirst ? letter & 0xDF : letter)
            isFirst = !isLetter
        }
        let words = String(decoding: result, as: UTF8.self)
        return words.hasSuffix("Gmt") ? words.dropLast(3) + "GMT" : words
    }
}

/// The freshness lifetime and the age of a stored response (RFC 9111 §4.2).
struct CacheFreshness: Sendable, Hashable {
    /// The origin of a lifetime.
    enum Basis: String, Sendable, Hashable {
        case maxAge = "max-age"
        case expires = "Expires"
        /// A tenth of the time since `Last-Modified` (§4.2.2).
        case heuristic
        case none
    }

    let basis: Basis
    /// The freshness lifetime, from zero to 2³¹ seconds.
    let lifetime: Duration
    /// The age at the time of the response: `corrected_initial_age` of §4.2.3.
    let initialAge: Duration
    let responseTime: CacheTime

    /// The greatest heuristic lifetime: 7 days.
    static let longestHeuristic = Duration.seconds(7 * 86_400)
    /// The statuses whose responses have a heuristic lifetime (RFC 9110 §15.1).
    static let heuristicStatuses: Set<Int> = [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501]

    /// Calculates the freshness of a response.
    ///
    /// - Parameters:
    ///   - requestTime: The time at which its request was sent.
    ///   - responseTime: The time at which its head arrived.
    ///   - limit: The greatest lifetime; nil for that of the rules.
    init(
        status: Int, headers: Headers, directives: ResponseDirectives, requestTime: CacheTime, responseTime: CacheTime,
        limit: Duration? = nil
    ) {
        self.init(
            status: status, headers: headers, directives: directives,
            date: CacheDates.time(of: "Date", in: headers, now: responseTime),
            lastModified: CacheDates.time(of: "Last-Modified", in: headers, now: responseTime),
            requestTime: requestTime, responseTime: responseTime, limit: limit)
    }

    /// Takes the times of `Date` and `Last-Modified`, nil without a valid one, from the caller.
    init(
        status: Int, headers: Headers, directives: ResponseDirectives, date: CacheTime?, lastModified: CacheTime?,
        requestTime: CacheTime, responseTime: CacheTime, limit: Duration?
    ) {
        let limit = max(.zero, limit ?? CacheTime.longest)
        // A missing or invalid Date is the time of the response (RFC 9110 §6.6.1).
        let date = date ?? responseTime
        self.responseTime = responseTime
        let apparentAge = max(.zero, responseTime.since(date))
        let delay = max(.zero, responseTime.since(requestTime))
        initialAge = min(max(apparentAge, Self.age(headers) + delay), CacheTime.longest)
        if let seconds = directives.maxAge {
            (basis, lifetime) = (.maxAge, min(.seconds(seconds), limit))
        } else if headers.contains("Expires") {
            // Of several dates the earliest counts, and an invalid date is in the past (RFC 9111 §5.3).
            let times = headers.values(for: "Expires").map { CacheDates.time($0, now: responseTime) }
            let isValid = !times.contains(nil)
            let earliest = times.compactMap { $0 }.min()
            (basis, lifetime) = (.expires, isValid ? min(max(.zero, earliest?.since(date) ?? .zero), limit) : .zero)
        } else if Self.heuristicStatuses.contains(status) || directives.isPublic, let lastModified {
            basis = .heuristic
            lifetime = min(max(.zero, date.since(lastModified)) / 10, Self.longestHeuristic, limit)
        } else {
            (basis, lifetime) = (.none, .zero)
        }
    }

    /// Returns the `Age` of a response: the first member, and zero if it is not a number of seconds (RFC 9111 §5.1).
    private static func age(_ headers: Headers) -> Duration {
        guard let first = headers["Age"]?.utf8.prefix(while: { $0 != .comma }) else { return .zero }
        return .seconds(FieldText.seconds(FieldText.trimmed(Array(first)[...])) ?? 0)
    }

    /// Returns the current age (§4.2.3), at most 2³¹ seconds.
    ///
    /// After the system's clock was set back to before the response, the time since then is unknown, and the age is the
    /// greatest.
    func age(at now: CacheTime) -> Duration {
        if now < responseTime { return CacheTime.longest }
        return min(initialAge + now.since(responseTime), CacheTime.longest)
    }

    /// Returns whether the lifetime exceeds the age.
    func isFresh(at now: CacheTime) -> Bool { lifetime > age(at: now) }

    /// Returns the time since the response became stale; zero or less while it is fresh.
    func staleness(at now: CacheTime) -> Duration { age(at: now) - lifetime }
}

/// The lifetime of a response by its head, for stores other than an `HTTPCache`, such as that of images (RFC 9111
/// §4.2).
package struct ResponseLifetime: Sendable, Hashable {
    /// The time for which the response is still fresh, by `max-age` or `Expires`; zero if it must be validated, nil if
    /// the response names none.
    package let explicit: Duration?
    /// Whether the response must not be stored (`no-store`).
    package let forbidsStorage: Bool

    /// Reads the head of a response that has just arrived.
    package init(_ head: ResponseHead, now: Date) {
        let (headers, time) = (head.headers, CacheTime(now))
        let directives = ResponseDirectives(headers)
        forbidsStorage = directives.noStore
        if directives.noCache || Vary(headers) == .everything {
            explicit = .zero
            return
        }
        let freshness = CacheFreshness(
            status: head.status, headers: headers, directives: directives, requestTime: time, responseTime: time)
        switch freshness.basis {
        case .maxAge, .expires: explicit = max(.zero, freshness.lifetime - freshness.initialAge)
        case .heuristic, .none: explicit = nil
        }
    }
}
