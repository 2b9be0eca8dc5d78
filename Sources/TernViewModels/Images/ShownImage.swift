public import TernImages

/// What stands in a slot of a view.
public enum ImageContent: Sendable {
    /// Nothing: the slot is empty.
    case none
    /// A decoded picture.
    case image(RasterImage)
    /// Something of the toolkit's own, as an image of its resources; the view gets it back as it was given.
    case custom(any Sendable)

    /// The decoded picture; nil for anything else.
    public var image: RasterImage? {
        if case .image(let image) = self { image } else { nil }
    }
}

/// What a view is told to show in one of its slots.
public struct ShownImage: Sendable {
    /// What is to be shown.
    public let content: ImageContent
    /// What it stands for.
    public let phase: ImagePhase
    /// Whether and how to go over to it gradually; nil to change at once.
    public let transition: ImageTransition?
    /// The animation of which `content` is the first frame, for a view that plays it itself; nil for a still picture.
    public let animation: AnimatedImage?
    /// Whether it is one frame of an animation that is played for the view.
    public let isFrame: Bool

    /// What a test or a preview shows; by default at once, and still.
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

    /// The decoded picture; nil for anything else.
    public var image: RasterImage? { content.image }
}
