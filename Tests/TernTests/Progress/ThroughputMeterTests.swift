import Tern
import Testing

@Suite("ThroughputMeter")
struct ThroughputMeterTests {
    private static let millisecond: UInt64 = 1_000_000

    /// Records `bytes` every `interval` milliseconds, and returns the instant of the last record.
    private func feed(
        _ meter: inout ThroughputMeter, bytes: Int64, each interval: UInt64, times: Int,
        from start: (Int64, UInt64) = (0, 0)
    ) -> (Int64, UInt64) {
        var (total, now) = start
        for _ in 0..<times {
            total += bytes
            now += interval * Self.millisecond
            meter.record(completed: total, at: now)
        }
        return (total, now)
    }

    @Test func speedIsNilBeforeItIsMeasured() {
        var meter = ThroughputMeter()
        #expect(meter.bytesPerSecond == nil)
        #expect(meter.secondsLeft(total: 100) == nil)
        meter.record(completed: 10, at: 0)
        #expect(meter.bytesPerSecond == nil)
        meter.record(completed: 1_000_000, at: 49 * Self.millisecond)
        #expect(meter.bytesPerSecond == nil)
        meter.record(completed: 1_000_000, at: 0)
        #expect(meter.bytesPerSecond == nil)
    }

    @Test(arguments: [1, 10, 50, 100, 1_000, 10_000] as [UInt64])
    func aSteadyFlowGivesItsRate(interval: UInt64) throws {
        var meter = ThroughputMeter()
        meter.record(completed: 0, at: 0)
        _ = feed(&meter, bytes: Int64(interval) * 1_000, each: interval, times: 500)
        let rate = try #require(meter.bytesPerSecond)
        #expect(abs(rate - 1e6) < 1)
    }

    @Test func earlierBytesDoNotCount() throws {
        var meter = ThroughputMeter()
        meter.record(completed: 1 << 40, at: 5_000 * Self.millisecond)
        meter.record(completed: 1 << 40 + 1_000, at: 6_000 * Self.millisecond)
        #expect(try #require(meter.bytesPerSecond) == 1_000)
    }

    @Test func burstsAreSmoothed() throws {
        var meter = ThroughputMeter()
        meter.record(completed: 0, at: 0)
        // 1 MB within 1 ms, once a second.
        var now: UInt64 = 0
        var total: Int64 = 0
        for _ in 0..<20 {
            now += 999 * Self.millisecond
            for _ in 0..<10 {
                total += 100_000
                now += Self.millisecond / 10
                meter.record(completed: total, at: now)
            }
        }
        let rate = try #require(meter.bytesPerSecond)
        #expect((0.8e6...1.2e6).contains(rate))
    }

    @Test func changeOfSpeedAppearsWithinTheWindow() throws {
        var meter = ThroughputMeter()
        meter.record(completed: 0, at: 0)
        var end = feed(&meter, bytes: 100_000, each: 100, times: 300)
        #expect(abs(try #require(meter.bytesPerSecond) - 1e6) < 1)
        end = feed(&meter, bytes: 10_000, each: 100, times: 30, from: end)
        #expect((0.1e6...0.5e6).contains(try #require(meter.bytesPerSecond)))
        end = feed(&meter, bytes: 10_000, each: 100, times: 150, from: end)
        #expect((0.1e6...0.11e6).contains(try #require(meter.bytesPerSecond)))
        _ = feed(&meter, bytes: 0, each: 1_000, times: 60, from: end)
        #expect(try #require(meter.bytesPerSecond) < 1)
    }

    @Test func timeLeftFollowsTheRate() throws {
        var meter = ThroughputMeter()
        meter.record(completed: 0, at: 0)
        meter.record(completed: 1_000, at: 1_000 * Self.millisecond)
        #expect(try #require(meter.secondsLeft(total: 3_000)) == 2)
        #expect(meter.secondsLeft(total: 1_000) == 0)
        #expect(meter.secondsLeft(total: 500) == 0)
        #expect(meter.secondsLeft(total: nil) == nil)
        // Bytes since the last interval shorten the time at once.
        meter.record(completed: 2_000, at: 1_001 * Self.millisecond)
        #expect(try #require(meter.secondsLeft(total: 3_000)) == 1)
    }

    @Test func stalledTransferHasNoTimeLeft() {
        var meter = ThroughputMeter()
        meter.record(completed: 0, at: 0)
        meter.record(completed: 0, at: 1_000 * Self.millisecond)
        #expect(meter.bytesPerSecond == 0)
        #expect(meter.secondsLeft(total: 10) == nil)
    }

    @Test func pausedTimeDoesNotCount() throws {
        var meter = ThroughputMeter()
        meter.record(completed: 0, at: 0)
        meter.record(completed: 1_000, at: 1_000 * Self.millisecond)
        meter.reset()
        #expect(meter.bytesPerSecond == nil)
        meter.record(completed: 1_000, at: 100_000 * Self.millisecond)
        meter.record(completed: 3_000, at: 101_000 * Self.millisecond)
        #expect(try #require(meter.bytesPerSecond) == 2_000)
    }

    @Test func sendingABodyAgainStartsOver() throws {
        var meter = ThroughputMeter()
        meter.record(completed: 0, at: 0)
        meter.record(completed: 5_000, at: 1_000 * Self.millisecond)
        meter.record(completed: 0, at: 2_000 * Self.millisecond)
        #expect(meter.bytesPerSecond == nil)
        meter.record(completed: 1_000, at: 3_000 * Self.millisecond)
        #expect(try #require(meter.bytesPerSecond) == 1_000)
    }
}
