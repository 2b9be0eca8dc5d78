import Tern
import Testing

@testable import TernTool

/// The bars of several transfers.
@Suite(.timeLimit(.minutes(1)))
struct BarListTests {
    private func progress(_ bytes: Int64, of total: Int64?, rate: Double? = nil) -> Session.Progress {
        Session.Progress(completedBytes: bytes, totalBytes: total, bytesPerSecond: rate)
    }

    @Test func totalIsTheSumOnceEachSizeIsKnown() {
        var table = BarTable(count: 3)
        table.update(0, name: "a", progress(10, of: 100, rate: 5))
        table.update(1, name: "b", progress(20, of: 200, rate: 15))
        #expect(table.total.completed == 30 && table.total.total == nil && table.total.rate == 20)
        table.end(0, 100)
        table.update(2, name: "c", progress(0, of: 50))
        #expect(table.total == TransferStatus(completed: 120, total: 350, rate: 15, remaining: .seconds(230.0 / 15)))
        #expect(table.label == "total, 1 of 3")
    }

    /// The progress is read before the transfer ends, and can arrive afterwards.
    @Test func endedTransferIsCountedOnce() {
        var table = BarTable(count: 2)
        table.update(0, name: "a", progress(10, of: 100))
        table.end(0, 100)
        table.update(0, name: "a", progress(100, of: 100))
        #expect(table.completed == 100 && table.ended == 1)
        table.update(1, name: "b", progress(1, of: 10))
        #expect(table.total.total == 110)
    }

    /// The sizes are those that servers state.
    @Test func hugeSizesAndTinyRatesAreShown() {
        var table = BarTable(count: 3)
        table.end(0, .max)
        table.update(1, name: "a", progress(.max, of: .max, rate: 1e-300))
        table.update(2, name: "b", progress(0, of: .max, rate: 1e-300))
        #expect(table.total.total == .max && table.total.remaining == .zero)
        table = BarTable(count: 1)
        table.update(0, name: "a", progress(0, of: .max, rate: 1e-300))
        #expect(table.total.remaining == nil && table.total.rate == 1e-300)
        var throttle = DisplayThrottle(.lines)
        let isShown = throttle.admits(TransferStatus(completed: .max / 2, total: .max), at: .seconds(2))
        #expect(isShown)
    }

    @Test func namesOfServersDoNotRewriteTheScreen() {
        let bar = Bar(label: "a\u{1B}[2Jb\n")
        #expect(bar.label == "a\u{FFFD}[2Jb\u{FFFD}")
        let line = DownloadReport.line("a\u{1B}b", 1, 1, in: .seconds(1))
        #expect(line.hasPrefix("a\u{FFFD}b: "))
    }

    @Test func runningTransfersHaveALineEachAsManyAsFit() {
        var table = BarTable(count: 9)
        for index in 0..<5 { table.update(index, name: "file\(index)", progress(50, of: 100)) }
        let lines = table.lines(columns: 80, rows: 24)
        #expect(lines.count == 6)
        #expect(lines[0].hasPrefix("file0") && lines[4].hasPrefix("file4") && lines[5].hasPrefix("total, 0 of 9"))
        #expect(table.lines(columns: 80, rows: 4).map { $0.prefix(5) } == ["file0", "file1", "total"])
        #expect(table.lines(columns: 80, rows: 1).count == 1)
    }

    @Test func terminalIsDrawnOverAndEndedTransfersStayAbove() async {
        let written = OutputRecorder()
        let list = BarList(count: 2, on: written.terminal(isInteractive: true))
        await list.show([(0, "a", progress(50, of: 100))])
        await list.end(0, 100, received: 100, line: "a: done")
        await list.finish()
        let text = written.texts.joined()
        #expect(text.contains("a  [") && text.contains("total, 0 of 2"))
        #expect(text.contains("\u{1B}[2A\u{1B}[Ja: done\n"))
        #expect(text.contains("total: 100 B in "))
    }

    @Test func otherOutputHasPlainLines() async {
        let written = OutputRecorder()
        let list = BarList(count: 1, on: written.terminal(isInteractive: false))
        await list.show([(0, "a", progress(50, of: 100))])
        await list.end(0, 100, received: 100, line: "a: done")
        #expect(written.texts.allSatisfy { !$0.contains("\u{1B}") })
        #expect(written.texts.first == "total, 0 of 1: 50%, 50 of 100 B\n")
    }
}
