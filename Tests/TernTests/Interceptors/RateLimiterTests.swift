import Testing

@testable import Tern

struct RateLimiterTests {
    @Test func turnsHaveTheSameTimeBetweenThem() {
        var limiter = RateLimiter(interval: .milliseconds(100), burst: 1)
        let waits = (0..<4).map { _ in limiter.reserve("a", at: .zero) }
        #expect(waits == [.zero, .milliseconds(100), .milliseconds(200), .milliseconds(300)])
        let (late, other) = (limiter.reserve("a", at: .seconds(10)), limiter.reserve("b", at: .seconds(10)))
        #expect(late == .zero && other == .zero)
        let next = limiter.reserve("a", at: .milliseconds(10_040))
        #expect(next == .milliseconds(60))
    }

    @Test func aPauseSavesTurnsForABurst() {
        var limiter = RateLimiter(interval: .milliseconds(100), burst: 3)
        let first = (0..<5).map { _ in limiter.reserve("a", at: .zero) }
        #expect(first == [.zero, .zero, .zero, .milliseconds(100), .milliseconds(200)])
        let later = (0..<5).map { _ in limiter.reserve("a", at: .seconds(60)) }
        #expect(later == [.zero, .zero, .zero, .milliseconds(100), .milliseconds(200)])
    }

    @Test func noSecondHasMoreRequestsThanTheRateAndTheBurst() {
        var generator = SystemRandomNumberGenerator()
        for burst in [1, 2, 7] {
            var limiter = RateLimiter(interval: .milliseconds(50), burst: burst)
            var (now, sent) = (Duration.zero, [Duration]())
            for _ in 0..<400 {
                now += .milliseconds(Int.random(in: 0...120, using: &generator))
                let wait = limiter.reserve("a", at: now)
                #expect(wait >= .zero)
                sent.append(now + wait)
            }
            #expect(sent == sent.sorted())
            for (index, time) in sent.enumerated() {
                let count = sent[index...].prefix { $0 - time < .seconds(1) }.count
                #expect(count <= 20 + burst)
            }
        }
    }

    @Test func aServerStopsItsOwnHost() {
        var limiter = RateLimiter(interval: .milliseconds(1), burst: 1)
        limiter.stop("a", until: .seconds(30), at: .zero)
        let (stopped, other) = (limiter.reserve("a", at: .seconds(1)), limiter.reserve("b", at: .seconds(1)))
        #expect(stopped == .seconds(29) && other == .zero)
        limiter.stop("a", until: .seconds(10), at: .seconds(2))
        #expect(limiter.stop(of: "a", at: .seconds(2)) == .seconds(28))
        #expect(limiter.stop(of: "a", at: .seconds(31)) == .zero)
    }

    @Test func hostsWithoutTurnsAheadAreForgotten() {
        var limiter = RateLimiter(interval: .milliseconds(1), burst: 1)
        for number in 0..<10_000 {
            let wait = limiter.reserve("\(number)", at: .seconds(number))
            #expect(wait == .zero)
        }
        #expect("\(limiter)".utf8.count < 200_000)
    }

    @Test(
        arguments: [
            (["RateLimit": "\"default\";r=0;t=30"], 30), (["RateLimit": "\"a\";r=5;t=9, \"b\"; r=0; t=2"], 2),
            (["RateLimit-Remaining": "0", "RateLimit-Reset": " 7 "], 7),
        ] as [([String: String], Int)])
    func fieldsOfAnEmptyQuotaStop(fields: [String: String], seconds: Int) {
        #expect(RateLimiter.wait(stated: Headers(fields)) == .seconds(seconds))
    }

    @Test(
        arguments: [
            [:], ["RateLimit": "\"default\";r=1;t=30"], ["RateLimit": "\"default\";r=0"], ["RateLimit": "r=0;t=-3"],
            ["RateLimit": "x;r=0;t=99999999999999999999"], ["RateLimit-Remaining": "0"],
            ["RateLimit-Remaining": "0", "RateLimit-Reset": "soon"],
        ] as [[String: String]])
    func otherFieldsDoNot(fields: [String: String]) {
        #expect(RateLimiter.wait(stated: Headers(fields)) == nil)
    }
}
