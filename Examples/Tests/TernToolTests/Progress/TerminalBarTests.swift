import Tern
import TernTesting
import TernViewModels
import Testing

@testable import TernTool

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@MainActor
@Suite(.timeLimit(.minutes(1)))
struct TerminalBarTests {
    private let written = OutputRecorder()

    private func bar(isInteractive: Bool) -> TerminalBar {
        TerminalBar("big.iso", on: written.terminal(isInteractive: isInteractive))
    }

    private func progress(_ bytes: Int64, isFinished: Bool = false) -> Session.Progress {
        Session.Progress(completedBytes: bytes, totalBytes: 100, isFinished: isFinished)
    }

    @Test func aStreamIsShownAsPlainLinesWhereThereIsNoTerminal() async {
        let (stream, source) = AsyncStream<Session.Progress>.makeStream()
        for bytes in [10, 55, 56] { source.yield(progress(Int64(bytes))) }
        source.yield(progress(100, isFinished: true))
        source.finish()
        let bar = bar(isInteractive: false)
        bar.bindProgress(stream)
        await bar.finished()
        #expect(
            written.texts == [
                "big.iso: 10%, 10 of 100 B\n", "big.iso: 55%, 55 of 100 B\n", "big.iso: 100%, 100 of 100 B\n",
            ])
        #expect(bar.progressBinding() == nil)
    }

    @Test func inATerminalTheBarIsDrawnOverAndTakenAway() async {
        let bar = bar(isInteractive: true)
        bar.showProgress(ProgressUpdate(fraction: 0.5, progress: progress(50)))
        bar.showProgress(ProgressUpdate(fraction: 1, isFinished: true, progress: progress(100, isFinished: true)))
        await bar.finished()
        let texts = written.texts
        #expect(texts.first?.hasPrefix("\rbig.iso  [===") ?? false)
        #expect(texts.allSatisfy { $0.hasPrefix("\r") && $0.hasSuffix("\u{1B}[K") })
        #expect(texts.last == "\r\u{1B}[K")
    }

    @Test func theBarFollowsThePercentageThatDoesNotFall() {
        let bar = bar(isInteractive: false)
        bar.showProgress(ProgressUpdate(fraction: 0.8, progress: progress(30)))
        #expect(written.texts == ["big.iso: 80%, 30 of 100 B\n"])
    }

    @Test func aPausedDownloadSaysSoAndGoesOn() async throws {
        let gate = LoopbackServer.Gate()
        let pattern = LoopbackServer.Pattern(count: 300_000)
        let server = try LoopbackServer { exchange in
            try exchange.writeHead(headers: [("Content-Length", "300000")])
            try exchange.streamPattern(pattern, in: 0..<150_000)
            try exchange.wait(for: gate)
            try exchange.streamPattern(pattern, in: 150_000..<300_000)
        }
        defer { server.stop() }
        var configuration = Session.Configuration()
        configuration.proxies = .none
        let client = Client(baseURL: server.url, session: Session(configuration: configuration))
        let file = FileManager.default.temporaryDirectory.appending(path: "tern-bar-\(UInt64.random(in: 0 ... .max))")
        let task = client.download("file", to: file)
        let bar = bar(isInteractive: false)
        bar.bind(task)
        task.pause()
        await written.until { $0.contains { $0.hasSuffix("paused\n") } }
        gate.open()
        task.resume()
        await bar.finished()
        try FileManager.default.removeItem(at: try await task.value)
        #expect(written.texts.last?.hasPrefix("big.iso: 100%, 300.0 of 300.0 kB") ?? false)
        #expect(bar.status.note == nil && !bar.isActivityShown)
    }
}

@Suite struct BarTests {
    private let half = TransferStatus(
        completed: 104_000_000, total: 200_000_000, rate: 512_300_000, remaining: .milliseconds(190))

    @Test(arguments: 1...300)
    func noLineReachesTheLastColumns(columns: Int) {
        let status = [
            half, TransferStatus(completed: 0), TransferStatus(completed: 12_345, total: nil, rate: 1_000),
            TransferStatus(completed: 7, total: 7), TransferStatus(completed: 5, total: 10, note: "paused"),
        ]
        for label in ["a", "a-very-long-name-of-a-file-that-has-no-end.tar.gz", "日本語のとても長いファイル名です.zip"] {
            for figure in status {
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
            let status = TransferStatus(
                completed: Int64(percent) * 2_000_000, total: 200_000_000, rate: Double(percent) * 1e6)
            return Bar(label: "x").line(status, columns: 80).prefix { $0 != "]" }.count
        }
        #expect(Set(lengths).count == 1)
    }

    @Test func anUnknownTotalShowsNoBarAndNoPercentage() {
        let line = Bar(label: "x").line(TransferStatus(completed: 1_500_000, rate: 2_000_000), columns: 80)
        #expect(line.contains("1.5 MB") && line.contains("2.0 MB/s"))
        #expect(!line.contains("[") && !line.contains("%"))
    }

    @Test func aPauseReplacesTheRate() {
        var status = half
        status.note = "paused"
        let line = Bar(label: "x").line(status, columns: 80)
        #expect(line.contains("paused") && !line.contains("MB/s"))
    }

    @Test func aHundredPercentMeansAllBytes() {
        #expect(Bar(label: "x").plainLine(TransferStatus(completed: 999_999, total: 1_000_000)).contains("99%"))
        #expect(Bar(label: "x").plainLine(TransferStatus(completed: 1_000_000, total: 1_000_000)).contains("100%"))
    }

    @Test func aPlainLineHasNoPadding() {
        #expect(
            Bar(label: "big.iso").plainLine(half) == "big.iso: 52%, 104.0 of 200.0 MB, 512.3 MB/s, 0:01 left")
        #expect(
            Bar(label: "x").plainLine(TransferStatus(completed: 3, total: 200_000_000)) == "x: 0%, 0.0 of 200.0 MB")
    }
}
