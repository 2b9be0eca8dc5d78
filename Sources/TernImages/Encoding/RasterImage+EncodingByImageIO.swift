#if canImport(ImageIO)
import CTernCodecs
import CoreGraphics
public import Foundation
import ImageIO
import UniformTypeIdentifiers

extension RasterImage {
    /// The picture as a file of the encoding. Synchronous, and not to be cancelled once it has begun.
    ///
    /// Throws the kind `.unsupported` for WebP, which ImageIO reads and does not write, and `.encodingFailed` if ImageIO
    /// refuses, as a JPEG of more than 65,500 pixels a side.
    public func encoded(as encoding: ImageEncoding) throws(ImageError) -> Data {
        let data = NSMutableData()
        let type: UTType
        let image: CGImage?
        var properties: [CFString: Any] = [:]
        switch encoding {
        case .jpeg(let quality, let progressive):
            type = .jpeg
            // Premultiplied pixels whose alpha is passed over: that is the picture laid on black.
            image = pixels.image(size, .noneSkipLast)
            properties[kCGImageDestinationLossyCompressionQuality] = Double(min(100, max(1, quality))) / 100
            properties[kCGImagePropertyJFIFDictionary] = imageIODictionary([
                kCGImagePropertyJFIFIsProgressive: progressive
            ])
        case .png:
            type = .png
            image = isOpaque ? pixels.image(size, .noneSkipLast) : try straight().image(size, .last)
        case .webp, .losslessWebP:
            throw ImageError(
                .unsupported, format: .webp, "ImageIO does not write WebP: encode as PNG or JPEG on Apple's systems")
        }
        let identifier = NSString(string: type.identifier)
        guard let image,
            let destination = CGImageDestinationCreateWithData(
                data as CFMutableData, identifier as CFString, 1, nil)
        else {
            throw ImageError(.encodingFailed, format: encoding.format, "\(size) pixels: ImageIO does not begin")
        }
        CGImageDestinationAddImage(destination, image, imageIODictionary(properties))
        guard CGImageDestinationFinalize(destination) else {
            throw ImageError(.encodingFailed, format: encoding.format, "\(size) pixels: ImageIO does not end")
        }
        return Data(referencing: data)
    }

    /// The pixels without premultiplication, as PNG holds them.
    private func straight() throws(ImageError) -> PixelBuffer {
        try unsafe PixelBuffer(count: byteCount) { base in
            unsafe pixels.bytes.withUnsafeBufferPointer { source in
                unsafe tern_unpremultiply(source.baseAddress, base, size.pixelCount)
            }
        }
    }
}

/// Options and properties as ImageIO takes them.
func imageIODictionary(_ values: [CFString: Any]) -> CFDictionary { NSDictionary(dictionary: values) as CFDictionary }
#endif
