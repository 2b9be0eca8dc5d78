import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The encoded bytes of an image, with their origin.
struct EncodedImage: Sendable {
    var data: Data
    var freshness: ImageFreshness
    var source: ImageResponse.Source
    var trace: ImageTrace
    /// The type that the server gave bytes that were fetched just now; nil if it gave none.
    var contentType: String?
    /// The image of a source without encoded bytes; nil for all others. `data` is then empty.
    var image: RasterImage?
    /// Whether a revalidation confirmed the cached bytes; `data` is then empty.
    var isUnchanged = false

    /// Returns the response with an image that was decoded from these bytes.
    func response(with decoded: StoredImage, for key: ImageLoadKey) -> ImageResponse {
        var stored = decoded.with(freshness)
        if key.options.includesData, image == nil { stored = stored.with(data) }
        var trace = trace
        trace.add(.decoding, .hit, detail: .image(stored.image.format, stored.image.size))
        return ImageResponse(stored, source: source, trace: trace)
    }
}
