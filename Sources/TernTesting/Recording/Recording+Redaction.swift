import Tern

extension Recording {
    /// What is taken out of an exchange before it is kept.
    public struct Redaction: Sendable {
        let change: @Sendable (inout Exchange) -> Void

        /// A change of one's own. It is applied to what was recorded, and to the request of a call that is looked up, so that
        /// the two still match.
        public init(_ change: @escaping @Sendable (inout Exchange) -> Void) { self.change = change }

        /// Nothing is taken out.
        public static let none = Redaction { _ in }

        /// The default: the values of headers that carry credentials (`Authorization`, `Cookie`, `X-API-Key` and their kin),
        /// of cookies that a response sets, and of query items whose names say the same. Bodies stay as they are.
        public static let secrets = Redaction { exchange in
            exchange.request.headers = exchange.request.headers.map(hidingSecret)
            exchange.request.url = hidingSecrets(inURL: exchange.request.url)
            if let headers = exchange.response?.headers { exchange.response?.headers = headers.map(hidingSecret) }
        }

        /// This redaction, and then another.
        public func then(_ other: @escaping @Sendable (inout Exchange) -> Void) -> Redaction {
            Redaction { exchange in
                change(&exchange)
                other(&exchange)
            }
        }
    }

    private static let hidden = "<redacted>"

    private static func hidingSecret(_ line: String) -> String {
        guard let field = Headers(recorded: [line]).first, Headers.isSecret(field.name) else { return line }
        guard Headers.namesMatch(field.name, "Set-Cookie"), let equals = field.value.firstIndex(of: "=") else {
            return "\(field.name): \(hidden)"
        }
        // Name and attributes say what the server does; the value is the secret.
        let attributes = field.value[equals...].firstIndex(of: ";").map { field.value[$0...] } ?? ""
        return "\(field.name): \(field.value[...equals])\(hidden)\(attributes)"
    }

    private static func hidingSecrets(inURL url: String) -> String {
        guard let mark = url.firstIndex(of: "?") else { return url }
        let items = url[url.index(after: mark)...].split(separator: "&", omittingEmptySubsequences: false)
        let safe = items.map { item -> String in
            guard let equals = item.firstIndex(of: "="), isSecret(item[..<equals]) else { return String(item) }
            return "\(item[...equals])redacted"
        }
        return url[...mark] + safe.joined(separator: "&")
    }

    private static func isSecret(_ name: Substring) -> Bool {
        Headers.isSecret(String(name)) || ["key", "sig", "auth", "code"].contains(name.lowercased())
    }
}
