extension ImageRequest {
    /// What few requests change, each with its default. `Documentation/ImageOptions.md` says which option of SDWebImage
    /// each stands for.
    public struct Options: Sendable, Hashable {
        /// Whether a failure that is remembered from before is forgotten and the load tried again. False by default.
        public var retriesFailed = false
        /// Whether the fetch begins only once scrolling has settled (`ImagePipeline.setScrolling`), or another load of the
        /// same bytes does not wait. False by default.
        public var waitsForScrolling = false
        /// Which previews are made while the bytes come, told by `ImageTask.previews`. `.none` by default. Previews are of what
        /// the network brings: a load that joins a fetch which was begun without them, a hook that changes the bytes, and a
        /// registered decoder give none; nor do, so far, Apple's systems.
        public var progressive = ProgressivePolicy.none
        /// When what is cached is asked for again. `.whenStale` by default.
        public var revalidation = Revalidation.whenStale
        /// Whether the load goes on while the app is in the background: by a background task of the system on Apple's
        /// platforms that have one; no effect on Linux, where nothing stops a process in the background. False by default.
        public var continuesInBackground = false
        /// A Boolean value that indicates whether the request sends and stores the session's cookies. False by default.
        ///
        /// A picture loaded with cookies is shared only with requests of the same cookie store, both while it loads and
        /// in the caches. If the store is in memory, later runs of the program do not find the picture, unless the
        /// session names a `partition`.
        public var handlesCookies = false
        /// Whether any certificate is taken, for this request alone: on a connection of its own, in a load that is never
        /// shared, under keys of its own in the caches. False by default; never a thing for production.
        public var allowsInvalidCertificates = false
        /// Whether processors are applied to every frame of an animation. False by default: an animation that is to be
        /// processed gives its processed first frame and the frames as they are.
        public var processesAnimations = false
        /// Whether an animation gives its first frame alone. False by default.
        public var decodesFirstFrameOnly = false
        /// Whether all frames of an animation are decoded before the picture is delivered. False by default.
        public var preloadsAllFrames = false
        /// Whether a picture that is no animation is an error. False by default.
        public var requiresAnimation = false
        /// The most bytes that the decoded picture may take: a larger one is decoded to a smaller size. Nil by default.
        public var decodedByteLimit: Int?
        /// What a file may cost. See `ImageDecodingOptions.Limits` for the defaults.
        public var limits = ImageDecodingOptions.Limits()
        /// Whether a file that is cut short gives what could be decoded, in place of an error; it is then not stored.
        public var allowsPartial = false
        /// Whether the response carries the bytes as they were fetched. False by default; what is found in memory without
        /// them counts as a miss.
        public var includesData = false
        /// Whether the picture is delivered only once the disk has it. False by default: it is stored meanwhile.
        public var waitsForStore = false
        /// Bytes that the response may have; nil, the default, for the pipeline's limit.
        public var responseByteLimit: Int?
        /// How a view shows it; the pipeline itself does not look at it.
        public var presentation = Presentation()

        /// The defaults.
        public init() {}
    }

    /// When what is in a cache is asked for again.
    public enum Revalidation: Sendable, Hashable {
        /// Never: what is cached is taken as it is.
        case never
        /// When it is stale by the response's own words (RFC 9111 §4.2). The cached picture is delivered at once, and a
        /// second time only if it has changed.
        case whenStale
        /// When it is stale, and before it is delivered, as `must-revalidate` wants it (RFC 9111 §5.2.2.2): a picture that the
        /// server says is still right has the source `.revalidated`. If the server cannot be asked, the stale one is
        /// delivered, and says so (`ImageResponse.isStale`).
        case beforeDelivery
        /// Always, otherwise like `whenStale`.
        case always
    }

    /// How a view model shows a load.
    public struct Presentation: Sendable, Hashable {
        /// When a transition is shown.
        public enum Transition: Sendable, Hashable {
            /// Not for what was in memory.
            case whenLoaded
            /// For whatever comes.
            case always
            /// Never.
            case never
        }

        /// Whether the placeholder is shown only once the load has failed. False by default.
        public var delaysPlaceholder = false
        /// Whether the view is set by the binding; false for a caller who sets it. True by default.
        public var setsAutomatically = true
        /// When a transition is shown; `.whenLoaded` by default.
        public var transition = Transition.whenLoaded
        /// Whether the end of the load is told only once the transition has ended. False by default.
        public var waitsForTransition = false
        /// Whether a new load into the slot cancels the one before. True by default.
        public var cancelsPrevious = true

        /// The defaults.
        public init() {}
    }
}
