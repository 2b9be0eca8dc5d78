import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Decodes and processes images. Its functions occupy the thread, which is to be one of the executor.
struct DecodingContext: Sendable {
    private let decoders: ImageDecoders
    let executor: ImageExecutor
    private let budget: FrameBudget
    private let decrypt: (@concurrent @Sendable (Data) async throws -> Data)?

    init(_ configuration: ImagePipeline.Configuration) {
        decoders = configuration.decoders
        executor = configuration.executor
        budget = configuration.frameBudget
        decrypt = configuration.hooks.decrypt
    }

    /// Decrypts and decodes encoded bytes: an image, or the first frame of an animation with its frames. An image of the
    /// source is taken as it is.
    ///
    /// Also returns the nanoseconds of the decoding; nil after a failure, which says little about other images.
    func decode(
        _ encoded: EncodedImage, for key: ImageLoadKey
    ) async -> (result: Result<StoredImage, ImageError>, nanoseconds: UInt64?) {
        do throws(ImageError) {
            if let image = encoded.image { return (.success(try fitted(image, for: key)), nil) }
            let data = encoded.data
            let bytes = if let decrypt { try await Self.decrypted(data, by: decrypt) } else { data }
            let start = MonotonicClock.nanoseconds()
            let stored = try image(from: bytes, for: key)
            return (.success(stored), MonotonicClock.nanoseconds() - start)
        } catch {
            return (.failure(error), nil)
        }
    }

    private func image(from data: Data, for key: ImageLoadKey) throws(ImageError) -> StoredImage {
        let decoder = try decoders.decoder(for: data)
        let options = key.imageKey.decoding
        let frames =
            key.imageKey.animation == .firstFrame ? nil : try decoder.animation(from: data, options: options)
        var image: RasterImage
        var animation: AnimatedImage?
        if let frames {
            image = try frames.frame(at: 0).image
            let preloaded =
                key.options.preloadsAllFrames ? try PreloadedFrames(frames, memoryLimit: options.memoryLimit) : nil
            animation = animated(preloaded ?? frames)
        } else {
            image = try decoder.image(from: data, options: options)
        }
        image.scale = key.imageKey.scale
        return StoredImage(
            image: image, animation: animation, data: nil, freshness: .always,
            preloadsFrames: key.options.preloadsAllFrames)
    }

    /// Makes the image of a source as small as the request calls for, and converts it to its colors.
    private func fitted(_ image: RasterImage, for key: ImageLoadKey) throws(ImageError) -> StoredImage {
        let plan = DecodingPlan(size: image.size, key.imageKey.decoding)
        var image = try image.resized(to: plan.scaled, inLinearLight: plan.needsAllPixels && image.hasKnownLight)
            .cropped(to: plan.cropped).converted(to: key.imageKey.decoding.color)
        image.scale = key.imageKey.scale
        return StoredImage(image: image, animation: nil, data: nil, freshness: .always)
    }

    private static func decrypted(
        _ data: Data, by decrypt: @concurrent @Sendable (Data) async throws -> Data
    ) async throws(ImageError) -> Data {
        do {
            return try await decrypt(data)
        } catch {
            throw ImageError(.hook, "the `decrypt` hook failed: \(ImageError.words(error))", underlying: error)
        }
    }

    /// Decodes a processed image from the disk, in the color space and the components of the key.
    func decodeProcessed(_ entry: DiskCache.Entry, for key: ImageKey) throws(ImageError) -> StoredImage {
        let options = ImageDecodingOptions(color: key.decoding.color)
        var image = try decoders.decoder(for: entry.value).image(from: entry.value, options: options)
        image.scale = key.scale
        guard let size = ImageFreshness.originalSize(in: entry.metadata) else {
            throw ImageError(.corrupt, format: image.format, "the entry does not tell the size of the original")
        }
        image.metadata.originalSize = size
        let freshness = ImageFreshness(entry.metadata) ?? .always
        return StoredImage(image: image, animation: nil, data: nil, freshness: freshness)
    }

    /// Makes an image from a larger variant of it.
    func derive(
        _ plan: DecodingPlan, from variant: StoredImage, for key: ImageKey
    ) throws(ImageError) -> StoredImage {
        let isInLight = key.decoding.resizesInLinearLight && variant.image.hasKnownLight
        let image = try variant.image.resized(to: plan.scaled, inLinearLight: isInLight).cropped(to: plan.cropped)
        return StoredImage(image: image, animation: nil, data: nil, freshness: variant.freshness)
    }

    /// Applies a processor to an image, and to each frame of an animation if the key says so.
    func process(
        _ stored: StoredImage, with processor: any ImageProcessor, for key: ImageKey
    ) throws(ImageError) -> StoredImage {
        guard key.animation == .processedFrames, let frames = stored.animation?.frames else {
            return stored.with(try processor.process(stored.image), animation: stored.animation)
        }
        let processed = try ProcessedFrames(frames, processor: processor, scale: stored.image.scale)
        // The limit decides anew, because the processed frames can have another size.
        let preloaded =
            stored.preloadsFrames ? try PreloadedFrames(processed, memoryLimit: key.decoding.memoryLimit) : nil
        return stored.with(try processed.frame(at: 0).image, animation: animated(preloaded ?? processed))
    }

    /// Returns the frames as one animation for all views.
    private func animated(_ frames: any ImageFrames) -> AnimatedImage {
        AnimatedImage(frames, executor: executor, budget: budget)
    }
}
