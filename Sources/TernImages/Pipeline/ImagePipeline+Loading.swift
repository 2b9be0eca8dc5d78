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
    /// After a failure that may pass, only the first subscriber gets the error, and the load runs once more for the
    /// others.
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
                // The load of the input image has recorded its own failure, and that of the bytes a refusal.
                if job.processor == nil, !error.isRefusal {
                    recordFailure(error, of: job.request, user: .unknown)
                }
                guard case .retry(let first) = job.subscribers.fail(isFinal: error.isFinal) else {
                    return finish(job, with: result)
                }
                deliver(error, of: job, to: first)
            }
        }
    }

    /// Loads an image: memory → another variant in memory → processed image on the disk → encoded bytes (disk, then
    /// network) → decode → process → store.
    private func load(_ job: LoadImageJob) async throws(ImageError) -> LoadedImage {
        if let bytes = job.bytes.take() { return try await load(job, from: bytes.get()) }
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

    /// Loads an image whose bytes were there before the load had a task: decode → store.
    private func load(_ job: LoadImageJob, from encoded: EncodedImage) async throws(ImageError) -> LoadedImage {
        var loaded = try await decodeOrReload(encoded, for: job)
        loaded.trace.prepend(job.lookUps)
        await store(&loaded, for: job.key)
        return loaded
    }

    // MARK: Caches

    private func imageInMemory(for key: ImageLoadKey, trace: inout ImageTrace) -> LoadedImage? {
        guard key.caching.memory.contains(.read) else {
            trace.add(.memory, .skipped, of: key.imageKey)
            return nil
        }
        guard let stored = memory.image(for: key.imageKey), stored.satisfies(key.options) else {
            trace.add(.memory, .miss, of: key.imageKey)
            return nil
        }
        trace.add(.memory, .hit, of: key.imageKey)
        return LoadedImage(stored: stored, source: .memory, trace: trace)
    }

    private func suitableVariant(for key: ImageLoadKey) -> (stored: StoredImage, plan: DecodingPlan)? {
        guard key.caching.memory.contains(.read), key.imageKey.processors.isEmpty, !key.options.includesData else {
            return nil
        }
        return VariantCandidate.best(of: memory.candidates(of: key.imageKey.source), for: key.imageKey)
    }

    /// Makes the image from another size in memory, if one is suitable.
    private func imageFromVariant(
        for job: LoadImageJob, trace: inout ImageTrace
    ) async throws(ImageError) -> LoadedImage? {
        let key = job.key
        guard let (variant, plan) = suitableVariant(for: key) else { return nil }
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
        guard disk.readsProcessed(key) else { return nil }
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
        if storeInMemory(&loaded, for: key) { await disk.store(&loaded, for: key) }
    }

    /// Returns false if the image is not to be stored anywhere.
    private func storeInMemory(_ loaded: inout LoadedImage, for key: ImageLoadKey) -> Bool {
        if loaded.stored.image.metadata.isPartial {
            loaded.trace.add(.memory, .notStored, detail: "a partial image")
            return false
        }
        if loaded.source == .network { memory.removeVariants(otherThan: loaded.stored.freshness, of: key) }
        memory.insert(loaded.stored, for: key, trace: &loaded.trace)
        return true
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
            await secondLevel.discard(job.key.imageKey.source, for: job.request)
            var reloaded = try await encodedImage(for: job, revalidating: nil, skipsStoredBytes: true)
            var trace = encoded.trace
            trace.add(.originals, .failed, detail: "\(error)")
            reloaded.trace.prepend(trace)
            return try await decode(reloaded, for: job)
        }
    }

    private func decode(_ encoded: EncodedImage, for job: LoadImageJob) async throws(ImageError) -> LoadedImage {
        if let decoded = job.decoded.take() { return encoded.loaded(try decoded.get(), for: job.key) }
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

    /// Delivers the cached image, asks the server for a newer one, and ends the load. Subscribers that join meanwhile
    /// get the cached image at once, except with `Revalidation.beforeDelivery`. A second response follows only if the
    /// image has changed.
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
            last.stored = last.stored.with(freshness)
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
        if key.caching.memory.contains(.write) { memory.insert(stored.with(freshness), for: key.imageKey) }
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
                recordFailure(error, of: job.request, user: job.user)
                if case .retry(let first) = job.subscribers.fail(isFinal: error.isFinal) {
                    job.chunks?.restart()
                    resume(first, of: job, with: result)
                    continue
                }
            }
            return finish(job, with: result)
        }
    }

    /// Loads encoded bytes: disk → remembered failure → second level → scrolling, rate limit and slot → network → disk
    /// and second level.
    private func loadData(_ job: LoadDataJob) async throws(ImageError) -> EncodedImage {
        if let fetched = job.fetched.take() {
            return try await stored(fetched.get(), of: job, trace: job.lookUps)
        }
        let key = job.key
        var trace = ImageTrace()
        if job.cachedFreshness == nil, let stored = await disk.encodedImage(for: key, trace: &trace) { return stored }
        guard key.allowsNetwork else {
            throw ImageError(
                .notCached, "the image is not cached, and the request does not allow network access")
        }
        if let error = rememberedFailure(of: job.request) {
            throw ImageError(.failedBefore, "the load failed recently: \(error.message)", underlying: error)
        }
        var isReserved = false
        if job.cachedFreshness == nil {
            switch await secondLevel.lookUp(key, request: job.request, trace: &trace) {
            case .found(var encoded):
                job.reportWhole(encoded.data)
                encoded.trace = trace
                await disk.store(&encoded, for: key, request: job.request)
                return encoded
            case .missing(let reserved): isReserved = reserved
            }
        }
        do throws(ImageError) {
            try await waitForScrolling(job)
            let fetched = try await withSlot(at: .fetch, for: job) { () async throws(ImageError) in try await fetch(job)
            }
            return try await stored(fetched, of: job, trace: trace)
        } catch {
            if isReserved { secondLevel.release(key.source) }
            throw error
        }
    }

    /// Stores the result of a fetch on the disk and in the second level.
    private func stored(
        _ fetched: ImageFetcher.Fetched, of job: LoadDataJob, trace: ImageTrace
    ) async throws(ImageError) -> EncodedImage {
        let key = job.key
        switch fetched {
        case .bytes(let data, let freshness, let offset):
            job.reportWhole(data)
            var encoded = EncodedImage(fetched: data, freshness: freshness, resumedFrom: offset, trace: trace)
            await disk.store(&encoded, for: key, request: job.request)
            secondLevel.store(&encoded, for: key, request: job.request)
            return encoded
        case .notModified(let freshness):
            var trace = trace
            trace.add(.network, .hit, detail: "304")
            await disk.updateFreshness(ofBytesFor: key, to: freshness)
            return EncodedImage(
                data: Data(), freshness: freshness, source: .revalidated, trace: trace, isUnchanged: true)
        }
    }

    private func makeFetch(for job: LoadDataJob) -> ImageFetch {
        let key = job.key
        // Before it is sent: the cookies can change while it is on its way.
        job.user = user(of: job.request)
        // The priority of this moment: it may have changed in the queue.
        return ImageFetch(
            request: job.request, key: key.source, cachedFreshness: job.cachedFreshness,
            priority: job.priority.requested, keepsPartialData: key.caching.contains(.write), chunks: job.chunks
        ) { self.send(.progress(key, $0)) }
    }

    private func fetch(_ job: LoadDataJob) async throws(ImageError) -> ImageFetcher.Fetched {
        let (fetcher, fetch) = (fetcher, makeFetch(for: job))
        // A child task keeps the actor: a busy actor would change threads at each suspension.
        async let result = fetcher.result(of: fetch)
        return try await result.get()
    }
}

// MARK: Steps without a task

// Most loads wait for a slot, fetch bytes and decode them. Each of these steps ends with a message, so that a load
// takes neither the memory of a task while it waits nor a turn of the actor for each step. A load goes on in a task
// where more is to be done: after a failure, and for the disk.

extension ImagePipeline {
    /// Returns true, with the look-ups in the load's trace, if only encoded bytes can give the image.
    func needsBytes(_ job: LoadImageJob) -> Bool {
        let key = job.key
        var trace = ImageTrace()
        guard job.processor == nil, key.options.progressive.every <= 0, decodingContext.decodesDirectly,
            imageInMemory(for: key, trace: &trace) == nil, suitableVariant(for: key) == nil,
            disk.lacksProcessed(key, trace: &trace)
        else { return false }
        job.lookUps = trace
        return true
    }

    /// Returns true, with the look-up in the load's trace, if only a slot is missing for the fetch.
    func needsSlot(_ job: LoadDataJob) -> Bool {
        var trace = ImageTrace()
        guard rateLimiter == nil, failures.isEmpty, job.key.allowsNetwork,
            !job.waitsForScrolling || scrollDebouncer.isSettled,
            job.cachedFreshness != nil
                || !secondLevel.shares(job.key, request: job.request) && disk.lacksBytes(for: job.key, trace: &trace)
        else { return false }
        job.lookUps = trace
        return true
    }

    /// Starts the fetch of a load that has a slot.
    func startFetch(_ job: LoadDataJob) {
        guard job.isRunning else { return releaseSlot(at: .fetch) }
        let (fetch, key) = (makeFetch(for: job), job.key)
        // Ends with the fetch. `cancel(_:)` cancels it.
        job.task = Task { @concurrent in
            if Task.isCancelled { return self.send(.fetched(key, .failure(.cancelled))) }
            let result = await self.fetcher.result(of: fetch)
            self.send(.fetched(key, result))
        }
    }

    func fetchEnded(_ job: LoadDataJob, with result: Result<ImageFetcher.Fetched, ImageError>) {
        if case .success(.bytes(let data, let freshness, let offset)) = result,
            !secondLevel.shares(job.key, request: job.request)
        {
            var encoded = EncodedImage(
                fetched: data, freshness: freshness, resumedFrom: offset, trace: job.lookUps)
            if disk.skipsStoring(&encoded, for: job.key, request: job.request) {
                job.reportWhole(data)
                return finish(job, with: .success(encoded))
            }
        }
        job.fetched = result
        startTask(of: job)
    }

    /// Decodes the bytes of a load without a task.
    func bytesArrived(for job: LoadImageJob, _ bytes: Result<EncodedImage, ImageError>) {
        job.bytes = bytes
        if case .success = bytes { enter(.decode, job) } else { startTask(of: job) }
    }

    /// Starts to decode the bytes of a load that has a slot.
    func startDecoding(_ job: LoadImageJob) {
        guard job.isRunning, case .success(let encoded)? = job.bytes else { return releaseSlot(at: .decode) }
        let (data, key) = (encoded.data, job.key)
        // Ends with the decoding. `cancel(_:)` cancels it.
        job.task = Task(executorPreference: decodingContext.executor) { @concurrent in
            self.send(.decoded(key, self.decodingContext.decoded(data, for: key)))
        }
    }

    func decodingEnded(_ job: LoadImageJob, with result: Result<StoredImage, ImageError>) {
        job.decoded = result
        // An image from a cache may have to be revalidated, and fetched again if it cannot be decoded.
        guard case .success(let stored) = result, case .success(let encoded)? = job.bytes, encoded.source == .network
        else { return startTask(of: job) }
        var loaded = encoded.loaded(stored, for: job.key)
        loaded.trace.prepend(job.lookUps)
        var storedOnDisk = loaded
        guard disk.skipsStoring(&storedOnDisk, for: job.key) else { return startTask(of: job) }
        if storeInMemory(&loaded, for: job.key) { _ = disk.skipsStoring(&loaded, for: job.key) }
        finish(job, with: .success(loaded))
    }
}
