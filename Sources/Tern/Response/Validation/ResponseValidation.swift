/// What a response must be to be taken: its status, its content type, and whatever else is asked of its head.
///
/// ```swift
/// var request = try Request(.get, "https://api.example.com/legacy")
/// request.validation = ResponseValidation(contentTypes: .any)
/// ```
///
/// A response that is not is an error of kind `.status`, `.contentType` or `.validation` with the head and the start of
/// the body on it. When status and content type are both refused, the error is that of the status, and that of the
/// content type is its `underlying`: the status is what the server meant to say.
public struct ResponseValidation: Sendable {
    /// Which content types are taken.
    public enum ContentTypes: Sendable, Hashable {
        /// Those that fit what is asked for: JSON for a `Decodable` type (`application/json`, `text/json`,
        /// `text/javascript`, every `+json`), property lists for theirs, anything for `Data`, `String`, files and streams.
        case automatic
        /// Any, and none.
        case any
        /// These alone, such as `text/html`, `image/*`, `*/*+xml`, `*/*`.
        case only([String])
    }

    /// Which content types are taken. `.automatic` by default. A body that is empty needs no type (RFC 9110 §8.3).
    public var contentTypes: ContentTypes
    /// Which statuses are taken; nil, the default, for 200–299.
    public var statuses: (@Sendable (_ status: Int) -> Bool)?
    /// What else is asked, after status and content type were accepted; what it throws is the `underlying` of the error.
    public var check: (@Sendable (_ response: ResponseHead) throws -> Void)?

    /// The rules as given; without arguments the defaults.
    public init(
        contentTypes: ContentTypes = .automatic, statuses: (@Sendable (_ status: Int) -> Bool)? = nil,
        check: (@Sendable (_ response: ResponseHead) throws -> Void)? = nil
    ) {
        self.contentTypes = contentTypes
        self.statuses = statuses
        self.check = check
    }

    func accepts(_ status: Int) -> Bool { statuses?(status) ?? (200...299).contains(status) }

    /// Why a response is refused; nil when it is taken.
    ///
    /// - Parameters:
    ///   - fitting: The types that fit what is asked for.
    ///   - isEmpty: Whether there is no body.
    func refusal(of head: ResponseHead, fitting: AcceptedTypes, isEmpty: Bool) -> TransferFailure? {
        if !accepts(head.status) {
            let inner = typeRefusal(of: head, fitting, isEmpty: isEmpty)
            let underlying = inner.map { NetworkError($0.kind, reason: $0.reason) }
            return TransferFailure(.status, text(of: head), underlying: underlying)
        }
        if let refusal = typeRefusal(of: head, fitting, isEmpty: isEmpty) { return refusal }
        guard let check else { return nil }
        do {
            try check(head)
            return nil
        } catch {
            return TransferFailure(.validation, "the response was refused: \(error)", underlying: error)
        }
    }

    private func text(of head: ResponseHead) -> String {
        let phrase = head.reasonPhrase.isEmpty ? "" : " \(head.reasonPhrase)"
        return "status \(head.status)\(phrase) is not \(statuses == nil ? "in 200–299" : "accepted")"
    }

    private func typeRefusal(of head: ResponseHead, _ fitting: AcceptedTypes, isEmpty: Bool) -> TransferFailure? {
        let accepted: AcceptedTypes =
            switch contentTypes {
            case .automatic: fitting
            case .any: .any
            case .only(let types): .these(types)
            }
        if case .any = accepted { return nil }
        if isEmpty || head.status == 204 || head.status == 205 || head.status == 304 { return nil }
        let received = head.headers["Content-Type"]
        if let type = received.flatMap({ MediaType($0) }), accepted.contain(type) { return nil }
        let found = received.map { "is \"\($0)\"" } ?? "has no Content-Type"
        let reason =
            "the response \(found), where \(accepted) is expected (ResponseValidation.contentTypes allows others)"
        return TransferFailure(.contentType, reason)
    }
}

/// The content types that something can be made of.
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
