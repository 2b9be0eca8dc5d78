/// The format to encode a picture to, with its settings.
public enum ImageEncoding: Sendable, Hashable {
    /// JPEG of a quality from 1 to 100, without alpha: transparent pixels are laid on black.
    case jpeg(quality: Int = 85, progressive: Bool = false)
    /// PNG of a compression level from 1 (fast) to 9 (small), all channels kept. On Apple's systems ImageIO decides on
    /// the level.
    case png(level: Int = 6)
    /// WebP of a quality from 0 to 100, lossy. Not on Apple's systems: ImageIO reads WebP and does not write it.
    case webp(quality: Double = 80)
    /// WebP without loss; the colour of wholly transparent pixels is not kept. Not on Apple's systems.
    case losslessWebP

    /// The format that comes of it.
    public var format: ImageFormat {
        switch self {
        case .jpeg: .jpeg
        case .png: .png
        case .webp, .losslessWebP: .webp
        }
    }
}
