import TernConcurrency
import Testing

@testable import TernCache

@Suite(.timeLimit(.minutes(1))) struct MemoryCacheWeakReferenceTests {
    @Test func anEvictedValueIsFoundWhileItIsHeld() async {
        let cache = MemoryCache<Int, Token>(.quiet(), weakReferences: .objects) { _ in 1 }
        var token: Token? = Token(1)
        cache[1] = token
        cache[2] = Token(2)
        await cache.trim(toCost: 0)
        #expect(cache.count == 0 && !cache.contains(1))
        #expect(cache[1] === token)
        #expect(cache[2] == nil)
        // The value is stored again.
        #expect(cache.count == 1 && cache.totalCost == 1 && cache.contains(1))
        #expect(cache.statistics.recovered == 1 && cache.statistics.hits == 1 && cache.statistics.misses == 1)
        await cache.trim(toCost: 0)
        token = nil
        #expect(cache[1] == nil)
    }

    @Test func withoutInUseAnEvictedValueIsGone() async {
        let cache = MemoryCache<Int, Token>(.quiet()) { _ in 1 }
        let token = Token(1)
        cache[1] = token
        await cache.trim(toCost: 0)
        #expect(cache[1] == nil)
    }

    @Test func aReplacedOrRemovedValueIsNeverRecovered() async {
        let cache = MemoryCache<Int, Token>(.quiet(), weakReferences: .objects) { _ in 1 }
        let old = Token(1)
        cache[1] = old
        await cache.trim(toCost: 0)
        cache[1] = Token(2)
        #expect(cache[1]?.number == 2)
        await cache.trim(toCost: 0)
        #expect(cache[1] == nil)
        cache[1] = old
        await cache.trim(toCost: 0)
        cache.remove(1)
        #expect(cache[1] == nil)
        cache[1] = old
        await cache.trim(toCost: 0)
        cache.removeAll()
        #expect(cache[1] == nil)
        cache[1] = old
        await cache.trim(toCost: 0)
        await cache.removeAll { $0 == 1 }
        #expect(cache[1] == nil)
    }

    @Test func anOversizedValueIsFoundWhileInUseAndItsPredecessorIsNot() {
        let cache = MemoryCache<Int, Token>(.quiet(cost: 10), weakReferences: .objects) { $0.number }
        let old = Token(1)
        cache[1] = old
        var large: Token? = Token(11)
        cache[1] = large
        #expect(cache[1] === large && cache.count == 0)
        #expect(cache[1] === large)
        large = nil
        #expect(cache[1] == nil)
        _ = old
    }

    @Test func aStructAroundASharedObjectIsCreatedAgain() async {
        struct Picture: Sendable {
            let pixels: Token
            let scale: Int
        }
        let weakReferences = WeakReferences<Picture> { picture in
            let scale = picture.scale
            return { [weak pixels = picture.pixels] in pixels.map { Picture(pixels: $0, scale: scale) } }
        }
        let cache = MemoryCache<Int, Picture>(.quiet(), weakReferences: weakReferences) { _ in 1 }
        let pixels = Token(1)
        cache[1] = Picture(pixels: pixels, scale: 2)
        await cache.trim(toCost: 0)
        #expect(cache[1]?.pixels === pixels && cache[1]?.scale == 2)
    }

    @Test func unusedEntriesAreRemovedFromTheTable() async {
        let cache = MemoryCache<Int, Token>(.quiet(count: 300), weakReferences: .objects) { _ in 1 }
        let held = Token(-1)
        cache[-1] = held
        for key in 0..<20_000 { cache[key] = Token(key) }
        #expect(cache.state.withLock { $0.recoverable.entries.count } <= 130)
        #expect(cache[-1] === held)
    }

    @Test func aFinderCanUseTheCache() async {
        // The reference runs without a lock, so it can use the cache that calls it.
        let box = Lock<MemoryCache<Int, Token>?>(nil)
        let kept = Token(7)
        let weakReferences = WeakReferences<Token> { _ in { box.withLock { $0 }?[2] } }
        let cache = MemoryCache<Int, Token>(.quiet(), weakReferences: weakReferences) { _ in 1 }
        box.withLock { $0 = cache }
        cache[1] = Token(1)
        await cache.trim(toCost: 0)
        cache[2] = kept
        #expect(cache[1] === kept)
        box.withLock { $0 = nil }
    }
}
