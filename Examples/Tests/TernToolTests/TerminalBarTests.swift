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
    private let written = Written()

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
        bar.showProgress(ShownProgress(fraction: 0.5, progress: progress(50)))
        bar.showProgress(ShownProgress(fraction: 1, isFinished: true, progress: progress(100, isFinished: true)))
        await bar.finished()
        let texts = written.texts
        #expect(texts.first?.hasPrefix("\rbig.iso  [===") ?? false)
        #expect(texts.allSatisfy { $0.hasPrefix("\r") && $0.hasSuffix("\u{1B}[K") })
        #expect(texts.last == "\r\u{1B}[K")
    }

    @Test func theBarFollowsThePercentageThatDoesNotFall() {
        let bar = bar(isInteractive: false)
        bar.showProgress(ShownProgress(fraction: 0.8, progress: progress(30)))
        #expect(written.texts == ["big.iso: 80%, 30 of 100 B\n"])
    }

    @Test func aPausedDownloadSaysSoAndGoesOn() async throws {
        let server = try LoopbackServer.demo()
        defer { server.stop() }
        var configuration = Session.Configuration()
        configuration.proxies = .none
        let client = Client(baseURL: server.url, session: Session(configuration: configuration))
        let file = FileManager.default.temporaryDirectory.appending(path: "tern-bar-\(UInt64.random(in: 0 ... .max))")
        let task = client.download("bytes/300000", to: file)
        let bar = bar(isInteractive: false)
        bar.bind(task)
        task.pause()
        await written.until { $0.contains { $0.hasSuffix("paused\n") } }
        task.resume()
        await bar.finished()
        try FileManager.default.removeItem(at: try await task.value)
        #expect(written.texts.last?.hasPrefix("big.iso: 100%, 300.0 of 300.0 kB") ?? false)
        #expect(bar.figures.note == nil && !bar.isActivityShown)
    }
}
