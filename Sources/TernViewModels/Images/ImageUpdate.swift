import TernConcurrency
public import TernImages

/// The content of a slot of a view.
public enum ImageContent: Sendable {
    /// No content: the slot is empty.
    case none
    /// A decoded image.
    case image(RasterImage)
    /// A value of the toolkit, such as an image from its resources. The view gets back the same value.
    case custom(any Sendable)

    /// The decoded image; nil for any other content.
    public var image: RasterImage? {
        if case .image(let image) = self { image } else { nil }
    }

    /// Returns the picture of a `ThumbHash`, to show until the real one has come:
    /// `ImageDisplay(placeholder: .thumbHash(photo.hash))`. nil without a hash, or for another text.
    ///
    /// - Parameter base64: The hash in Base64.
    public static func thumbHash(_ base64: String?) -> ImageContent? {
        base64.flatMap { ThumbHash(base64: $0) }.map { .image($0.image()) }
    }

    /// Returns the picture of a `BlurHash`, to show until the real one has come; nil without a hash, or for another
    /// text.
    ///
    /// - Parameter size: The size of the picture, in pixels. Its shape is that of the view or of the original; a small
    ///   picture looks the same as a large one.
    public static func blurHash(
        _ text: String?, size: PixelSize = PixelSize(width: 32, height: 32)
    ) -> ImageContent? {
        text.flatMap { BlurHash($0) }.map { .image($0.image(size: size)) }
    }
}

/// The state of a slot of a view.
public enum ImagePhase: Sendable, Hashable {
    /// Nothing was loaded into the slot, or it was cleared.
    case idle
    /// A substitute stands in for the image: a placeholder, another size of the image, or the previous content.
    case placeholder
    /// An image decoded from a part of the bytes; the number of the preview, counted from 1.
    case preview(Int)
    /// The final image, and its source.
    case success(ImageResponse.Source)
    /// The load failed with this error.
    case failure(ImageError)
}

extension ImagePhase: CustomStringConvertible {
    /// The name of the phase with its value, such as `success (memory)`.
    public var description: String {
        switch self {
        case .idle: "idle"
        case .placeholder: "placeholder"
        case .preview(let number): "preview \(number)"
        case .success(let source): "success (\(source))"
        case .failure(let error): "failure (\(error))"
        }
    }
}

/// New content for one slot of a view.
public struct ImageUpdate: Sendable {
    /// The content to show.
    public let content: ImageContent
    /// The phase that the content represents.
    public let phase: ImagePhase
    /// The transition to the content; nil for an immediate change.
    public let transition: ImageTransition?
    /// The animation whose first frame is `content`, for a view that plays it itself; nil for a still image.
    public let animation: AnimatedImage?
    /// A Boolean value that indicates whether the content is one frame of an animation that plays in the view.
    public let isFrame: Bool

    /// Creates an update for a test or a preview; by default without a transition and for a still image.
    public init(
        _ content: ImageContent, phase: ImagePhase, transition: ImageTransition? = nil,
        animation: AnimatedImage? = nil, isFrame: Bool = false
    ) {
        self.content = content
        self.phase = phase
        self.transition = transition
        self.animation = animation
        self.isFrame = isFrame
    }

    /// The decoded image; nil for any other content.
    public var image: RasterImage? { content.image }
}

/// A request for a gradual change to an image. The view chooses its form and duration.
///
/// A load with `ImageDisplay.waitsForTransition` ends after `end()` is called or this object is released. A view that
/// ignores transitions therefore delays nothing.
public final class ImageTransition: Sendable {
    let waiter = Waiter<Void>()

    /// Creates a transition that has not ended.
    public init() {}

    deinit { waiter.resume() }

    /// Marks the transition as complete. Later calls have no effect. May be called on any thread.
    public func end() { waiter.resume() }
}
