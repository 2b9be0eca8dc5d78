/// The identity of an image load: loads with equal keys are one. It holds the image and everything that decides how the
/// image is loaded.
///
/// One reference: the key is a dictionary key and is copied with every load.
struct ImageLoadKey: Sendable, Hashable {
    private final class Content: Sendable {
        let imageKey: ImageKey
        let caching: ImageRequest.Caching
        let options: ImageRequest.Options
        let serial: UInt64?
        /// The hash value, computed once: each load looks into its table several times.
        let hash: Int

        init(imageKey: ImageKey, caching: ImageRequest.Caching, options: ImageRequest.Options, serial: UInt64?) {
            self.imageKey = imageKey
            self.caching = caching
            self.options = options
            self.serial = serial
            // These differ for nearly all loads; `==` compares the rest. The serial number keeps loads that are never
            // shared out of one bucket.
            var hasher = Hasher()
            hasher.combine(imageKey)
            hasher.combine(serial)
            hash = hasher.finalize()
        }
    }

    private let content: Content

    var imageKey: ImageKey { content.imageKey }
    var caching: ImageRequest.Caching { content.caching }
    var options: ImageRequest.Options { content.options }
    /// A unique number for a source that must not be shared; nil for most sources.
    var serial: UInt64? { content.serial }

    init(_ imageKey: ImageKey, _ request: ImageRequest) {
        var caching = request.caching
        if imageKey.source.isPrivate {
            caching.processed = []
            caching.originals = []
        }
        let options = request.options.relevantToLoading
        let serial =
            request.source.serial ?? (options.acceptsAnyCertificate ? ImageRequest.Source.serials.next() : nil)
        content = Content(imageKey: imageKey, caching: caching, options: options, serial: serial)
    }

    private init(_ key: ImageLoadKey, imageKey: ImageKey) {
        content = Content(imageKey: imageKey, caching: key.caching, options: key.options, serial: key.serial)
    }

    /// The load of the image before the last processor; nil without processors.
    var inputKey: ImageLoadKey? { imageKey.inputKey.map { ImageLoadKey(self, imageKey: $0) } }

    static func == (one: ImageLoadKey, other: ImageLoadKey) -> Bool {
        one.content === other.content
            || one.imageKey == other.imageKey && one.serial == other.serial && one.caching == other.caching
                && one.options == other.options
    }

    func hash(into hasher: inout Hasher) { hasher.combine(content.hash) }

    /// Returns a Boolean value that indicates whether the processed image is stored on the disk.
    func storesProcessed(_ content: ImagePipeline.DiskContent) -> Bool {
        let isChanged = !imageKey.processors.isEmpty || imageKey.decoding.targetSize != nil
        return switch content {
        case .original: false
        case .automatic: isChanged
        case .processed, .all: true
        }
    }
}

/// The identity of a load of encoded bytes: loads with equal keys are one fetch.
///
/// One reference, like `ImageLoadKey`.
struct EncodedLoadKey: Sendable, Hashable {
    private final class Content: Sendable {
        let source: SourceKey
        let caching: ImageRequest.Caching.Access
        let allowsNetwork: Bool
        let validators: ImageFreshness.Validators?
        let sendsCookies: Bool
        let byteLimit: Int?
        let serial: UInt64?
        /// The options that a source of decoded images gets; nil for sources of bytes.
        let decoding: ImageDecodingOptions?

        init(_ key: ImageLoadKey, cachedFreshness: ImageFreshness?, caching: ImageRequest.Caching.Access) {
            source = key.imageKey.source
            self.caching = caching
            allowsNetwork = key.caching.network
            validators = cachedFreshness?.validators
            sendsCookies = key.options.handlesCookies
            byteLimit = key.options.responseByteLimit
            serial = key.serial
            decoding = key.imageKey.isDecodedBySource ? key.imageKey.decoding : nil
        }
    }

    private let content: Content

    var source: SourceKey { content.source }
    /// The allowed operations on the encoded bytes on the disk.
    var caching: ImageRequest.Caching.Access { content.caching }
    var allowsNetwork: Bool { content.allowsNetwork }
    /// The validators of the cached bytes that are revalidated. Another version makes another conditional request.
    var validators: ImageFreshness.Validators? { content.validators }

    /// - Parameters:
    ///   - cachedFreshness: The freshness of the cached bytes to revalidate; nil to load the bytes.
    ///   - skipsStoredBytes: True to fetch the bytes although the disk has them.
    init(_ key: ImageLoadKey, revalidating cachedFreshness: ImageFreshness?, skipsStoredBytes: Bool = false) {
        let caching = key.caching.originals
        content = Content(
            key, cachedFreshness: cachedFreshness, caching: skipsStoredBytes ? caching.subtracting(.read) : caching)
    }

    static func == (one: EncodedLoadKey, other: EncodedLoadKey) -> Bool {
        let (one, other) = (one.content, other.content)
        return one === other
            || one.source == other.source && one.serial == other.serial && one.caching == other.caching
                && one.allowsNetwork == other.allowsNetwork && one.validators == other.validators
                && one.sendsCookies == other.sendsCookies && one.byteLimit == other.byteLimit
                && one.decoding == other.decoding
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(content.source)
        hasher.combine(content.serial)
    }
}

extension ImageRequest.Options {
    /// The options that change how an image is loaded. Options that are part of the image's key, or that are applied
    /// for each task, are reset so that they do not prevent sharing.
    fileprivate var relevantToLoading: ImageRequest.Options {
        var options = self
        let defaults = ImageRequest.Options()
        options.continuesInBackground = defaults.continuesInBackground
        options.requiresAnimation = defaults.requiresAnimation
        options.waitsForScrolling = defaults.waitsForScrolling
        options.processesAnimations = defaults.processesAnimations
        options.decodesFirstFrameOnly = defaults.decodesFirstFrameOnly
        options.decodedByteLimit = defaults.decodedByteLimit
        options.color = defaults.color
        options.resizesInLinearLight = defaults.resizesInLinearLight
        options.gainMap = defaults.gainMap
        return options
    }
}
