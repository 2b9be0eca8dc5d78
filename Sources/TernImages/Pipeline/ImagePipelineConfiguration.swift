public import Tern
public import TernCache

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ImagePipeline {
    /// The configuration of a pipeline. A value: a pipeline keeps the one it was created with.
    public struct Configuration: Sendable {
        /// The session that fetches images. The default is shared by all pipelines without their own session. It
        /// accepts `image/*,*/*;q=0.8`, has a timeout of 15 seconds to connect and between two bytes, retries requests
        /// that can be retried, and keeps cookies in memory. Requests send and store cookies only with
        /// `ImageRequest.Options.handlesCookies` or a `Request` with its own `cookies`. Images of sessions with
        /// different users are kept apart (`Session.Configuration.partition`).
        public var session = Session.images
        /// The limit in bytes for decoded images in memory. The default depends on the machine's memory.
        public var memoryLimit = MemoryBudget.current.recommendedCost
        /// The source of memory pressure events, after which images and frames are released; nil for none. By default
        /// the system.
        public var pressure: (any MemoryPressureSource)? = SystemMemoryPressure.shared
        /// The location of the disk cache; `.standard` by default.
        public var disk = Disk.standard
        /// The content of the disk cache; `.original` by default.
        public var diskContent = DiskContent.original
        /// The second level behind the disk, which several processes share; nil, the default, for none. It holds
        /// encoded bytes.
        ///
        /// Only images that anybody may see are stored there: those of requests and sessions without credentials,
        /// cookies, a `Hooks.prepare`, and trust or route settings of their own. They are kept apart by the partition
        /// of the session. All processes that share a store must have the same hooks.
        public var secondLevel: SecondLevelCache?
        /// The encoding of processed images on the disk; nil, the default, for PNG with alpha, and else JPEG with
        /// quality 85.
        public var diskEncoding: ImageEncoding?
        /// The decoders. `.shared` by default: those of the system, and the registered ones.
        public var decoders = ImageDecoders.shared
        /// The threads that decode and process images; by default threads that all pipelines share.
        public var executor = ImageExecutor.shared
        /// The limit for the decoded frames of animations. `.shared` by default: one limit for the process.
        public var frameBudget = FrameBudget.shared
        /// The maximum number of fetches at a time, 12 by default: a list that scrolls by 60 rows a second needs 6 to
        /// keep up at a latency of 100 ms, and as many again to catch up. The session limits the connections to one
        /// host, 32 by default (`Session.Configuration.maximumConnectionsPerHost`): more fetches than that wait for one.
        public var maximumFetches = 12
        /// The maximum number of images that are decoded at a time, or are next for a thread of the executor. Nil, the
        /// default, for two for each thread, so that no thread waits for its next image, and for more, at most 32,
        /// while images take less than 0.25 ms. Priorities order the images that wait before that.
        public var maximumDecodes: Int?
        /// The maximum number of processors that run at a time; nil, the default, for one for each thread of the
        /// executor.
        public var maximumProcesses: Int?
        /// The order of loads with the same priority. `.firstInFirstOut` by default.
        public var order = Order.firstInFirstOut
        /// The limit for the rate at which fetches begin; nil, the default, for none.
        public var rateLimit: RateLimit?
        /// The limit for a response in bytes. By default the lesser of 200 MB and a tenth of the machine's memory.
        public var responseByteLimit = Int(min(200_000_000, (MemoryBudget.current.memory ?? 2_000_000_000) / 10))
        /// The time for which a failure that would only repeat itself is remembered and returned, 5 minutes by default.
        /// Zero remembers no failure. Failures are forgotten when the network returns.
        public var failureLifetime = Duration.seconds(300)
        /// The maximum number of remembered failures, 1,024 by default.
        public var failureLimit = 1_024
        /// The time for which a response without freshness information is fresh, 7 days by default.
        public var defaultFreshness = Duration.seconds(7 * 24 * 3_600)
        /// A Boolean value that indicates whether the data of an interrupted response is kept, so that only the rest is
        /// fetched next time, even after a restart. True by default. It needs the disk, a validator, and a server that
        /// supports ranges.
        public var resumesPartialDownloads = true
        /// The time after the end of scrolling at which waiting loads begin, 150 milliseconds by default.
        public var settlingTime = Duration.milliseconds(150)
        /// The reachability whose changes reset the remembered failures; nil for none. `Reachability.shared` by
        /// default.
        public var reachability: Reachability? = Reachability.shared
        /// The condition under which the alternatives of requests for low data are preferred. `.system` by default.
        public var lowDataMode = LowDataMode.system
        /// Hooks that change requests and data; none by default.
        public var hooks = Hooks()
        /// The clock for the rate limit, the settling time, the pace of previews, and the lifetime of remembered
        /// failures. Timeouts are measured by the session.
        public var clock: any Clock<Duration> = ContinuousClock()
        /// Returns the current date, for the freshness of responses.
        public var now: @Sendable () -> Date = { Date() }

        /// The time in the background that the system grants; nil for a system that suspends no process.
        var backgroundTime = BackgroundTime.shared

        /// Creates a configuration with the defaults.
        public init() {}
    }

    /// The order of loads with the same priority.
    public enum Order: Sendable, Hashable {
        /// The oldest load first.
        case firstInFirstOut
        /// The newest load first.
        case lastInFirstOut
    }

    /// A limit for the rate at which fetches begin.
    public struct RateLimit: Sendable, Hashable {
        /// The number of fetches per second, on average.
        public var perSecond: Double
        /// The number of fetches at once after a pause.
        public var burst: Int

        /// Creates a limit, by default of 80 per second with bursts of 25.
        public init(perSecond: Double = 80, burst: Int = 25) {
            self.perSecond = perSecond
            self.burst = burst
        }
    }

    /// The content of the disk cache.
    public enum DiskContent: Sendable, Hashable {
        /// The encoded bytes, from which every size and variant is made.
        case original
        /// The processed image if there is anything to process or resize, else the encoded bytes.
        case automatic
        /// The processed image, but none of a local file, which can change without a sign, and none with the hook
        /// `decrypt`.
        case processed
        /// Both.
        case all
    }

    /// The location of the disk cache.
    public enum Disk: Sendable {
        /// A folder for this program in the user's folder for caches, of at most 256 MiB, opened at the first use. The
        /// pipelines of one process share it. A second process of the program works without it.
        case standard
        /// A folder, opened at the first use. If it cannot be opened, the pipeline works without it, and the traces of
        /// its responses say why.
        case folder(URL, DiskCache.Configuration = DiskCache.Configuration())
        /// An open cache.
        case cache(DiskCache)
        /// No disk cache.
        case none
    }

    /// Hooks of the program into loads. All run off the caller and off the pipeline's actor.
    public struct Hooks: Sendable {
        /// Changes a request before it is sent, for example to add a token. The keys of the caches are derived from the
        /// unchanged request. If the session names no `partition`, the pipeline therefore shares no images with other
        /// pipelines or with later runs of the program.
        public var prepare: (@concurrent @Sendable (Request) async throws -> Request)?
        /// Changes the bytes of a response before they are stored, or rejects them by throwing.
        public var transform: (@concurrent @Sendable (Data, ResponseHead) async throws -> Data)?
        /// Decrypts bytes after they were fetched or read from the disk. They are stored as they were fetched.
        public var decrypt: (@concurrent @Sendable (Data) async throws -> Data)?
        /// Returns the bytes that are stored on the disk in place of the fetched bytes; nil to store nothing. Called
        /// with the fetched bytes, for the second level, too.
        public var serialize: (@concurrent @Sendable (Data, ImageRequest) async -> Data?)?
        /// Returns the identity of an image in the caches in place of its URL, for example the URL without a changing
        /// signature; nil for the URL. The session's partition and the request's credentials still keep users apart.
        /// Called on the caller's thread for every load, so keep it short.
        public var cacheKey: (@Sendable (ImageRequest) -> String?)?

        /// Creates hooks that change nothing.
        public init() {}
    }
}

extension Session {
    /// The default session of pipelines.
    public static let images: Session = {
        var configuration = Session.Configuration()
        configuration.headers["Accept"] = "image/*,*/*;q=0.8"
        configuration.timeouts = Timeouts(connect: .seconds(15), idle: .seconds(15))
        configuration.interceptors = [RetryInterceptor()]
        return Session(configuration: configuration)
    }()
}
