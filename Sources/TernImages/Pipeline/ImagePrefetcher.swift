import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Loads images before they are needed, a few at a time, with a low priority.
///
/// ```swift
/// let prefetcher = ImagePrefetcher()
/// let batch = prefetcher.prefetch(nextPage.map(\.thumbnailURL))
/// for await progress in batch.progress { print(progress.finished, "of", progress.total) }
/// batch.cancel()                                 // the user went elsewhere
/// ```
/// A load that is requested while it is being prefetched is shared, and gets the higher priority.
public actor ImagePrefetcher {
    /// The destination of prefetched images.
    public enum Destination: Sendable, Hashable {
        /// Decoded and processed images in memory, with their bytes on the disk like those of all loads.
        case memory
        /// Only the encoded bytes on the disk. Nothing is decoded.
        case disk
    }

    private let pipeline: ImagePipeline
    private let destination: Destination
    private var queue: PrefetchQueue
    private var batches: [UInt64: PrefetchBatch] = [:]
    private var jobs: [PrefetchQueue.Item: Task<Void, Never>] = [:]
    private static let numbers = SerialNumbers()

    /// Creates a prefetcher.
    ///
    /// - Parameters:
    ///   - pipeline: The pipeline that loads; the shared one by default.
    ///   - destination: The destination of the images; memory by default.
    ///   - maximumLoads: The maximum number of loads at a time; 3 by default.
    public init(
        pipeline: ImagePipeline = .shared, destination: Destination = .memory, maximumLoads: Int = 3
    ) {
        self.pipeline = pipeline
        self.destination = destination
        queue = PrefetchQueue(limit: maximumLoads)
    }

    /// Starts to prefetch requests in order, after earlier batches. A priority above `.low` is lowered to it.
    /// Synchronous, from any thread.
    @discardableResult
    public nonisolated func prefetch(_ requests: [ImageRequest]) -> PrefetchBatch {
        let lowered = requests.map { request in
            var lowered = request
            lowered.priority = min(request.priority, .low)
            return lowered
        }
        let batch = PrefetchBatch(lowered, number: Self.numbers.next(), prefetcher: self)
        if lowered.isEmpty { batch.end(isCancelled: false) } else { Task { await self.add(batch) } }
        return batch
    }

    /// Starts to prefetch the images at URLs, in their own sizes. Otherwise like `prefetch(_:)` for requests.
    @discardableResult
    public nonisolated func prefetch(_ urls: [URL]) -> PrefetchBatch { prefetch(urls.map { ImageRequest($0) }) }

    /// Pauses: running loads continue, and no other begins until `resume()`.
    public func pause() { queue.pause() }

    /// Continues after `pause()`.
    public func resume() { begin(queue.resume()) }

    /// Cancels all batches.
    public func cancelAll() {
        for batch in batches.values {
            batch.end(isCancelled: true)
            cancel(batch)
        }
    }

    private func add(_ batch: PrefetchBatch) {
        // Cancelled before it began.
        guard !batch.current.isFinished else { return }
        batches[batch.number] = batch
        begin(queue.add(batch: batch.number, count: batch.requests.count))
    }

    func cancel(_ batch: PrefetchBatch) {
        guard batches.removeValue(forKey: batch.number) != nil else { return }
        let (stopped, begun) = queue.cancel(batch: batch.number)
        for item in stopped { jobs.removeValue(forKey: item)?.cancel() }
        begin(begun)
    }

    private func begin(_ items: [PrefetchQueue.Item]) {
        for item in items {
            guard let batch = batches[item.batch], !batch.current.isFinished else { continue }
            let (request, pipeline, destination) = (batch.requests[item.index], pipeline, destination)
            jobs[item] = Task {
                let isCached = await Self.has(request, in: destination, of: pipeline)
                var failure: ImageError?
                if !isCached {
                    do throws(ImageError) { try await Self.load(request, to: destination, by: pipeline) } catch {
                        failure = error
                    }
                }
                self.loadEnded(item, error: failure, isSkipped: isCached)
            }
        }
    }

    private func loadEnded(_ item: PrefetchQueue.Item, error: ImageError?, isSkipped: Bool) {
        guard jobs.removeValue(forKey: item) != nil, let batch = batches[item.batch] else { return }
        batch.itemEnded(at: item.index, error: error, isSkipped: isSkipped)
        begin(queue.ended(item))
        // The batch ended with this image, or its cancellation has not been handled yet.
        if batch.current.isFinished { cancel(batch) }
    }

    private static func has(
        _ request: ImageRequest, in destination: Destination, of pipeline: ImagePipeline
    ) async -> Bool {
        switch destination {
        case .memory: pipeline.cachedImage(for: request) != nil
        case .disk: await pipeline.isOnDisk(request)
        }
    }

    private static func load(
        _ request: ImageRequest, to destination: Destination, by pipeline: ImagePipeline
    ) async throws(ImageError) {
        switch destination {
        case .memory: _ = try await pipeline.response(for: request)
        case .disk:
            _ = try await pipeline.data(for: request)
            guard await pipeline.isOnDisk(request, inAnySource: true) else {
                let reason =
                    pipeline.disk.reason ?? "the response, the request or the configuration forbids it"
                throw ImageError(.source, "the disk cache did not store the image: \(reason)").from(
                    request.source.description)
            }
        }
    }
}

/// The images that a prefetcher loads, their order, and the limit. Pure: each change returns the items to start or
/// stop.
struct PrefetchQueue: Sendable {
    /// One image of a batch.
    struct Item: Sendable, Hashable {
        let batch: UInt64
        let index: Int
    }

    private let limit: Int
    private var waiting = FIFO<Item>()
    private(set) var running: Set<Item> = []
    private(set) var isPaused = false

    init(limit: Int) { self.limit = max(1, limit) }

    var waitingCount: Int { waiting.count }

    /// Adds the images of a batch at the end. Returns the items that begin now.
    mutating func add(batch: UInt64, count: Int) -> [Item] {
        for index in 0..<count { waiting.append(Item(batch: batch, index: index)) }
        return begin()
    }

    /// Removes an item that has ended. Returns the items that begin now.
    mutating func ended(_ item: Item) -> [Item] {
        running.remove(item)
        return begin()
    }

    /// Removes a batch. Returns the items to stop, and those that begin in their place.
    mutating func cancel(batch: UInt64) -> (stop: [Item], begin: [Item]) {
        waiting.removeAll { $0.batch == batch }
        let stopped = running.filter { $0.batch == batch }
        running.subtract(stopped)
        return (Array(stopped), begin())
    }

    /// Stops starting items; running ones continue.
    mutating func pause() { isPaused = true }

    mutating func resume() -> [Item] {
        isPaused = false
        return begin()
    }

    private mutating func begin() -> [Item] {
        var begun: [Item] = []
        while !isPaused, running.count < limit, let item = waiting.popFirst() {
            running.insert(item)
            begun.append(item)
        }
        return begun
    }
}
