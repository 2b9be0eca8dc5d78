#if canImport(ImageIO)
public import CoreGraphics
import Foundation

extension RasterImage {
    /// The picture for Core Graphics, UIKit and AppKit, in sRGB with premultiplied alpha; nil if Core Graphics refuses.
    ///
    /// Nothing is copied: it reads the same pixels, and holds them as long as it lives. Upright already; `scale` is
    /// for whoever makes a `UIImage` or an `NSImage` of it.
    public var cgImage: CGImage? { pixels.image(size, .premultipliedLast) }

    /// One for all views that show these pixels: what Core Animation prepares of it lasts as long as they do.
    @MainActor
    package var sharedCGImage: CGImage? {
        if let shared = pixels.shared { return shared }
        pixels.shared = cgImage
        return pixels.shared
    }

    /// A picture of what Core Graphics has, drawn once into sRGB, 8 bits a channel; nil if it has no pixels, too many of
    /// them, or memory is short.
    ///
    /// A `CGImage` knows no orientation: it is taken as it is. Wide colours are cut to sRGB.
    public init?(_ image: CGImage, scale: Double = 1) {
        let size = PixelSize(width: image.width, height: image.height)
        // Whatever was wrong with it, there is no picture.
        guard let space = CGColorSpace(name: CGColorSpace.sRGB),
            let pixels = try? PixelBuffer(drawing: image, in: space)
        else { return nil }
        self.init(pixels: pixels, size: size, format: nil, metadata: Metadata(originalSize: size), scale: scale)
    }
}

extension PixelBuffer {
    /// What Core Graphics draws of a picture at its own size: RGBA, premultiplied, rows from the top.
    convenience init(drawing image: CGImage, in space: CGColorSpace) throws(ImageError) {
        let size = PixelSize(width: image.width, height: image.height)
        guard size.width > 0, size.height > 0, size.pixelCount <= Int(Int32.max) else {
            throw ImageError(.invalidArgument, "\(size) pixels cannot be drawn")
        }
        // Cleared: what the file does not bring is transparent.
        try unsafe self.init(count: size.pixelCount * 4, cleared: true) { (base) throws(ImageError) in
            guard
                let context = unsafe CGContext(
                    data: base, width: size.width, height: size.height, bitsPerComponent: 8,
                    bytesPerRow: size.width * 4, space: space, bitmapInfo: CGImageAlphaInfo.premultipliedLast.rawValue)
            else { throw ImageError(.outOfMemory, "no memory to draw \(size) pixels") }
            context.setBlendMode(.copy)
            context.interpolationQuality = .none
            context.draw(image, in: CGRect(x: 0, y: 0, width: size.width, height: size.height))
        }
    }

    /// A picture over these bytes, taken as sRGB.
    func image(_ size: PixelSize, _ alpha: CGImageAlphaInfo) -> CGImage? {
        guard let space = CGColorSpace(name: CGColorSpace.sRGB), let provider else { return nil }
        return unsafe CGImage(
            width: size.width, height: size.height, bitsPerComponent: 8, bitsPerPixel: 32, bytesPerRow: size.width * 4,
            space: space, bitmapInfo: CGBitmapInfo(rawValue: alpha.rawValue), provider: provider, decode: nil,
            shouldInterpolate: true, intent: .defaultIntent)
    }

    private var provider: CGDataProvider? { HeldBytes(bytes: bytes).provider }
}

/// Holds the bytes for Core Graphics. Not the buffer does: it may hold the image that is made of them, which would hold it.
private final class HeldBytes: Sendable {
    let bytes: [UInt8]

    init(bytes: [UInt8]) { self.bytes = bytes }

    /// Gives Core Graphics the bytes where they are. That is sound because nobody can change the array: it lies where it
    /// lay when it was made, until this object ends, which the provider holds.
    var provider: CGDataProvider? {
        let held = unsafe Unmanaged.passRetained(self)
        let provider = unsafe bytes.withUnsafeBufferPointer { buffer in
            unsafe buffer.baseAddress.flatMap { base in
                unsafe CGDataProvider(dataInfo: held.toOpaque(), data: base, size: buffer.count) { info, _, _ in
                    if let info = unsafe info { unsafe Unmanaged<HeldBytes>.fromOpaque(info).release() }
                }
            }
        }
        if provider == nil { unsafe held.release() }
        return provider
    }
}
#endif
