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
        let freshness: ImageFreshness
        let preloadsFrames: Bool

        init(
            image: RasterImage, animation: AnimatedImage?, data: Data?, freshness: ImageFreshness, preloadsFrames: Bool
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
        image: RasterImage, animation: AnimatedImage?, data: Data?, freshness: ImageFreshness,
        preloadsFrames: Bool = false
    ) {
        content = Content(
            image: image, animation: animation, data: data, freshness: freshness, preloadsFrames: preloadsFrames)
    }

    var image: RasterImage { content.image }
    /// The animation, one object for all views, which share its decoded frames.
    var animation: AnimatedImage? { content.animation }
    /// The encoded bytes; nil unless a request asked for them.
    var data: Data? { content.data }
    var freshness: ImageFreshness { content.freshness }
    /// Whether all frames of the animation were to be decoded in advance. Frames beyond the memory limit are decoded on
    /// demand nevertheless, and another load would not change that.
    var preloadsFrames: Bool { content.preloadsFrames }

    /// Returns the image with another freshness.
    func with(_ freshness: ImageFreshness) -> StoredImage {
        guard freshness != content.freshness else { return self }
        return StoredImage(
            image: image, animation: animation, data: data, freshness: freshness, preloadsFrames: preloadsFrames)
    }

    /// Returns the image with its encoded bytes, or without.
    func with(_ data: Data?) -> StoredImage {
        StoredImage(
            image: image, animation: animation, data: data, freshness: freshness, preloadsFrames: preloadsFrames)
    }

    /// Returns the image after a processor.
    func with(_ image: RasterImage, animation: AnimatedImage?) -> StoredImage {
        StoredImage(
            image: image, animation: animation, data: data, freshness: freshness, preloadsFrames: preloadsFrames)
    }

    /// The size in bytes, for the limit of the memory cache.
    var cost: Int {
        image.byteCount + image.colorSpace.byteCount + (animation?.frames.byteCount ?? 0) + (data?.count ?? 0)
    }

    /// Returns whether it has everything that the options ask for beside the image. A source of decoded images has no
    /// bytes.
    func satisfies(_ options: ImageRequest.Options, of key: ImageKey) -> Bool {
        if options.includesData, data == nil, !key.isDecodedBySource { return false }
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
    func hasSamePixels(as other: StoredImage) -> Bool {
        animation == nil && other.animation == nil && image.size == other.image.size
            && image.pixels.form == other.image.pixels.form && image.pixels.bytes == other.image.pixels.bytes
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
