#if canImport(AppKit) && !targetEnvironment(macCatalyst)
public import AppKit
public import TernImages

extension NSImage {
    /// A picture over the same pixels, of its size in points; nil if Core Graphics refuses. Nothing is copied.
    @MainActor
    public convenience init?(_ image: RasterImage) {
        guard let cgImage = image.sharedCGImage else { return nil }
        let (width, height) = (Double(image.size.width) / image.scale, Double(image.size.height) / image.scale)
        self.init(cgImage: cgImage, size: NSSize(width: width, height: height))
    }
}

extension ImageContent {
    /// The picture, or the `NSImage` that was given as `.custom`; nil for anything else.
    @MainActor
    public var nsImage: NSImage? {
        switch self {
        case .none: nil
        case .image(let image): NSImage(image)
        case .custom(let custom): custom as? NSImage
        }
    }
}
#endif
