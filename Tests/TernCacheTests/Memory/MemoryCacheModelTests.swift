import Testing

@testable import TernCache

/// Random operations beside a dictionary: the cache returns the last inserted value, and the limits always hold.
@Suite struct MemoryCacheModelTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let seed: UInt64
        let policy: MemoryCachePolicy
        let limits: MemoryCacheLimits
        var testDescription: String { "\(policy) \(limits.cost)/\(limits.count)/\(limits.costAfterPurge) seed \(seed)" }
    }

    static let cases: [Case] = MemoryCachePolicy.allCases.flatMap { policy in
        [
            MemoryCacheLimits(cost: 500), MemoryCacheLimits(cost: 3_000, count: 300),
            MemoryCacheLimits(cost: 2_000, entryCost: 40, costAfterPurge: 1_200),
            MemoryCacheLimits(cost: .max, count: 20),
        ].flatMap { limits in (0..<4).map { Case(seed: $0, policy: policy, limits: limits) } }
    }

    @Test(arguments: cases) func theCacheReturnsTheLastValueWithinItsLimits(_ test: Case) async {
        var random = SeededRandom(seed: test.seed)
        var configuration = MemoryCacheConfiguration(limits: test.limits, policy: test.policy)
        configuration.pressure = nil
        let cache = MemoryCache<Int, Int>(configuration) { $0 % 50 }
        var model: [Int: Int] = [:]
        for step in 0..<6_000 {
            let key = Int.random(in: 0..<400, using: &random)
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<50:
                let value = Int.random(in: 0..<10_000, using: &random)
                let isStored = cache.insert(value, for: key)
                #expect(isStored == (value % 50 <= test.limits.entryCost))
                model[key] = isStored ? value : nil
                // The cache makes room before it stores a value, so the value is there.
                #expect(cache[key] == model[key])
            case 50..<90:
                let value = cache[key]
                #expect(value == nil || value == model[key])
            case 90..<96:
                let value = cache.remove(key)
                #expect(value == nil || value == model[key])
                model[key] = nil
                #expect(!cache.contains(key))
            case 96..<98:
                let target = Int.random(in: 0...test.limits.cost, using: &random)
                await cache.trim(toCost: target)
                #expect(cache.totalCost <= target)
            default:
                if step % 10 == 0 {
                    cache.removeAll()
                    model = [:]
                }
            }
            #expect(cache.totalCost <= test.limits.cost)
            #expect(cache.count <= test.limits.count)
        }
        let held = cache.keys
        #expect(held.count == cache.count && Set(held).count == held.count)
        #expect(held.reduce(0) { $0 + (model[$1] ?? 0) % 50 } == cache.totalCost)
        #expect(held.allSatisfy { cache[$0] == model[$0] })
    }
}
