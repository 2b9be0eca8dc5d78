public import TernImages

/// Describes how a view shows a load: the substitutes for the image, the transition, and how an animation plays.
public struct ImageDisplay: Sendable {
    /// The handling of the image that a slot shows when a load without a placeholder begins.
    public enum Current: Sendable, Hashable {
        /// The view keeps the image until there is a better one.
        case kept
        /// The view clears the image at once.
        case cleared
    }

    /// The condition for showing a transition.
    public enum Transition: Sendable, Hashable {
        /// Shows a transition for images that were not in memory.
        case whenLoaded
        /// Shows a transition for every image.
        case always
        /// Shows no transition.
        case never
    }

    /// The content that stands in while the image loads; nil by default. An image in memory is shown without it.
    public var placeholder: ImageContent?
    /// The content to show when the load fails. By default, or with nil, the view shows the delayed placeholder if
    /// there is one, and otherwise keeps its content.
    public var failure: ImageContent?
    /// The content to show when there is no URL. By default, or with nil, the view shows the placeholder, and without
    /// one nothing.
    public var fallback: ImageContent?
    /// The handling of the image that the slot shows when the load begins; `.kept` by default.
    public var current = Current.kept
    /// A Boolean value that indicates whether another size of the image in memory serves as the placeholder, if there
    /// is one. False by default.
    public var usesCachedVariant = false
    /// A Boolean value that indicates whether the view shows the cached image, from memory at once or from the disk,
    /// while the server is asked again, and the response only if the image has changed. True sets
    /// `Options.revalidation` of the request to `.always`. False by default.
    public var revalidatesCachedImage = false
    /// A Boolean value that indicates whether a request without a target size gets the size of the view, and waits
    /// until the view has one. False by default.
    public var decodesToViewSize = false
    /// A Boolean value that indicates whether the view shows the placeholder only after the load has failed. False by
    /// default.
    public var showsPlaceholderOnlyOnFailure = false
    /// A Boolean value that indicates whether the binding shows the image in the view; false for a caller that does
    /// this itself. The placeholder and the failure are shown in either case. True by default.
    public var setsImage = true
    /// The condition for showing a transition; `.whenLoaded` by default.
    public var transition = Transition.whenLoaded
    /// A Boolean value that indicates whether the load ends only after the transition has ended. False by default.
    public var waitsForTransition = false
    /// A Boolean value that indicates whether a new load cancels the previous load of the slot. True by default.
    public var cancelsPrevious = true
    /// The options for playing an animation. With nil, the view gets the first frame, and the animation in
    /// `ImageUpdate.animation`.
    public var playback: PlaybackOptions? = PlaybackOptions()
    /// The clock that times the frames of an animation; a continuous clock by default.
    public var clock: any Clock<Duration> = ContinuousClock()

    /// Creates a display; by default it has no placeholder, and the slot keeps its content while an image loads.
    public init(
        placeholder: ImageContent? = nil, failure: ImageContent? = nil, fallback: ImageContent? = nil,
        current: Current = .kept
    ) {
        self.placeholder = placeholder
        self.failure = failure
        self.fallback = fallback
        self.current = current
    }

    /// Returns a Boolean value that indicates whether both displays deliver a loaded image in the same way.
    func deliversLike(_ other: ImageDisplay) -> Bool {
        showsPlaceholderOnlyOnFailure == other.showsPlaceholderOnlyOnFailure && setsImage == other.setsImage
            && transition == other.transition && waitsForTransition == other.waitsForTransition
            && cancelsPrevious == other.cancelsPrevious
    }
}
