/// The rules by which a response is accepted: its status, its content type, and a check of the caller.
///
/// ```swift
/// var request = try Request(.get, "https://api.example.com/legacy")
/// request.validation = ResponseValidation(contentTypes: .any)
/// ```
///
/// A refused response is an error of kind `.status`, `.contentType` or `.validation` with the head and the start of the
/// body. If both status and content type are refused, the error is of kind `.status`, and the content type's error is
/// its `underlying` error.
public struct ResponseValidation: Sendable {
    /// The accepted content types.
    public enum ContentTypes: Sendable, Hashable {
        /// The types that fit the requested value: JSON for a `Decodable` type (`application/json`, `text/json`,
        /// `text/javascript`, every `+json`), property lists for theirs, any type for `Data`, `String`, files and
        /// streams.
        case automatic
        /// Any type, or none.
        case any
        /// Only these types, such as `text/html`, `image/*`, `*/*+xml`, `*/*`.
        case only([String])
    }

    /// The accepted content types. `.automatic` by default. An empty body needs no type (RFC 9110 §8.3).
    public var contentTypes: ContentTypes
    /// Returns whether a status is accepted; nil, the default, accepts 200–299.
    public var statuses: (@Sendable (_ status: Int) -> Bool)?
    /// A further check of the head, made after status and content type were accepted. Its error becomes the
    /// `underlying` error.
    public var check: (@Sendable (_ response: ResponseHead) throws -> Void)?

    /// Creates rules. Without arguments, they are the defaults.
    public init(
        contentTypes: ContentTypes = .automatic, statuses: (@Sendable (_ status: Int) -> Bool)? = nil,
        check: (@Sendable (_ response: ResponseHead) throws -> Void)? = nil
    ) {
        self.contentTypes = contentTypes
        self.statuses = statuses
        self.check = check
    }

    /// Rules that accept every status and every content type.
    public static let any = ResponseValidation(contentTypes: .any, statuses: { _ in true })

    func accepts(_ status: Int) -> Bool { statuses?(status) ?? (200...299).contains(status) }

    /// Returns the reason why a response is refused; nil if it is accepted.
    ///
    /// - Parameters:
    ///   - acceptedTypes: The types that fit the requested value.
    ///   - isEmpty: Whether there is no body.
    func refusal(of head: ResponseHead, acceptedTypes: AcceptedTypes, isEmpty: Bool) -> FailureCause? {
        if !accepts(head.status) {
            let inner = typeRefusal(of: head, acceptedTypes, isEmpty: isEmpty)
            let underlying = inner.map { NetworkError($0.kind, reason: $0.reason) }
            return FailureCause(.status, text(of: head), underlying: underlying)
        }
        if let refusal = typeRefusal(of: head, acceptedTypes, isEmpty: isEmpty) { return refusal }
        guard let check else { return nil }
        do {
            try check(head)
            return nil
        } catch {
            return FailureCause(.validation, "the response was refused: \(error)", underlying: error)
        }
    }

    private func text(of head: ResponseHead) -> String {
        let phrase = head.reasonPhrase.isEmpty ? "" : " \(head.reasonPhrase)"
        return "status \(head.status)\(phrase) is not \(statuses == nil ? "in 200–299" : "accepted")"
    }

    private func typeRefusal(of head: ResponseHead, _ acceptedTypes: AcceptedTypes, isEmpty: Bool) -> FailureCause? {
        // Seen without a copy of the types.
        if case .automatic = contentTypes, case .any = acceptedTypes { return nil }
        let accepted: AcceptedTypes =
            switch contentTypes {
            case .automatic: acceptedTypes
            case .any: .any
            case .only(let types): .these(types)
            }
        if case .any = accepted { return nil }
        if isEmpty || head.status == 204 || head.status == 205 || head.status == 304 { return nil }
        if let type = head.mediaType, accepted.contain(type) { return nil }
        let found = head.headers["Content-Type"].map { "is \"\($0)\"" } ?? "has no Content-Type"
        let reason =
            "the response \(found), where \(accepted) is expected (ResponseValidation.contentTypes allows others)"
        return FailureCause(.contentType, reason)
    }
}

/// The content types that a requested value can be decoded from.
enum AcceptedTypes: Sendable, Hashable, CustomStringConvertible {
    case any
    case json
    case these([String])

    func contain(_ type: MediaType) -> Bool {
        switch self {
        case .any:
            return true
        case .json:
            return type.isJSON || type.essence == "text/javascript"
        case .these(let names):
            return names.contains { name in
                let name = name.lowercased()
                if name == "*/*" || name == type.essence { return true }
                if name.hasPrefix("*/*+") { return type.subtype.hasSuffix(name.dropFirst(3)) }
                return name.hasSuffix("/*") && type.essence.hasPrefix(name.dropLast())
            }
        }
    }

    var description: String {
        switch self {
        case .any: "anything"
        case .json: "JSON"
        case .these(let names): names.joined(separator: ", ")
        }
    }
}

/// The part of a representation that a response contains: the field `Content-Range` (RFC 9110 §14.4).
package struct ContentRange: Sendable, Hashable {
    /// The unit, in lower case; `bytes` in practice.
    package let unit: String
    /// The first and last position, both included; nil in the response to a range that cannot be served (`bytes
    /// */1234`).
    package let range: ClosedRange<Int64>?
    /// The length of the whole representation; nil if the server does not state it (`bytes 0-9/*`).
    package let completeLength: Int64?

    /// Parses a field value; nil if it is malformed or contradicts itself.
    package init?(_ value: String) {
        let value = value.utf8.drop { $0.isHTTPWhitespace }
        guard let space = value.firstIndex(where: { $0.isHTTPWhitespace }) else { return nil }
        unit = String(decoding: value[..<space].map(\.asciiLowercased), as: UTF8.self)
        guard unit.consists(of: .token), !unit.isEmpty else { return nil }
        let rest = value[space...].filter { !$0.isHTTPWhitespace }
        let halves = rest.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard halves.count == 2 else { return nil }

        let star = "*".utf8
        if halves[1].elementsEqual(star) {
            completeLength = nil
        } else {
            guard let length = Self.number(halves[1]) else { return nil }
            completeLength = length
        }
        if halves[0].elementsEqual(star) {
            guard completeLength != nil else { return nil }
            range = nil
            return
        }
        let ends = halves[0].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last,
            completeLength.map({ last < $0 }) ?? true
        else { return nil }
        range = first...last
    }

    /// Parses digits only, because `Int64("+1")` is also valid.
    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        guard digits.allSatisfy(\.isASCIIDigit) else { return nil }
        return Int64(String(decoding: digits, as: UTF8.self))
    }
}
