import CTernRedis

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A value as the server has it: compressed if that saves space, with what is needed to check it.
///
/// Numbers are little-endian: magic "TS", version 1, 1 if compressed · the generations of the store and of the group
/// (16 each) · lifetime in milliseconds (8) · length (4) and CRC-32 (4) of the value · the value, or its zlib form.
struct StoredValue: Equatable {
    /// The marks that a value and its group must share. A removal changes the mark of the group, or that of the store.
    struct Generations: Equatable {
        static let count = 16
        let store: [UInt8]
        let group: [UInt8]

        /// Reads two replies; nil if one has no mark.
        init?(_ store: RedisConnection.Reply, _ group: RedisConnection.Reply) {
            guard case .bytes(let store) = store, case .bytes(let group) = group, store.count == Self.count,
                group.count == Self.count
            else { return nil }
            self.store = store
            self.group = group
        }

        static func random() -> [UInt8] {
            var generator = SystemRandomNumberGenerator()
            return (0..<count).map { _ in UInt8.random(in: 0 ... .max, using: &generator) }
        }
    }

    let value: Data
    /// The lifetime in milliseconds when the value was stored.
    let lifetime: Int64

    static let headCount = 52
    /// The length in bytes above which values are compressed.
    static let compressedFrom = 4 << 10

    // MARK: Encoding

    static func encoded(_ value: Data, lifetime: Int64, _ generations: Generations) -> [UInt8] {
        let bytes = [UInt8](value)
        let body = compressed(bytes)
        var result: [UInt8] = []
        result.reserveCapacity(headCount + (body ?? bytes).count)
        result += "TS".utf8
        result += [1, body == nil ? 0 : 1]
        result += generations.store
        result += generations.group
        result.add(UInt64(bitPattern: lifetime), bytes: 8)
        result.add(UInt64(bytes.count), bytes: 4)
        result.add(UInt64(unsafe ctern_redis_checksum(bytes, bytes.count)), bytes: 4)
        return result + (body ?? bytes)
    }

    /// Returns the compressed form; nil if it saves less than an eighth. Most images are compressed already, which a
    /// sample from the middle shows.
    private static func compressed(_ bytes: [UInt8]) -> [UInt8]? {
        guard bytes.count > compressedFrom else { return nil }
        let middle = bytes.count / 2 - compressedFrom / 2
        guard deflated(bytes[middle..<middle + compressedFrom]) != nil else { return nil }
        return deflated(bytes[...])
    }

    private static func deflated(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
        let capacity = bytes.count - bytes.count / 8
        let target = unsafe [UInt8](unsafeUninitializedCapacity: capacity) { target, count in
            count = unsafe bytes.withUnsafeBufferPointer { bytes in
                unsafe ctern_redis_deflate(bytes.baseAddress, bytes.count, target.baseAddress, capacity)
            }
        }
        return target.isEmpty ? nil : target
    }

    // MARK: Decoding

    /// Reads a value. Returns nil if anything differs from the encoding, for a value before a removal, and for one that
    /// is longer than the limit.
    init?(_ bytes: [UInt8], _ generations: Generations, limit: Int) {
        guard bytes.count >= Self.headCount, bytes.starts(with: "TS".utf8), bytes[2] == 1, bytes[3] <= 1,
            bytes[4..<20].elementsEqual(generations.store), bytes[20..<36].elementsEqual(generations.group)
        else { return nil }
        lifetime = Int64(bitPattern: bytes.number(at: 36, bytes: 8))
        let count = Int(bytes.number(at: 44, bytes: 4))
        guard lifetime > 0, count <= limit else { return nil }
        let body = bytes[Self.headCount...]
        let own: [UInt8]
        if bytes[3] == 0 {
            guard body.count == count else { return nil }
            own = Array(body)
        } else {
            // A compressed value is shorter, and zlib saves at most a factor of 1,032.
            guard body.count < count, body.count >= count / 1_040, let inflated = Self.inflated(body, count) else {
                return nil
            }
            own = inflated
        }
        guard UInt64(unsafe ctern_redis_checksum(own, own.count)) == bytes.number(at: 48, bytes: 4) else { return nil }
        value = Data(own)
    }

    private static func inflated(_ bytes: ArraySlice<UInt8>, _ count: Int) -> [UInt8]? {
        let target = unsafe [UInt8](unsafeUninitializedCapacity: count) { target, filled in
            let isWhole = unsafe bytes.withUnsafeBufferPointer { bytes in
                unsafe ctern_redis_inflate(bytes.baseAddress, bytes.count, target.baseAddress, count)
            }
            filled = isWhole == 1 ? count : 0
        }
        return target.count == count ? target : nil
    }
}

extension [UInt8] {
    fileprivate mutating func add(_ number: UInt64, bytes count: Int) {
        for index in 0..<count { append(UInt8(truncatingIfNeeded: number >> (8 * index))) }
    }

    /// Returns the number at an offset, which is within the bytes.
    fileprivate func number(at offset: Int, bytes count: Int) -> UInt64 {
        self[offset..<offset + count].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
}
