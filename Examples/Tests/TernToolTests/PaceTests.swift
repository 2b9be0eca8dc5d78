import Testing

@testable import TernTool

@Suite struct PaceTests {
    @Test func linesComeOncePerTenthOfAFastTransfer() {
        var pace = Pace(.lines)
        let admitted = (0...1_000).count { step in
            pace.admits(Figures(completed: Int64(step), total: 1_000), at: .microseconds(step))
        }
        #expect(admitted == 10)
    }

    @Test func linesComeOncePerSecondOfASlowTransfer() {
        var pace = Pace(.lines)
        let admitted = (0..<100).count { step in
            pace.admits(Figures(completed: Int64(1 + step), total: 1_000_000), at: .milliseconds(100 * step))
        }
        #expect(admitted == 9)
    }

    @Test func linesComeOncePerSecondOfAnUnknownTotal() {
        var pace = Pace(.lines)
        let admitted = (0...50).count { step in
            pace.admits(Figures(completed: Int64(1 + step)), at: .milliseconds(100 * step))
        }
        #expect(admitted == 5)
    }

    @Test func aBarIsDrawnAtMostFifteenTimesASecond() {
        var pace = Pace(.bar)
        let admitted = (0..<10_000).count { step in
            pace.admits(Figures(completed: Int64(step), total: 10_000), at: .microseconds(100 * step))
        }
        #expect((10...16).contains(admitted))
    }

    @Test(arguments: [Pace.Style.bar, .lines])
    func aNewNoteIsShownAtOnce(style: Pace.Style) {
        var pace = Pace(style)
        _ = pace.admits(Figures(completed: 50, total: 100), at: .seconds(2))
        let pausedOnce = pace.admits(Figures(completed: 50, total: 100, note: "paused"), at: .seconds(2))
        let pausedTwice = pace.admits(Figures(completed: 50, total: 100, note: "paused"), at: .seconds(2))
        let goesOn = pace.admits(Figures(completed: 50, total: 100), at: .seconds(2))
        #expect((pausedOnce, pausedTwice, goesOn) == (true, false, true))
    }
}
