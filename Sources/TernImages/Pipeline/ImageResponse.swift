#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A loaded image, its origin, and a trace of the decisions on the way to it.
public struct ImageResponse: Sendable {
    /// The origin of an image.
    public enum Source: String, Sendable, Hashable {
        /// Decoded images in memory.
        case memory
        /// The processed image on the disk.
        case processed
        /// The encoded bytes on the disk, or in the second level.
        case original
        /// The network, a file, or a closure.
        case network
        /// A cache, whose image the server confirmed before the delivery (`Revalidation.beforeDelivery`): by a 304
        /// response, or by a whole response with the same pixels.
        case revalidated
    }

    /// The image with all that the caches keep of it.
    private(set) var stored: StoredImage
    /// The origin of the image.
    public var source: Source
    /// A Boolean value that indicates whether the image comes from a cache and is stale by the headers of its response.
    /// The request's `revalidation` decides whether the pipeline loads it again.
    public var isStale = false
    /// The index of the request's alternative that the image comes from; nil, the default, for the request's own source.
    public internal(set) var alternative: Int?
    /// The decisions at each cache and stage, in order.
    public var trace: ImageTrace

    init(_ stored: StoredImage, source: Source, trace: ImageTrace = ImageTrace()) {
        self.stored = stored
        self.source = source
        self.trace = trace
    }

    /// The image; the first frame of an animation.
    public var image: RasterImage {
        get { stored.image }
        set { stored = stored.with(newValue, animation: stored.animation) }
    }

    /// The animation for an `AnimationPlayer`; nil for a still image. One object for all callers, so that their players
    /// share its frames.
    public var animation: AnimatedImage? {
        get { stored.animation }
        set { stored = stored.with(stored.image, animation: newValue) }
    }

    /// The encoded bytes; nil unless the request asks for them (`Options.includesData`).
    public var data: Data? {
        get { stored.data }
        set { stored = stored.with(newValue) }
    }

    /// Returns the response as requests with these options get it.
    func delivered(for options: ImageRequest.Options, at date: Date) -> ImageResponse {
        var response = self
        let isNew = source == .network || source == .revalidated
        response.isStale = !isNew && !stored.freshness.isFresh(at: date)
        if !options.includesData, stored.data != nil { response.data = nil }
        return response
    }
}
