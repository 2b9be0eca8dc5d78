#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Creates bytes that are unique to a key, version and size.
enum CrashPattern {
    static func value(for key: String, version: Int, size: Int) -> Data {
        var random = Random(state: UInt64(version) &* 2_654_435_761 &+ key.utf8.reduce(7) { $0 &* 31 &+ UInt64($1) })
        var data = Data(capacity: size + 8)
        while data.count < size {
            let word = random.next()
            unsafe withUnsafeBytes(of: word) { unsafe data.append(contentsOf: $0) }
        }
        return data.prefix(size)
    }
}

/// A pseudorandom sequence from a seed (SplitMix64).
struct Random: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }

    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}
