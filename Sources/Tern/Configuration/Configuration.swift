#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension Session {
    /// The settings of a session. A session keeps a copy of the configuration that it was created with.
    public struct Configuration: Sendable {
        /// The header fields that are sent with every request that does not have them. By default `Accept: */*`, a
        /// `User-Agent` with the program's name and version, the system and Tern, and, if the user has set languages,
        /// an `Accept-Language` with the first six of them.
        public var headers = Configuration.defaultHeaders
        /// The origins that receive the fields of `headers` that hold a secret, such as `Authorization`, `Cookie` and
        /// `X-API-Key`. A path can name any host, but a secret is meant for one.
        ///
        /// Empty by default. A session whose `headers` have such a field fails every request with `.invalidRequest`
        /// until this property names the origins or is `.all`. All other fields are sent to every origin.
        public var secretHeaderOrigins: HeaderOrigins = []
        /// The time limits of requests that have none of their own.
        public var timeouts = Timeouts()
        /// The maximum number of connections to one scheme, host and port at a time. Over HTTP/2, a connection carries
        /// as many requests at a time as the server allows, paused ones included. Over HTTP/1, an unread stream keeps
        /// its connection, so further requests wait, in order of priority. 32 by default, at least 1.
        ///
        /// Over HTTP/1, requests of the priorities `.low` and `.veryLow` leave one of eight connections to the others,
        /// one of 2 to 8, and none of 1. Event streams and `multipart/x-mixed-replace` responses do not count among the
        /// connections for other requests; as many again can be open. Applies to Linux only.
        public var maximumConnectionsPerHost = 32
        /// The maximum number of connections of the session, including idle ones. 256 by default, at least 1.
        public var maximumConnections = 256
        /// The order of requests of the same priority that wait for a connection to one host. Waiting requests to
        /// different hosts are started in rotation. With several event loops (`Session.eventLoopCount`), the order
        /// holds among the requests of one loop. `.firstInFirstOut` by default. Applies to Linux only; URLSession has
        /// its own queue.
        public var queueOrder = QueueOrder.firstInFirstOut
        /// The time for which an idle connection is kept to be used again. 60 seconds by default.
        public var idleConnectionLifetime: Duration = .seconds(60)
        /// The time after its opening from which a connection takes no further request; nil, the default, for no limit.
        /// Requests that it carries go on. Behind a load balancer, new connections reach servers that were added since.
        /// Applies to Linux only; URLSession decides by itself.
        public var maximumConnectionAge: Duration?
        /// The number of requests that a connection takes in all, at least 1; nil, the default, for no limit. Over
        /// HTTP/2, each stream counts. Applies to Linux only; URLSession decides by itself.
        public var maximumConnectionUses: Int?
        /// A Boolean value that indicates whether HTTP/2 is offered to servers over TLS (ALPN). True by default.
        /// Applies to Linux only; URLSession always offers it.
        public var allowsHTTP2 = true
        /// A Boolean value that indicates whether requests to `http` URLs use HTTP/2, because their servers are known
        /// to speak it (prior knowledge, RFC 9113 §3.3). False by default: they use HTTP/1.1.
        ///
        /// A request to a server that speaks HTTP/1.1 only fails with `.malformedResponse`, or with `.connectionLost`
        /// if the server closes the connection. `allowsHTTP2` has no effect on this option. A proxy that receives
        /// requests whole, which HTTP proxies do with requests to `http` URLs, gets them over HTTP/1.1. Applies to
        /// Linux only.
        public var usesHTTP2WithoutTLS = false
        /// The use of connections over HTTP/2. The defaults fit web servers. Applies to Linux only; URLSession decides by
        /// itself.
        public var http2 = HTTP2Settings()
        /// The use of HTTP/3 for `https` URLs. `.never` by default.
        ///
        /// On Linux, HTTP/3 needs the libraries ngtcp2 (at least 1.11), nghttp3 (at least 1.8) and GnuTLS at run time.
        /// Requests through a proxy or a Unix socket, and requests for another protocol such as WebSocket, go over TCP
        /// with every value. On other systems, URLSession decides by itself: see ``HTTP3Use``.
        ///
        /// `TaskMetrics.httpVersion` is `.http3` for a request that HTTP/3 carried.
        public var http3 = HTTP3Use.never
        /// The time that an alternative has before TCP starts. Tests on busy machines change it.
        package var http3HeadStart = Duration.milliseconds(200)
        /// A Boolean value that indicates whether compressed responses are requested and decompressed: gzip and
        /// deflate, and on Linux also brotli and zstd where libbrotlidec.so.1 and libzstd.so.1 are found. True by
        /// default.
        ///
        /// A body is decompressed while it is read, whether it is collected, streamed or downloaded, and never on an
        /// actor. A body with several codings, and one with a registered coding that cannot be decoded, is an error of
        /// kind `.malformedResponse`. A body whose `Content-Encoding` names no registered coding, such as `utf-8`, is
        /// delivered as it came.
        public var decompresses = true
        /// The maximum number of bytes of a compressed body after decompression, whether it is collected, streamed or
        /// downloaded. 1 GiB by default.
        public var maximumDecompressedSize: Int64 = 1 << 30
        /// The maximum ratio of decompressed bytes to compressed bytes. It applies once a body has more than 10 MiB
        /// after decompression, whether it is collected, streamed or downloaded. 200 by default, at least 1.
        ///
        /// 200 is the limit of Apache's mod_deflate. Text rarely exceeds 20, and gzip cannot exceed 1,032; brotli and
        /// zstd have no such bound. Highly repetitive bodies, such as zeros, need a larger value. Applies to Linux
        /// only; URLSession decompresses by itself.
        public var maximumDecompressionRatio = 200
        /// The maximum number of bytes of a body that is collected in memory. 128 MiB by default. Streams and downloads
        /// have no such limit, but each line of `ResponseStream.lines` does.
        public var maximumBodySize = 128 << 20
        /// The maximum size in bytes of the head of a response, including the interim responses before it. 256 KiB by
        /// default. The trailers have the same limit. On Linux, a response also has at most 1,000 fields and as many
        /// trailers, over HTTP/1 together with the fields, and at most 100 interim responses.
        public var maximumHeadSize = 256 << 10
        /// The maximum number of bytes of a refused response's body that its error carries. 1 MiB by default.
        ///
        /// The error of a stream or a download waits for these bytes for at most 5 seconds, and then carries those that
        /// have arrived. A server that sends its body slowly cannot delay the error longer.
        public var errorBodyLimit = 1 << 20
        /// The bodies of refused responses whose explanation the error's ``NetworkError/reason`` quotes: at most 200
        /// characters, without control characters. Those of the type `application/problem+json` (RFC 9457) by default,
        /// because other texts are not meant for logs. A body of more than 64 KiB is not looked into.
        public var quotedExplanations = QuotedExplanations.problems
        /// The certificate authorities that are trusted. Those of the system by default.
        public var authorities = Authorities.system
        /// The trust policies for TLS connections, by host. By default, a certificate must lead to `authorities` and be
        /// valid for the host's name.
        public var trust = TrustPolicies()
        /// The place to which the secrets of TLS connections are written, for programs such as Wireshark, which decrypt a
        /// capture with them; nil, the default, for none. Supported on Linux only.
        public var keyLog: TLSKeyLog?
        /// The proxies. By default those of the environment (`http_proxy`, `https_proxy`, `all_proxy`, `no_proxy`),
        /// read once per process.
        public var proxies = Proxies.environment
        /// The addresses of hosts, used instead of resolving their names. The key is a host, for all of its ports, or
        /// `host:port`, which has precedence. An address can name a port of its own, as in `10.0.0.7:8443` and
        /// `[2001:db8::7]:8443`; without one, that of the URL is used. Certificates are still checked for the name.
        /// Empty by default. Supported on Linux only.
        public var hostAddresses: [String: [String]] = [:]
        /// The local endpoint of connections. By default, the system chooses it. Supported on Linux only.
        public var localEndpoint = LocalEndpoint.any
        /// The path of a Unix domain socket to connect to in place of every host and port; nil by default.
        public var unixSocketPath: String?
        /// A Boolean value that indicates whether tasks created by `Session.task(for:)` start at once. False by
        /// default: they wait for `resume()`.
        public var startsImmediately = false
        /// Returns the destination of a download. Called before the task's own destination; nil, or a result of nil,
        /// leaves the decision to the task.
        public var destination: Download.Destination?
        /// The interceptors between every request and the wire, outermost first. None by default.
        public var interceptors: [any Interceptor] = []
        /// Decides on redirects, dispositions, replayed bodies and destinations before the requests' own policies do.
        /// nil by default: the documented defaults apply.
        public var policy: (any SessionPolicy)?
        /// The observers of the stages of every request, in the order in which they are called. None by default.
        public var observers: [any SessionObserver] = []
        /// The redirects that are followed when neither ``policy`` nor the request's policy decides. `.follow` by
        /// default.
        public var redirects = Redirects.follow
        /// The maximum number of redirects in a row. 20 by default (the fetch standard's limit).
        public var maximumRedirects = 20
        /// The rules that a response must meet to be accepted. By default, a status in 200–299 and a content type that
        /// fits the requested value.
        public var validation = ResponseValidation()
        /// The provider of credentials for servers that ask for them (401, and 407 of a proxy over plain HTTP). nil by
        /// default: the credentials of the URL are used, and without any, the challenge is delivered as the final
        /// response.
        public var credentials: (any CredentialProvider)?
        /// The cookies that are sent and stored. `.separate` by default: a store in memory that belongs to this session
        /// alone, so that two sessions of a process never share a login by accident.
        public var cookies = CookieUse.separate
        /// The cache around each exchange with a server, an `ExchangeCache`; nil for none. Without its type, because a
        /// cache refers to tasks, which refer to their configuration.
        var untypedCache: (any Sendable)?
        /// The transport in place of the wire, a `Transport`; nil for the wire. Without its type, because a transport
        /// refers to attempts, which refer to their configuration. `TernTesting` sets it; any other value is ignored.
        package var untypedTransport: (any Sendable)?
        /// The name of the user that the session's responses belong to, in caches that sessions share: the images in
        /// memory and on the disk, and the responses of an `HTTPCache`. Sessions with the same name share cached
        /// images, also in later runs of the program. Sessions with different names never do. The name itself is not
        /// written to the disk.
        ///
        /// Within a partition, responses to requests that send the session's cookies are kept apart from responses to
        /// requests that do not. The same holds for sessions with a trust policy that accepts every certificate.
        ///
        /// nil, the default, derives the partition from everything that distinguishes users before a request is sent:
        /// the configuration's headers, except neutral ones such as `Accept` and `User-Agent`, `FixedCredentials`, the
        /// certificate of a `ClientIdentity`, the path of `unixSocketPath` and, for a request that sends cookies, the
        /// cookie store. A store is identified by its file, or in memory by its instance, and not by its cookies. If
        /// one store serves several users in turn, name a partition for each user. Sessions without any of these share
        /// one partition.
        ///
        /// A session without a named partition shares nothing if it has a policy, a credential provider other than
        /// `FixedCredentials`, or an interceptor whose `Interceptor.changesRequests` is true: its user is not known
        /// before a request is sent. Other sessions, and later runs of the program, do not find what such a session
        /// stores on the disk.
        ///
        /// A request's own headers and the user information of its URL always distinguish users, in every partition. In
        /// an `HTTPCache`, of the headers only those with a secret do, such as `Authorization`; other fields count if
        /// the response names them in `Vary`.
        public var partition: String?
        /// A Boolean value that indicates whether the name of ``partition`` takes the place of the requests' credentials
        /// in the keys of an `HTTPCache`, so that responses stay in use after a token was renewed. False by default: a
        /// new `Authorization` finds nothing that an earlier one has stored.
        ///
        /// Set it only if all credentials of the session belong to one user, and name another partition for the next
        /// user. A response whose `Vary` names `Authorization` is still used for the same value only, and a request with
        /// a credential provider of its own (`Request.credentials`) stays apart. Has no effect without a named
        /// partition.
        public var partitionReplacesCredentials = false
        /// The reachability of the network, for `OfflineWaitInterceptor`. `Reachability.shared` by default.
        public var reachability = Reachability.shared
        /// The coding of JSON: of responses, bodies, events, lines and messages.
        public var json = JSONCoding()

        /// Creates a configuration with the defaults stated at each property.
        public init() {}

        private static let defaultHeaders: Headers = {
            var headers: Headers = ["User-Agent": UserAgent.current]
            headers["Accept-Language"] = AcceptLanguage.current
            return headers
        }()

        /// Certificate authorities.
        public enum Authorities: Sendable, Hashable {
            /// The authorities of the system.
            case system
            /// Only the authorities in a file in PEM form.
            case file(String)
            /// Only the authorities in these bytes in PEM form.
            case pem(Data)
        }
    }
}

extension Session.Configuration: CustomStringConvertible, CustomReflectable {
    /// The headers, limits and network settings, without secrets.
    public var description: String {
        customMirror.children.map { "\($0.label ?? ""): \($0.value)" }.joined(separator: ", ")
    }

    /// The parts of ``description``. Without this mirror, `dump` would show certificates and the contents of the
    /// caller's types.
    public var customMirror: Mirror {
        let children: KeyValuePairs<String, Any> = [
            "headers": headers.map(\.description), "secretHeaderOrigins": secretHeaderOrigins, "timeouts": timeouts,
            "maximumConnectionsPerHost": maximumConnectionsPerHost, "maximumConnections": maximumConnections,
            "allowsHTTP2": allowsHTTP2, "usesHTTP2WithoutTLS": usesHTTP2WithoutTLS, "http3": http3,
            "decompresses": decompresses,
            "maximumDecompressedSize": maximumDecompressedSize,
            "maximumDecompressionRatio": maximumDecompressionRatio, "maximumBodySize": maximumBodySize,
            "maximumHeadSize": maximumHeadSize, "maximumRedirects": maximumRedirects, "proxies": proxies,
            "hostAddresses": hostAddresses, "localEndpoint": localEndpoint, "unixSocketPath": unixSocketPath as Any,
            "keyLog": keyLog as Any, "interceptors": interceptors.count, "observers": observers.count,
            "hasCache": untypedCache != nil,
        ]
        return Mirror(self, children: children)
    }
}
