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
