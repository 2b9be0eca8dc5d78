import Testing

@testable import TernTool

@Suite struct BarTests {
    private let half = Figures(
        completed: 104_000_000, total: 200_000_000, rate: 512_300_000, remaining: .milliseconds(190))

    @Test(arguments: 1...300)
    func noLineReachesTheLastColumns(columns: Int) {
        let figures = [
            half, Figures(completed: 0), Figures(completed: 12_345, total: nil, rate: 1_000),
            Figures(completed: 7, total: 7), Figures(completed: 5, total: 10, note: "paused"),
        ]
        for label in ["a", "a-very-long-name-of-a-file-that-has-no-end.tar.gz", "日本語のとても長いファイル名です.zip"] {
            for figure in figures {
                #expect(Columns.count(Bar(label: label).line(figure, columns: columns)) <= max(0, columns - 3))
            }
        }
    }

    @Test func aWideTerminalShowsEverything() {
        let line = Bar(label: "big.iso").line(half, columns: 100)
        #expect(line.hasPrefix("big.iso  [====="))
        #expect(line.hasSuffix("]   52%  104.0 of 200.0 MB  512.3 MB/s    0:01"))
        #expect(line.contains("=>"))
        #expect(Columns.count(line) == 97)
    }

    @Test func aNarrowTerminalLosesDetailsBeforeTheBar() {
        let line = Bar(label: "big.iso").line(half, columns: 40)
        #expect(line.contains("52%"))
        #expect(line.contains("["))
        #expect(!line.contains("of 200.0 MB"))
    }

    @Test func theBarDoesNotChangeItsLengthWhileNumbersGrow() {
        let lengths = [0, 9, 99, 100].map { percent in
            let figures = Figures(
                completed: Int64(percent) * 2_000_000, total: 200_000_000, rate: Double(percent) * 1e6)
            return Bar(label: "x").line(figures, columns: 80).prefix { $0 != "]" }.count
        }
        #expect(Set(lengths).count == 1)
    }

    @Test func anUnknownTotalShowsNoBarAndNoPercentage() {
        let line = Bar(label: "x").line(Figures(completed: 1_500_000, rate: 2_000_000), columns: 80)
        #expect(line.contains("1.5 MB") && line.contains("2.0 MB/s"))
        #expect(!line.contains("[") && !line.contains("%"))
    }

    @Test func aPauseIsSaidInPlaceOfTheRate() {
        var figures = half
        figures.note = "paused"
        let line = Bar(label: "x").line(figures, columns: 80)
        #expect(line.contains("paused") && !line.contains("MB/s"))
    }

    @Test func aHundredPercentIsSaidOnlyOfTheWhole() {
        #expect(Bar(label: "x").plainLine(Figures(completed: 999_999, total: 1_000_000)).contains("99%"))
        #expect(Bar(label: "x").plainLine(Figures(completed: 1_000_000, total: 1_000_000)).contains("100%"))
    }

    @Test func aPlainLineHasNoPadding() {
        #expect(
            Bar(label: "big.iso").plainLine(half) == "big.iso: 52%, 104.0 of 200.0 MB, 512.3 MB/s, 0:01 left")
        #expect(
            Bar(label: "x").plainLine(Figures(completed: 3, total: 200_000_000)) == "x: 0%, 0.0 of 200.0 MB")
    }
}
