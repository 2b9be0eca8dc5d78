/// What loads must have in common to be one: the picture, and everything that decides how it is come by.
struct ImageFlight: Sendable, Hashable {
    let key: ImageKey
    var caching: ImageRequest.Caching
    var options: ImageRequest.Options
    /// Of a source that must not be shared; nil for most.
    let serial: UInt64?

    init(_ key: ImageKey, _ request: ImageRequest) {
        self.key = key
        caching = request.caching
        if key.source.isPrivate {
            caching.disk = []
            caching.originals = []
        }
        options = request.options.deciding
        serial = request.source.serial ?? (options.allowsInvalidCertificates ? ImageRequest.Source.serials.next() : nil)
    }

    private init(_ key: ImageKey, like flight: ImageFlight) {
        self.key = key
        caching = flight.caching
        options = flight.options
        serial = flight.serial
    }

    /// The load of the picture before the last processor.
    var parent: ImageFlight? { key.parent.map { ImageFlight($0, like: self) } }

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
