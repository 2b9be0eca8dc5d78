import Tern
import TernObservation

extension TracingObserver {
    /// The attributes of a request's span that OpenTelemetry's conventions leave to a choice (opt-in).
    public struct Options: Sendable {
        /// An attribute, or a group of them, that is left out by default.
        public enum Attribute: Sendable, Hashable, CaseIterable {
            /// `url.scheme`.
            case scheme
            /// `user_agent.original`: the request's own `User-Agent`, or else ``Options/userAgent``.
            case userAgent
            /// `network.transport`: `tcp`, `udp` for HTTP/3, or `unix`.
            case transport
            /// `http.request.body.size` and `http.response.body.size`: the bytes of the bodies as they were sent. The size
            /// of a compressed response without a length is not known.
            case bodySizes
            /// `http.request.size` and `http.response.size`: the bytes of the messages with their heads.
            case sizes
        }

        /// The attributes to record. None by default.
        public var attributes: Set<Attribute> = []
        /// The names of fields of requests to record as `http.request.header.<name>`. None by default. The fields are
        /// those of the caller, the client and the interceptors; what the session adds is not seen. The value of a field
        /// whose name is that of a secret is recorded as `<redacted>`.
        public var requestHeaders: Set<String> = []
        /// The names of fields of responses to record as `http.response.header.<name>`. None by default. Secrets are
        /// hidden as in requests.
        public var responseHeaders: Set<String> = []
        /// The `User-Agent` that the session adds. The default of a `Session.Configuration`.
        public var userAgent = Session.Configuration().headers["User-Agent"]
        /// The methods that are recorded by their names; others are `_OTHER`, and name no span. By default those of
        /// RFC 9110, PATCH and QUERY.
        public var knownMethods = RequestFacts.knownMethods

        /// Creates options without further attributes.
        public init() {}
    }
}
