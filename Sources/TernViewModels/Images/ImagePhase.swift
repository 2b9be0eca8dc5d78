public import TernImages

/// How far a slot of a view is.
public enum ImagePhase: Sendable, Hashable {
    /// Nothing was loaded into it, or it was cleared.
    case idle
    /// Something stands in for the picture: a placeholder, another size of it, or what was there before.
    case placeholder
    /// A picture of less than all bytes; counted from 1.
    case preview(Int)
    /// The picture, and where it came from.
    case success(ImageResponse.Source)
    /// There is no picture, and why.
    case failure(ImageError)
}
