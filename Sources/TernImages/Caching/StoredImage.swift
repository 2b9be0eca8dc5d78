import TernCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A picture as it is held in memory, with what is needed to answer by it.
struct StoredImage: Sendable {
    var image: RasterImage
    /// One for all who show it: they share its decoded frames.
    var animation: AnimatedImage?
    var data: Data?
    var freshness: Freshness

    /// Bytes, for the limit of the cache.
    var cost: Int { image.byteCount + (animation?.frames.byteCount ?? 0) + (data?.count ?? 0) }

    /// As an answer to who asked with these options.
    func response(
        _ source: ImageResponse.Source, isStale: Bool, _ trace: ImageTrace, _ options: ImageRequest.Options
    ) -> ImageResponse {
        ImageResponse(
            image: image, animation: animation, source: source, isStale: isStale, trace: trace,
            data: options.includesData ? data : nil)
    }

    /// Whether it has what was asked for with these options, beside the picture.
    func suits(_ options: ImageRequest.Options) -> Bool {
        if options.includesData, data == nil { return false }
        guard options.preloadsAllFrames, let animation else { return true }
        return animation.frames is PreloadedFrames
    }

    /// Why it is no answer to who asked with these options; nil if it is one.
    func refusal(by options: ImageRequest.Options) -> ImageError? {
        guard options.requiresAnimation, animation == nil else { return nil }
        return ImageError(.unsupported, format: image.format, "an animation was asked for, and this is a still picture")
    }

    /// The picture, and if told so the frames, after a processor.
    func processed(
        by processor: any ImageProcessor, frames processesFrames: Bool, _ tools: ImageTools
    ) throws(ImageError) -> StoredImage {
        var result = self
        if processesFrames, let frames = animation?.frames {
            let processed = try ProcessedFrames(frames, processor: processor, scale: image.scale)
            // Who wants all frames at once wants them ready.
            result.animation = tools.animated(frames is PreloadedFrames ? try PreloadedFrames(processed) : processed)
            result.image = try processed.frame(at: 0).image
        } else {
            result.image = try processor.process(image)
        }
        return result
    }

    /// Found again after its eviction, for as long as somebody shows it.
    static let inUse = InUse<StoredImage> { stored in
        let (size, format, metadata, scale) = (
            stored.image.size, stored.image.format, stored.image.metadata, stored.image.scale
        )
        let freshness = stored.freshness
        // The frames hold their bytes: an animation is not worth finding again at their price.
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
