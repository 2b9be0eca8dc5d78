import Tern

/// Bytes of a representation: from the first to before the end.
struct ByteRange: Sendable, Hashable {
    let first: Int64
    /// The number of bytes; at least 1.
    let count: Int64

    var end: Int64 { first + count }

    /// The greatest position that is read from a field.
    static let limit: Int64 = 1 << 60

    func contains(_ other: ByteRange) -> Bool { first <= other.first && other.end <= end }

    /// Returns whether the ranges overlap, or one follows the other.
    func touches(_ other: ByteRange) -> Bool { first <= other.end && other.first <= end }
}

/// The `Range` of a request (RFC 9110 §14.2).
enum RangeRequest: Sendable, Hashable {
    /// From a position to another, or to the end.
    case bytes(first: Int64, last: Int64?)
    /// The last bytes.
    case suffix(Int64)
    /// Several ranges, another unit, or a malformed field. A cache passes the request on.
    case other

    /// Parses the field; nil without it.
    init?(_ headers: Headers) {
        let values = headers.values(for: "Range")
        guard let value = values.first else { return nil }
        let bytes = Array(value.utf8)
        guard values.count == 1, FieldText.lowercased(bytes.prefix(6)) == "bytes=" else {
            self = .other
            return
        }
        let text = FieldText.trimmed(bytes[6...])
        let halves = text.split(separator: UInt8(ascii: "-"), maxSplits: 1, omittingEmptySubsequences: false)
        guard halves.count == 2 else {
            self = .other
            return
        }
        let numbers = halves.map { FieldText.number($0, limit: ByteRange.limit) }
        switch (halves[0].isEmpty, halves[1].isEmpty, numbers[0], numbers[1]) {
        case (true, false, _, let count?): self = .suffix(count)
        case (false, true, let first?, _): self = .bytes(first: first, last: nil)
        case (false, false, let first?, let last?) where first <= last: self = .bytes(first: first, last: last)
        default: self = .other
        }
    }

    /// The result for a representation.
    enum Resolution: Sendable, Hashable {
        case range(ByteRange)
        /// No byte of the representation is in the range: 416.
        case unsatisfiable
        /// The length of the representation is needed and not known.
        case unknown
    }

    /// Returns the bytes of a representation that the range selects.
    ///
    /// - Parameter total: The length of the representation; nil if it is not known.
    func resolved(total: Int64?) -> Resolution {
        switch self {
        case .bytes(let first, let last):
            guard let total else {
                guard let last else { return .unknown }
                return .range(ByteRange(first: first, count: last - first + 1))
            }
            guard first < total else { return .unsatisfiable }
            return .range(ByteRange(first: first, count: min(last ?? .max, total - 1) - first + 1))
        case .suffix(let count):
            guard let total else { return .unknown }
            guard count > 0, total > 0 else { return .unsatisfiable }
            let count = min(count, total)
            return .range(ByteRange(first: total - count, count: count))
        case .other:
            return .unknown
        }
    }
}

/// The `Content-Range` of a 206 response: a range and the length of the representation (RFC 9110 §14.4).
struct ByteContentRange: Sendable, Hashable {
    let range: ByteRange
    /// The length of the representation; nil for `*`.
    let total: Int64?

    /// Parses the field. Returns nil without it, for another unit or several ranges, and if it is malformed.
    init?(_ headers: Headers) {
        let values = headers.values(for: "Content-Range")
        guard values.count == 1, let value = values.first else { return nil }
        let bytes = Array(value.utf8)
        guard FieldText.lowercased(bytes.prefix(6)) == "bytes " else { return nil }
        let halves = bytes[6...].split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard halves.count == 2 else { return nil }
        let positions = halves[0].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard positions.count == 2, let first = FieldText.number(positions[0], limit: ByteRange.limit),
            let last = FieldText.number(positions[1], limit: ByteRange.limit), first <= last
        else { return nil }
        range = ByteRange(first: first, count: last - first + 1)
        if halves[1].elementsEqual("*".utf8) {
            total = nil
        } else {
            guard let total = FieldText.number(halves[1], limit: ByteRange.limit), last < total else { return nil }
            self.total = total
        }
    }

    /// Returns the field of a range.
    static func text(_ range: ByteRange, total: Int64?) -> String {
        "bytes \(range.first)-\(range.end - 1)/\(total.map(String.init) ?? "*")"
    }
}
