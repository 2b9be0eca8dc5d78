import TernTesting
import Testing

@testable import TernCache

@Suite(.timeLimit(.minutes(1))) struct MemoryCacheThreadTests {
    @Test(arguments: MemoryCachePolicy.allCases) func manyThreadsNeverExceedTheLimitsAndTheSumsAddUp(
        policy: MemoryCachePolicy
    ) async {
        let limits = MemoryCacheLimits(cost: 4_000, count: 400, entryCost: 90)
        var configuration = MemoryCacheConfiguration(limits: limits, policy: policy)
        configuration.pressure = nil
        configuration.clock = ManualClock()
        let cache = MemoryCache<Int, Token>(configuration, weakReferences: .objects) { $0.number % 100 }
        await withTaskGroup(of: Bool.self) { group in
            for seed in 0..<8 {
                group.addTask {
                    var random = SeededRandom(seed: UInt64(seed))
                    var isRight = true
                    var held: [Token] = []
                    for step in 0..<4_000 {
                        let key = Int.random(in: 0..<800, using: &random)
                        switch Int.random(in: 0..<20, using: &random) {
                        case 0..<10:
                            if let token = cache[key] { isRight = isRight && token.number / 100 == key }
                        case 10..<18:
                            let token = Token(key * 100 + Int.random(in: 0..<100, using: &random))
                            cache.insert(token, for: key, timeToLive: step % 3 == 0 ? .seconds(9) : nil)
                            if step % 50 == 0 { held.append(token) }
                        case 18:
                            cache.remove(key)
                        default:
                            if step % 100 == 0 { await cache.trim(toCost: 2_000) }
                            if step % 900 == 0 { cache.removeAll() }
                        }
                        isRight = isRight && cache.totalCost <= limits.cost && cache.count <= limits.count
                    }
                    return isRight
                }
            }
            for await isRight in group { #expect(isRight) }
        }
        let shards = (0...cache.store.shardMask).map { number in
            cache.store.withShard(number) { shard in
                (shard.cost, shard.count, shard.entries.filter { $0.key != nil }.reduce(0) { $0 + $1.cost })
            }
        }
        #expect(shards.reduce(0) { $0 + $1.0 } == cache.totalCost)
        #expect(shards.reduce(0) { $0 + $1.1 } == cache.count)
        #expect(shards.allSatisfy { $0.0 == $0.2 })
    }

    @Test func twoThreadsAtALimitOfOneEntryBothMakeProgress() async {
        let cache = MemoryCache<Int, Int>(.quiet(cost: 10)) { _ in 10 }
        await withTaskGroup(of: Int.self) { group in
            for thread in 0..<4 {
                group.addTask {
                    (0..<5_000).count { cache.insert($0, for: $0 * 4 + thread) && cache.totalCost <= 10 }
                }
            }
            for await stored in group { #expect(stored == 5_000) }
        }
        #expect(cache.count == 1 && cache.totalCost == 10)
    }
}
