import Tern
import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The steps of a load, in order. ImagePipeline+Coalescing.swift decides which callers share a load.

extension ImagePipeline {
    /// Runs an image load until all subscribers have their result.
    ///
    /// After a failure that may pass, only the first subscriber gets the error, and the load runs once more for the others.
    func run(_ job: LoadImageJob, stale: StoredImage?) async {
        var stale = stale
        while true {
            var result: Result<LoadedImage, ImageError>
            do throws(ImageError) {
                if let stale = stale.take() {
                    result = .success(LoadedImage(stored: stale, source: .memory, trace: ImageTrace()))
                } else {
                    result = .success(try await load(job))
                }
            } catch {
                result = .failure(error)
            }
            job.endPreviews()
            guard job.isRunning else { return }
            switch result {
            case .success(let loaded):
                // A load that processes the image has its input, and handles the freshness itself.
                if loaded.mustBeRevalidated(for: job.key, at: date()),
                    job.subscribers.all.contains(where: \.isTask)
                {
                    return await revalidate(loaded, for: job)
                }
                return finish(job, with: result)
            case .failure(let error):
                // The load of the input image has recorded its own failure.
                if job.processor == nil {
                    recordFailure(error, of: job.key.imageKey.source, request: job.request)
                }
                guard case .retry(let first) = job.subscribers.fail(isFinal: error.isFinal) else {
                    return finish(job, with: result)
                }
                deliver(error, of: job, to: first)
            }
        }
    }

    /// Loads an image: memory → another variant in memory → processed image on the disk → encoded bytes (disk, then network) →
    /// decode → process → store.
    private func load(_ job: LoadImageJob) async throws(ImageError) -> LoadedImage {
        var trace = ImageTrace()
        if let image = imageInMemory(for: job.key, trace: &trace) { return image }
        if let image = try await imageFromVariant(for: job, trace: &trace) { return image }
        if let image = try await processedImageOnDisk(for: job, trace: &trace) { return image }
        var loaded: LoadedImage
        if let processor = job.processor, let inputKey = job.key.inputKey {
            // Each processor is a load of its own over the image before it, so that equal first steps are shared.
            loaded = try await inputImage(inputKey, for: job)
            loaded.stored = try await process(loaded.stored, with: processor, for: job)
            loaded.trace.add(.processing, .hit, detail: .processor(processor.identifier))
        } else {
            let encoded = try await encodedImage(for: job, revalidating: nil)
            loaded = try await decodeOrReload(encoded, for: job)
        }
        loaded.trace.prepend(trace)
        await store(&loaded, for: job.key)
        return loaded
    }

    // MARK: Caches

    private func imageInMemory(for key: ImageLoadKey, trace: inout ImageTrace) -> LoadedImage? {
        guard key.caching.memory.contains(.read) else {
            trace.add(.memory, .skipped)
            return nil
        }
        guard let stored = memory.image(for: key.imageKey), stored.satisfies(key.options) else {
            trace.add(.memory, .miss)
            return nil
        }
        trace.add(.memory, .hit)
        return LoadedImage(stored: stored, source: .memory, trace: trace)
    }

    /// Makes the image from another size in memory, if one is suitable.
    private func imageFromVariant(
        for job: LoadImageJob, trace: inout ImageTrace
    ) async throws(ImageError) -> LoadedImage? {
        let key = job.key
        guard key.caching.memory.contains(.read), key.imageKey.processors.isEmpty, !key.options.includesData,
            let (variant, plan) = VariantCandidate.best(
                of: memory.candidates(of: key.imageKey.source), for: key.imageKey)
        else { return nil }
        trace.add(.variant, .hit, detail: "\(variant.image.size)")
        let decodingContext = decodingContext
        let stored = try await withSlot(at: .process, for: job) { () async throws(ImageError) in
            try await decodingContext.derive(plan, from: variant)
        }
        memory.insert(stored, for: key, trace: &trace)
        return LoadedImage(stored: stored, source: .memory, trace: trace)
    }

    private func processedImageOnDisk(
        for job: LoadImageJob, trace: inout ImageTrace
    ) async throws(ImageError) -> LoadedImage? {
        let key = job.key
        // A processed image is stored without its encoded bytes.
        guard key.storesProcessed(configuration.diskContent), key.caching.processed.contains(.read),
            !key.options.includesData
        else { return nil }
        do {
            guard let entry = try await disk.processedEntry(for: key, trace: &trace) else { return nil }
            let decodingContext = decodingContext
            let stored = try await withSlot(at: .decode, for: job) { () async throws(ImageError) in
                try await decodingContext.decodeProcessed(entry, scale: key.imageKey.scale)
            }
            trace.add(.processed, .hit)
            memory.insert(stored, for: key, trace: &trace)
            return LoadedImage(stored: stored, source: .processed, trace: trace)
        } catch {
            if Task.isCancelled { throw .cancelled }
            // The image is made again, and replaces the entry.
            trace.add(.processed, .failed, detail: "\(error)")
            return nil
        }
    }

    private func store(_ loaded: inout LoadedImage, for key: ImageLoadKey) async {
        if loaded.stored.image.metadata.isPartial {
            loaded.trace.add(.memory, .notStored, detail: "a partial image")
            return
        }
        if loaded.source == .network { memory.removeVariants(otherThan: loaded.stored.freshness, of: key) }
        memory.insert(loaded.stored, for: key, trace: &loaded.trace)
        await disk.store(&loaded, for: key)
    }

    // MARK: Decoding and processing

    /// Decodes bytes. Bytes from the disk that cannot be decoded are fetched again, once.
    private func decodeOrReload(
        _ encoded: EncodedImage, for job: LoadImageJob
    ) async throws(ImageError) -> LoadedImage {
        do throws(ImageError) {
            if let image = try await job.lastPreview(of: encoded) {
                let stored = StoredImage(image: image, animation: nil, data: nil, freshness: .always)
                return encoded.loaded(stored, for: job.key)
            }
            return try await decode(encoded, for: job)
        } catch {
            guard encoded.source == .original, error.isRemembered, job.key.caching.network else { throw error }
            // Bytes that stay on the disk are replaced by the new ones.
            if let cache = await disk.cache {
                try? await cache.remove(DiskTier.encodedKey(job.key.imageKey.source))
            }
            var reloaded = try await encodedImage(for: job, revalidating: nil, skipsStoredBytes: true)
            var trace = encoded.trace
            trace.add(.originals, .failed, detail: "\(error)")
            reloaded.trace.prepend(trace)
            return try await decode(reloaded, for: job)
        }
    }

    private func decode(_ encoded: EncodedImage, for job: LoadImageJob) async throws(ImageError) -> LoadedImage {
        let (decodingContext, key, data) = (decodingContext, job.key, encoded.data)
        let stored = try await withSlot(at: .decode, for: job) { () async throws(ImageError) in
            try await decodingContext.decode(data, for: key)
        }
        return encoded.loaded(stored, for: key)
    }

    private func process(
        _ stored: StoredImage, with processor: any ImageProcessor, for job: LoadImageJob
    ) async throws(ImageError) -> StoredImage {
        let (decodingContext, imageKey) = (decodingContext, job.key.imageKey)
        return try await withSlot(at: .process, for: job) { () async throws(ImageError) in
            try await decodingContext.process(stored, with: processor, for: imageKey)
        }
    }

    // MARK: Revalidation

    /// Delivers the cached image, asks the server for a newer one, and ends the load. Subscribers that join meanwhile get the
    /// cached image at once, except with `Revalidation.beforeDelivery`. A second response follows only if the image has changed.
    private func revalidate(_ cached: LoadedImage, for job: LoadImageJob) async {
        if job.key.options.revalidation != .beforeDelivery {
            job.cachedImage = cached
            deliver(cached: cached, of: job, to: job.subscribers.all)
            // The load ends here if no subscriber accepts the image.
            guard job.isRunning else { return }
        }
        let outcome = await revalidated(cached, for: job)
        guard job.isRunning else { return }
        var last = cached
        switch outcome {
        case .changed(let newer):
            return finish(job, with: .success(newer))
        case .unchanged(let freshness):
            last.source = .revalidated
            last.stored.freshness = freshness
            last.trace.add(.network, .hit, detail: "not modified")
        case .failed(let error):
            last.trace.add(.network, .failed, detail: "\(error.message)")
        }
        finish(job, with: .success(last), isUnchanged: true)
    }

    private func revalidated(_ cached: LoadedImage, for job: LoadImageJob) async -> RevalidationResult {
        do throws(ImageError) {
            let encoded = try await encodedImage(for: job, revalidating: cached.stored.freshness)
            if encoded.isUnchanged {
                await updateFreshness(of: cached.stored, for: job.key, to: encoded.freshness)
                return .unchanged(encoded.freshness)
            }
            var newer = try await decode(encoded, for: job)
            for processor in job.request.steps {
                newer.stored = try await process(newer.stored, with: processor, for: job)
            }
            // An interrupted transfer gives less than the cached image.
            if newer.stored.image.metadata.isPartial {
                return .failed(ImageError(.truncated, "the response was incomplete"))
            }
            // A server without validators sends the same bytes again.
            if await newer.stored.hasSamePixels(as: cached.stored) {
                await updateFreshness(of: cached.stored, for: job.key, to: encoded.freshness)
                return .unchanged(encoded.freshness)
            }
            await store(&newer, for: job.key)
            return .changed(newer)
        } catch {
            return .failed(error)
        }
    }

    /// Updates the freshness of an image in memory and of its processed file on the disk.
    private func updateFreshness(of stored: StoredImage, for key: ImageLoadKey, to freshness: Freshness) async {
        var updated = stored
        updated.freshness = freshness
        if key.caching.memory.contains(.write) { memory.insert(updated, for: key.imageKey) }
        await disk.updateFreshness(ofProcessed: stored, for: key, to: freshness)
    }

    // MARK: Encoded bytes

    /// Runs a load of encoded bytes until all subscribers have their result. Failures are repeated as in `run`.
    func runData(_ job: LoadDataJob) async {
        while true {
            var result: Result<EncodedImage, ImageError>
            do throws(ImageError) {
                result = .success(try await loadData(job))
            } catch {
                result = .failure(error)
            }
            guard job.isRunning else { return }
            if case .failure(let error) = result {
                recordFailure(error, of: job.key.source, request: job.request)
                if case .retry(let first) = job.subscribers.fail(isFinal: error.isFinal) {
                    job.chunks?.restart()
                    job.resume(first, with: result)
                    continue
                }
            }
            for subscriber in end(job) { job.resume(subscriber, with: result) }
            return
        }
    }

    /// Loads encoded bytes: disk → remembered failure → scrolling, rate limit and slot → network → disk.
    private func loadData(_ job: LoadDataJob) async throws(ImageError) -> EncodedImage {
        let key = job.key
        var trace = ImageTrace()
        if job.cachedFreshness == nil, let stored = await disk.encodedImage(for: key, trace: &trace) { return stored }
        guard key.allowsNetwork else {
            throw ImageError(
                .notCached, "the image is not cached, and the request does not allow network access")
        }
        if let error = failures.error(for: key.source, at: now) {
            throw ImageError(.failedBefore, "the load failed recently: \(error.message)", underlying: error)
        }
        try await waitForScrolling(job)
        switch try await withSlot(at: .fetch, for: job, { () async throws(ImageError) in try await fetch(job) }) {
        case .bytes(let data, let freshness, let offset):
            trace.add(.network, .hit, detail: .bytes(data.count, before: offset))
            // Subscribers that saw no earlier progress get the whole.
            job.report(Session.Progress(completedBytes: Int64(data.count), totalBytes: Int64(data.count)))
            var encoded = EncodedImage(data: data, freshness: freshness, source: .network, trace: trace)
            await disk.store(&encoded, for: key, request: job.request)
            return encoded
        case .notModified(let freshness):
            trace.add(.network, .hit, detail: "304")
            await disk.updateFreshness(ofBytesFor: key, to: freshness)
            return EncodedImage(
                data: Data(), freshness: freshness, source: .revalidated, trace: trace, isUnchanged: true)
        }
    }

    private func fetch(_ job: LoadDataJob) async throws(ImageError) -> ImageFetcher.Fetched {
        let (fetcher, key) = (fetcher, job.key)
        // The priority of this moment: it may have changed in the queue.
        let fetch = ImageFetch(
            request: job.request, key: key.source, cachedFreshness: job.cachedFreshness,
            priority: job.priority.requested, keepsPartialData: key.caching.contains(.write), chunks: job.chunks
        ) { [weak self] in self?.send(.progress(key, $0)) }
        // A child task keeps the actor: a busy actor would change threads at each suspension.
        async let result = fetcher.result(of: fetch)
        return try await result.get()
    }
}
