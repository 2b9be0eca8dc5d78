import TernConcurrency
import Testing

@testable import Tern

@Suite("Progress: combined", .timeLimit(.minutes(1)))
struct CombinedProgressTests {
    @Test func sumHasAllBytes() {
        let sum = Session.Progress.combined(of: [
            Session.Progress(completedBytes: 10, totalBytes: 100, bytesPerSecond: 5),
            Session.Progress(completedBytes: 20, totalBytes: 20, bytesPerSecond: 7, isFinished: true),
            Session.Progress(completedBytes: 0, totalBytes: 80, bytesPerSecond: 20),
        ])
        #expect(sum == Session.Progress(completedBytes: 30, totalBytes: 200, bytesPerSecond: 25))
        #expect(sum.estimatedTimeRemaining == .seconds(170.0 / 25))
    }

    @Test func unknownTotalMakesTheSumUnknownUntilItsTransferEnds() {
        let open = Session.Progress(completedBytes: 10)
        let ended = Session.Progress(completedBytes: 10, isFinished: true)
        let known = Session.Progress(completedBytes: 1, totalBytes: 2)
        #expect(Session.Progress.combined(of: [open, known]).totalBytes == nil)
        #expect(Session.Progress.combined(of: [ended, known]).totalBytes == 12)
        #expect(Session.Progress.combined(of: [open, known]).bytesPerSecond == nil)
    }

    @Test func sumIsFinishedWhenAllAre() {
        let ended = Session.Progress(completedBytes: 1, totalBytes: 1, isFinished: true)
        #expect(Session.Progress.combined(of: [ended, ended]).isFinished)
        #expect(!Session.Progress.combined(of: [ended, Session.Progress()]).isFinished)
        #expect(Session.Progress.combined(of: [Session.Progress]()).isFinished)
    }

    @Test func sumDoesNotOverflow() {
        let huge = Session.Progress(completedBytes: .max - 1, totalBytes: .max)
        #expect(Session.Progress.combined(of: [huge, huge]).completedBytes == .max)
    }

    @Test func streamEndsWithItsFinishedElementAndDoesNotGoBack() async {
        let values = Lock([
            Session.Progress(completedBytes: 5, totalBytes: 10), Session.Progress(completedBytes: 3, totalBytes: 10),
            Session.Progress(completedBytes: 10, totalBytes: 10, isFinished: true),
        ])
        let stream = ProgressSampler.stream { values.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] } }
        var seen: [Session.Progress] = []
        for await progress in stream { seen.append(progress) }
        #expect(seen.map(\.completedBytes) == [5, 10])
        #expect(seen.map(\.isFinished) == [false, true])
    }

    @Test func cancelledReaderEndsItsStream() async {
        let reader = Task {
            for await _ in ProgressSampler.stream(of: { Session.Progress(completedBytes: 1) }) {}
        }
        reader.cancel()
        await reader.value
    }
}
