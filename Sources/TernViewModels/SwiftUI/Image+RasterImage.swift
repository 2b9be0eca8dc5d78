#if canImport(SwiftUI)
public import SwiftUI
public import TernImages

extension Image {
    /// A picture over the same pixels, at the picture's scale, without a label; nil if Core Graphics refuses. Nothing is
    /// copied.
    @MainActor
    public init?(_ image: RasterImage) {
        guard let cgImage = image.sharedCGImage else { return nil }
        self.init(decorative: cgImage, scale: CGFloat(image.scale))
    }
}

extension ImageContent {
    /// The picture, or the `SwiftUI.Image` that was given as `.custom`; nil for anything else.
    @MainActor
    public var swiftUIImage: Image? {
        switch self {
        case .none: nil
        case .image(let image): Image(image)
        case .custom(let custom): custom as? Image
        }
    }
}
#endif
