import TernJSON

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension Session.Configuration {
    /// The bodies of refused responses whose explanation the error's reason quotes.
    public enum QuotedExplanations: Sendable, Hashable {
        /// None.
        case none
        /// Those of the type `application/problem+json`: their `title` and `detail` (RFC 9457 §3.1).
        case problems
        /// Those of every JSON type: also `message`, `error`, `error_description`, and the `message` in `error`, where
        /// they are texts.
        case json
    }
}

/// The sentence in the body of a refused response with which a server says why. Pure.
enum ServerExplanation {
    /// The largest body in bytes that is looked into.
    private static let sizeLimit = 64 << 10
    /// The maximum number of characters of the explanation, which is then escaped.
    private static let lengthLimit = 200

    /// Returns the explanation, without control characters; nil for a body without one.
    static func text(
        in body: Data, of type: MediaType?, quoting rule: Session.Configuration.QuotedExplanations
    ) -> String? {
        guard rule != .none, !body.isEmpty, body.count <= sizeLimit, let type else { return nil }
        let isProblem = type.essence == "application/problem+json"
        guard isProblem || rule == .json && type.isJSON,
            // `try?`: a body that is not JSON explains nothing.
            let value = try? TernJSONDecoder().decode(JSONValue.self, from: body)
        else { return nil }
        var texts = [value["title"], value["detail"]]
        if rule == .json {
            texts += [
                value["message"], value["error"], value["error"]?["message"], value["error_description"],
            ]
        }
        var parts: [String] = []
        for case .string(let text)? in texts where !text.isEmpty && !parts.contains(text) { parts.append(text) }
        if parts.isEmpty { return nil }
        return parts.joined(separator: ": ").printable(limit: lengthLimit)
    }
}
