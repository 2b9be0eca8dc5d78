/// What loads must have in common to be one: the picture, and everything that decides how it is come by.
///
/// One reference: a flight is a key of tables, and is copied about with every load.
struct ImageFlight: Sendable, Hashable {
    private final class Content: Sendable {
        let key: ImageKey
        let caching: ImageRequest.Caching
        let options: ImageRequest.Options
        let serial: UInt64?

        init(
            _ key: ImageKey, _ caching: ImageRequest.Caching, _ options: ImageRequest.Options, _ serial: UInt64?
        ) {
            self.key = key
            self.caching = caching
            self.options = options
            self.serial = serial
        }
    }

    private let content: Content

    var key: ImageKey { content.key }
    var caching: ImageRequest.Caching { content.caching }
    var options: ImageRequest.Options { content.options }
    /// Of a source that must not be shared; nil for most.
    var serial: UInt64? { content.serial }

    init(_ key: ImageKey, _ request: ImageRequest) {
        var caching = request.caching
        if key.source.isPrivate {
            caching.disk = []
            caching.originals = []
        }
        let options = request.options.deciding
        let serial =
            request.source.serial ?? (options.allowsInvalidCertificates ? ImageRequest.Source.serials.next() : nil)
        content = Content(key, caching, options, serial)
    }

    private init(_ content: Content) { self.content = content }

    /// The same without a look at the bytes on the disk.
    var passingOriginals: ImageFlight {
        var caching = caching
        caching.originals.remove(.read)
        return ImageFlight(Content(key, caching, options, serial))
    }

    /// The load of the picture before the last processor.
    var parent: ImageFlight? { key.parent.map { ImageFlight(Content($0, caching, options, serial)) } }

    static func == (one: ImageFlight, other: ImageFlight) -> Bool {
        one.content === other.content
            || one.key == other.key && one.serial == other.serial && one.caching == other.caching
                && one.options == other.options
    }

    // These tell nearly all apart; the rest is compared. Without the number, what is never shared would be looked through.
    func hash(into hasher: inout Hasher) {
        hasher.combine(key)
        hasher.combine(serial)
    }
}

/// What fetches must have in common to be one.
struct OriginalFlight: Sendable, Hashable {
    let key: SourceKey
    let caching: ImageRequest.Caching.Access
    let network: Bool
    /// What the bytes that are there are known by, to ask only for others: who has another version asks another question.
    let known: Freshness.Validators?
    let sendsCookies: Bool
    let limit: Int?
    let serial: UInt64?

    init(_ flight: ImageFlight, revalidating known: Freshness?) {
        key = flight.key.source
        caching = flight.caching.originals
        network = flight.caching.network
        self.known = known?.validators
        sendsCookies = flight.options.handlesCookies
        limit = flight.options.responseByteLimit
        serial = flight.serial
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(key)
        hasher.combine(serial)
    }
}
