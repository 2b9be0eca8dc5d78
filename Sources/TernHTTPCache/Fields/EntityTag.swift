import Tern

/// An entity tag (RFC 9110 §8.8.3).
struct EntityTag: Sendable, Hashable {
    /// The tag as it was received, with `W/` and quotes.
    let text: String
    let isWeak: Bool
    /// Whether the tag has the form of RFC 9110. Any other tag is compared as text, and counts as weak.
    let isWellFormed: Bool
    /// The bytes that are compared. Strings would also be equal by canonical equivalence (RFC 9110 §8.8.3.2).
    private let opaque: [UInt8]

    /// The greatest length in bytes.
    private static let limit = 1 << 10

    /// Parses a tag. Returns nil for an empty one, a longer one than 1 KiB, and one that cannot be sent again.
    init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard !bytes.isEmpty, bytes.count <= Self.limit,
            bytes.allSatisfy({ $0 > 0x20 && $0 != 0x7F || $0.isHTTPWhitespace })
        else { return nil }
        self.text = text
        let hasMark = bytes.starts(with: "W/\"".utf8)
        let quoted = hasMark ? bytes[2...] : bytes[...]
        isWellFormed =
            quoted.count >= 2 && quoted.first == .quote && quoted.last == .quote
            && quoted.dropFirst().dropLast().allSatisfy { $0 > 0x20 && $0 != .quote }
        isWeak = hasMark || !isWellFormed
        opaque = isWellFormed ? Array(quoted) : bytes
    }

    /// Returns the tag of a message; nil without one, and if it has several that differ.
    init?(of headers: Headers) {
        let values = headers.values(for: "ETag")
        guard let first = values.first, values.allSatisfy({ $0.hasSameBytes(as: first) }) else { return nil }
        self.init(first)
    }

    /// Returns whether the tags match in the weak comparison (RFC 9110 §8.8.3.2).
    func matchesWeakly(_ other: EntityTag) -> Bool { opaque == other.opaque }

    /// Returns whether the tags match in the strong comparison.
    func matchesStrongly(_ other: EntityTag) -> Bool { !isWeak && !other.isWeak && opaque == other.opaque }
}

/// The condition of an `If-None-Match` field (RFC 9110 §13.1.2).
enum EntityTagList: Sendable, Hashable {
    case any
    case tags([EntityTag])

    /// The greatest number of tags that are read.
    private static let limit = 256

    /// Returns the list of all values; nil without the field.
    init?(_ headers: Headers) {
        let values = headers.values(for: "If-None-Match")
        if values.isEmpty { return nil }
        if values.contains(where: { $0 == "*" }) {
            self = .any
        } else {
            self = .tags(values.flatMap { Self.tags(Array($0.utf8)) }.prefix(Self.limit).compactMap { EntityTag($0) })
        }
    }

    /// Splits at commas outside of quotes. A tag has no escapes.
    private static func tags(_ bytes: [UInt8]) -> [String] {
        var result: [ArraySlice<UInt8>] = []
        var start = 0
        var isQuoted = false
        for (index, byte) in bytes.enumerated() {
            if byte == .quote { isQuoted.toggle() }
            if byte == .comma, !isQuoted {
                result.append(bytes[start..<index])
                start = index + 1
            }
        }
        result.append(bytes[start...])
        return result.map { String(decoding: FieldText.trimmed($0), as: UTF8.self) }.filter { !$0.isEmpty }
    }

    /// Returns whether one of the tags matches in the weak comparison.
    func contains(_ tag: EntityTag?) -> Bool {
        switch self {
        case .any: return true
        case .tags(let tags):
            guard let tag else { return false }
            return tags.contains { $0.matchesWeakly(tag) }
        }
    }
}

/// The validators of a response: its entity tag and the time of its last change (RFC 9110 §8.8).
struct Validators: Sendable, Hashable {
    let tag: EntityTag?
    /// `Last-Modified` as it was received; nil without a valid one.
    let lastModified: String?
    let lastModifiedTime: CacheTime?
    /// Whether `Last-Modified` is strong: it is at least a minute before `Date` (RFC 9110 §8.8.2.2).
    let isDateStrong: Bool

    init(_ headers: Headers, responseTime: CacheTime) {
        let date = CacheDates.time(of: "Date", in: headers, now: responseTime)
        self.init(headers, date: date, responseTime: responseTime)
    }

    /// Takes the time of `Date`, nil without a valid one, from the caller.
    init(_ headers: Headers, date: CacheTime?, responseTime: CacheTime) {
        tag = EntityTag(of: headers)
        let time = CacheDates.time(of: "Last-Modified", in: headers, now: responseTime)
        lastModifiedTime = time
        lastModified = time == nil ? nil : headers["Last-Modified"]
        isDateStrong = time.map { time in date.map { $0.since(time) >= .seconds(60) } ?? false } ?? false
    }

    var isEmpty: Bool { tag == nil && lastModified == nil }

    /// The strong validator for `If-Range`: a strong entity tag, or without any tag a strong date; nil without one.
    var strongText: String? {
        if let tag { return tag.isWeak ? nil : tag.text }
        return isDateStrong ? lastModified : nil
    }

    /// Returns whether both have the same strong validator, so that their bytes can be combined (RFC 9110 §15.3.7.3).
    func isSameStrongly(as other: Validators) -> Bool {
        if let tag, let otherTag = other.tag { return tag.matchesStrongly(otherTag) }
        guard tag == nil, other.tag == nil, isDateStrong, other.isDateStrong else { return false }
        return lastModifiedTime == other.lastModifiedTime
    }
}
