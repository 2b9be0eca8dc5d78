#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A store of values by key that a cache uses as its second level, and that several processes can share.
///
/// ``DiskCache`` is one. `RedisStore`, of the package `Integrations/SharedCache`, is another: the servers of a fleet
/// share what they fetched. Attach a store with ``SecondLevelCache``.
///
/// Every method may be called from any number of tasks at once. An error or a slow answer never fails a load: the cache
/// goes on without the store. The caller bounds the time of each call, and cancels the calling task when the bound has
/// passed; a store need not react to that. A store may lose values at any time, and never returns a value after its
/// lifetime.
///
/// The caller verifies each value with a checksum and against its key. A store therefore need not find damage, but it
/// must not return more than about the number of bytes that its own inserts accept.
public protocol CacheStore: Sendable {
    /// Returns a value with its age; nil if there is none, or if its lifetime has passed.
    func entry(for key: CacheStoreKey) async throws -> CacheStoreEntry?

    /// Stores a value in place of an existing one, and ends the reservation of the key.
    ///
    /// - Parameters:
    ///   - value: The bytes. A store throws for a value that is too large for it.
    ///   - key: The key.
    ///   - lifetime: The time after which the store does not return the value any more. More than zero.
    func insert(_ value: Data, for key: CacheStoreKey, lifetime: Duration) async throws

    /// Removes a value. A missing one is not an error.
    func remove(_ key: CacheStoreKey) async throws

    /// Removes all values of a group. After the return, no look-up of any process finds one that was stored before the
    /// call.
    ///
    /// - Throws: If values of the group may be left. Unlike the other errors, this one reaches the user, because a
    ///   logout depends on the removal.
    func removeAll(inGroup group: String) async throws

    /// Removes all values of the store. Otherwise like ``removeAll(inGroup:)``.
    func removeAll() async throws

    /// Reserves the fetch of a missing value, so that processes that miss it at the same time fetch it once.
    ///
    /// By default, the reservation is granted whenever the value is missing: a store that one process uses needs no
    /// more.
    ///
    /// - Parameters:
    ///   - key: The key of the value.
    ///   - duration: The time after which the reservation ends by itself, in case its owner does not insert the value.
    func reserve(_ key: CacheStoreKey, for duration: Duration) async throws -> CacheStoreReservation

    /// Ends a reservation without a value. By default, does nothing.
    func release(_ key: CacheStoreKey) async throws
}

extension CacheStore {
    /// Returns the value, or grants the reservation.
    public func reserve(_ key: CacheStoreKey, for duration: Duration) async throws -> CacheStoreReservation {
        try await entry(for: key).map { .value($0) } ?? .granted
    }

    /// Does nothing.
    public func release(_ key: CacheStoreKey) async throws {}
}

/// Identifies a value of a ``CacheStore``.
public struct CacheStoreKey: Sendable, Hashable {
    /// The group, which can be removed as a whole: the cache and the partition of its user. At most 256 bytes of UTF-8.
    public let group: String
    /// Identifies the value in its group. At most 256 bytes of UTF-8. Tern's caches use digests, because keys are often
    /// URLs with secrets.
    public let name: String

    /// Creates a key.
    public init(group: String, name: String) {
        self.group = group
        self.name = name
    }
}

/// A value of a ``CacheStore``, with its age.
public struct CacheStoreEntry: Sendable, Hashable {
    /// The bytes as they were inserted.
    public let value: Data
    /// The time since the insert by the clock of the store, not by that of the process that inserted the value.
    public let age: Duration

    /// Creates an entry.
    public init(value: Data, age: Duration) {
        self.value = value
        self.age = age
    }
}

/// The result of a reservation.
public enum CacheStoreReservation: Sendable, Hashable {
    /// The caller fetches the value, and then calls `insert` or `release`.
    case granted
    /// The value is there meanwhile. Nothing is reserved.
    case value(CacheStoreEntry)
    /// Another process fetches the value.
    case taken
}

extension DiskCache: CacheStore {
    /// Returns the entry of a key of a second level. Otherwise like `value(for:)`.
    @concurrent
    public nonisolated func entry(for key: CacheStoreKey) async throws -> CacheStoreEntry? {
        guard let entry = try await entry(for: Self.text(of: key)) else { return nil }
        let age = max(0, configuration.now().timeIntervalSince(entry.created))
        return CacheStoreEntry(value: entry.value, age: .seconds(age))
    }

    /// Stores a value under a key of a second level, with its group as the tag. Otherwise like
    /// `insert(_:for:metadata:tags:timeToLive:)`.
    @concurrent
    public nonisolated func insert(_ value: Data, for key: CacheStoreKey, lifetime: Duration) async throws {
        try await insert(
            value, for: Self.text(of: key), tags: [Self.tag(ofGroup: key.group)], timeToLive: lifetime)
    }

    /// Removes the value of a key of a second level. Otherwise like `remove(_:)` of a text.
    @concurrent
    public nonisolated func remove(_ key: CacheStoreKey) async throws { try await remove(Self.text(of: key)) }

    /// Removes the values of a group of a second level. Otherwise like `removeAll(tagged:)`.
    @concurrent
    public nonisolated func removeAll(inGroup group: String) async throws {
        try await removeAll(tagged: Self.tag(ofGroup: group))
    }

    private static func tag(ofGroup group: String) -> String { "group \(group)" }

    /// The length before the group keeps two keys from giving the same text.
    private static func text(of key: CacheStoreKey) -> String {
        "store \(key.group.utf8.count):\(key.group) \(key.name)"
    }
}

/// A value with what a cache keeps beside it, in the form in which a second level stores it.
///
/// Anyone who can write to the store can write anything, so each part is checked before it is used. Numbers are
/// little-endian: magic "TernShr1" · XXH64 of all that follows (8) · the time of receipt in milliseconds since 1970 (8)
/// · lengths of the group, the name and the metadata (4 each) · group · name · metadata · value. The checksum finds
/// damage, not forgery.
package struct SharedValue: Sendable, Equatable {
    /// The time at which the value was received from its server, by the clock of the process that received it.
    package var received: Date
    package var metadata: Data
    package var value: Data

    private static let magic = Array("TernShr1".utf8)
    private static let headCount = 36

    /// The number of bytes around a value with this metadata.
    package static func overhead(_ key: CacheStoreKey, metadata: Data) -> Int {
        headCount + key.group.utf8.count + key.name.utf8.count + metadata.count
    }

    package init(received: Date, metadata: Data = Data(), value: Data) {
        self.received = received
        self.metadata = metadata
        self.value = value
    }

    package func encoded(for key: CacheStoreKey) -> Data {
        var body = Data(capacity: Self.overhead(key, metadata: metadata) + value.count)
        body.appendNumber(UInt64(bitPattern: received.milliseconds), bytes: 8)
        for count in [key.group.utf8.count, key.name.utf8.count, metadata.count] {
            body.appendNumber(UInt64(count), bytes: 4)
        }
        body.append(contentsOf: key.group.utf8)
        body.append(contentsOf: key.name.utf8)
        body.append(metadata)
        body.append(value)
        var bytes = Data(capacity: body.count + 16)
        bytes.append(contentsOf: Self.magic)
        bytes.appendNumber(DiskChecksum.of(body), bytes: 8)
        bytes.append(body)
        return bytes
    }

    /// Reads a value. Returns nil if anything differs from the encoding for the key.
    package init?(_ bytes: Data, for key: CacheStoreKey) {
        let bytes = bytes.startIndex == 0 ? bytes : Data(bytes)
        guard bytes.count >= Self.headCount, bytes.starts(with: Self.magic),
            bytes.number(at: 8, bytes: 8) == DiskChecksum.of(bytes[16...])
        else { return nil }
        let counts = [24, 28, 32].map { Int(bytes.number(at: $0, bytes: 4)) }
        guard counts[0] == key.group.utf8.count, counts[1] == key.name.utf8.count,
            counts.reduce(0, +) <= bytes.count - Self.headCount
        else { return nil }
        let name = Self.headCount + counts[0]
        let metadata = name + counts[1]
        let value = metadata + counts[2]
        guard bytes[Self.headCount..<name].elementsEqual(key.group.utf8),
            bytes[name..<metadata].elementsEqual(key.name.utf8)
        else { return nil }
        received = Date(milliseconds: Int64(bitPattern: bytes.number(at: 16, bytes: 8)))
        self.metadata = Data(bytes[metadata..<value])
        self.value = Data(bytes[value...])
    }

    /// Returns the value with the earlier of two times of receipt: the stored one, and that which follows from the age
    /// in the store. A clock that is ahead therefore never makes a value fresher.
    func aged(by age: Duration, now: Date) -> SharedValue {
        var aged = self
        aged.received = min(received, now.addingTimeInterval(-max(0, age / .seconds(1))))
        return aged
    }
}

extension Data {
    fileprivate mutating func appendNumber(_ number: UInt64, bytes count: Int) {
        for index in 0..<count { append(UInt8(truncatingIfNeeded: number >> (8 * index))) }
    }

    /// Returns the number at an offset, which is within the data.
    fileprivate func number(at offset: Int, bytes count: Int) -> UInt64 {
        self[offset..<offset + count].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
}
