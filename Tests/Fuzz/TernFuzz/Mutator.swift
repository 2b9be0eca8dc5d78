/// Generates the same numbers in every run with the same seed (SplitMix64).
struct Numbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
        return z ^ z >> 31
    }

    mutating func below(_ limit: Int) -> Int { limit <= 1 ? 0 : Int(next() % UInt64(limit)) }
}

/// Makes new inputs from seeds.
struct Mutator {
    private(set) var seeds: [[UInt8]]
    var numbers: Numbers
    private let tokens: [[UInt8]]
    private let original: Int
    private static let largest = 8192
    private static let edges: [UInt64] = [
        0, 1, 2, 7, 8, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF,
    ]

    init(seeds: [[UInt8]], tokens: [String], numbers: Numbers) {
        self.seeds = seeds
        self.tokens = tokens.map { Array($0.utf8) }
        self.numbers = numbers
        original = seeds.count
    }

    /// Keeps an input with a new outcome as a seed, and removes the oldest of those if there are too many.
    mutating func keep(_ bytes: [UInt8]) {
        if seeds.count >= original + 2_000 { seeds.remove(at: original) }
        seeds.append(bytes)
    }

    mutating func input() -> [UInt8] {
        var bytes = seeds[numbers.below(seeds.count)]
        // A few changes reach the deepest code; many changes are useful now and then.
        for _ in 0...numbers.below(1 << numbers.below(5)) { change(&bytes) }
        if bytes.count > Self.largest { bytes.removeLast(bytes.count - Self.largest) }
        return bytes
    }

    private mutating func change(_ bytes: inout [UInt8]) {
        guard bytes.count > 1 else { return bytes.append(UInt8(numbers.below(256))) }
        if !tokens.isEmpty, numbers.below(3) == 0 {
            return bytes.insert(contentsOf: tokens[numbers.below(tokens.count)], at: numbers.below(bytes.count + 1))
        }
        // Parsers decide mostly in headers: half of the changes are made there.
        let at = numbers.below(numbers.below(2) == 0 ? min(bytes.count, 96) : bytes.count)
        let length = 1 + numbers.below(min(bytes.count - at, 1 << numbers.below(8)))
        switch numbers.below(10) {
        case 0, 1: bytes[at] ^= 1 << UInt8(numbers.below(8))
        case 2: bytes[at] = UInt8(numbers.below(256))
        case 3, 4:
            let value = Self.edges[numbers.below(Self.edges.count)] &+ UInt64(numbers.below(2))
            let size = 1 << numbers.below(3)
            let isBig = numbers.below(2) == 0
            for i in 0..<size where at + i < bytes.count {
                bytes[at + i] = UInt8(truncatingIfNeeded: value >> UInt64(8 * (isBig ? size - 1 - i : i)))
            }
        case 5: bytes.removeSubrange(at..<at + length)
        case 6: bytes.insert(contentsOf: bytes[at..<at + length], at: numbers.below(bytes.count))
        case 7:
            let other = seeds[numbers.below(seeds.count)]
            let from = numbers.below(other.count)
            let end = min(other.count, from + length)
            bytes.replaceSubrange(at..<min(bytes.count, at + numbers.below(length + 1)), with: other[from..<end])
        case 8: bytes.insert(contentsOf: (0..<length).map { _ in UInt8(numbers.below(256)) }, at: at)
        default: if numbers.below(4) == 0 { bytes.removeLast(bytes.count - at) }
        }
    }
}
