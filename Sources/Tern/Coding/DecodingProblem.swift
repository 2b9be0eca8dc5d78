/// Describes a decoder's error in one line that quotes no value of the body.
package enum DecodingProblem {
    package static func text(_ error: any Error) -> String {
        guard let error = error as? DecodingError else { return "\(error)" }
        return switch error {
        case .keyNotFound(let key, let context): "no value for '\(path(context, key))'"
        case .valueNotFound(let type, let context): "null in place of \(type) at '\(path(context))'"
        case .typeMismatch(let type, let context): "not a \(type) at '\(path(context))'"
        case .dataCorrupted(let context): "\(context.debugDescription) at '\(path(context))'"
        @unknown default: "it cannot be decoded"
        }
    }

    private static func path(_ context: DecodingError.Context, _ last: (any CodingKey)? = nil) -> String {
        let keys = context.codingPath + (last.map { [$0] } ?? [])
        if keys.isEmpty { return "the top level" }
        return keys.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: ".")
    }
}
