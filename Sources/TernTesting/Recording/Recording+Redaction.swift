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

        /// Hides the values of secrets in requests and responses. The default.
        ///
        /// Hides the values of headers that carry credentials (`Authorization`, `Cookie`, `X-API-Key` and similar), of
        /// cookies that a response sets, of user information and of the items of URLs (those of requests, `Location`,
        /// `Content-Location`, `Referer`, `Link` and `Refresh`) and of fields in JSON bodies, forms and multipart
        /// forms. An item or a field is secret if its name is `password`, `token`, `access_token`, `refresh_token`,
        /// `id_token`, `secret`, `client_secret`, `api_key`, `signature`, `otp` or similar. In JSON, at any depth, a
        /// string becomes `"<redacted>"` and a number `0`. Other bodies stay unchanged.
        public static let secrets = secrets()

        /// Hides what the default hides, with additional names or without changes to bodies.
        ///
        /// - Parameters:
        ///   - names: Additional names of headers, items and JSON keys whose values are secrets. Case, `_` and `-` make
        ///     no difference. Empty by default.
        ///   - inBodies: A Boolean value that indicates whether bodies are changed. True by default.
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
