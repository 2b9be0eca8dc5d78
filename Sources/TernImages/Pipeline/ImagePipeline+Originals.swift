import Tern
import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The bytes of a picture: the disk → what failed before → scrolling, rate and turn → the network → the disk.

extension ImagePipeline {
    /// The bytes, come by once for all who want them.
    /// - Parameter known: what is there and is to be asked for again; nil to take what is there.
    func original(
        _ image: ImageFlight, _ request: ImageRequest, for child: Int, _ rank: LoadRank, revalidating known: Freshness?
    ) async throws(ImageError) -> Original {
        // Who was cancelled on the way here waits for nothing, and nothing would end what was begun for him.
        guard let waitsForScrolling = running[child]?.waitsForScrolling, !Task.isCancelled else { throw .cancelled }
        let flight = OriginalFlight(image, revalidating: known)
        if insists(request, on: flight.key) { failures.remove(flight.key) }
        let waiter = Waiter<Result<Original, ImageError>>()
        var load = nextNumber()
        let ticket = nextNumber()
        switch originals.join(flight, as: load, ticket: ticket, rank: rank, OriginalSink(waiter: waiter, load: child)) {
        case .begin:
            if known == nil { openFeed(load, image) }
            let number = load
            running[load] = RunningLoad(
                job: Task { await self.run(number, flight, request, known) }, waitsForScrolling: waitsForScrolling)
        case .joined(let other, let rank):
            load = other
            if let rank { moved(load, to: rank) }
            if !waitsForScrolling { hurry(load) }
            if let progress = running[load]?.progress { tell(child) { $0.report(progress) } }
        }
        running[child]?.upstream = .original(load: load, ticket: ticket)
        if known == nil { preview(load, for: child, image) }
        let result = await waiter.wait(cancelled: .failure(.cancelled))
        running[child]?.upstream = nil
        // Without effect unless it was cancelled.
        leave(.original(load: load, ticket: ticket))
        return try result.get()
    }

    /// Whether a failure of before is no answer to the request.
    private func insists(_ request: ImageRequest, on key: SourceKey) -> Bool {
        if request.options.retriesFailed { return true }
        // Bytes that were too few for others may do for it.
        guard request.options.allowsPartial, let error = failures.error(for: key, at: now) else { return false }
        return error.kind != .network
    }

    private func openFeed(_ load: Int, _ image: ImageFlight) {
        #if os(Linux)
        guard showsPreviews(image.options) else { return }
        feeds[load] = ImageFeed { [weak self] in self?.post(.grown(load: load)) }
        #endif
    }

    private func preview(_ load: Int, for child: Int, _ image: ImageFlight) {
        #if os(Linux)
        if let feed = feeds[load] { showPreviews(of: feed, for: child, image) }
        #endif
    }

    private func run(_ load: Int, _ flight: OriginalFlight, _ request: ImageRequest, _ known: Freshness?) async {
        defer { feeds[load] = nil }
        while true {
            var result: Result<Original, ImageError>
            do throws(ImageError) {
                result = .success(try await bytes(flight, request, load, known))
            } catch {
                result = .failure(error)
            }
            guard isRunning(load) else { return }
            if case .failure(let error) = result {
                recordFailure(error, of: flight.key, request)
                switch originals.fail(load, isFinal: error.isFinal) {
                case .again(let leader):
                    feeds[load]?.restart()
                    leader.waiter.resume(returning: result)
                    continue
                case .ends(let sinks):
                    running[load] = nil
                    for sink in sinks { sink.waiter.resume(returning: result) }
                    return
                }
            }
            running[load] = nil
            for sink in originals.finish(load) { sink.waiter.resume(returning: result) }
            return
        }
    }

    private func bytes(
        _ flight: OriginalFlight, _ request: ImageRequest, _ load: Int, _ known: Freshness?
    ) async throws(ImageError) -> Original {
        var trace = ImageTrace()
        if known == nil, let found = await storedBytes(flight, &trace) { return found }
        guard flight.network else {
            throw ImageError(.notCached, "it is in no cache that may be read, and may not be fetched")
        }
        if let error = failures.error(for: flight.key, at: now) {
            throw ImageError(.failedBefore, "it failed a short while ago: \(error.message)", underlying: error)
        }
        try await waitForScrolling(load)
        let (fetcher, feed, keepsParts) = (fetcher, feeds[load], flight.caching.contains(.write))
        let report: @Sendable (Session.Progress) -> Void = { [weak self] in self?.post(.progress(load: load, $0)) }
        let fetched = try await inTurn(.fetch, load, rank(of: load)) { () async throws(ImageError) in
            // The rank may have changed while it waited.
            let priority = await self.rank(of: load).priority
            // A child, so that the actor is not left: one that has more to do changes threads at each leave.
            async let outcome = fetcher.outcome(
                request, key: flight.key, known: known, priority: priority, keepsParts: keepsParts, feed: feed,
                report: report)
            return try await outcome.get()
        }
        switch fetched {
        case .bytes(let data, let freshness, let offset):
            trace.add(.network, .hit, .bytes(data.count, before: offset))
            // Whoever came too late for the pieces, or had them all at once, is told of the whole.
            self.report(Session.Progress(completedBytes: Int64(data.count), totalBytes: Int64(data.count)), of: load)
            await store(data, freshness, flight, request, &trace)
            return Original(data: data, freshness: freshness, source: .network, trace: trace)
        case .notModified(let freshness):
            trace.add(.network, .hit, "304")
            await renew(freshness, flight)
            return Original(data: Data(), freshness: freshness, source: .revalidated, trace: trace, isUnchanged: true)
        }
    }
}
