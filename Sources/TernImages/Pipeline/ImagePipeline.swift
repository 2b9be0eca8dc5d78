import Tern
import TernCache
import TernConcurrency

/// Loads pictures: from memory, the disk or the network, decoded to size and processed off the caller, each piece of work
/// done once for all who want it.
///
/// ```swift
/// let pipeline = ImagePipeline.shared
/// let image = try await pipeline.image(from: url)
///
/// let task = pipeline.task(for: ImageRequest(url, targetSize: PixelSize(width: 200, height: 200)))
/// for await progress in task.progress { show(progress.fractionCompleted) }
/// let response = try await task.response
/// print(response.source, response.trace)          // why it was not found nearer
/// ```
/// A load looks into memory, on the caller's thread → for another size in memory that it can be made of → for the processed
/// picture on the disk → for the bytes on the disk → and fetches them; then it decodes to the size wanted, processes, and
/// stores. Equal loads are one, from the step at which they are equal; the last that leaves stops it.
public actor ImagePipeline {
    /// What the pipeline does as it was made.
    public nonisolated let configuration: Configuration
    nonisolated let memory: MemoryCache<ImageKey, StoredImage>
    nonisolated let disk: DiskTier
    nonisolated let ancestry = Lock(Ancestry())
    private nonisolated let inbox = Lock(Inbox())
    nonisolated let fetcher: ImageFetcher
    nonisolated let tools: ImageTools
    /// The partition of the pictures that the session fetches.
    nonisolated let partition: CachePartition
    /// The partition of the pictures of requests that send the session's cookies.
    nonisolated let cookiePartition: CachePartition

    var images = LoadTable<ImageFlight, ImageSink>()
    var originals = LoadTable<OriginalFlight, OriginalSink>()
    var running: [Int: RunningLoad] = [:]
    /// By the task's number: the load that it waits for.
    var loadOf: [UInt64: Int] = [:]
    var queues: [StageQueue]
    var scrollGate = ScrollGate()
    var scrollWaiters: [Int: Waiter<Bool>] = [:]
    var failures: NegativeCache<SourceKey>
    var bucket: TokenBucket?
    /// Whether somebody looks again when the rate allows the next fetch.
    var isAwaitingRate = false
    /// Pictures that are being encoded for the disk, one after the other; each tells why it could not be stored.
    var stores: [Int: Task<String?, Never>] = [:]
    var lastStore: Task<String?, Never>?
    /// By the load of bytes, while it comes.
    var feeds: [Int: ImageFeed] = [:]
    #if os(Linux)
    /// By the load of a picture.
    var previewers: [Int: Previewer] = [:]
    #endif
    private var lastNumber = 0
    private let start: ClockReading
    private var networkWatch: Task<Void, Never>?
    private let pressureWatch: Task<Void, Never>?

    /// A pipeline with caches of its own.
    public init(configuration: Configuration = Configuration()) {
        self.configuration = configuration
        var memoryConfiguration = MemoryCacheConfiguration(limits: MemoryCacheLimits(cost: configuration.memoryLimit))
        memoryConfiguration.pressure = configuration.pressure
        memory = MemoryCache(memoryConfiguration, inUse: StoredImage.inUse) { $0.cost }
        disk = DiskTier(configuration.disk)
        fetcher = ImageFetcher(configuration: configuration, disk: disk)
        tools = ImageTools(configuration)
        let hook = configuration.hooks.prepare == nil ? nil : ImageRequest.Source.serials.next()
        let context = configuration.session.context
        partition = context.cachePartition(handlesCookies: false, hook: hook)
        cookiePartition = context.cachePartition(handlesCookies: true, hook: hook)
        let threads = configuration.executor.threadCount
        queues = [
            StageQueue(limit: configuration.maximumFetches, order: configuration.order),
            // Twice the threads: each finds its next picture without waiting for the actor.
            StageQueue(limit: configuration.maximumDecodes ?? 2 * threads, order: configuration.order),
            StageQueue(limit: configuration.maximumProcesses ?? threads, order: configuration.order),
        ]
        failures = NegativeCache(limit: configuration.failureLimit, lifetime: configuration.failureLifetime)
        bucket = configuration.rateLimit.map(TokenBucket.init)
        start = ClockReading(configuration.clock)
        let budget = configuration.frameBudget
        pressureWatch = configuration.pressure.map { source in
            let levels = source.levels
            // Lives as long as the pipeline, not as whoever makes it.
            return Task.detached(priority: .utility) { for await level in levels { budget.relieve(level) } }
        }
    }

    deinit {
        networkWatch?.cancel()
        pressureWatch?.cancel()
    }

    var now: Duration { start.now() }

    func nextNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }

    // MARK: The way in

    /// What the outside tells the actor, in order. One wake-up serves whatever has come by then.
    enum Message: Sendable {
        /// `stale`: what was found in memory and is to be revalidated; the task has it already, unless it is asked for first.
        case begin(ImageTask, stale: StoredImage?)
        case cancel(ImageTask)
        case move(ImageTask)
        case progress(load: Int, Session.Progress)
        case grown(load: Int)
        case scrolling(Bool)
        case echo(Waiter<Void>)
    }

    private struct Inbox {
        var messages: [Message] = []
        var isServed = false
    }

    nonisolated func post(_ message: Message) {
        let wakes = inbox.withLock { inbox in
            inbox.messages.append(message)
            defer { inbox.isServed = true }
            return !inbox.isServed
        }
        if wakes { Task { await self.serve() } }
    }

    /// Returns once all that was told before has been acted on.
    nonisolated func served() async {
        let waiter = Waiter<Void>()
        post(.echo(waiter))
        await waiter.wait()
    }

    private func serve() {
        // The two lists change places, so that neither grows anew.
        var messages: [Message] = []
        while true {
            inbox.withLock { inbox in
                swap(&inbox.messages, &messages)
                guard messages.isEmpty else { return }
                inbox.isServed = false
                // Of a rush nothing is kept.
                if inbox.messages.capacity > 1_024 { inbox.messages = [] }
            }
            if messages.isEmpty { return }
            for message in messages { act(on: message) }
            messages.removeAll(keepingCapacity: true)
        }
    }

    private func act(on message: Message) {
        switch message {
        case .begin(let task, let stale): begin(task, stale)
        case .cancel(let task): leave(task)
        case .move(let task): move(task)
        case .progress(let load, let progress): report(progress, of: load)
        case .grown(let load):
            #if os(Linux)
            grown(load)
            #endif
        case .echo(let waiter): waiter.resume()
        case .scrolling(let isScrolling): scroll(scrollGate.report(isScrolling: isScrolling))
        }
    }

    /// Forgets failures when the network comes back; watched from the first failure on.
    func watchNetwork() {
        guard networkWatch == nil, let reachability = configuration.reachability else { return }
        let statuses = reachability.statuses
        networkWatch = Task { [weak self] in
            var wasReachable = true
            for await status in statuses {
                if status.isReachable, !wasReachable { await self?.forgetFailures() }
                wasReachable = status.isReachable
                if self == nil { return }
            }
        }
    }

    /// Forgets the failures of before: what they were of is tried again.
    public func forgetFailures() { failures.removeAll() }
}

extension ImagePipeline: CustomReflectable {
    /// The configuration. Without this mirror, `dump` would show the pictures and the session.
    public nonisolated var customMirror: Mirror { Mirror(self, children: ["configuration": configuration]) }
}
