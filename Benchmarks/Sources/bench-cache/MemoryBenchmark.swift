import TernCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The memory part: what a look-up and an insert cost, and which share of look-ups each policy serves.
enum MemoryBenchmark {
    static func run() async {
        print("## Memory\n")
        await MemorySpeed.run()
        MemoryRatio.run()
    }
}

extension MemoryCacheConfiguration {
    /// A limit of entries. Memory pressure on the machine of the benchmark evicts none.
    static func count(_ limit: Int, _ policy: MemoryCachePolicy) -> MemoryCacheConfiguration {
        var configuration = MemoryCacheConfiguration(
            limits: MemoryCacheLimits(cost: .max, count: limit), policy: policy)
        configuration.pressure = nil
        return configuration
    }
}

/// A number with so many digits after the point.
func decimal(_ value: Double, _ digits: Int = 1) -> String {
    var scale = 1.0
    for _ in 0..<digits { scale *= 10 }
    let scaled = Int((value.magnitude * scale).rounded())
    let rest = String(scaled % Int(scale))
    let fraction = digits == 0 ? "" : "." + String(repeating: "0", count: digits - rest.count) + rest
    return (value < 0 && scaled > 0 ? "−" : "") + "\(scaled / Int(scale))" + fraction
}

/// A figure beside its target, and whether it is met, as in RESULTS.md.
func judged(_ value: Double, _ digits: Int = 1, atMost limit: Double, unit: String = "") -> String {
    decimal(value, digits) + unit + " (≤ " + decimal(limit, 0) + ") " + (value <= limit ? "✓" : "✗ **miss**")
}

/// The same for a figure that is to be large.
func judged(_ value: Double, _ digits: Int = 1, atLeast limit: Double, unit: String = "") -> String {
    decimal(value, digits) + unit + " (≥ " + decimal(limit, 1) + ") " + (value >= limit ? "✓" : "✗ **miss**")
}

extension [Double] {
    /// The middle one; 0 of none.
    var median: Double { isEmpty ? 0 : sorted()[count / 2] }
}

/// A small generator with a seed, so that each run has the same traces (xorshift64*).
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 | 1 }

    mutating func next() -> UInt64 {
        state ^= state >> 12
        state ^= state << 25
        state ^= state >> 27
        return state &* 0x2545_F491_4F6C_DD1D
    }

    mutating func unit() -> Double { Double(next() >> 11) / Double(1 << 53) }
}

/// `pow`, here, where the system's library is imported.
func power(_ base: Double, _ exponent: Double) -> Double { pow(base, exponent) }
