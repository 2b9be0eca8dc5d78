import CTernSQLite

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// XXH64 in pieces: 13 GB/s on one core, so that verifying costs less than reading. It finds damage, not forgery.
struct DiskChecksum {
    private var state = tern_xxh64_state()

    init(seed: UInt64 = 0) { unsafe tern_xxh64_begin(&state, seed) }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        unsafe tern_xxh64_update(&state, bytes.baseAddress, bytes.count)
    }

    mutating func update(_ bytes: Data) { unsafe bytes.withUnsafeBytes { unsafe update($0) } }

    var value: UInt64 {
        var copy = state
        return unsafe tern_xxh64_finish(&copy)
    }

    static func of(_ bytes: Data, seed: UInt64 = 0) -> UInt64 {
        unsafe bytes.withUnsafeBytes { unsafe tern_xxh64($0.baseAddress, $0.count, seed) }
    }

    static func of(_ bytes: UnsafeRawBufferPointer, seed: UInt64 = 0) -> UInt64 {
        unsafe tern_xxh64(bytes.baseAddress, bytes.count, seed)
    }

    /// Of what lies beside a value, chained to the checksum of the value: a row of the index is verified whole.
    static func row(value: UInt64, key: Data, metadata: Data) -> UInt64 { of(metadata, seed: of(key, seed: value)) }
}
