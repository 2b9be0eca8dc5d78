import TernConcurrency
import Testing

@testable import Tern

@Suite(.timeLimit(.minutes(1)))
struct ResumedProgressTests {
    @Test func resumedBytesDoNotCountAsSpeed() async {
        let meter = ProgressMeter()
        var iterator = meter.downloadStream.makeAsyncIterator()
        #expect(await iterator.next()?.completedBytes == 0)
        // The meter reports a speed after a tenth of a second at the earliest, and its clock is the system's.
        let start = MonotonicClock.nanoseconds()
        while MonotonicClock.nanoseconds() - start < 110_000_000 { await Task.yield() }
        meter.startDownload(at: 1_000_000_000)
        let value = await iterator.next()
        #expect(value?.completedBytes == 1_000_000_000)
        #expect(value?.bytesPerSecond == nil)
    }
}
