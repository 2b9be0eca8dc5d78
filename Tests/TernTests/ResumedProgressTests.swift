import TernConcurrency
import Testing

@testable import Tern

@Suite(.timeLimit(.minutes(1)))
struct ResumedProgressTests {
    @Test func whatAResumedDownloadHadDoesNotCountAsSpeed() async {
        let meter = ProgressMeter()
        var iterator = meter.downloadStream.makeAsyncIterator()
        #expect(await iterator.next()?.completedBytes == 0)
        // No speed is told before a tenth of a second was measured, and the meter's clock is the system's.
        let start = MonotonicClock.nanoseconds()
        while MonotonicClock.nanoseconds() - start < 110_000_000 { await Task.yield() }
        meter.startDownload(at: 1_000_000_000)
        let value = await iterator.next()
        #expect(value?.completedBytes == 1_000_000_000)
        #expect(value?.bytesPerSecond == nil)
    }
}
