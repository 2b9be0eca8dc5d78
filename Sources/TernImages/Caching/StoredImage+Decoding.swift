#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension StoredImage {
    /// A picture that was decoded while it came.
    init(_ image: RasterImage, _ flight: ImageFlight) {
        self.init(image: image, animation: nil, data: nil, freshness: .always)
        self.image.scale = flight.key.scale
    }

    /// Decodes bytes as a flight says; of an animation the first frame, and the frames to come.
    init(decoding data: Data, _ flight: ImageFlight, _ tools: ImageTools) throws(ImageError) {
        let decoder = try tools.decoders.decoder(for: data)
        let options = flight.key.decoding
        let frames =
            flight.key.animation == .firstFrame ? nil : try decoder.animation(from: data, options: options)
        if let frames {
            image = try frames.frame(at: 0).image
            animation = tools.animated(flight.options.preloadsAllFrames ? try PreloadedFrames(frames) : frames)
        } else {
            image = try decoder.image(from: data, options: options)
            animation = nil
        }
        image.scale = flight.key.scale
        self.data = nil
        freshness = .always
    }
}
