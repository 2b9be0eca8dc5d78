public import TernCache

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A store on a Redis or Valkey server, with which several processes share what they fetched.
///
/// ```swift
/// var server = RedisStore.Configuration(.host("10.0.0.7"))
/// server.password = password
/// let store = RedisStore(server)
///
/// var configuration = ImagePipeline.Configuration()
/// configuration.secondLevel = SecondLevelCache(store)
/// ```
/// Creating a store makes no connection; the first operations do. Their calls block on threads of the store, at most
/// `Configuration.connectionLimit`. An operation fails within the limits of the configuration. After some failures in a
/// row, the store sends nothing for a while, so that a server that is off costs nothing.
///
/// Values expire on the server. Values of more than 4 KiB are compressed if that saves an eighth. Each reply is
/// checked: its length before it is used, and a checksum. A removal of a group changes a mark that each value of the
/// group must have, and takes one command; the values take memory on the server until they expire.
///
/// The server must be one that all its clients may trust: who can write to it can put values there. It runs as a single
/// server, with replicas at most; a cluster that spreads keys is not supported. TLS needs a local proxy such as
/// stunnel.
public final class RedisStore: CacheStore {
    /// The configuration that the store was created with.
    public let configuration: Configuration
    private let workers: RedisWorkers

    /// The longest group and name in bytes.
    private static let keyLimit = 256
    /// The time for which the mark of a group is kept after the last insert, and the longest lifetime of a value.
    private static let markLifetime = Int64(30 * 86_400 * 1_000)

    /// Creates a store. Nothing is sent before the first operation.
    public init(_ configuration: Configuration) {
        self.configuration = configuration
        workers = RedisWorkers(configuration)
    }

    deinit { workers.stop() }

    /// A Boolean value that indicates whether operations fail at once at present, because the last ones failed.
    public var isPaused: Bool { workers.isPaused }

    // MARK: Keys

    private struct Keys: Sendable {
        let storeMark: String
        let groupMark: String
        let value: String
        let lease: String
    }

    private var storeMark: String { "\(configuration.prefix):1:mark" }

    private func groupMark(_ group: String) -> String { "\(configuration.prefix):1:mark:\(group)" }

    private func keys(_ key: CacheStoreKey) throws(RedisStoreError) -> Keys {
        guard key.group.utf8.count <= Self.keyLimit, key.name.utf8.count <= Self.keyLimit else {
            throw RedisStoreError(.tooLarge, "the group or the name of the key exceeds \(Self.keyLimit) bytes")
        }
        // The length keeps two keys from giving the same text.
        let text = "\(key.group.utf8.count):\(key.group):\(key.name)"
        return Keys(
            storeMark: storeMark, groupMark: groupMark(key.group), value: "\(configuration.prefix):1:value:\(text)",
            lease: "\(configuration.prefix):1:lease:\(text)")
    }

    // MARK: Operations

    /// Returns a value with its age by the clock of the server. One round trip.
    public func entry(for key: CacheStoreKey) async throws -> CacheStoreEntry? {
        let (keys, limit) = (try keys(key), configuration.valueByteLimit)
        return try await workers.run { connection throws(RedisStoreError) in
            Self.entry(try connection.run(Self.look(keys)), limit: limit)
        }
    }

    private static func look(_ keys: Keys) -> [RedisCommand] {
        [["GET", keys.storeMark], ["GET", keys.groupMark], ["GET", keys.value], ["PTTL", keys.value]].map {
            RedisCommand($0)
        }
    }

    /// Returns the entry of the replies to `look`; nil for anything but a whole value that is valid now.
    private static func entry(_ replies: [RedisConnection.Reply], limit: Int) -> CacheStoreEntry? {
        guard replies.count == 4, let generations = StoredValue.Generations(replies[0], replies[1]),
            case .bytes(let bytes) = replies[2], case .integer(let rest) = replies[3],
            let stored = StoredValue(bytes, generations, limit: limit), rest >= 0, rest <= stored.lifetime
        else { return nil }
        return CacheStoreEntry(value: stored.value, age: .milliseconds(stored.lifetime - rest))
    }

    /// Stores a value, and ends the reservation. Two round trips.
    ///
    /// - Throws: `RedisStoreError`, of kind `tooLarge` for a value longer than `Configuration.valueByteLimit`.
    public func insert(_ value: Data, for key: CacheStoreKey, lifetime: Duration) async throws {
        guard value.count <= configuration.valueByteLimit else {
            throw RedisStoreError(.tooLarge, "\(value.count) bytes exceed the limit of \(configuration.valueByteLimit)")
        }
        let keys = try keys(key)
        let lifetime = min(Int64(lifetime.milliseconds), Self.markLifetime)
        try await workers.run { connection throws(RedisStoreError) in
            let marks = [keys.storeMark, keys.groupMark]
            let replies = try connection.run(
                marks.map { Self.setMark($0, ifMissing: true) }
                    + marks.map { RedisCommand(["PEXPIRE", $0, "\(Self.markLifetime)"]) }
                    + marks.map { RedisCommand(["GET", $0]) })
            guard let generations = StoredValue.Generations(replies[4], replies[5]) else {
                throw RedisStoreError(.malformedReply, "the mark of the group is damaged")
            }
            var set = RedisCommand(["SET", keys.value])
            set.add(StoredValue.encoded(value, lifetime: lifetime, generations))
            for argument in ["PX", "\(lifetime)"] { set.add(argument.utf8) }
            _ = try connection.run([set, RedisCommand(["DEL", keys.lease])])
        }
    }

    private static func setMark(_ key: String, ifMissing: Bool) -> RedisCommand {
        var command = RedisCommand(["SET", key])
        command.add(StoredValue.Generations.random())
        for argument in ["PX", "\(markLifetime)"] + (ifMissing ? ["NX"] : []) { command.add(argument.utf8) }
        return command
    }

    /// Removes a value. One round trip.
    public func remove(_ key: CacheStoreKey) async throws {
        let keys = try keys(key)
        try await workers.run { connection throws(RedisStoreError) in
            _ = try connection.run([RedisCommand(["DEL", keys.value])])
        }
    }

    /// Removes all values of a group, in one command, whatever their number.
    public func removeAll(inGroup group: String) async throws { try await change(groupMark(group)) }

    /// Removes all values of the prefix, in one command, whatever their number.
    public func removeAll() async throws { try await change(storeMark) }

    private func change(_ mark: String) async throws {
        try await workers.run { connection throws(RedisStoreError) in
            _ = try connection.run([Self.setMark(mark, ifMissing: false)])
        }
    }

    /// Reserves a fetch among all processes. One round trip.
    public func reserve(_ key: CacheStoreKey, for duration: Duration) async throws -> CacheStoreReservation {
        let (keys, limit) = (try keys(key), configuration.valueByteLimit)
        return try await workers.run { connection throws(RedisStoreError) in
            // The value is read after the reservation: if its owner has just ended it, the value is there.
            let lease = RedisCommand(["SET", keys.lease, "1", "NX", "PX", "\(duration.milliseconds)"])
            let replies = try connection.run([lease] + Self.look(keys))
            let isGranted = replies[0] == .status
            guard let entry = Self.entry(Array(replies.dropFirst()), limit: limit) else {
                return isGranted ? .granted : .taken
            }
            if isGranted { _ = try connection.run([RedisCommand(["DEL", keys.lease])]) }
            return .value(entry)
        }
    }

    /// Ends a reservation. One round trip.
    public func release(_ key: CacheStoreKey) async throws {
        let keys = try keys(key)
        try await workers.run { connection throws(RedisStoreError) in
            _ = try connection.run([RedisCommand(["DEL", keys.lease])])
        }
    }
}

extension RedisStore: CustomStringConvertible, CustomReflectable {
    /// The place, the database and the prefix. Without the password.
    public var description: String { "RedisStore(\(configuration))" }

    /// The configuration, without the password.
    public var customMirror: Mirror { Mirror(self, children: ["configuration": configuration.description]) }
}
