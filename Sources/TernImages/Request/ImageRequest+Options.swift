extension ImageRequest {
    /// The options that few requests change. `Documentation/Reference/ImageOptions.md` lists the corresponding options
    /// of SDWebImage.
    public struct Options: Sendable, Hashable {
        /// A Boolean value that indicates whether the pipeline forgets a remembered failure and tries the load again.
        /// False by default: a failure that would only repeat itself, such as a 404, is returned from memory for 5
        /// minutes (`ImagePipeline.Configuration.failureLifetime`; zero remembers none).
        public var retriesFailed = false
        /// A Boolean value that indicates whether the fetch waits until scrolling has settled
        /// (`ImagePipeline.setScrolling`). It does not wait if another load of the same bytes does not. False by
        /// default.
        public var waitsForScrolling = false
        /// The policy that decides which previews are decoded while the bytes arrive; `.none` by default.
        /// `ImageTask.previews` delivers them.
        ///
        /// Only bytes from the network give previews. There are none for a load that joins a fetch that began without
        /// them, for a hook that changes the bytes, and for a registered decoder. On Apple's systems, ImageIO makes
        /// them.
        public var progressive = ProgressivePolicy.none
        /// The condition for asking the server about a cached image again; `.whenStale` by default.
        public var revalidation = Revalidation.whenStale
        /// A Boolean value that indicates whether the load continues while the app is in the background. False by
        /// default.
        ///
        /// On Apple's platforms that suspend apps, an expiring activity of the system keeps the app running, until the
        /// last such load has ended or the system takes the time back. There is no effect on Linux, where nothing
        /// stops a process in the background.
        public var continuesInBackground = false
        /// A Boolean value that indicates whether the request sends and stores the session's cookies. False by default.
        ///
        /// An image loaded with cookies is shared only with requests of the same cookie store, both while it loads and
        /// in the caches. If the store is in memory, later runs of the program do not find the image, unless the
        /// session names a `partition`.
        public var handlesCookies = false
        #if os(Linux)
        /// A Boolean value that indicates whether the request accepts any certificate. False by default; never enable
        /// it in production.
        ///
        /// The request uses connections that only such requests share, shares no load, and has its own keys in the
        /// caches. Not available on Apple's systems, where connections of one process share their trust: give the
        /// pipeline a session whose `Session.Configuration.trust` accepts the host.
        public var allowsInvalidCertificates: Bool {
            get { acceptsAnyCertificate }
            set { acceptsAnyCertificate = newValue }
        }
        #else
        /// A Boolean value that indicates whether the request accepts any certificate. Not available on Apple's systems,
        /// where a connection can resume a TLS session of the process without a look at the certificate, whatever the
        /// trust of its request is.
        @available(
            *, unavailable,
            message: "use a pipeline with a session of its own whose `configuration.trust.hosts` accepts the host"
        )
        public var allowsInvalidCertificates: Bool {
            get { acceptsAnyCertificate }
            set { acceptsAnyCertificate = newValue }
        }
        #endif
        /// Whether the request accepts any certificate. Always false on Apple's systems.
        var acceptsAnyCertificate = false
        /// A Boolean value that indicates whether processors are applied to every frame of an animation. False by
        /// default: the response then has the processed first frame, and the unprocessed frames.
        public var processesAnimations = false
        /// A Boolean value that indicates whether only the first frame of an animation is decoded. False by default.
        public var decodesFirstFrameOnly = false
        /// A Boolean value that indicates whether all frames of an animation are decoded before the image is delivered.
        /// False by default.
        ///
        /// Frames that take more memory together than `limits.memory`, at four or eight bytes a pixel, are decoded on demand, as
        /// without this option.
        public var preloadsAllFrames = false
        /// A Boolean value that indicates whether an image that is not an animation fails the load. False by default.
        public var requiresAnimation = false
        /// The maximum size of the decoded image in bytes; a larger image is decoded to a smaller size. Nil by default.
        public var decodedByteLimit: Int?
        /// The color space and the components of the image, sRGB with 8 bits a component by default. They are part of the
        /// image's identity: the caches keep each as an image of its own. Half floats are not stored on the disk.
        public var color = ImageDecodingOptions.Color.sRGB
        /// A Boolean value that indicates whether the target size is reached by averaging the light of pixels instead of
        /// their levels (`ImageDecodingOptions.resizesInLinearLight`). False by default.
        public var resizesInLinearLight = false
        /// The treatment of a gain map, `.ignored` by default.
        public var gainMap = ImageDecodingOptions.GainMap.ignored
        /// The limits on the cost of a file. `ImageDecodingOptions.Limits` states the defaults.
        public var limits = ImageDecodingOptions.Limits()
        /// A Boolean value that indicates whether a truncated file gives its decodable part instead of an error. The
        /// result is not stored. False by default.
        public var allowsPartial = false
        /// A Boolean value that indicates whether the response carries the encoded bytes. An image in memory without
        /// its bytes counts as a miss. False by default.
        public var includesData = false
        /// A Boolean value that indicates whether the image is delivered only after the disk cache has stored it. False
        /// by default: the image is stored at the same time.
        public var waitsForStore = false
        /// The maximum size of the response in bytes; nil, the default, for the limit of the pipeline.
        public var responseByteLimit: Int?

        /// Creates the default options.
        public init() {}
    }

    /// The condition for asking the server about a cached image again.
    public enum Revalidation: Sendable, Hashable {
        /// Never asks again.
        case never
        /// Asks again if the cached response is stale (RFC 9111 §4.2). The cached image is delivered at once, and a
        /// second image only if it has changed.
        case whenStale
        /// Asks again if the cached response is stale, before the image is delivered.
        ///
        /// An image that the server confirms has the source `.revalidated`. If the server cannot be reached or sends no
        /// image, the stale image is delivered and `ImageResponse.isStale` is true. This is weaker than
        /// `must-revalidate`, which forbids the stale response (RFC 9111 §5.2.2.2).
        case beforeDelivery
        /// Asks again in every case, and otherwise works like `whenStale`.
        case always
    }
}
