import Tern

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
    /// Whether a revalidation confirmed the cached bytes; `data` is then empty.
    var isUnchanged: Bool

    /// Creates the result of a fetch.
    /// - Parameters:
    ///   - offset: The number of bytes that a partial download contributed.
    ///   - trace: The look-ups before the fetch.
    init(fetched data: Data, freshness: Freshness, resumedFrom offset: Int, trace: ImageTrace) {
        self.init(data: data, freshness: freshness, source: .network, trace: trace)
        self.trace.add(.network, .hit, detail: .bytes(data.count, before: offset))
    }

    init(
        data: Data, freshness: Freshness, source: ImageResponse.Source, trace: ImageTrace, isUnchanged: Bool = false
    ) {
        self.data = data
        self.freshness = freshness
        self.source = source
        self.trace = trace
        self.isUnchanged = isUnchanged
    }

    /// Returns the result of a load for an image that was decoded from these bytes.
    func loaded(_ decoded: StoredImage, for key: ImageLoadKey) -> LoadedImage {
        var stored = decoded.with(freshness)
        if key.options.includesData { stored = stored.with(data) }
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
