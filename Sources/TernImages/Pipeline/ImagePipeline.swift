import Tern
import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Loads images from memory, the disk or the network, decodes them to size and processes them off the caller. Equal
/// work is done once for all callers.
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
/// A load looks into memory, on the caller's thread; for another size in memory that the image can be made from; for
/// the processed image on the disk; and for the encoded bytes on the disk and in the second level. Then it fetches the
/// bytes, decodes them to the target size, processes and stores the image. Equal loads share all steps from the first
/// one at which they are equal. A load stops when its last subscriber leaves.
public actor ImagePipeline {
    /// The configuration that the pipeline was created with.
    public nonisolated let configuration: Configuration
    nonisolated let memory: MemoryTier
    nonisolated let disk: DiskTier
    nonisolated let secondLevel: SharedTier
    nonisolated let fetcher: ImageFetcher
    nonisolated let decodingContext: DecodingContext
    /// The cache partition of the images that the session fetches.
    nonisolated let partition: CachePartition
    /// The cache partition of the images whose requests send the session's cookies.
    nonisolated let cookiePartition: CachePartition
    /// The hook, the clock and the condition that requests need, beside the configuration: reading them there would copy
    /// all of it.
    nonisolated let cacheKey: (@Sendable (ImageRequest) -> String?)?
    nonisolated let date: @Sendable () -> Date
    nonisolated let lowDataMode: LowDataMode
    nonisolated let inbox = Mailbox<Message>()

    /// The running loads of images.
    var imageJobs: [ImageLoadKey: LoadImageJob] = [:]
    /// The running loads of encoded bytes.
    var dataJobs: [EncodedLoadKey: LoadDataJob] = [:]
    /// The jobs whose work or whose previews are under way, by the number that its messages have.
    var workingJobs: [UInt64: LoadJob] = [:]

    /// A queue for each stage, in the order of `LoadStage`.
    var queues: [StageQueue<LoadJob>]
    var decodePace: DecodePace
    /// The closures that start work at the end of a turn, in which the actor handles many messages.
    var startsOfWork: [() -> Void] = []
    /// The callers that have a result, and are resumed at the end of the turn.
    var callers: [Waiter<Bool>] = []
    var rateLimiter: FetchRateLimiter?
    /// Whether a timer runs until the rate allows the next fetch.
    var isAwaitingRate = false
    var scrollDebouncer = ScrollDebouncer<LoadDataJob>()
    var failures: NegativeCache<SourceKey>
    let clock: RelativeClock
    var networkWatch: Task<Void, Never>?
    private let pressureWatch: Task<Void, Never>?

    /// Creates a pipeline with its own caches.
    public init(configuration: Configuration = Configuration()) {
        self.configuration = configuration
        cacheKey = configuration.hooks.cacheKey
        date = configuration.now
        lowDataMode = configuration.lowDataMode
        memory = MemoryTier(configuration)
        disk = DiskTier(configuration)
        secondLevel = SharedTier(configuration)
        fetcher = ImageFetcher(configuration: configuration, disk: disk)
        decodingContext = DecodingContext(configuration)
        let hook = configuration.hooks.prepare == nil ? nil : ImageRequest.Source.serials.next()
        let context = configuration.session.tasks
        partition = context.cachePartition(handlesCookies: false, hook: hook)
        cookiePartition = context.cachePartition(handlesCookies: true, hook: hook)
        queues = LoadStage.allCases.map { StageQueue($0, configuration) }
        decodePace = DecodePace(configuration)
        failures = NegativeCache(limit: configuration.failureLimit, lifetime: configuration.failureLifetime)
        rateLimiter = configuration.rateLimit.map(FetchRateLimiter.init)
        clock = RelativeClock(configuration.clock)
        let budget = configuration.frameBudget
        pressureWatch = configuration.pressure.map { source in
            let levels = source.levels
            // Detached: it lives as long as the pipeline, not as long as the task that creates the pipeline.
            return Task.detached(priority: .utility) { for await level in levels { budget.trim(for: level) } }
        }
    }

    deinit {
        networkWatch?.cancel()
        pressureWatch?.cancel()
    }

    // MARK: The shared pipeline

    /// The pipeline that is used where no other is given: the built-in one, or the one passed to `setShared`.
    public static var shared: ImagePipeline { replacement.withLock { $0 } ?? builtIn }

    /// Replaces the shared pipeline; nil restores the built-in one. Running loads continue in their pipeline.
    public static func setShared(_ pipeline: ImagePipeline?) { replacement.withLock { $0 = pipeline } }

    private static let replacement = Lock<ImagePipeline?>(nil)
    private static let builtIn = ImagePipeline()

    // MARK: Loading

    /// Starts a load. If the image is in memory, the task has it when this method returns, without a switch of threads.
    ///
    /// Synchronous, from any thread. It accesses no file.
    public nonisolated func task(for request: ImageRequest) -> ImageTask {
        if !request.alternatives.isEmpty { return taskForAlternatives(of: request) }
        return task(for: request, sending: request, key: key(of: request), attempts: nil)
    }

    /// Starts a load.
    /// - Parameters:
    ///   - sent: The request of the source that is tried first.
    ///   - key: The key of its image.
    ///   - attempts: The sources of a request with alternatives; nil for another one.
    nonisolated func task(
        for request: ImageRequest, sending sent: ImageRequest, key: ImageKey, attempts: SourceAttempts?
    ) -> ImageTask {
        func load(stale: StoredImage?, response: ImageResponse?) -> ImageTask {
            let task = ImageTask(
                request, loadKey: attempts?.key ?? ImageLoadKey(key, sent), attempts: attempts, pipeline: self)
            if let response { task.deliver(response) }
            send(.begin(task, stale: stale))
            return task
        }
        guard sent.caching.memory.contains(.read), let stored = memory.image(for: key),
            stored.satisfies(sent.options, of: key)
        else { return load(stale: nil, response: nil) }
        if let error = stored.rejection(by: sent.options) {
            return ImageTask(request, result: .failure(error.from(sent.source.description)), pipeline: self)
        }
        let isStale = !stored.freshness.isFresh(at: date())
        if isStale, sent.options.revalidation == .beforeDelivery, sent.caching.network {
            return load(stale: stored, response: nil)
        }
        let trace = isStale ? ImageTrace.memoryStale : .memoryHit
        let response = ImageResponse(stored, source: .memory, trace: trace).delivered(for: sent.options, at: date())
        if sent.options.revalidation == .always || sent.options.revalidation == .whenStale && isStale,
            sent.caching.network
        {
            return load(stale: stored, response: response)
        }
        return ImageTask(request, result: .success(attempts?.marked(response) ?? response), pipeline: self)
    }

    /// Loads an image. Cancelling the calling Swift task cancels the load.
    ///
    /// Returns a stale image as it is in the cache; the load continues to revalidate it.
    public nonisolated func image(from request: ImageRequest) async throws(ImageError) -> RasterImage {
        try await response(for: request).image
    }

    /// Loads the image at a URL, in its own size. Otherwise like `image(from:)` of a request.
    public nonisolated func image(from url: URL) async throws(ImageError) -> RasterImage {
        try await image(from: ImageRequest(url))
    }

    /// Loads an image, with its origin and trace. Otherwise like `image(from:)`.
    public nonisolated func response(for request: ImageRequest) async throws(ImageError) -> ImageResponse {
        let task = task(for: request)
        return try await task.response { _ in task.cancel() }
    }

    /// Loads the image at a URL, in its own size, with its origin and trace. Otherwise like `image(from:)`.
    public nonisolated func response(for url: URL) async throws(ImageError) -> ImageResponse {
        try await response(for: ImageRequest(url))
    }

    /// Loads the encoded bytes of a request's source, from the disk or the network, and stores them; those of the next
    /// alternative if the source has none. Nothing is decoded.
    ///
    /// Encrypted bytes stay encrypted. Cancelling the calling Swift task stops the fetch, unless others wait for it.
    public func data(for request: ImageRequest) async throws(ImageError) -> Data {
        var trials = trials(of: request)
        while true {
            do throws(ImageError) {
                return try await bytes(for: trials.request)
            } catch {
                if let error = trials.next(after: error) { throw error }
            }
        }
    }

    /// Loads the encoded bytes of one source.
    private func bytes(for request: ImageRequest) async throws(ImageError) -> Data {
        if case .image = request.source.content {
            throw ImageError(.source, "the source is a closure that returns an image, which has no encoded bytes")
        }
        var request = request
        request.options.progressive = .none
        let caller = DataCallerJob(ImageLoadKey(key(of: request), request), request)
        // If the caller is already cancelled, start nothing, because nothing would cancel the new load.
        if !Task.isCancelled { caller.loadBytes(in: self) }
        endTurn()
        let result = await caller.waiter.wait(cancelled: .failure(.cancelled))
        caller.leaveDependency(in: self)
        return try result.get().data
    }

    /// Reports whether a view scrolls. Loads with `Options.waitsForScrolling` begin to fetch once scrolling has ended
    /// for the configuration's settling time. Synchronous, from any thread.
    public nonisolated func setScrolling(_ isScrolling: Bool) { send(.scrolling(isScrolling)) }

    // MARK: Caches

    /// Returns the image of exactly this request from memory, or nil: that of its source, or else of the first
    /// alternative that is there. Synchronous, from any thread: it accesses no file and does not wait.
    public nonisolated func cachedImage(for request: ImageRequest) -> RasterImage? {
        firstInMemory(of: request) { memory.image(for: $0)?.image }
    }

    /// Returns the largest size of the request's image in memory, processed like it, or else not processed at all; nil
    /// if there is none. Use it as a placeholder. Synchronous, from any thread.
    public nonisolated func cachedVariant(of request: ImageRequest) -> RasterImage? {
        firstInMemory(of: request) { memory.largestVariant(of: $0) }
    }

    /// Puts an image into memory under the key of a request's own source, as if it had been loaded. An image in other
    /// colors than those of the request is converted first, and is not put there if it cannot be. Synchronous, from any
    /// thread.
    public nonisolated func cache(_ image: RasterImage, for request: ImageRequest) {
        guard let image = try? image.converted(to: request.options.color) else { return }
        let stored = StoredImage(image: image, animation: nil, data: nil, freshness: .always)
        memory.insert(stored, for: key(of: request))
    }

    /// Returns a Boolean value that indicates whether the disk has the request's encoded bytes or processed image, not
    /// expired, or those of an alternative. Once the disk cache is open, this needs no system call.
    public nonisolated func isOnDisk(_ request: ImageRequest) async -> Bool {
        await isOnDisk(request, inAnySource: false)
    }

    /// Removes what is kept of a request's source and of its alternatives: the encoded bytes, partial ones included, and
    /// the images of every size, color and processor, from memory, the disk and the second level. Other processes keep
    /// what they have in memory and on their disks. An error leaves what could not be removed.
    public func remove(_ request: ImageRequest) async throws(ImageError) {
        let requests = SourceTrials(request).trials.map(\.request)
        for request in requests {
            memory.remove(key(of: request))
            failures.remove(sentKey(of: request))
        }
        var failure: ImageError?
        for key in requests.map(key(of:)) {
            do throws(ImageError) {
                try await disk.remove(key)
                try await secondLevel.remove(key.source)
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
    }

    /// Removes everything from memory and disk, and what the second level has of the session's partition, and forgets
    /// failures. Running loads continue.
    public func removeAll() async throws(ImageError) {
        memory.removeAll()
        failures.removeAll()
        try await disk.removeAll()
        try await secondLevel.removeAll(in: partition)
    }

    /// Returns once everything that was loaded before is on the disk, and is stored or given up in the second level.
    public func flush() async throws(ImageError) {
        await secondLevel.finishUploads()
        try await disk.flush()
    }

    /// Forgets the remembered failures, so that the next loads try again.
    public func forgetFailures() { failures.removeAll() }

    nonisolated func key(of request: ImageRequest) -> ImageKey {
        let partition = partition(of: request)
        guard let name = cacheKey?(request) else { return ImageKey(request, in: partition) }
        return ImageKey(request, source: SourceKey(named: name, request.source.request), in: partition)
    }

    nonisolated func partition(of request: ImageRequest) -> CachePartition {
        request.options.handlesCookies ? cookiePartition : partition
    }

    /// Returns a Boolean value that indicates whether two requests are one load, shown in one way.
    package nonisolated func isOneLoad(_ one: ImageRequest, _ other: ImageRequest) -> Bool {
        one.options.requiresAnimation == other.options.requiresAnimation
            && ImageLoadKey(key(of: one), one) == ImageLoadKey(key(of: other), other)
            && one.hasAlternatives(of: other)
    }
}

extension ImagePipeline: CustomReflectable {
    /// The configuration. Without this mirror, `dump` would show the images and the session.
    public nonisolated var customMirror: Mirror { Mirror(self, children: ["configuration": configuration]) }
}
