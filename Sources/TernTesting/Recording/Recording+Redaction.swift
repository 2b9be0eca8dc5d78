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

        /// The default: the values of secrets, in requests and responses.
        ///
        /// These are headers that carry credentials (`Authorization`, `Cookie`, `X-API-Key` and their kin), cookies that a
        /// response sets, user information and items of URLs (those of requests, `Location`, `Content-Location`, `Referer`,
        /// `Link` and `Refresh`), and what has such a name in a JSON body, a form or a multipart form: `password`, `token`,
        /// `access_token`, `refresh_token`, `id_token`, `secret`, `client_secret`, `api_key`, `signature`, `otp` and their
        /// kin. In JSON a string becomes `"<redacted>"` and a number `0`, at any depth. Other bodies stay as they are.
        public static let secrets = secrets()

        /// The default, with further names or without the bodies.
        ///
        /// - Parameters:
        ///   - names: Further names of headers, items and JSON keys whose values are secrets. Case, `_` and `-` make no
        ///     difference. None by default.
        ///   - inBodies: Whether bodies are changed; true by default.
        public static func secrets(naming names: Set<String> = [], inBodies: Bool = true) -> Redaction {
            let redactor = SecretRedactor(names: names, coversBodies: inBodies)
            return Redaction { redactor.change(&$0) }
        }

        /// This redaction, and then another.
        public func then(_ other: @escaping @Sendable (inout Exchange) -> Void) -> Redaction {
            Redaction { exchange in
                change(&exchange)
                other(&exchange)
            }
        }
    }
}
