public import Tern
public import TernCache

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ImagePipeline {
    /// How a pipeline behaves. A value: a pipeline keeps the one it was made with.
    public struct Configuration: Sendable {
        /// The session that fetches images. The default is shared by the pipelines without a session of their own. It
        /// accepts `image/*,*/*;q=0.8`, has a limit of 15 seconds to connect and between two bytes, retries requests
        /// that can be retried, and keeps no cookies. Images of sessions with different users are kept apart
        /// (`Session.Configuration.partition`).
        public var session = Session.images
        /// Bytes that decoded pictures may take in memory; the default is recommended for the machine's memory.
        public var memoryLimit = MemoryBudget.current.recommendedCost
        /// Who tells of pressure on memory, so that pictures and frames are given up; nil for nobody. The system by default.
        public var pressure: (any MemoryPressureSource)? = SystemMemoryPressure.shared
        /// Where bytes are kept on the disk; `.standard` by default.
        public var disk = Disk.standard
        /// What is stored on the disk; `.original` by default.
        public var diskContent = DiskContent.original
        /// How a processed picture is encoded for the disk; nil, the default: PNG with alpha, else JPEG of quality 85.
        public var diskEncoding: ImageEncoding?
        /// Who decodes. `.shared` by default: the system's formats and what was registered.
        public var decoders = ImageDecoders.shared
        /// Where pictures are decoded and processed: threads of their own, shared by all pipelines by default.
        public var executor = ImageExecutor.shared
        /// How many bytes of decoded frames of animations are kept in all. `.shared` by default: one budget for the process.
        public var frameBudget = FrameBudget.shared
        /// Fetches at a time. 12 by default: a list that scrolls by 60 rows a second needs 6 under way to stand still at a
        /// latency of 100 ms, and as many again to catch up. Connections to one host are the session's to limit.
        public var maximumFetches = 12
        /// Pictures that are decoded at a time; nil, the default: one for each thread of the executor, and as many that wait
        /// there so that no thread does.
        public var maximumDecodes: Int?
        /// Processors that run at a time; nil, the default: one for each thread of the executor.
        public var maximumProcesses: Int?
        /// Who goes first among loads of the same rank. `.firstInFirstOut` by default.
        public var order = Order.firstInFirstOut
        /// How many fetches may begin in a time; nil, the default, for no such limit.
        public var rateLimit: RateLimit?
        /// Bytes that a response may have. The lesser of 200 MB and a tenth of the machine's memory by default.
        public var responseByteLimit = Int(min(200_000_000, (MemoryBudget.current.memory ?? 2_000_000_000) / 10))
        /// How long a failure that would only repeat itself is remembered, and answered with. 5 minutes by default; zero
        /// remembers nothing. Forgotten when the network returns.
        public var failureLifetime = Duration.seconds(300)
        /// Failures that are remembered at most. 1,024 by default.
        public var failureLimit = 1_024
        /// How long a response that says nothing of its freshness is fresh. 7 days by default.
        public var defaultFreshness = Duration.seconds(7 * 24 * 3_600)
        /// Whether what has come of a response that breaks off is kept, to ask only for the rest next time, also after a
        /// restart. True by default; it needs the disk, a validator, and a server that knows ranges.
        public var resumesPartialDownloads = true
        /// How long after scrolling has ended the loads that wait for it begin. 150 milliseconds by default.
        public var settlingTime = Duration.milliseconds(150)
        /// Whose changes reset the failures that are remembered; nil for nobody's. `Reachability.shared` by default.
        public var reachability: Reachability? = Reachability.shared
        /// What is changed on the way; nothing by default.
        public var hooks = Hooks()
        /// The clock of waits and lifetimes in memory.
        public var clock: any Clock<Duration> = ContinuousClock()
        /// The time that the freshness of responses is judged by.
        public var now: @Sendable () -> Date = { Date() }

        /// The defaults.
        public init() {}
    }

    /// Who goes first.
    public enum Order: Sendable, Hashable {
        /// The oldest.
        case firstInFirstOut
        /// The newest.
        case lastInFirstOut
    }

    /// How often fetches may begin.
    public struct RateLimit: Sendable, Hashable {
        /// Fetches a second, in the long run.
        public var perSecond: Double
        /// Fetches at once after a pause.
        public var burst: Int

        /// A limit; 80 a second with bursts of 25 by default.
        public init(perSecond: Double = 80, burst: Int = 25) {
            self.perSecond = perSecond
            self.burst = burst
        }
    }

    /// What the disk holds.
    public enum DiskContent: Sendable, Hashable {
        /// The bytes as they were fetched: every size and variant is made of them.
        case original
        /// The processed picture where there is something to do to it, else the bytes.
        case automatic
        /// The processed picture.
        case processed
        /// Both.
        case all
    }

    /// Where bytes are kept.
    public enum Disk: Sendable {
        /// A folder of the program's own in the user's folder for caches, of 256 MiB at most, opened when it is first needed.
        /// Pipelines of one process share it. A second process of the program works without it.
        case standard
        /// A folder, opened when it is first needed. If it cannot be opened, the pipeline works without it, and the traces
        /// of its responses say why.
        case folder(URL, DiskCache.Configuration = DiskCache.Configuration())
        /// A cache that is open.
        case cache(DiskCache)
        /// Nothing is kept.
        case none
    }

    /// What a program changes on the way of its pictures. All run off the caller and the pipeline's actor.
    public struct Hooks: Sendable {
        /// Changes a request before it is sent, for example to add a token. The keys of the caches are derived from the
        /// unchanged request. If the session names no `partition`, the pipeline therefore shares no pictures with other
        /// pipelines, nor with later runs of the program.
        public var prepare: (@concurrent @Sendable (Request) async throws -> Request)?
        /// Changes the bytes of a response, or refuses them by throwing, before they are stored.
        public var transform: (@concurrent @Sendable (Data, ResponseHead) async throws -> Data)?
        /// Makes the bytes readable after they were fetched or read from the disk: they are stored as they came.
        public var decrypt: (@concurrent @Sendable (Data) async throws -> Data)?
        /// What is stored on the disk in place of the fetched bytes; nil for nothing. Called with what came.
        public var serialize: (@concurrent @Sendable (Data, ImageRequest) async -> Data?)?
        /// Returns the identity of a picture in the caches in place of its URL, for example the URL without a changing
        /// signature; nil stands for the URL. The session's partition and the request's credentials still tell users
        /// apart. Called on the caller's thread for every load, so keep it short.
        public var cacheKey: (@Sendable (ImageRequest) -> String?)?

        /// No change.
        public init() {}
    }
}

extension Session {
    /// The session of the pipelines that are given no other.
    public static let images: Session = {
        var configuration = Session.Configuration()
        configuration.headers["Accept"] = "image/*,*/*;q=0.8"
        configuration.timeouts = Timeouts(connect: .seconds(15), idle: .seconds(15))
        configuration.interceptors = [RetryInterceptor()]
        return Session(configuration: configuration)
    }()
}
