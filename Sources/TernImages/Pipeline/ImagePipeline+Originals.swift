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
        let flight = OriginalFlight(image, revalidates: known != nil)
        let waiter = Waiter<Result<Original, ImageError>>()
        let (number, ticket) = (nextNumber(), nextNumber())
        switch originals.join(flight, as: number, ticket: ticket, rank: rank, OriginalSink(waiter: waiter, load: child))
        {
        case .begin:
            running[child]?.upstream = .original(load: number, ticket: ticket)
            openFeed(number, image)
            running[number] = RunningLoad(job: Task { await self.run(number, flight, request, known) })
            preview(number, for: child, image)
        case .joined(let load, let rank):
            running[child]?.upstream = .original(load: load, ticket: ticket)
            if let rank { moved(load, to: rank) }
            preview(load, for: child, image)
        }
        let result = await waiter.wait(cancelled: .failure(.cancelled))
        let upstream = running[child]?.upstream
        running[child]?.upstream = nil
        if Task.isCancelled { leave(upstream) }
        return try result.get()
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
            guard running[load] != nil else { return }
            if case .failure(let error) = result {
                if error.isRemembered {
                    failures.record(error, for: flight.key, at: now)
                    watchNetwork()
                }
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
        if known == nil, let found = await fromDisk(flight, &trace) { return found }
        guard flight.network else {
            throw ImageError(.notCached, "it is in no cache that may be read, and may not be fetched")
        }
        if flight.retriesFailed {
            failures.remove(flight.key)
        } else if let error = failures.error(for: flight.key, at: now) {
            throw ImageError(.failedBefore, "it failed a short while ago: \(error.message)", underlying: error)
        }
        if flight.waitsForScrolling { try await waitForScrolling(load) }
        try await waitForRate()
        let (fetcher, priority, feed) = (fetcher, rank(of: load).priority, feeds[load])
        let report: @Sendable (Session.Progress) -> Void = { [weak self] in self?.post(.progress(load: load, $0)) }
        let fetched = try await inTurn(.fetch, load, rank(of: load)) { () async throws(ImageError) in
            try await fetcher.fetch(
                request, key: flight.key, known: known, priority: priority, feed: feed, report: report)
        }
        switch fetched {
        case .bytes(let data, let freshness, let offset):
            trace.add(.network, .hit, "\(data.count) bytes\(offset > 0 ? ", \(offset) of them from before" : "")")
            await store(data, freshness, flight, request, &trace)
            return Original(data: data, freshness: freshness, source: .network, trace: trace)
        case .notModified(let freshness):
            trace.add(.network, .hit, "304")
            await renew(freshness, flight)
            return Original(data: Data(), freshness: freshness, source: .revalidated, trace: trace, isUnchanged: true)
        }
    }

    // MARK: The disk

    private func fromDisk(_ flight: OriginalFlight, _ trace: inout ImageTrace) async -> Original? {
        guard flight.caching.contains(.read) else {
            trace.add(.originals, .skipped)
            return nil
        }
        guard let disk = await disk.cache else {
            trace.add(.originals, .skipped, self.disk.reason ?? "")
            return nil
        }
        let key = Self.originalKey(flight.key)
        do {
            guard disk.contains(key), let entry = try await disk.entry(for: key) else {
                trace.add(.originals, .miss)
                return nil
            }
            let freshness = Freshness(entry.metadata) ?? .always
            trace.add(.originals, freshness.isFresh(at: configuration.now()) ? .hit : .stale)
            return Original(data: entry.value, freshness: freshness, source: .original, trace: trace)
        } catch {
            trace.add(.originals, .failed, "\(error)")
            return nil
        }
    }

    private func store(
        _ data: Data, _ freshness: Freshness, _ flight: OriginalFlight, _ request: ImageRequest,
        _ trace: inout ImageTrace
    ) async {
        guard flight.caching.contains(.write), configuration.diskContent.holdsOriginal(of: request) else {
            trace.add(.originals, .skipped)
            return
        }
        guard request.source.request != nil else { return }
        if freshness.isUnstorable {
            trace.add(.originals, .notStored, "no-store")
            return
        }
        guard let disk = await disk.cache else {
            trace.add(.originals, .notStored, self.disk.reason ?? "")
            return
        }
        var stored: Data? = data
        if let serialize = configuration.hooks.serialize { stored = await serialize(data, request) }
        guard let stored else {
            trace.add(.originals, .notStored, "the serializer gave nothing")
            return
        }
        let key = Self.originalKey(flight.key)
        do {
            if request.options.waitsForStore || !disk.hasStaged(stored, for: key, metadata: freshness.encoded) {
                try await disk.insert(stored, for: key, metadata: freshness.encoded)
            }
            trace.add(.originals, .stored)
        } catch {
            trace.add(.originals, .notStored, "\(error)")
        }
    }

    /// After a 304 the same bytes are fresh again.
    private func renew(_ freshness: Freshness, _ flight: OriginalFlight) async {
        guard flight.caching.contains(.write), let disk = await disk.cache else { return }
        let key = Self.originalKey(flight.key)
        // Without it the bytes are asked for once more than they need be.
        guard let value = try? await disk.value(for: key) else { return }
        try? disk.stage(value, for: key, metadata: freshness.encoded)
    }
}

extension DiskCache {
    /// Whether the value could be staged; false if too much waits already.
    fileprivate nonisolated func hasStaged(_ value: Data, for key: String, metadata: Data) -> Bool {
        do throws(DiskCacheError) {
            try stage(value, for: key, metadata: metadata)
            return true
        } catch {
            return false
        }
    }
}
