public import GRPCCore
public import Tern

extension TernGRPCTransport {
    /// The settings of a transport.
    public struct Configuration: Sendable {
        /// The settings of the session that carries the calls: trust, client identities, proxies, host addresses, a Unix
        /// socket, observers, the PING intervals of HTTP/2 and more.
        ///
        /// The transport sets what gRPC prescribes: HTTP/2 for `http` URLs too, no cookies, redirects, cache,
        /// decompression and validation, and no time limits other than `timeouts.connect`. Calls have deadlines of
        /// their own. By default, calls wait for a stream of the one connection when it is full
        /// (`http2.waitsForStreams`).
        public var session: Session.Configuration
        /// The configuration of methods by name: deadlines, retries, hedging, limits and the throttle of retries, which
        /// GRPCCore applies. `ServiceConfig` is `Codable` in the JSON form of gRPC. Of its load balancing, `roundRobin`
        /// applies if there are several ``addresses``. Empty by default.
        public var serviceConfig = ServiceConfig()
        /// The addresses of the server, as in `10.0.0.7` and `[2001:db8::7]:50051`, in place of those of its name. With
        /// the load balancing `roundRobin`, calls take turns among them, each over a connection of its own; otherwise,
        /// one connection leads to the first that can be reached. Empty by default: the name is resolved for each new
        /// connection.
        public var addresses: [String] = []
        /// The compression of messages that are sent, unless `CallOptions.compression` names another. `.none` by
        /// default.
        public var compression = CompressionAlgorithm.none
        /// The compressions of received messages that the server is told, in addition to none. gzip and deflate by
        /// default. A message that exceeds its limit after decompression ends the call with `.resourceExhausted`.
        public var acceptedCompressions: CompressionAlgorithmSet = [.gzip, .deflate]
        /// The most bytes of a message that is sent, before compression; 4 MiB by default.
        /// `CallOptions.maxRequestMessageBytes` and the service config take precedence.
        public var maximumRequestMessageSize = 4 << 20
        /// The most bytes of a message that is received, after decompression; 4 MiB by default.
        /// `CallOptions.maxResponseMessageBytes` and the service config take precedence.
        public var maximumResponseMessageSize = 4 << 20
        /// The first and the longest wait of a call with `CallOptions.waitForReady` before another connection is tried
        /// after one could not be made; the wait grows by 1.6 each time. Also the times for which an address is left out
        /// by `roundRobin`. 250 milliseconds to 30 seconds by default.
        public var reconnectDelay: ClosedRange<Duration> = .milliseconds(250) ... .seconds(30)
        /// The value of the field `user-agent`. `grpc-swift-tern/` and the version of Tern by default. Metadata of a
        /// call with this key replaces it.
        public var userAgent = "grpc-swift-tern/\(TernPackage.version)"

        /// Creates a configuration with the defaults stated at each property.
        public init() {
            session = Session.Configuration()
            session.http2.waitsForStreams = true
            // As long as other clients of gRPC keep a connection without calls.
            session.idleConnectionLifetime = .seconds(30 * 60)
        }

        /// The settings of the session with what gRPC prescribes.
        ///
        /// - Parameters:
        ///   - host: The host of the server's URL.
        ///   - addresses: The addresses of that host; none to resolve it.
        func session(for host: String, at addresses: [String]) -> Session.Configuration {
            var session = session
            session.usesHTTP2WithoutTLS = true
            session.allowsHTTP2 = true
            session.http3 = .never
            session.cookies = .none
            session.redirects = .stop
            session.decompresses = false
            session.validation = ResponseValidation.any
            let connect = session.timeouts.connect
            session.timeouts = Timeouts(connect: connect, idle: nil, attempt: nil, total: nil, queue: nil)
            if !addresses.isEmpty { session.hostAddresses[host] = addresses }
            return session
        }
    }
}
