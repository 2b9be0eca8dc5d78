import Testing

@testable import TernTool

@Suite struct TextTests {
    @Test(arguments: [
        (0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (1_550, "1.6 kB"), (999_940, "999.9 kB"), (999_960, "1.0 MB"),
        (200_000_000, "200.0 MB"), (5_300_000_000, "5.3 GB"), (1_000_000_000_000_000_000, "1000.0 PB"),
    ])
    func sizesAreDecimal(bytes: Int64, text: String) { #expect(ByteText.size(bytes) == text) }

    @Test func aRateWithoutTimeDividesByNothing() { #expect(ByteText.rate(5, in: .zero) == "at once") }

    @Test(arguments: [
        (Duration.zero, "0:00"), (.milliseconds(190), "0:01"), (.seconds(67), "1:07"), (.seconds(11_100), "3:05:00"),
        (.seconds(90_000), ">24 h"),
    ])
    func clocksRoundUp(duration: Duration, text: String) { #expect(DurationText.clock(duration) == text) }

    @Test(arguments: [
        (Duration.microseconds(84), "84 µs"), (.microseconds(1_300), "1.3 ms"), (.milliseconds(2_410), "2.41 s"),
    ])
    func spansHaveTheirUnit(duration: Duration, text: String) { #expect(DurationText.span(duration) == text) }

    @Test func cutTextKeepsItsBeginningAndItsEnd() {
        #expect(Columns.fit("abcdefghij.tar.gz", to: 9) == "abcd~r.gz")
        #expect(Columns.fit("short", to: 9) == "short")
        #expect(Columns.fit("anything", to: 0) == "")
    }

    @Test func wideCharactersCountTwice() {
        #expect(Columns.count("日本") == 4)
        #expect(Columns.count(Columns.fit("日本語日本語", to: 7)) <= 7)
    }
}

@Suite struct DisplayThrottleTests {
    @Test func linesComeOncePerTenthOfAFastTransfer() {
        var throttle = DisplayThrottle(.lines)
        let admitted = (0...1_000).count { step in
            throttle.admits(TransferStatus(completed: Int64(step), total: 1_000), at: .microseconds(step))
        }
        #expect(admitted == 10)
    }

    @Test func linesComeOncePerSecondOfASlowTransfer() {
        var throttle = DisplayThrottle(.lines)
        let admitted = (0..<100).count { step in
            throttle.admits(TransferStatus(completed: Int64(1 + step), total: 1_000_000), at: .milliseconds(100 * step))
        }
        #expect(admitted == 9)
    }

    @Test func linesComeOncePerSecondOfAnUnknownTotal() {
        var throttle = DisplayThrottle(.lines)
        let admitted = (0...50).count { step in
            throttle.admits(TransferStatus(completed: Int64(1 + step)), at: .milliseconds(100 * step))
        }
        #expect(admitted == 5)
    }

    @Test func aBarIsDrawnAtMostFifteenTimesASecond() {
        var throttle = DisplayThrottle(.bar)
        let admitted = (0..<10_000).count { step in
            throttle.admits(TransferStatus(completed: Int64(step), total: 10_000), at: .microseconds(100 * step))
        }
        #expect((10...16).contains(admitted))
    }

    @Test(arguments: [DisplayThrottle.Style.bar, .lines])
    func aNewNoteIsShownAtOnce(style: DisplayThrottle.Style) {
        var throttle = DisplayThrottle(style)
        _ = throttle.admits(TransferStatus(completed: 50, total: 100), at: .seconds(2))
        let pausedOnce = throttle.admits(TransferStatus(completed: 50, total: 100, note: "paused"), at: .seconds(2))
        let pausedTwice = throttle.admits(TransferStatus(completed: 50, total: 100, note: "paused"), at: .seconds(2))
        let goesOn = throttle.admits(TransferStatus(completed: 50, total: 100), at: .seconds(2))
        #expect((pausedOnce, pausedTwice, goesOn) == (true, false, true))
    }
}
