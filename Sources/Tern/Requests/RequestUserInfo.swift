extension Request {
    /// A key of ``userInfo``: the type itself is the key, and states the type of its value.
    ///
    /// ```swift
    /// enum Feature: Request.UserInfoKey { typealias Value = String }
    ///
    /// let page: Page = try await client.get("feed") { $0.userInfo[Feature.self] = "home" }
    /// ```
    public protocol UserInfoKey {
        /// The type of the value.
        associatedtype Value: Sendable
    }

    /// Values of the caller that travel with a request and are never sent. See ``Request/userInfo``.
    public struct UserInfo: Sendable {
        private var values: [ObjectIdentifier: any Sendable] = [:]

        /// Creates a value without entries.
        public init() {}

        /// The value of a key; nil for none.
        public subscript<Key: UserInfoKey>(key: Key.Type) -> Key.Value? {
            get { values[ObjectIdentifier(key)] as? Key.Value }
            set { values[ObjectIdentifier(key)] = newValue }
        }

        /// A Boolean value that indicates whether there is no entry.
        public var isEmpty: Bool { values.isEmpty }

        /// The number of entries.
        public var count: Int { values.count }
    }

    /// The key of the template of a request's URL, such as `/users/{id}`: a name for all requests of a kind, by which
    /// metrics and traces group them (`url.template` of OpenTelemetry). It has no values of the URL, and is not sent.
    ///
    /// ```swift
    /// let user: User = try await client.get("users/7") { $0.userInfo[Request.URLTemplate.self] = "/users/{id}" }
    /// ```
    public enum URLTemplate: UserInfoKey {
        /// The template.
        public typealias Value = String
    }

    /// Values of the caller for interceptors, policies, observers and whoever receives the task or the error. They are
    /// never sent, and follow the request through redirects and retries. Empty by default.
    ///
    /// `Interceptor` and `SessionPolicy` find them in the request that they receive, `SessionObserver` and
    /// `TaskRegistry.events` in `AnySessionTask.request`, and the caller in `NetworkError.request`. Caches do not
    /// look at them. Of requests that `CoalescingInterceptor` joins, only the one that is sent has its own in the hooks.
    public var userInfo: UserInfo {
        get { options?.fields.userInfo ?? UserInfo() }
        set { change { $0.userInfo = newValue } }
    }
}

extension Request.UserInfo: CustomStringConvertible, CustomReflectable {
    /// The number of entries. The values are hidden, because they can be secrets.
    public var description: String { "\(count) \(count == 1 ? "value" : "values")" }

    /// An empty mirror. Without it, `dump` would show the values.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
