import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A decoded image as the memory cache holds it.
///
/// One reference: every step of a load passes it on.
struct StoredImage: Sendable {
    private final class Content: Sendable {
        let image: RasterImage
        let animation: AnimatedImage?
        let data: Data?
        let freshness: Freshness
        let preloadsFrames: Bool

        init(
            image: RasterImage, animation: AnimatedImage?, data: Data?, freshness: Freshness, preloadsFrames: Bool
        ) {
            self.image = image
            self.animation = animation
            self.data = data
            self.freshness = freshness
            self.preloadsFrames = preloadsFrames
        }
    }

    private var content: Content

    init(
        image: RasterImage, animation: AnimatedImage?, data: Data?, freshness: Freshness, preloadsFrames: Bool = false
    ) {
        content = Content(
            image: image, animation: animation, data: data, freshness: freshness, preloadsFrames: preloadsFrames)
    }

    var image: RasterImage { content.image }
    /// The animation, one object for all views, which share its decoded frames.
    var animation: AnimatedImage? { content.animation }
    /// The encoded bytes; nil unless a request asked for them.
    var data: Data? { content.data }
    var freshness: Freshness { content.freshness }
    /// Whether all frames of the animation were to be decoded in advance. Frames beyond the memory limit are decoded on
    /// demand nevertheless, and another load would not change that.
    var preloadsFrames: Bool { content.preloadsFrames }

    /// Returns the image with another freshness.
    func with(_ freshness: Freshness) -> StoredImage {
        guard freshness != content.freshness else { return self }
        return StoredImage(
            image: image, animation: animation, data: data, freshness: freshness, preloadsFrames: preloadsFrames)
    }

    /// Returns the image with its encoded bytes.
    func with(_ data: Data) -> StoredImage {
        StoredImage(
            image: image, animation: animation, data: data, freshness: freshness, preloadsFrames: preloadsFrames)
    }

    /// Returns the image after a processor.
    func with(_ image: RasterImage, animation: AnimatedImage?) -> StoredImage {
        StoredImage(
            image: image, animation: animation, data: data, freshness: freshness, preloadsFrames: preloadsFrames)
    }

    /// The size in bytes, for the limit of the memory cache.
    var cost: Int { image.byteCount + (animation?.frames.byteCount ?? 0) + (data?.count ?? 0) }

    /// Returns a Boolean value that indicates whether it has everything that the options ask for beside the image.
    func satisfies(_ options: ImageRequest.Options) -> Bool {
        if options.includesData, data == nil { return false }
        return !options.preloadsAllFrames || animation == nil || preloadsFrames
    }

    /// Returns the error for a request with these options that the image does not answer; nil if it does.
    func rejection(by options: ImageRequest.Options) -> ImageError? {
        guard options.requiresAnimation, animation == nil else { return nil }
        return ImageError(
            .unsupported, format: image.format, "the request requires an animation, but the image is a still image")
    }

    /// Returns a Boolean value that indicates whether two still images have the same pixels. Animations always differ,
    /// because their frames are not compared.
    @concurrent
    func hasSamePixels(as other: StoredImage) async -> Bool {
        animation == nil && other.animation == nil && image.size == other.image.size
            && image.pixels.bytes == other.image.pixels.bytes
    }

    /// Finds an evicted image again for as long as something shows it.
    static let weakReferences = WeakReferences<StoredImage> { stored in
        let (size, format, metadata, scale) = (
            stored.image.size, stored.image.format, stored.image.metadata, stored.image.scale
        )
        let freshness = stored.freshness
        // An animation would keep the bytes of its frames, which is too high a price.
        guard stored.animation == nil else { return nil }
        return { [weak pixels = stored.image.pixels] in
            pixels.map {
                StoredImage(
                    image: RasterImage(pixels: $0, size: size, format: format, metadata: metadata, scale: scale),
                    animation: nil, data: nil, freshness: freshness)
            }
        }
    }
}

/// The result of a decode, and the time that it took; nil after a failure, which says little about other images.
struct DecodedImage: Sendable {
    let result: Result<StoredImage, ImageError>
    let nanoseconds: UInt64?
}

/// Decodes and processes images on the executor of a pipeline.
///
/// The functions keep their caller's actor while they wait.
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

    /// Decrypts and decodes encoded bytes: an image, or the first frame of an animation with its frames.
    func decode(_ data: Data, for key: ImageLoadKey) async throws(ImageError) -> StoredImage {
        // Without a hook there is no switch of threads.
        let bytes = if let decrypt { try await Self.decrypted(data, by: decrypt) } else { data }
        return try await executor.run { () throws(ImageError) in try decodedNow(bytes, for: key) }
    }

    /// Whether bytes are decoded as they are, without a hook that decrypts them.
    var decodesDirectly: Bool { decrypt == nil }

    /// Decodes bytes that no hook decrypts, on the current thread, and measures the time.
    func decoded(_ data: Data, for key: ImageLoadKey) -> DecodedImage {
        // The task may have been cancelled in the queue of the executor.
        if Task.isCancelled { return DecodedImage(result: .failure(.cancelled), nanoseconds: nil) }
        let start = MonotonicClock.nanoseconds()
        do throws(ImageError) {
            let stored = try decodedNow(data, for: key)
            return DecodedImage(result: .success(stored), nanoseconds: MonotonicClock.nanoseconds() - start)
        } catch {
            return DecodedImage(result: .failure(error), nanoseconds: nil)
        }
    }

    private func decodedNow(_ data: Data, for key: ImageLoadKey) throws(ImageError) -> StoredImage {
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

    @concurrent
    private static func decrypted(
        _ data: Data, by decrypt: @concurrent @Sendable (Data) async throws -> Data
    ) async throws(ImageError) -> Data {
        do {
            return try await decrypt(data)
        } catch {
            throw ImageError(.hook, "the `decrypt` hook failed: \(ImageError.words(error))", underlying: error)
        }
    }

    /// Decodes a processed image from the disk.
    func decodeProcessed(_ entry: DiskCache.Entry, scale: Double) async throws(ImageError) -> StoredImage {
        let decoders = decoders
        var image = try await executor.run { () throws(ImageError) in
            try decoders.decoder(for: entry.value).image(from: entry.value, options: ImageDecodingOptions())
        }
        image.scale = scale
        guard let size = Freshness.originalSize(in: entry.metadata) else {
            throw ImageError(.corrupt, format: image.format, "the entry does not tell the size of the original")
        }
        image.metadata.originalSize = size
        let freshness = Freshness(entry.metadata) ?? .always
        return StoredImage(image: image, animation: nil, data: nil, freshness: freshness)
    }

    /// Makes an image from a larger variant of it.
    func derive(_ plan: DecodingPlan, from variant: StoredImage) async throws(ImageError) -> StoredImage {
        let image = try await executor.run { () throws(ImageError) in
            try variant.image.resized(to: plan.scaled).cropped(to: plan.cropped)
        }
        return StoredImage(image: image, animation: nil, data: nil, freshness: variant.freshness)
    }

    /// Applies a processor to an image, and to each frame of an animation if the key says so.
    func process(
        _ stored: StoredImage, with processor: any ImageProcessor, for key: ImageKey
    ) async throws(ImageError) -> StoredImage {
        try await executor.run { () throws(ImageError) in
            guard key.animation == .processedFrames, let frames = stored.animation?.frames else {
                return stored.with(try processor.process(stored.image), animation: stored.animation)
            }
            let processed = try ProcessedFrames(frames, processor: processor, scale: stored.image.scale)
            // The limit decides anew, because the processed frames can have another size.
            let preloaded =
                stored.preloadsFrames
                ? try PreloadedFrames(processed, memoryLimit: key.decoding.memoryLimit) : nil
            return stored.with(try processed.frame(at: 0).image, animation: animated(preloaded ?? processed))
        }
    }

    /// Returns the frames as one animation for all views.
    private func animated(_ frames: any ImageFrames) -> AnimatedImage {
        AnimatedImage(frames, executor: executor, budget: budget)
    }
}
