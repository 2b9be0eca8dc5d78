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

        init(imageKey: ImageKey, caching: ImageRequest.Caching, options: ImageRequest.Options, serial: UInt64?) {
            self.imageKey = imageKey
            self.caching = caching
            self.options = options
            self.serial = serial
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
            request.source.serial ?? (options.allowsInvalidCertificates ? ImageRequest.Source.serials.next() : nil)
        content = Content(imageKey: imageKey, caching: caching, options: options, serial: serial)
    }

    private init(_ key: ImageLoadKey, imageKey: ImageKey, caching: ImageRequest.Caching) {
        content = Content(imageKey: imageKey, caching: caching, options: key.options, serial: key.serial)
    }

    /// The same load, without reading the encoded bytes from the disk.
    var skippingStoredBytes: ImageLoadKey {
        var caching = caching
        caching.originals.remove(.read)
        return ImageLoadKey(self, imageKey: imageKey, caching: caching)
    }

    /// The load of the image before the last processor; nil without processors.
    var inputKey: ImageLoadKey? { imageKey.inputKey.map { ImageLoadKey(self, imageKey: $0, caching: caching) } }

    static func == (one: ImageLoadKey, other: ImageLoadKey) -> Bool {
        one.content === other.content
            || one.imageKey == other.imageKey && one.serial == other.serial && one.caching == other.caching
                && one.options == other.options
    }

    // These differ for nearly all loads; `==` compares the rest. The serial number keeps loads that are never shared out of
    // one bucket.
    func hash(into hasher: inout Hasher) {
        hasher.combine(imageKey)
        hasher.combine(serial)
    }

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
struct EncodedLoadKey: Sendable, Hashable {
    let source: SourceKey
    let caching: ImageRequest.Caching.Access
    let allowsNetwork: Bool
    /// The validators of the cached bytes that are revalidated. Another version makes another conditional request.
    let validators: Freshness.Validators?
    let sendsCookies: Bool
    let byteLimit: Int?
    let serial: UInt64?

    init(_ key: ImageLoadKey, revalidating cachedFreshness: Freshness?) {
        source = key.imageKey.source
        caching = key.caching.originals
        allowsNetwork = key.caching.network
        validators = cachedFreshness?.validators
        sendsCookies = key.options.handlesCookies
        byteLimit = key.options.responseByteLimit
        serial = key.serial
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(source)
        hasher.combine(serial)
    }
}

extension ImageRequest.Options {
    /// The options that change how an image is loaded. Options that are part of the image's key, or that are applied for each
    /// task, are reset so that they do not prevent sharing.
    fileprivate var relevantToLoading: ImageRequest.Options {
        var options = self
        let defaults = ImageRequest.Options()
        options.continuesInBackground = defaults.continuesInBackground
        options.requiresAnimation = defaults.requiresAnimation
        options.waitsForScrolling = defaults.waitsForScrolling
        options.processesAnimations = defaults.processesAnimations
        options.decodesFirstFrameOnly = defaults.decodesFirstFrameOnly
        options.decodedByteLimit = defaults.decodedByteLimit
        return options
    }
}
