#if canImport(ImageIO)
public import CoreGraphics
import Foundation

extension RasterImage {
    /// The image for Core Graphics, UIKit and AppKit, in its color space with premultiplied alpha; nil if Core Graphics
    /// refuses it, or does not know the space.
    ///
    /// It shares the pixels and keeps them in memory as long as it exists. It is upright. `scale` is for the caller
    /// that makes a `UIImage` or an `NSImage` from it.
    public var cgImage: CGImage? { pixels.image(size, .premultipliedLast) }

    /// The `CGImage` that all views of these pixels share, with the data that Core Animation prepares for it.
    @MainActor
    package var sharedCGImage: CGImage? {
        if let shared = pixels.shared { return shared }
        pixels.shared = cgImage
        return pixels.shared
    }

    /// Creates an image by drawing a `CGImage` into sRGB with 8 bits a channel; nil if it has no pixels or too many, or
    /// memory is short.
    ///
    /// A `CGImage` has no orientation and is drawn as it is. Colors outside sRGB are clipped.
    public init?(_ image: CGImage, scale: Double = 1) {
        let size = PixelSize(width: image.width, height: image.height)
        // For any error there is no image.
        guard let space = CGColorSpace(name: CGColorSpace.sRGB),
            let pixels = try? PixelBuffer(drawing: image, in: space, form: .standard)
        else { return nil }
        self.init(pixels: pixels, size: size, format: nil, metadata: Metadata(originalSize: size), scale: scale)
    }
}

extension RasterImage {
    /// Draws the image into sRGB or Display P3 with 8 bits a component.
    func inSpace(_ space: ImageColorSpace) throws(ImageError) -> RasterImage {
        let form = PixelForm(space: space)
        if pixels.form == form { return self }
        try checkMemory(size, bytesPerPixel: 4, work: 0)
        guard let image = cgImage, let target = space.coreGraphics else {
            throw ImageError(
                .unsupported, format: format, "an image in \(colorSpace.words) cannot be converted to \(space.words)")
        }
        var made = with(try PixelBuffer(drawing: image, in: target, form: form), size)
        if metadata.colorProfile == .kept { made.metadata.colorProfile = .converted }
        return made
    }
}

extension ImageColorSpace {
    /// The space for Core Graphics; nil if it does not know it.
    var coreGraphics: CGColorSpace? {
        switch self {
        case .sRGB: return CGColorSpace(name: CGColorSpace.sRGB)
        case .displayP3: return CGColorSpace(name: CGColorSpace.displayP3)
        case .profile(let data): return CGColorSpace(iccData: NSData(data: data) as CFData)
        case .numbers(let numbers):
            switch (numbers.primaries, numbers.transfer) {
            case (9, 16): return CGColorSpace(name: CGColorSpace.itur_2100_PQ)
            case (9, 18): return CGColorSpace(name: CGColorSpace.itur_2100_HLG)
            case (12, 16): return CGColorSpace(name: CGColorSpace.displayP3_PQ)
            case (12, 18): return CGColorSpace(name: CGColorSpace.displayP3_HLG)
            case (9, 1), (9, 14), (9, 15): return CGColorSpace(name: CGColorSpace.itur_2020)
            default: return nil
            }
        }
    }
}

extension RasterImage.Component {
    /// The layout of pixels of the component for Core Graphics.
    fileprivate func bitmap(_ alpha: CGImageAlphaInfo) -> CGBitmapInfo {
        let alpha = CGBitmapInfo(rawValue: alpha.rawValue)
        return switch self {
        case .uint8: alpha
        case .uint16: [alpha, .byteOrder16Little]
        case .float16: [alpha, .byteOrder16Little, .floatComponents]
        }
    }
}

extension PixelBuffer {
    /// Draws an image at its own size: RGBA, premultiplied, rows from the top, in the space that the form means.
    convenience init(drawing image: CGImage, in space: CGColorSpace, form: PixelForm) throws(ImageError) {
        let size = PixelSize(width: image.width, height: image.height)
        guard size.width > 0, size.height > 0, size.pixelCount <= Int(Int32.max) else {
            throw ImageError(.invalidArgument, "\(size) pixels cannot be drawn")
        }
        let (bytes, bitmap) = (form.component.bytesPerPixel, form.component.bitmap(.premultipliedLast))
        // The buffer is cleared, so that parts that the file lacks are transparent.
        try unsafe self.init(count: size.pixelCount * bytes, form: form, cleared: true) { (base) throws(ImageError) in
            guard
                let context = unsafe CGContext(
                    data: base, width: size.width, height: size.height, bitsPerComponent: bytes * 2,
                    bytesPerRow: size.width * bytes, space: space, bitmapInfo: bitmap.rawValue)
            else { throw ImageError(.outOfMemory, "no memory to draw \(size) pixels") }
            context.setBlendMode(.copy)
            context.interpolationQuality = .none
            context.draw(image, in: CGRect(x: 0, y: 0, width: size.width, height: size.height))
        }
    }

    /// Returns an image over these bytes in their color space.
    func image(_ size: PixelSize, _ alpha: CGImageAlphaInfo) -> CGImage? {
        guard let space = form.space.coreGraphics, let provider else { return nil }
        let bytes = form.component.bytesPerPixel
        return unsafe CGImage(
            width: size.width, height: size.height, bitsPerComponent: bytes * 2, bitsPerPixel: bytes * 8,
            bytesPerRow: size.width * bytes, space: space, bitmapInfo: form.component.bitmap(alpha),
            provider: provider, decode: nil, shouldInterpolate: true, intent: .defaultIntent)
    }

    private var provider: CGDataProvider? { HeldBytes(bytes: bytes).provider }
}

/// Keeps the bytes for Core Graphics. The buffer itself cannot do so, because it can hold the image made from them,
/// which would be a cycle.
private final class HeldBytes: Sendable {
    let bytes: [UInt8]

    init(bytes: [UInt8]) { self.bytes = bytes }

    /// A provider that gives Core Graphics the bytes in place. This is sound, because nothing can change or move the
    /// array until this object is released, which the provider holds.
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
