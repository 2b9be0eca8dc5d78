import Tern

/// Parses the directives of `Cache-Control` fields (RFC 9111 §5.2).
///
/// Names are compared without regard to case, and arguments can be tokens or quoted strings. A directive whose argument
/// is malformed still counts, and its argument is `.malformed`: a restriction keeps its effect, and a permission has
/// none. Of duplicates, the strictest counts.
struct CacheControl: Sendable, Hashable {
    /// The argument of a directive.
    enum Argument: Sendable, Hashable {
        case none
        case value(String)
        case malformed

        /// The number of seconds; nil if the argument is not one.
        var seconds: Int64? {
            guard case .value(let text) = self else { return nil }
            return FieldText.seconds(text.utf8)
        }
    }

    /// A directive: its name in lower case, and its argument.
    struct Directive: Sendable, Hashable {
        let name: String
        let argument: Argument
    }

    /// The directives in order, duplicates included.
    let directives: [Directive]
    /// Whether the fields exceed the limits. Nothing is known then, and the message must not be stored.
    let isTooLong: Bool

    /// The limits on all fields of a message: bytes and directives.
    static let limits = (bytes: 16 << 10, directives: 128)

    init(_ headers: Headers) { self.init(values: headers.values(for: "Cache-Control")) }

    init(values: [String]) {
        var directives: [Directive] = []
        var count = 0
        for value in values {
            count += value.utf8.count
            if count > Self.limits.bytes { break }
            directives += Self.parse(Array(value.utf8))
        }
        isTooLong = count > Self.limits.bytes || directives.count > Self.limits.directives
        self.directives = isTooLong ? [] : directives
    }

    /// Parses one field. A quoted string that does not end makes its directive, and each argument after it, malformed,
    /// so that a restriction that it might contain still counts.
    private static func parse(_ bytes: [UInt8]) -> [Directive] {
        var result: [Directive] = []
        var index = 0
        var isBroken = false
        while index < bytes.count {
            while index < bytes.count, bytes[index].isHTTPWhitespace || bytes[index] == .comma { index += 1 }
            let start = index
            while index < bytes.count, ByteSet.token.contains(bytes[index]) { index += 1 }
            let name = FieldText.lowercased(bytes[start..<index])
            // The argument: everything up to the next comma outside of a quoted string.
            let tail = index
            while index < bytes.count, bytes[index] != .comma {
                if bytes[index] == .quote {
                    if !isBroken, let end = FieldText.endOfQuote(bytes, from: index) {
                        index = end
                        continue
                    }
                    isBroken = true
                }
                index += 1
            }
            if name.isEmpty { continue }
            let argument = argument(bytes[tail..<index])
            result.append(Directive(name: name, argument: isBroken ? .malformed : argument))
        }
        return result
    }

    /// Reads what follows a name.
    private static func argument(_ bytes: ArraySlice<UInt8>) -> Argument {
        let text = FieldText.trimmed(bytes)
        if text.isEmpty { return .none }
        // Whitespace around the equals sign is not allowed (RFC 9111 §5.2).
        guard bytes.first == .equals, text.count > 1 else { return .malformed }
        let value = text.dropFirst()
        if value.first == .quote {
            guard FieldText.endOfQuote(Array(value), from: 0) == value.count else { return .malformed }
            return .value(String(decoding: FieldText.unquoted(value), as: UTF8.self))
        }
        return value.allSatisfy(ByteSet.token.contains) ? .value(String(decoding: value, as: UTF8.self)) : .malformed
    }

    /// Returns the arguments of all directives with a name.
    func arguments(of name: String) -> [Argument] {
        directives.compactMap { $0.name == name ? $0.argument : nil }
    }

    /// Returns whether a directive is there, whatever its argument.
    func contains(_ name: String) -> Bool { directives.contains { $0.name == name } }

    /// Returns the number of seconds of a directive that restricts: the smallest, and 0 if one is not a number. nil
    /// without the directive.
    func smallestSeconds(of name: String) -> Int64? { arguments(of: name).map { $0.seconds ?? 0 }.min() }

    /// Returns the number of seconds of a directive that permits: the smallest. nil without the directive, and if one
    /// is not a number.
    func permittedSeconds(of name: String) -> Int64? {
        let arguments = arguments(of: name)
        let seconds = arguments.compactMap(\.seconds)
        return seconds.count == arguments.count ? seconds.min() : nil
    }
}

/// The directives of a request (RFC 9111 §5.2.1, RFC 5861 §4), and `Pragma` (§5.4).
struct RequestDirectives: Sendable, Hashable {
    /// The staleness that a request accepts.
    enum MaxStale: Sendable, Hashable {
        case any
        case seconds(Int64)
    }

    var noStore = false
    var noCache = false
    var onlyIfCached = false
    var maxAge: Int64?
    /// The number of seconds for which the response must stay fresh. An argument that is no number counts as the
    /// longest time.
    var minFresh: Int64?
    var maxStale: MaxStale?
    var staleIfError: Int64?

    init(_ headers: Headers) {
        guard headers.contains("Cache-Control") else {
            // Only without Cache-Control, and only in requests: what it means in a response is not specified (§5.4).
            noCache = FieldText.members(of: "Pragma", in: headers).contains { FieldText.lowercased($0) == "no-cache" }
            return
        }
        let control = CacheControl(headers)
        noStore = control.contains("no-store") || control.isTooLong
        noCache = control.contains("no-cache") || control.isTooLong
        onlyIfCached = control.contains("only-if-cached")
        maxAge = control.smallestSeconds(of: "max-age")
        minFresh = control.arguments(of: "min-fresh").map { $0.seconds ?? CacheTime.longestSeconds }.max()
        staleIfError = control.permittedSeconds(of: "stale-if-error")
        maxStale = Self.maxStale(control.arguments(of: "max-stale"))
    }

    private static func maxStale(_ arguments: [CacheControl.Argument]) -> MaxStale? {
        if arguments.isEmpty { return nil }
        let limits = arguments.filter { $0 != .none }
        if limits.isEmpty { return .any }
        let seconds = limits.compactMap(\.seconds)
        guard seconds.count == limits.count, let smallest = seconds.min() else { return nil }
        return .seconds(smallest)
    }
}

/// The directives of a response for a private cache (RFC 9111 §5.2.2, RFC 5861, RFC 8246).
///
/// `s-maxage` and `proxy-revalidate` are for shared caches, and the fields that a `private` lists are withheld from
/// shared caches alone.
struct ResponseDirectives: Sendable, Hashable {
    let noStore: Bool
    /// Whether the response must be validated before each use: `no-cache` without fields.
    let noCache: Bool
    /// The fields, in lower case, that must not be used without validation: `no-cache` with fields.
    let noCacheFields: Set<String>
    let mustRevalidate: Bool
    let mustUnderstand: Bool
    let isPublic: Bool
    let isPrivate: Bool
    let isImmutable: Bool
    /// The freshness lifetime in seconds; 0 if an argument is not a number (§4.2.1).
    let maxAge: Int64?
    let staleWhileRevalidate: Int64?
    let staleIfError: Int64?

    init(_ headers: Headers) {
        let control = CacheControl(headers)
        noStore = control.contains("no-store") || control.isTooLong
        let noCacheLists = control.arguments(of: "no-cache").map { argument -> [String] in
            guard case .value(let text) = argument else { return [] }
            return FieldText.members(text).map { FieldText.lowercased($0) }
        }
        noCache = noCacheLists.contains { $0.isEmpty }
        noCacheFields = Set(noCacheLists.joined())
        mustRevalidate = control.contains("must-revalidate")
        mustUnderstand = control.contains("must-understand")
        isPublic = control.arguments(of: "public").contains { $0 != .malformed }
        isPrivate = control.contains("private")
        isImmutable = control.arguments(of: "immutable").contains { $0 != .malformed }
        maxAge = control.smallestSeconds(of: "max-age")
        staleWhileRevalidate = control.permittedSeconds(of: "stale-while-revalidate")
        staleIfError = control.permittedSeconds(of: "stale-if-error")
    }

    /// Whether a stale response must not be used without validation, even if the origin cannot be reached (RFC 9111
    /// §4.2.4).
    var forbidsStale: Bool { noCache || mustRevalidate }
}
