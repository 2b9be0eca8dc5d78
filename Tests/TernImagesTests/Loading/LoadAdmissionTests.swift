import Tern
import Testing

@testable import TernImages

@Suite struct LoadAdmissionTests {
    // MARK: FetchRateLimiter

    @Test func aBucketGivesItsBurstAndThenOneForEachInterval() {
        var limiter = FetchRateLimiter(ImagePipeline.RateLimit(perSecond: 10, burst: 3))
        for _ in 0..<3 { #expect(limiter.take(at: .zero) == .zero) }
        #expect(limiter.take(at: .zero) == .milliseconds(100))
        // A failed attempt takes no token.
        #expect(limiter.take(at: .milliseconds(50)) == .milliseconds(50))
        #expect(limiter.take(at: .milliseconds(100)) == .zero)
        #expect(limiter.take(at: .milliseconds(100)) > .zero)
        // Only the burst accumulates, and time that goes back adds no tokens.
        for _ in 0..<3 { #expect(limiter.take(at: .seconds(100)) == .zero) }
        #expect(limiter.take(at: .seconds(100)) > .zero)
        #expect(limiter.take(at: .seconds(50)) > .zero)
        #expect(limiter.take(at: .seconds(100)) > .zero)
    }

    @Test func aLongRunKeepsTheRate() {
        var limiter = FetchRateLimiter(ImagePipeline.RateLimit(perSecond: 80, burst: 25))
        var taken = 0
        for millisecond in 0..<10_000 {
            while limiter.take(at: .milliseconds(millisecond)) == .zero { taken += 1 }
        }
        #expect((800...825).contains(taken))
    }

    @Test func anInvalidLimitStillAdmitsLoads() {
        var limiter = FetchRateLimiter(ImagePipeline.RateLimit(perSecond: -1, burst: 0))
        #expect(limiter.take(at: .zero) == .zero)
        #expect(limiter.take(at: .zero) > .zero)
    }

    // MARK: DecodePace

    @Test func threadsAreGivenMoreImagesThatTakeLittleTime() {
        var pace = DecodePace(threads: 2, fixed: nil)
        #expect(pace.limit == 4)
        for _ in 0..<100 { pace.record(nanoseconds: 1_000) }
        #expect(pace.limit == 64)
        // Half a millisecond for each thread.
        for _ in 0..<100 { pace.record(nanoseconds: 50_000) }
        #expect(pace.limit == 20)
    }

    @Test func oneLongImageLowersTheLimitAtOnce() {
        var pace = DecodePace(threads: 3, fixed: nil)
        for _ in 0..<100 { pace.record(nanoseconds: 0) }
        #expect(pace.limit == 96)
        pace.record(nanoseconds: .max)
        #expect(pace.limit == 6)
        pace.record(nanoseconds: 100)
        #expect(pace.limit == 6)
    }

    @Test func aNumberOfDecodesThatIsConfiguredStays() {
        var pace = DecodePace(threads: 8, fixed: 3)
        pace.record(nanoseconds: 1)
        #expect(pace.limit == 3)
        #expect(DecodePace(threads: 8, fixed: 0).limit == 1)
    }

    // MARK: ScrollDebouncer

    @Test func loadsAreReleasedOnceScrollingHasSettled() {
        var gate = ScrollDebouncer<Int>()
        #expect(gate.enter(1) == true)
        #expect(gate.report(isScrolling: false) == .none)
        #expect(gate.report(isScrolling: true) == .none)
        for load in [2, 3, 4] { #expect(gate.enter(load) == false) }
        gate.remove(3)
        guard case .wait(let first) = gate.report(isScrolling: false) else {
            Issue.record("does not settle")
            return
        }
        // New scrolling makes the first timer void.
        _ = gate.report(isScrolling: true)
        #expect(gate.settlingTimeEnded(generation: first) == .none)
        #expect(!gate.isSettled)
        guard case .wait(let second) = gate.report(isScrolling: false) else {
            Issue.record("does not settle")
            return
        }
        #expect(gate.settlingTimeEnded(generation: second) == .release([2, 4]))
        #expect(gate.settlingTimeEnded(generation: second) == .none)
        #expect(gate.enter(5) == true)
    }

    // MARK: NegativeCache

    private let missing = ImageError(.corrupt, "no picture")

    @Test func aFailureIsKnownForItsLifetime() {
        var cache = NegativeCache<String>(limit: 10, lifetime: .seconds(60))
        cache.record(missing, for: "a", at: .zero, user: .nobody)
        #expect(cache.error(for: "a", at: .seconds(59), user: { .nobody }) == missing)
        #expect(cache.error(for: "b", at: .zero, user: { .nobody }) == nil)
        #expect(cache.error(for: "a", at: .seconds(60), user: { .nobody }) == nil)
        #expect(cache.count == 0)
        cache.record(missing, for: "a", at: .zero, user: .nobody)
        cache.remove("a")
        #expect(cache.error(for: "a", at: .zero, user: { .nobody }) == nil)
    }

    @Test func onlyDefiniteFailuresAreRemembered() {
        var cache = NegativeCache<String>(limit: 10, lifetime: .seconds(60))
        let passing: [ImageError.Kind] = [
            .cancelled, .failedBefore, .limitExceeded, .unsupported, .outOfMemory, .source, .hook, .processing,
            .notCached,
            .network,
        ]
        for kind in passing { cache.record(ImageError(kind, ""), for: kind.rawValue, at: .zero, user: .nobody) }
        #expect(cache.count == 0)
        var never = NegativeCache<String>(limit: 10, lifetime: .zero)
        never.record(missing, for: "a", at: .zero, user: .nobody)
        #expect(never.count == 0)
    }

    @Test func aRefusalIsThatOfOneUser() throws {
        var cache = NegativeCache<String>(limit: 10, lifetime: .seconds(60))
        let request = try Request(.get, "https://a.example/1.png")
        let head = ResponseHead(status: 403, headers: [:])
        let network = NetworkError(FailureCause(.status, "403"), request: request, response: head)
        let refusal = ImageError(.network, "403", underlying: network)
        cache.record(refusal, for: "a", at: .zero, user: .fields(1))
        #expect(cache.error(for: "a", at: .zero, user: { .fields(1) }) == refusal)
        // Not the same user any more: it is forgotten.
        #expect(cache.error(for: "a", at: .zero, user: { .fields(2) }) == nil)
        #expect(cache.count == 0)
        cache.record(refusal, for: "a", at: .zero, user: .unknown)
        #expect(cache.count == 0)
        // Another failure is that of all users.
        cache.record(missing, for: "a", at: .zero, user: .fields(1))
        #expect(cache.error(for: "a", at: .zero, user: { .fields(2) }) == missing)
    }

    @Test func theOldestFailureIsEvictedAtTheLimit() {
        var cache = NegativeCache<Int>(limit: 10, lifetime: .seconds(60))
        for number in 0..<1_000 {
            cache.record(missing, for: number, at: .seconds(number), user: .nobody)
            #expect(cache.count <= 10)
            #expect(cache.error(for: number, at: .seconds(number), user: { .nobody }) != nil)
        }
        #expect(cache.error(for: 990, at: .seconds(999), user: { .nobody }) != nil)
        #expect(cache.error(for: 989, at: .seconds(999), user: { .nobody }) == nil)
        cache.removeAll()
        #expect(cache.count == 0)
    }

    // MARK: VariantIndex and rank

    @Test func variantsAreFoundBySourceUntilTheyAreTooMany() {
        var ancestry = VariantIndex(limit: 3)
        func key(_ source: String, _ side: Int) -> ImageKey {
            ImageKey(
                ImageRequest(
                    .data(source) { throw CancellationError() }, targetSize: PixelSize(width: side, height: side)))
        }
        for side in 1...3 { ancestry.insert(key("a", side)) }
        ancestry.insert(key("a", 1))
        #expect(ancestry.keys(of: key("a", 9).source).count == 3)
        ancestry.insert(key("b", 1))
        #expect(ancestry.keys(of: key("a", 9).source).isEmpty)
        #expect(ancestry.remove(key("b", 9).source) == [key("b", 1)])
        #expect(ancestry.remove(key("b", 9).source) == [])
    }

    @Test func visibleLoadsGoBeforeEqualPriorities() {
        let ranks = [
            LoadPriority(.veryLow, isVisible: false), LoadPriority(.veryLow, isVisible: true),
            LoadPriority(.low, isVisible: false),
            LoadPriority(.normal, isVisible: true), LoadPriority(.high, isVisible: false),
            LoadPriority(.veryHigh, isVisible: true),
        ]
        #expect(ranks.sorted() == ranks)
        #expect(ranks.map(\.requested) == [.veryLow, .veryLow, .low, .normal, .high, .veryHigh])
        #expect(LoadPriority.count == 10)
        #expect(PriorityCounts().highest == .lowest)
    }
}
