#if canImport(UIKit) && !os(watchOS)
public import TernImages
public import UIKit

extension UIImage {
    /// A picture over the same pixels, at the picture's scale; nil if Core Graphics refuses.
    ///
    /// Nothing is copied, and all that are made of one picture share one `CGImage`, so that what Core Animation prepares
    /// for one view serves the next.
    @MainActor
    public convenience init?(_ image: RasterImage) {
        guard let cgImage = image.sharedCGImage else { return nil }
        self.init(cgImage: cgImage, scale: CGFloat(image.scale), orientation: .up)
    }
}

extension ImageContent {
    /// The picture, or the `UIImage` that was given as `.custom`; nil for anything else.
    @MainActor
    public var uiImage: UIImage? {
        switch self {
        case .none: nil
        case .image(let image): UIImage(image)
        case .custom(let custom): custom as? UIImage
        }
    }
}
#endif
