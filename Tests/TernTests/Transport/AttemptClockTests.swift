import Testing

@testable import Tern

@Suite("AttemptClock")
struct AttemptClockTests {
    private func at(_ seconds: Double) -> UInt64 { UInt64(seconds * 1e9) }

    private func clock(
        connect: Duration? = nil, idle: Duration? = nil, total: Duration? = nil, now: Double = 0
    ) -> AttemptClock {
        AttemptClock(Timeouts(connect: connect, idle: idle, total: total), now: at(now))
    }

    @Test func clockWithoutLimitsNeverExpires() {
        var clock = clock()
        clock.connecting(at(1))
        clock.connected(at(2))
        clock.moved(at(3))
        #expect(clock.nextDeadline == .max)
        #expect(clock.expired(.max) == nil)
    }

    @Test func waitingTransferHasTheTotalLimitOnly() {
        let clock = clock(connect: .seconds(1), idle: .seconds(2), total: .seconds(10), now: 5)
        #expect(clock.nextDeadline == at(15))
        #expect(clock.expired(at(14.9)) == nil)
        #expect(clock.expired(at(15)) == .total)
    }

    @Test func aDelayedStartComesOnceAndNotInAPause() {
        var clock = clock(total: .seconds(10))
        clock.delayStart(by: .seconds(2), at(0))
        #expect(clock.nextDeadline == at(2) && clock.startsAt == at(2))
        var starts = [clock.takeStart(at(0.9))]
        clock.paused(at(1))
        #expect(clock.nextDeadline == .max)
        starts.append(clock.takeStart(at(3)))
        clock.resumed(at(4))
        starts.append(clock.takeStart(at(4)))
        #expect(clock.startsAt == nil && clock.nextDeadline == at(13))
        starts.append(clock.takeStart(at(5)))
        #expect(starts == [false, false, true, false])
        #expect(clock.expired(at(13)) == .total)
    }

    @Test func connectingHasItsLimitUntilConnected() {
        var clock = clock(connect: .seconds(1), idle: .seconds(9))
        clock.connecting(at(3))
        #expect(clock.nextDeadline == at(4))
        #expect(clock.expired(at(3.999)) == nil)
        #expect(clock.expired(at(4)) == .connect)
        clock.connected(at(3.5))
        #expect(clock.expired(at(4)) == nil)
        #expect(clock.nextDeadline == at(12.5))
    }

    @Test func progressRestartsTheIdleLimit() {
        var clock = clock(idle: .seconds(2))
        clock.connected(at(0))
        for time in [1.5, 3.0, 4.5] {
            #expect(clock.expired(at(time)) == nil)
            clock.moved(at(time))
        }
        #expect(clock.expired(at(6.4)) == nil)
        #expect(clock.expired(at(6.5)) == .idle)
    }

    @Test func noClockRunsDuringAPause() {
        var clock = clock(connect: .seconds(1), idle: .seconds(1), total: .seconds(3))
        clock.connected(at(0))
        clock.moved(at(1))
        clock.paused(at(1.5))
        #expect(clock.nextDeadline == .max)
        #expect(clock.expired(at(1_000)) == nil)
        clock.paused(at(500))
        clock.resumed(at(1_000))
        // 1.5 of the 3 seconds are used, and the idle limit starts again.
        #expect(clock.expired(at(1_000.9)) == nil)
        #expect(clock.expired(at(1_001)) == .idle)
        clock.moved(at(1_001))
        #expect(clock.expired(at(1_001.4)) == nil)
        #expect(clock.expired(at(1_001.5)) == .total)
    }

    @Test func pauseBeforeTheConnectionExtendsNoOtherLimit() {
        var clock = clock(connect: .seconds(2))
        clock.connecting(at(0))
        clock.paused(at(1))
        clock.resumed(at(11))
        #expect(clock.expired(at(11.9)) == nil)
        #expect(clock.expired(at(12)) == .connect)
    }

    @Test func pausesAddUp() {
        var clock = clock(total: .seconds(10))
        for start in [1.0, 3.0, 5.0] {
            clock.paused(at(start))
            clock.resumed(at(start + 1))
        }
        #expect(clock.nextDeadline == at(13))
    }

    @Test func resumingWithoutAPauseChangesNothing() {
        var clock = clock(idle: .seconds(5), total: .seconds(10))
        clock.connected(at(1))
        clock.resumed(at(4))
        #expect(clock.nextDeadline == at(6))
    }

    @Test func slowReaderStopsTheIdleLimitButNotTheTotalLimit() {
        var clock = clock(idle: .seconds(1), total: .seconds(10))
        clock.connected(at(0))
        clock.heldUp(true, at(0.5))
        #expect(clock.nextDeadline == at(10))
        #expect(clock.expired(at(9.9)) == nil)
        clock.heldUp(false, at(5))
        #expect(clock.expired(at(5.9)) == nil)
        #expect(clock.expired(at(6)) == .idle)
        #expect(clock.expired(at(10)) == .total)
    }

    @Test func pausedTransferHasNoConnectOrIdleLimit() {
        var clock = clock(connect: .seconds(1), idle: .seconds(1))
        clock.connecting(at(0))
        clock.withdrawn()
        #expect(clock.nextDeadline == .max)
        clock.connecting(at(50))
        #expect(clock.nextDeadline == at(51))
    }

    @Test func limitsBeyondTheClockNeverExpire() {
        let clock = AttemptClock(
            Timeouts(connect: nil, idle: nil, total: .seconds(Int64.max)), now: 7)
        #expect(clock.nextDeadline == .max)
        #expect(clock.expired(.max - 1) == nil)
    }

    @Test(arguments: [Duration.zero, .seconds(-5)])
    func zeroLimitExpiresAtOnce(limit: Duration) {
        let clock = clock(total: limit, now: 3)
        #expect(clock.expired(at(3)) == .total)
    }

    @Test func theQueueLimitRunsWhileNoConnectionIsMade() {
        var clock = AttemptClock(Timeouts(connect: .seconds(5), idle: .seconds(7), queue: .seconds(3)), now: 0)
        #expect(!clock.isQueueLimitImplied)
        clock.queued(1_000_000_000)
        #expect(clock.nextDeadline == 4_000_000_000 && clock.expired(4_000_000_000) == .queue)
        clock.paused(2_000_000_000)
        #expect(clock.nextDeadline == .max)
        clock.resumed(10_000_000_000)
        #expect(clock.nextDeadline == 12_000_000_000)
        clock.connecting(11_000_000_000)
        #expect(clock.nextDeadline == 16_000_000_000)
        // Another exchange took the connection.
        clock.queued(12_000_000_000)
        #expect(clock.nextDeadline == 15_000_000_000)
        clock.connected(13_000_000_000)
        #expect(clock.nextDeadline == 20_000_000_000)
    }

    @Test func withoutAQueueLimitThereIsALookAfter30Seconds() {
        var clock = AttemptClock(Timeouts(), now: 0)
        clock.queued(1_000_000_000)
        #expect(clock.isQueueLimitImplied && clock.nextDeadline == 31_000_000_000)
    }
}
