public import TernImages

/// What a slot shows beside the picture: while it is loaded, when there is none, and how an animation plays.
///
/// What concerns the load itself stands in `ImageRequest.Options.presentation`: the delayed placeholder, the transition, who
/// sets the view, and whether a new load cancels the one before.
public struct ImageDisplay: Sendable {
    /// What becomes of what the slot shows when a load begins that has no placeholder.
    public enum Current: Sendable, Hashable {
        /// It stays until there is something better.
        case kept
        /// It is taken away at once.
        case cleared
    }

    /// Shown while the picture is not there; nil, the default, for nothing. Not shown for what is in memory.
    public var placeholder: ImageContent?
    /// Shown when the load fails; nil, the default: the delayed placeholder if there is one, else what is there stays.
    public var failure: ImageContent?
    /// Shown when there is no URL; nil, the default, for the placeholder, and without one for nothing.
    public var fallback: ImageContent?
    /// What becomes of what the slot shows; `.kept` by default.
    public var current = Current.kept
    /// Whether another size of the picture in memory is the placeholder, where there is one. False by default.
    public var usesCachedVariant = false
    /// Whether the cached picture, from memory at once or from the disk, is shown while it is asked for again, and the
    /// answer shown only if it has changed: `Options.revalidation` becomes `.always`. False by default.
    public var refreshesCached = false
    /// Whether a request without a target size gets the size that the view says, and waits for it. False by default.
    public var fitsView = false
    /// How an animation plays; nil for a still first frame, with the animation in `ShownImage.animation`.
    public var playback: PlaybackOptions? = PlaybackOptions()
    /// The clock by which it plays.
    public var clock: any Clock<Duration> = ContinuousClock()

    /// By default no placeholder, and what the slot shows is kept.
    public init(
        placeholder: ImageContent? = nil, failure: ImageContent? = nil, fallback: ImageContent? = nil,
        current: Current = .kept
    ) {
        self.placeholder = placeholder
        self.failure = failure
        self.fallback = fallback
        self.current = current
    }
}
