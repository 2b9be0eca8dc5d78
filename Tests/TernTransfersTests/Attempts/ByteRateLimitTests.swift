import TernConcurrency
import TernTesting
import Testing

@testable import TernTransfers

@Suite("Durable downloads: throttle", .timeLimit(.minutes(1)))
struct ByteRateLimitTests {
    @Test func bytesWaitForTheirTokens() {
        var limit = ByteRateLimit(rate: 1_000, now: .zero)
        limit.take(500, now: .zero)
        var delay = limit.delay(now: .zero)
        #expect(delay == .milliseconds(500))
        delay = limit.delay(now: .milliseconds(200))
        #expect(delay == .milliseconds(300))
        delay = limit.delay(now: .milliseconds(500))
        #expect(delay == .zero)
    }

    @Test func idleTimeSavesAQuarterOfASecond() {
        var limit = ByteRateLimit(rate: 1_000, now: .zero)
        limit.take(1_250, now: .seconds(100))
        let delay = limit.delay(now: .seconds(100))
        #expect(delay == .seconds(1))
    }

    @Test func rateIsChangedWhileBytesWait() {
        var limit = ByteRateLimit(rate: 1_000, now: .zero)
        limit.take(10_000, now: .zero)
        limit.setRate(10_000, now: .seconds(1))
        var delay = limit.delay(now: .seconds(1))
        #expect(delay == .milliseconds(900))
        limit.setRate(nil, now: .seconds(1))
        delay = limit.delay(now: .seconds(1))
        #expect(delay == .zero)
    }

    @Test func waitEndsWhenTheLimitIsLifted() async throws {
        let clock = ManualClock()
        let throttle = DownloadThrottle(rate: 1, time: TransferTime(clock))
        async let wait: Void = throttle.wait(after: 1_000_000)
        try await clock.waitForSleepers(1)
        throttle.rate = nil
        clock.advance(by: .milliseconds(100))
        try await wait
        #expect(clock.now.offset == .milliseconds(100))
    }
}
