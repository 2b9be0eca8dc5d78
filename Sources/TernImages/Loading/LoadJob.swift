import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The encoded bytes of an image, with their origin.
struct EncodedImage: Sendable {
    var data: Data
    var freshness: Freshness
    var source: ImageResponse.Source
    var trace: ImageTrace
    /// A Boolean value that indicates whether a revalidation confirmed the cached bytes; `data` is then empty.
    var isUnchanged = false

    /// Returns the result of a load for an image that was decoded from these bytes.
    func loaded(_ decoded: StoredImage, for key: ImageLoadKey) -> LoadedImage {
        var stored = decoded
        stored.freshness = freshness
        if key.options.includesData { stored.data = data }
        var trace = trace
        trace.add(.decoding, .hit, detail: .image(stored.image.format, stored.image.size))
        return LoadedImage(stored: stored, source: source, trace: trace)
    }
}

/// An image with its origin: the result of a load.
struct LoadedImage: Sendable {
    var stored: StoredImage
    var source: ImageResponse.Source
    var trace: ImageTrace

    /// Returns a Boolean value that indicates whether the image comes from a cache and must be revalidated.
    func mustBeRevalidated(for key: ImageLoadKey, at date: Date) -> Bool {
        guard key.caching.network, source != .network, source != .revalidated else { return false }
        switch key.options.revalidation {
        case .never: return false
        case .always: return true
        case .whenStale, .beforeDelivery: return !stored.freshness.isFresh(at: date)
        }
    }
}

/// The result of a revalidation.
enum RevalidationResult {
    case changed(LoadedImage)
    /// The cached image is confirmed, with a new freshness.
    case unchanged(Freshness)
    /// The server could not be asked, or sent no image.
    case failed(ImageError)
}

/// A subscriber of an image load: a task of the user, or a load that processes the image.
enum ImageSubscriber: Sendable {
    case task(ImageTask)
    case processing(Waiter<Result<LoadedImage, ImageError>>, load: Int)

    var isTask: Bool {
        if case .task = self { true } else { false }
    }

    /// A Boolean value that indicates whether nothing was delivered to the subscriber yet.
    var hasNoResponse: Bool {
        switch self {
        case .task(let task): task.current == nil
        case .processing: true
        }
    }
}

/// A subscriber of a load of encoded bytes: the load of an image.
struct EncodedImageSubscriber: Sendable {
    let waiter: Waiter<Result<EncodedImage, ImageError>>
    let load: Int
}

/// The parameters of an image load: its number, what it shares with equal loads, and the request of its first subscriber.
struct ImageLoadContext: Sendable {
    let load: Int
    var key: ImageLoadKey
    let request: ImageRequest

    /// The same load, without reading the encoded bytes from the disk.
    var skippingStoredBytes: ImageLoadContext {
        var context = self
        context.key = key.skippingStoredBytes
        return context
    }
}

/// The parameters of a load of encoded bytes.
struct EncodedLoadContext: Sendable {
    let load: Int
    let key: EncodedLoadKey
    let request: ImageRequest
    /// The freshness of the cached bytes that are revalidated; nil to load the bytes.
    let cachedFreshness: Freshness?
}

/// A load under way: its task, and what it waits for.
///
/// Isolated to the pipeline's actor. A class, because a table of structs would copy all of this at each change.
final class LoadJob {
    /// Another load that this one waits for.
    enum RequiredLoad: Sendable {
        case image(load: Int, subscription: Int)
        case encoded(load: Int, subscription: Int)
    }

    /// The task that runs the load; nil for a caller that waits for bytes in its own task.
    var task: Task<Void, Never>?
    /// A Boolean value that indicates whether the fetch waits until scrolling has settled. True only if all subscribers
    /// wait for it.
    var waitsForScrolling: Bool
    /// The load that this one waits for.
    var requiredLoad: RequiredLoad?
    /// The processor that is applied to the image of the required load.
    var processor: (any ImageProcessor)?
    /// The stage whose queue the load waits in.
    var pendingSlot: (stage: LoadStage, waiter: Waiter<Bool>)?
    /// The last progress of the fetch, for later subscribers.
    var progress: Session.Progress?
    /// The cached image that was delivered and is being revalidated.
    var cachedImage: LoadedImage?

    init(task: Task<Void, Never>? = nil, waitsForScrolling: Bool = false) {
        self.task = task
        self.waitsForScrolling = waitsForScrolling
    }
}

/// A stage with a limited number of loads at a time.
enum LoadStage: Int, Sendable, CaseIterable {
    case fetch, decode, process
}
