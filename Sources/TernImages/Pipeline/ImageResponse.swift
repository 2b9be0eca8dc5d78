#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A loaded picture, where it came from, and why it was not found nearer.
public struct ImageResponse: Sendable {
    /// Where a picture came from.
    public enum Source: String, Sendable, Hashable {
        /// Decoded pictures in memory.
        case memory
        /// The processed picture on the disk.
        case disk
        /// The bytes as they were fetched, on the disk.
        case original
        /// The network, a file, or a closure.
        case network
        /// A cache, after the server has said that what is there is still right (304): with `Revalidation.beforeDelivery`.
        case revalidated
    }

    /// The picture; of an animation the first frame.
    public var image: RasterImage
    /// The animation, to be given to an `AnimationPlayer`; nil for a still picture. The same object for all who load it, so
    /// that their players share its frames.
    public var animation: AnimatedImage?
    /// Where it came from.
    public var source: Source
    /// Whether it comes from a cache and is stale by the words of the response that brought it. It is being asked for again
    /// if the request's `revalidation` says so.
    public var isStale: Bool
    /// What was decided at each cache and stage, in order.
    public var trace: ImageTrace
    /// The bytes as they were fetched; nil unless the request asks for them (`Options.includesData`).
    public var data: Data?
}
