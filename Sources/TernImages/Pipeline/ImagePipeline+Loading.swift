import Tern
import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ImagePipeline {
    /// Starts a load, or finds it done: a picture in memory has arrived before this returns, without a switch of threads.
    ///
    /// Synchronous, from any thread; no file is touched by it.
    public nonisolated func task(for request: ImageRequest) -> ImageTask {
        let key = key(of: request)
        let task = ImageTask(request, key, self)
        guard request.caching.memory.contains(.read), let stored = memory.value(for: key),
            stored.suits(request.options)
        else {
            post(.begin(task, stale: nil))
            return task
        }
        if let refusal = stored.refusal(by: request.options) {
            task.end(.failure(refusal.from(request.source.description)))
            return task
        }
        let isStale = !stored.freshness.isFresh(at: configuration.now())
        var trace = ImageTrace.memoryHit
        if isStale {
            trace = ImageTrace()
            trace.add(.memory, .stale)
        }
        if isStale, request.options.revalidation == .beforeDelivery, request.caching.network {
            post(.begin(task, stale: stored))
            return task
        }
        let response = stored.response(.memory, isStale: isStale, trace, request.options)
        if request.options.revalidation == .always || request.options.revalidation == .whenStale && isStale,
            request.caching.network
        {
            task.deliver(response)
            post(.begin(task, stale: stored))
        } else {
            task.end(.success(response))
        }
        return task
    }

    /// The picture of a request. Cancelling the calling Swift task cancels the load.
    ///
    /// Of a stale one this is the cached picture; the load goes on to revalidate it.
    public nonisolated func image(for request: ImageRequest) async throws(ImageError) -> RasterImage {
        try await response(for: request).image
    }

    /// The picture at a URL, at its own size. Otherwise as `image(for:)`.
    public nonisolated func image(from url: URL) async throws(ImageError) -> RasterImage {
        try await image(for: ImageRequest(url))
    }

    /// The picture of a request and where it came from. Otherwise as `image(for:)`.
    public nonisolated func response(for request: ImageRequest) async throws(ImageError) -> ImageResponse {
        let task = task(for: request)
        return try await task.response { _ in task.cancel() }
    }

    /// The bytes of a request's source, from the disk or fetched and stored; nothing is decoded.
    ///
    /// Encrypted ones stay so. Cancelling the calling Swift task stops the fetch, unless others wait for it.
    public func data(for request: ImageRequest) async throws(ImageError) -> Data {
        var request = request
        request.options.progressive = .none
        let flight = ImageFlight(key(of: request), request)
        let number = nextNumber()
        let rank = LoadRank(request.priority, isVisible: request.isVisible)
        // The way of a load that wants the bytes alone: it waits like one that would decode them.
        running[number] = RunningLoad(waitsForScrolling: request.options.waitsForScrolling)
        defer { running[number] = nil }
        do throws(ImageError) {
            return try await original(flight, request, for: number, rank, revalidating: nil).data
        } catch {
            throw error.from(request.source.description)
        }
    }

    // MARK: Scrolling

    /// Whether a view scrolls now. Loads with `Options.waitsForScrolling` begin to fetch only once it has not for the
    /// configuration's settling time. Synchronous, from any thread.
    public nonisolated func setScrolling(_ isScrolling: Bool) { post(.scrolling(isScrolling)) }
}
