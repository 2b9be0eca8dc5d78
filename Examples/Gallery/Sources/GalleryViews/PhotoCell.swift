public import GtkBridge
public import TernImages
public import TernViewModels

/// A picture that is loaded.
///
/// It holds its bindings itself, as any class may: its load ends in the moment in which its widget does.
@safe
public final class PhotoCell: Picture, ImageViewModel {
    /// What is bound to it.
    public let bindings = ViewBindings()
    /// What was shown last, for those who look.
    public private(set) var shown: ShownImage?
    private let width: Int
    private let height: Int

    /// An empty cell of a size in GTK's pixels.
    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
        super.init()
        setMinimumSize(width: width, height: height)
        keepSize()
    }

    /// Hands the pixels to GTK.
    public func showImage(_ shown: ShownImage, in slot: ImageSlot) {
        self.shown = shown
        texture = shown.image.map(Texture.of)
    }

    /// Pictures are decoded to the size in which the screen shows them.
    public func imageSize(for slot: ImageSlot) -> PixelSize? {
        PixelSize(width: width * scaleFactor, height: height * scaleFactor)
    }
}

extension Texture {
    /// The pixels of a decoded picture.
    static func of(_ image: RasterImage) -> Texture {
        image.withPixels { Texture(width: image.size.width, height: image.size.height, premultiplied: $0) }
    }
}
