import Tern
import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The second level of a pipeline: the encoded bytes that several processes share. A failure is a miss.
final class SharedTier: Sendable {
    /// The result of a look-up.
    enum LookUp: Sendable {
        case found(EncodedImage)
        /// Nothing usable is there. With a reservation, other processes wait for the bytes that this one fetches.
        case missing(FetchReservation?)
    }

    private let configuration: ImagePipeline.Configuration
    private let uploads = SharedUploads()
    /// The second level; nil without one, and for a session whose images are not for others.
    private let level: SecondLevelCache?

    init(_ configuration: ImagePipeline.Configuration) {
        self.configuration = configuration
        // A hook can add credentials that the key does not have.
        guard let level = configuration.secondLevel, configuration.hooks.prepare == nil,
            configuration.session.tasks.configuration.allowsSharedResponses
        else {
            self.level = nil
            return
        }
        self.level = level
    }

    private static func group(_ partition: String) -> String { "images \(partition)" }

    /// Returns the key of the encoded bytes of a source. A digest, because the text can have secrets.
    static func key(_ source: SourceKey) -> CacheStoreKey {
        let digest = DigestFunction.hash(Array(source.text.utf8), .sha256)
        return CacheStoreKey(group: group(source.partition), name: digest.hexadecimal)
    }

    /// Returns a Boolean value that indicates whether the second level is used for a load: if anybody may see the
    /// image.
    func shares(_ key: EncodedLoadKey, request: ImageRequest) -> Bool {
        level != nil && !key.caching.isEmpty && key.allowsNetwork && !key.source.isPrivate && isPublic(request)
    }

    private func isPublic(_ request: ImageRequest) -> Bool {
        guard let sent = request.source.request, !request.options.handlesCookies,
            !request.options.acceptsAnyCertificate
        else { return false }
        return sent.method == .get && sent.body.isNone && sent.cookies == nil && sent.trust == nil
            && sent.unixSocketPath == nil && sent.target.user == nil && sent.target.password == nil
            && !sent.headers.contains { Headers.isSecret($0.name) }
    }

    /// Returns a Boolean value that indicates whether a load looks for its bytes in the second level.
    func reads(_ key: EncodedLoadKey, request: ImageRequest) -> Bool {
        key.caching.contains(.read) && shares(key, request: request)
    }

    // MARK: Reading

    /// Returns the shared bytes, or reserves their fetch. The trace gets the result.
    func lookUp(_ key: EncodedLoadKey, request: ImageRequest, trace: inout ImageTrace) async -> LookUp {
        guard let level else { return .missing(nil) }
        let reserves = key.caching.contains(.write)
        switch await level.lookUp(Self.key(key.source), reserves: reserves, now: configuration.now) {
        case .found(let value):
            let limit = request.options.responseByteLimit ?? configuration.responseByteLimit
            guard let freshness = ImageFreshness(shared: value), value.value.count <= limit else {
                trace.add(.secondLevel, .failed, detail: "the entry is damaged or too large")
                return .missing(nil)
            }
            trace.add(.secondLevel, freshness.isFresh(at: configuration.now()) ? .hit : .stale)
            return .found(
                EncodedImage(data: value.value, freshness: freshness, source: .original, trace: trace))
        case .missing(let isReserved):
            trace.add(.secondLevel, .miss)
            return .missing(isReserved ? FetchReservation(of: key.source, in: self) : nil)
        case .unavailable:
            trace.add(.secondLevel, .failed, detail: "the store failed, or did not answer in time")
            return .missing(nil)
        }
    }

    // MARK: Storing

    /// Stores fetched bytes in the background, which ends the reservation, and records in their trace whether it begins.
    func store(
        _ image: inout EncodedImage, for key: EncodedLoadKey, request: ImageRequest, reservation: FetchReservation?
    ) {
        guard let level, shares(key, request: request), key.caching.contains(.write) else { return }
        let (data, freshness, storeKey) = (image.data, image.freshness, Self.key(key.source))
        let lifetime = lifetime(of: freshness, level)
        if freshness.forbidsStorage {
            image.trace.add(.secondLevel, .notStored, detail: "no-store")
        } else if lifetime <= .zero {
            image.trace.add(.secondLevel, .notStored, detail: "neither fresh nor with a validator")
        } else if !level.accepts(data.count, metadata: freshness.encoded, for: storeKey) {
            image.trace.add(.secondLevel, .notStored, detail: "too large")
        } else {
            let serialize = configuration.hooks.serialize
            let isStarted = uploads.start(data.count) {
                var stored: Data? = data
                if let serialize { stored = await serialize(data, request) }
                guard let stored else { return await level.release(storeKey) }
                let value = SharedValue(
                    received: Date(timeIntervalSince1970: freshness.received), metadata: freshness.encoded,
                    value: stored)
                await level.insert(value, for: storeKey, lifetime: lifetime)
            }
            if isStarted {
                reservation?.handOver()
                image.trace.add(.secondLevel, .stored)
            } else {
                image.trace.add(.secondLevel, .notStored, detail: "too many bytes wait for the store")
            }
        }
    }

    /// Returns the time for which bytes are of use: with a validator also after they are stale.
    private func lifetime(of freshness: ImageFreshness, _ level: SecondLevelCache) -> Duration {
        if !freshness.validators.isEmpty { return level.lifetimeLimit }
        let rest = freshness.lifetime - (configuration.now().timeIntervalSince1970 - freshness.received)
        return rest < level.lifetimeLimit / .seconds(1) ? .seconds(max(0, rest)) : level.lifetimeLimit
    }

    /// Ends the reservation of bytes that were not fetched, in the background.
    fileprivate func release(_ source: SourceKey) {
        guard let level else { return }
        let key = Self.key(source)
        _ = uploads.start(0) { await level.release(key) }
    }

    /// Returns once the present uploads have ended.
    func finishUploads() async { await uploads.finish() }

    // MARK: Removing

    /// Removes bytes that cannot be decoded. If they stay, the new ones replace them.
    func discard(_ source: SourceKey, for request: ImageRequest) async {
        if let level, isPublic(request) { await level.remove(Self.key(source)) }
    }

    func remove(_ source: SourceKey) async throws(ImageError) {
        guard let level else { return }
        await uploads.finish()
        guard await level.remove(Self.key(source)) else {
            throw ImageError(.source, "the second level could not remove the image")
        }
    }

    func removeAll(in partition: CachePartition) async throws(ImageError) {
        guard let level else { return }
        await uploads.finish()
        if let reason = await level.removeAll(inGroup: Self.group(partition.name)) { throw ImageError(.source, reason) }
    }
}

/// A fetch for whose bytes other processes wait, until they are stored or this object goes.
final class FetchReservation: Sendable {
    private let source: SourceKey
    private let tier: SharedTier
    private let isHandedOver = Lock(false)

    init(of source: SourceKey, in tier: SharedTier) {
        self.source = source
        self.tier = tier
    }

    deinit { if !isHandedOver.withLock({ $0 }) { tier.release(source) } }

    /// Leaves the end of the reservation to the storing of the bytes.
    func handOver() { isHandedOver.withLock { $0 = true } }
}

extension ImageFreshness {
    /// Reads the freshness of a shared value; nil for one that no process wrote.
    ///
    /// Another process wrote the time of receipt by its own clock. The value's time is the earlier one of that and the
    /// age in the store, so that a clock that is ahead makes nothing fresher.
    fileprivate init?(shared value: SharedValue) {
        self.init(value.metadata)
        guard received.isFinite, lifetime.isFinite, lifetime >= 0 else { return nil }
        // They become fields of a request.
        for text in [entityTag, lastModified] {
            if let text, !text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) { return nil }
        }
        received = min(received, value.received.timeIntervalSince1970)
    }
}
