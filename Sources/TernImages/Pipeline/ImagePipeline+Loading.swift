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
    func run(_ context: ImageLoadContext, stale: StoredImage?) async {
        let (load, key) = (context.load, context.key)
        var stale = stale
        while true {
            var result: Result<LoadedImage, ImageError>
            do throws(ImageError) {
                if let stale = stale.take() {
                    result = .success(LoadedImage(stored: stale, source: .memory, trace: ImageTrace()))
                } else {
                    result = .success(try await self.load(context))
                }
            } catch {
                result = .failure(error)
            }
            #if os(Linux)
            endPreviews(of: load)
            #endif
            guard isRunning(load) else { return }
            switch result {
            case .success(let loaded):
                // A load that processes the image has its input, and handles the freshness itself.
                if loaded.mustBeRevalidated(for: key, at: configuration.now()),
                    imageLoads.subscribers(of: load).contains(where: \.isTask)
                {
                    await revalidate(loaded, for: context)
                    return
                }
                jobs[load] = nil
                for subscriber in imageLoads.finish(load) { deliver(result, to: subscriber) }
                return
            case .failure(let error):
                // The load of the input image has recorded its own failure.
                if key.imageKey.processors.isEmpty {
                    recordFailure(error, of: key.imageKey.source, request: context.request)
                }
                switch imageLoads.fail(load, isFinal: error.isFinal) {
                case .retry(let firstSubscriber):
                    deliver(result, to: firstSubscriber)
                case .end(let subscribers):
                    jobs[load] = nil
                    for subscriber in subscribers { deliver(result, to: subscriber) }
                    return
                }
            }
        }
    }

    /// Loads an image: memory → another variant in memory → processed image on the disk → encoded bytes (disk, then network) →
    /// decode → process → store.
    private func load(_ context: ImageLoadContext) async throws(ImageError) -> LoadedImage {
        var trace = ImageTrace()
        if let image = imageInMemory(for: context.key, trace: &trace) { return image }
        if let image = try await imageFromVariant(for: context, trace: &trace) { return image }
        if let image = try await processedImageOnDisk(for: context, trace: &trace) { return image }
        var loaded: LoadedImage
        if let inputKey = context.key.inputKey, let processor = context.request.steps.last {
            // Each processor is a load of its own over the image before it, so that equal first steps are shared.
            jobs[context.load]?.processor = processor
            loaded = try await image(inputKey, request: context.request.withoutLastProcessor, for: context.load)
            loaded.stored = try await process(loaded.stored, with: processor, for: context)
            loaded.trace.add(.processing, .hit, detail: .processor(processor.identifier))
        } else {
            let encoded = try await encodedImage(for: context, revalidating: nil)
            loaded = try await decodeOrReload(encoded, for: context)
        }
        loaded.trace.prepend(trace)
        await store(&loaded, for: context.key)
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
        for context: ImageLoadContext, trace: inout ImageTrace
    ) async throws(ImageError) -> LoadedImage? {
        let key = context.key
        guard key.caching.memory.contains(.read), key.imageKey.processors.isEmpty, !key.options.includesData,
            let (variant, plan) = VariantCandidate.best(
                of: memory.candidates(of: key.imageKey.source), for: key.imageKey)
        else { return nil }
        trace.add(.variant, .hit, detail: "\(variant.image.size)")
        let decodingContext = decodingContext
        let stored = try await withSlot(at: .process, for: context.load) { () async throws(ImageError) in
            try await decodingContext.derive(plan, from: variant)
        }
        memory.insert(stored, for: key, trace: &trace)
        return LoadedImage(stored: stored, source: .memory, trace: trace)
    }

    private func processedImageOnDisk(
        for context: ImageLoadContext, trace: inout ImageTrace
    ) async throws(ImageError) -> LoadedImage? {
        let key = context.key
        // A processed image is stored without its encoded bytes.
        guard key.storesProcessed(configuration.diskContent), key.caching.processed.contains(.read),
            !key.options.includesData
        else { return nil }
        do {
            guard let entry = try await disk.processedEntry(for: key, trace: &trace) else { return nil }
            let decodingContext = decodingContext
            let stored = try await withSlot(at: .decode, for: context.load) { () async throws(ImageError) in
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
        _ encoded: EncodedImage, for context: ImageLoadContext
    ) async throws(ImageError) -> LoadedImage {
        do throws(ImageError) {
            #if os(Linux)
            if let image = try await lastPreview(of: encoded, for: context) {
                let stored = StoredImage(image: image, animation: nil, data: nil, freshness: .always)
                return encoded.loaded(stored, for: context.key)
            }
            #endif
            return try await decode(encoded, for: context)
        } catch {
            guard encoded.source == .original, error.isRemembered, context.key.caching.network else { throw error }
            // Bytes that stay on the disk are replaced by the new ones.
            if let cache = await disk.cache {
                try? await cache.remove(DiskTier.encodedKey(context.key.imageKey.source))
            }
            var reloaded = try await encodedImage(for: context.skippingStoredBytes, revalidating: nil)
            var trace = encoded.trace
            trace.add(.originals, .failed, detail: "\(error)")
            reloaded.trace.prepend(trace)
            return try await decode(reloaded, for: context)
        }
    }

    private func decode(_ encoded: EncodedImage, for context: ImageLoadContext) async throws(ImageError) -> LoadedImage
    {
        let (decodingContext, key, data) = (decodingContext, context.key, encoded.data)
        let stored = try await withSlot(at: .decode, for: context.load) { () async throws(ImageError) in
            try await decodingContext.decode(data, for: key)
        }
        return encoded.loaded(stored, for: key)
    }

    private func process(
        _ stored: StoredImage, with processor: any ImageProcessor, for context: ImageLoadContext
    ) async throws(ImageError) -> StoredImage {
        let (decodingContext, imageKey) = (decodingContext, context.key.imageKey)
        return try await withSlot(at: .process, for: context.load) { () async throws(ImageError) in
            try await decodingContext.process(stored, with: processor, for: imageKey)
        }
    }

    // MARK: Revalidation

    /// Delivers the cached image, asks the server for a newer one, and ends the load. Subscribers that join meanwhile get the
    /// cached image at once, except with `Revalidation.beforeDelivery`. A second response follows only if the image has changed.
    private func revalidate(_ cached: LoadedImage, for context: ImageLoadContext) async {
        let load = context.load
        if context.key.options.revalidation != .beforeDelivery {
            jobs[load]?.cachedImage = cached
            for subscriber in imageLoads.subscribers(of: load) where subscriber.hasNoResponse {
                deliver(.success(cached), to: subscriber, isLast: false)
            }
            // The load ends here if no subscriber accepts the image.
            guard isRunning(load) else { return }
        }
        let outcome = await revalidated(cached, for: context)
        guard isRunning(load) else { return }
        jobs[load] = nil
        var last = cached
        var isChanged = false
        switch outcome {
        case .changed(let newer):
            last = newer
            isChanged = true
        case .unchanged(let freshness):
            last.source = .revalidated
            last.stored.freshness = freshness
            last.trace.add(.network, .hit, detail: "not modified")
        case .failed(let error):
            last.trace.add(.network, .failed, detail: "\(error.message)")
        }
        for subscriber in imageLoads.finish(load) {
            if !isChanged, case .task(let task) = subscriber, task.current != nil {
                loadOf[task.id] = nil
                task.end(.success(nil))
            } else {
                deliver(.success(last), to: subscriber)
            }
        }
    }

    private func revalidated(_ cached: LoadedImage, for context: ImageLoadContext) async -> RevalidationResult {
        do throws(ImageError) {
            let encoded = try await encodedImage(for: context, revalidating: cached.stored.freshness)
            if encoded.isUnchanged {
                await updateFreshness(of: cached.stored, for: context.key, to: encoded.freshness)
                return .unchanged(encoded.freshness)
            }
            var newer = try await decode(encoded, for: context)
            for processor in context.request.steps {
                newer.stored = try await process(newer.stored, with: processor, for: context)
            }
            // An interrupted transfer gives less than the cached image.
            if newer.stored.image.metadata.isPartial {
                return .failed(ImageError(.truncated, "the response was incomplete"))
            }
            // A server without validators sends the same bytes again.
            if await newer.stored.hasSamePixels(as: cached.stored) {
                await updateFreshness(of: cached.stored, for: context.key, to: encoded.freshness)
                return .unchanged(encoded.freshness)
            }
            await store(&newer, for: context.key)
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
    func runEncoded(_ context: EncodedLoadContext) async {
        let load = context.load
        defer { chunks[load] = nil }
        while true {
            var result: Result<EncodedImage, ImageError>
            do throws(ImageError) {
                result = .success(try await loadEncoded(context))
            } catch {
                result = .failure(error)
            }
            guard isRunning(load) else { return }
            var subscribers: [EncodedImageSubscriber] = []
            switch result {
            case .success:
                subscribers = encodedLoads.finish(load)
            case .failure(let error):
                recordFailure(error, of: context.key.source, request: context.request)
                switch encodedLoads.fail(load, isFinal: error.isFinal) {
                case .retry(let firstSubscriber):
                    chunks[load]?.restart()
                    firstSubscriber.waiter.resume(returning: result)
                    continue
                case .end(let all):
                    subscribers = all
                }
            }
            jobs[load] = nil
            for subscriber in subscribers { subscriber.waiter.resume(returning: result) }
            return
        }
    }

    /// Loads encoded bytes: disk → remembered failure → scrolling, rate limit and slot → network → disk.
    private func loadEncoded(_ context: EncodedLoadContext) async throws(ImageError) -> EncodedImage {
        let (load, key) = (context.load, context.key)
        var trace = ImageTrace()
        if context.cachedFreshness == nil, let stored = await disk.encodedImage(for: key, trace: &trace) {
            return stored
        }
        guard key.allowsNetwork else {
            throw ImageError(
                .notCached, "the image is not cached, and the request does not allow network access")
        }
        if let error = failures.error(for: key.source, at: now) {
            throw ImageError(.failedBefore, "the load failed recently: \(error.message)", underlying: error)
        }
        try await waitForScrolling(load)
        let fetcher = fetcher
        let fetch = ImageFetch(
            request: context.request, key: key.source, cachedFreshness: context.cachedFreshness,
            keepsPartialData: key.caching.contains(.write), chunks: chunks[load]
        ) { [weak self] in self?.send(.progress(load: load, $0)) }
        let fetched = try await withSlot(at: .fetch, for: load) { () async throws(ImageError) in
            var fetch = fetch
            // The priority may have changed in the queue.
            fetch.priority = await self.priority(of: load).requested
            // A child task keeps the actor: a busy actor would change threads at each suspension.
            async let result = fetcher.result(of: fetch)
            return try await result.get()
        }
        switch fetched {
        case .bytes(let data, let freshness, let offset):
            trace.add(.network, .hit, detail: .bytes(data.count, before: offset))
            // Subscribers that saw no earlier progress get the whole.
            report(Session.Progress(completedBytes: Int64(data.count), totalBytes: Int64(data.count)), of: load)
            var encoded = EncodedImage(data: data, freshness: freshness, source: .network, trace: trace)
            await disk.store(&encoded, for: context)
            return encoded
        case .notModified(let freshness):
            trace.add(.network, .hit, detail: "304")
            await disk.updateFreshness(ofBytesFor: key, to: freshness)
            return EncodedImage(
                data: Data(), freshness: freshness, source: .revalidated, trace: trace, isUnchanged: true)
        }
    }
}
