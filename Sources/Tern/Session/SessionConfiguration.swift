#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension Session {
    /// How a session behaves. A value: a session keeps the one it was made with.
    public struct Configuration: Sendable {
        /// Fields sent with every request that does not have them. By default `Accept: */*`, a `User-Agent` made of the
        /// program's name and version, the system and Tern, and, where the user has set languages, an
        /// `Accept-Language` with the first six of them.
        public var headers = Configuration.defaultHeaders
        /// The origins that receive the fields of `headers` that hold a secret, such as `Authorization`, `Cookie` and
        /// `X-API-Key`. A path can name any host, but a secret is meant for one.
        ///
        /// Empty by default. A session whose `headers` have such a field fails every request with `.invalidRequest`
        /// until this property names the origins or is `.all`. All other fields are sent to every origin.
        public var secretHeaderOrigins: HeaderOrigins = []
        /// Time limits of requests that have none of their own.
        public var timeouts = Timeouts()
        /// Connections to one scheme, host and port at a time; over HTTP/2 a connection carries up to 100 requests, and
        /// one that may be paused, which is a task with a handle or a stream, has a connection of its own. What comes
        /// beyond waits, by priority: also for streams that nobody reads on. 32 by default, at least 1.
        public var maximumConnectionsPerHost = 32
        /// Connections of the session in all, idle ones included. 256 by default, at least 1.
        public var maximumConnections = 256
        /// Who goes first among requests of the same priority that wait for a connection to one host; hosts take turns.
        /// `.firstInFirstOut` by default. libcurl's transport alone: URLSession has its own queue.
        public var queueOrder = QueueOrder.firstInFirstOut
        /// How long a connection may be idle and still be used again. 60 seconds by default.
        public var idleConnectionLifetime: Duration = .seconds(60)
        /// Whether HTTP/2 is offered to servers that speak TLS (ALPN). True by default.
        public var allowsHTTP2 = true
        /// A Boolean value that indicates whether compressed responses are requested and decompressed: gzip and
        /// deflate, and on Linux also brotli and zstd where libbrotlidec.so.1 and libzstd.so.1 are found. True by
        /// default.
        ///
        /// A body is decompressed while it is read, whether it is collected, streamed or downloaded, and never on an
        /// actor or on the event loop.
        public var decompresses = true
        /// Bytes that a compressed body may have after decompression, whoever takes it. 1 GiB by default.
        public var maximumDecompressedSize: Int64 = 1 << 30
        /// The maximum ratio of decompressed bytes to compressed bytes. It applies once a body has more than 10 MiB
        /// after decompression, whether it is collected, streamed or downloaded. 200 by default, at least 1.
        ///
        /// 200 is the limit of Apache's mod_deflate. Text rarely exceeds 20, and gzip cannot exceed 1,032; brotli and
        /// zstd have no such bound. Highly repetitive bodies, such as zeros, need a larger value. Applies to libcurl's
        /// transport only.
        public var maximumDecompressionRatio = 200
        /// Bytes that a body collected in memory may have. 128 MiB by default. Streams and downloads have no such
        /// limit, but each line of `ResponseStream.lines` does.
        public var maximumBodySize = 128 << 20
        /// The maximum size in bytes of the head of a response, including the interim responses before it. 256 KiB by
        /// default. libcurl's transport also accepts at most 1,000 fields, trailers included, and at most 100 interim
        /// responses.
        public var maximumHeadSize = 256 << 10
        /// The maximum number of bytes of a refused response's body that its error carries. 1 MiB by default.
        public var errorBodyLimit = 1 << 20
        /// Which certificate authorities are trusted. The system's by default.
        public var authorities = Authorities.system
        /// Whom TLS connections are made with, and as whom, by host: certificates that lead to `authorities` and are for the
        /// host's name by default.
        public var trust = TrustPolicies()
        /// Which proxies are used: those of the environment by default (`http_proxy`, `https_proxy`, `all_proxy`,
        /// `no_proxy`), read once per process.
        public var proxies = Proxies.environment
        /// Addresses for hosts, used in place of what their names resolve to: the key is a host, for the ports 80 and 443, or
        /// `host:port`. Certificates are still checked for the name. Empty by default. libcurl's transport alone.
        public var hostAddresses: [String: [String]] = [:]
        /// Where connections begin on this machine: as the system routes them by default. libcurl's transport alone.
        public var localEndpoint = LocalEndpoint.any
        /// The path of a Unix domain socket to connect to in place of every host and port; nil by default.
        public var unixSocketPath: String?
        /// Whether tasks made by `Session.task(for:)` start at once. False by default: they wait for `resume()`.
        public var startsImmediately = false
        /// Where a download goes: asked first, before the task's own destination. nil, or an answer of nil, leaves it
        /// to the task.
        public var destination: Download.Destination?
        /// What stands between every request and the wire, outermost first. None by default.
        public var interceptors: [any Interceptor] = []
        /// Decides on redirects, dispositions, replayed bodies and destinations before the requests' own policies do.
        /// nil by default: the documented defaults hold.
        public var policy: (any SessionPolicy)?
        /// Those who watch the stages of every request, in the order in which they are told. None by default.
        public var observers: [any SessionObserver] = []
        /// The redirects that are followed when neither ``policy`` nor the request's policy decides. `.follow` by
        /// default.
        public var redirects = Redirects.follow
        /// Redirects that are followed one after the other. 20 by default (the fetch standard's limit).
        public var maximumRedirects = 20
        /// What a response must be to be taken: by default a status in 200–299, and a content type that fits what is asked
        /// for.
        public var validation = ResponseValidation()
        /// Who has the credentials for servers that ask for some (401, and 407 of a proxy over plain HTTP). nil by default:
        /// the credentials of the URL are used, and without any the challenge is the response.
        public var credentials: (any CredentialProvider)?
        /// Which cookies are sent and stored. `.separate` by default: those of the session's own servers, in memory, so
        /// that two sessions of a process never share a login by accident.
        public var cookies = CookieUse.separate
        /// The name of the user that the session's responses belong to, in caches that sessions share: the images in
        /// memory and on the disk. Sessions with the same name share cached images, also in later runs of the program.
        /// Sessions with different names never do. The name itself is not written to the disk.
        ///
        /// Within a partition, responses to requests that send the session's cookies are kept apart from responses to
        /// requests that do not. The same holds for sessions with a trust policy that accepts every certificate.
        ///
        /// nil, the default, derives the partition from everything that tells users apart before a request is sent: the
        /// configuration's headers, except neutral ones such as `Accept` and `User-Agent`, `FixedCredentials`, the
        /// certificate of a `ClientIdentity`, the path of `unixSocketPath` and, for a request that sends cookies, the
        /// cookie store. A store is identified by its file, or in memory by its instance, and not by its cookies. If
        /// one store serves several users in turn, name a partition for each user. Sessions without any of these share
        /// one partition.
        ///
        /// A session without a named partition shares nothing if it has a policy, a credential provider other than
        /// `FixedCredentials`, or an interceptor other than Tern's `RetryInterceptor`, `OfflineWaitInterceptor`,
        /// `CoalescingInterceptor` and `LoggingInterceptor`: its user is not known before a request is sent. Other
        /// sessions, and later runs of the program, do not find what such a session stores on the disk.
        ///
        /// A request's own headers and the user information of its URL always tell users apart, in every partition.
        public var partition: String?
        /// Who knows whether there is a network, for `OfflineWaitInterceptor`. `Reachability.shared` by default.
        public var reachability = Reachability.shared
        /// Makes the decoder of JSON responses, once per response. A plain one by default.
        public var makeJSONDecoder: @Sendable () -> JSONDecoder = { JSONDecoder() }
        /// Makes the encoder of JSON bodies, once per request. One with sorted keys by default, so that equal values
        /// give equal bytes.
        public var makeJSONEncoder: @Sendable () -> JSONEncoder = {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return encoder
        }

        /// The defaults, as stated at each property.
        public init() {}

        private static let defaultHeaders: Headers = {
            var headers: Headers = ["User-Agent": UserAgent.current]
            headers["Accept-Language"] = AcceptLanguage.current
            return headers
        }()

        /// Certificate authorities.
        public enum Authorities: Sendable, Hashable {
            /// Those of the system.
            case system
            /// Those of a file in PEM form, and no others.
            case file(String)
            /// Those of these bytes in PEM form, and no others.
            case pem(Data)
        }
    }
}

/// Facts about the package.
package enum Tern {
    /// The version that `User-Agent` tells.
    package static let version = "0.1.0"
}
