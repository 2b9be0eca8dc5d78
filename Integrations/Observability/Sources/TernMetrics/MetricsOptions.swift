import TernObservation

extension MetricsObserver {
    /// The metrics and dimensions that OpenTelemetry's conventions leave to a choice (opt-in).
    public struct Options: Sendable {
        /// Metrics that are left out by default.
        public enum Metric: Sendable, Hashable, CaseIterable {
            /// `http.client.request.body.size` and `http.client.response.body.size`: `Recorder`s of bytes as they were
            /// sent, with the dimensions of the duration. The size of a compressed response without a length is not
            /// known.
            case bodySizes
            /// The steps by which a request got its connection, as `Timer`s: `tern.client.connection.lookup.duration`,
            /// which contains the wait for a free connection, `tern.client.connection.connect.duration` and
            /// `tern.client.connection.tls.duration`. Recorded for each request that opened a connection, with the
            /// dimensions of the server and `network.protocol.version`. The conventions have no names for them.
            case connectionSetup
        }

        /// The metrics to record. None by default.
        public var metrics: Set<Metric> = []
        /// A Boolean value that indicates whether the metrics have the dimension `url.scheme`. False by default.
        public var hasScheme = false
        /// The methods that are recorded by their names; others are `_OTHER`. By default those of RFC 9110, PATCH and
        /// QUERY.
        public var knownMethods = RequestFacts.knownMethods

        /// Creates options without further metrics.
        public init() {}
    }
}
