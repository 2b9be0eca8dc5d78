import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Loads pictures before they are needed, a few at a time, behind whatever is asked for itself.
///
/// ```swift
/// let prefetcher = ImagePrefetcher()
/// let batch = prefetcher.prefetch(nextPage.map(\.thumbnailURL))
/// for await progress in batch.progress { print(progress.finished, "of", progress.total) }
/// batch.cancel()                                 // the user went elsewhere
/// ```
/// A load that somebody asks for while it is prefetched is one with it, and takes over the higher priority.
public actor ImagePrefetcher {
    /// Where prefetched pictures go.
    public enum Destination: Sendable, Hashable {
        /// Decoded and processed, into memory, and their bytes to the disk as every load's.
        case memory
        /// The bytes alone, to the disk: nothing is decoded.
        case disk
    }

    private let pipeline: ImagePipeline
    private let destination: Destination
    private var queue: PrefetchQueue
    private var batches: [UInt64: PrefetchBatch] = [:]
    private var jobs: [PrefetchQueue.Item: Task<Void, Never>] = [:]
    private static let numbers = SerialNumbers()

    /// - Parameters:
    ///   - pipeline: Who loads; the shared one by default.
    ///   - destination: Where the pictures go; memory by default.
    ///   - maximumLoads: Pictures at a time; 3 by default.
    public init(
        pipeline: ImagePipeline = .shared, destination: Destination = .memory, maximumLoads: Int = 3
    ) {
        self.pipeline = pipeline
        self.destination = destination
        queue = PrefetchQueue(limit: maximumLoads)
    }

    /// Starts to prefetch requests, in their order, after what was given before. Their priority is lowered to `.low` where
    /// it is higher. Synchronous, from any thread.
    @discardableResult
    public nonisolated func prefetch(_ requests: [ImageRequest]) -> PrefetchBatch {
        let lowered = requests.map { request in
            var lowered = request
            lowered.priority = min(request.priority, .low)
            return lowered
        }
        let batch = PrefetchBatch(lowered, Self.numbers.next(), self)
        if lowered.isEmpty { batch.end(isCancelled: false) } else { Task { await self.add(batch) } }
        return batch
    }

    /// Starts to prefetch the pictures at URLs, at their own sizes. Otherwise as the other.
    @discardableResult
    public nonisolated func prefetch(_ urls: [URL]) -> PrefetchBatch { prefetch(urls.map { ImageRequest($0) }) }

    /// Begins nothing more until `resume()`; what is being loaded goes on.
    public func pause() { queue.pause() }

    /// Goes on after `pause()`.
    public func resume() { begin(queue.resume()) }

    /// Stops all batches.
    public func cancelAll() {
        for batch in batches.values {
            batch.end(isCancelled: true)
            cancel(batch)
        }
    }

    private func add(_ batch: PrefetchBatch) {
        // Cancelled before it was begun.
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
                let isThere = await Self.has(request, in: destination, of: pipeline)
                var failure: ImageError?
                if !isThere {
                    do throws(ImageError) { try await Self.load(request, to: destination, by: pipeline) } catch {
                        failure = error
                    }
                }
                self.ended(item, failure, isSkipped: isThere)
            }
        }
    }

    private func ended(_ item: PrefetchQueue.Item, _ error: ImageError?, isSkipped: Bool) {
        guard jobs.removeValue(forKey: item) != nil, let batch = batches[item.batch] else { return }
        batch.ended(item.index, error, isSkipped: isSkipped)
        begin(queue.ended(item))
        // Over by its last picture, or by a cancellation whose message is still on its way.
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
            guard await pipeline.isOnDisk(request) else {
                let reason =
                    pipeline.disk.reason ?? "the response, the request or the pipeline says that it is not stored"
                throw ImageError(.source, "the disk did not take it: \(reason)").from(request.source.description)
            }
        }
    }
}
