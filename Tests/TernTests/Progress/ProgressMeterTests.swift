import Testing

@testable import Tern

@Suite("ProgressMeter", .timeLimit(.minutes(1)))
struct ProgressMeterTests {
    private func all(_ stream: AsyncStream<Session.Progress>) async -> [Session.Progress] {
        var values: [Session.Progress] = []
        for await value in stream { values.append(value) }
        return values
    }

    @Test func theFirstElementIsTheCurrentOne() async {
        let meter = ProgressMeter()
        var early = meter.downloadStream.makeAsyncIterator()
        #expect(await early.next() == Session.Progress())
        meter.store(sent: 0, of: nil, received: 30, of: 100)
        var late = meter.downloadStream.makeAsyncIterator()
        let first = await late.next()
        #expect(first?.completedBytes == 30)
        #expect(first?.totalBytes == 100)
        #expect(first?.fractionCompleted == 0.3)
        #expect(first?.isFinished == false)
    }

    /// A sender that stops within 10 ms of the last publication leaves no number unpublished.
    @Test func theLastNumbersBeforeAPauseArePublished() async {
        let meter = ProgressMeter()
        var download = meter.downloadStream.makeAsyncIterator()
        _ = await download.next()
        for count in 1...3 where meter.update(sent: 0, of: nil, received: Int64(count), of: 9) { meter.publishSoon() }
        while let progress = await download.next(), progress.completedBytes < 3 {}
        #expect(meter.download.completedBytes == 3)
    }

    @Test func directionsAreSeparate() async {
        let meter = ProgressMeter()
        var upload = meter.uploadStream.makeAsyncIterator()
        var download = meter.downloadStream.makeAsyncIterator()
        _ = await (upload.next(), download.next())
        meter.store(sent: 5, of: 10, received: 0, of: nil)
        #expect(await upload.next()?.completedBytes == 5)
        meter.store(sent: 5, of: 10, received: 7, of: nil)
        #expect(await download.next()?.completedBytes == 7)
        meter.finish()
        #expect(await upload.next()?.isFinished == true)
        #expect(await download.next()?.isFinished == true)
        #expect(await (upload.next(), download.next()) == (nil, nil))
    }

    @Test func slowReaderReceivesTheNewestAndTheLastValue() async {
        let meter = ProgressMeter()
        var iterator = meter.downloadStream.makeAsyncIterator()
        for bytes in 1...100 as ClosedRange<Int64> { meter.store(sent: 0, of: nil, received: bytes, of: 200) }
        #expect(await iterator.next()?.completedBytes == 100)
        meter.store(sent: 0, of: nil, received: 150, of: 200)
        meter.finish()
        let last = await iterator.next()
        #expect(last?.completedBytes == 150)
        #expect(last?.isFinished == true)
        #expect(await iterator.next() == nil)
    }

    @Test func onlyAWholeBodyHasNoTimeLeft() {
        func left(_ completed: Int64, of total: Int64?) -> Duration? {
            Session.Progress(completedBytes: completed, totalBytes: total, bytesPerSecond: 10, isFinished: true)
                .estimatedTimeRemaining
        }
        #expect(left(200, of: 200) == .zero)
        // A transfer that was cancelled or has failed.
        #expect(left(150, of: 200) == nil && left(150, of: nil) == nil)
    }

    /// A server can state any length, and send a byte now and then.
    @Test(arguments: [1e-300, 1e-9, 0.3, 1, 1e9, 1e300, .infinity, .nan] as [Double])
    func noSpeedAndNoLengthEndTheProcess(speed: Double) throws {
        for (completed, total) in [(0, .max), (1, .max), (.max, 1), (.max, .max), (0, 0), (-1, .max)]
            as [(Int64, Int64)]
        {
            let progress = Session.Progress(completedBytes: completed, totalBytes: total, bytesPerSecond: speed)
            if let time = progress.estimatedTimeRemaining {
                #expect(time >= .zero && time.components.seconds <= 100 * 365 * 86_400)
            }
            #expect(!progress.description.isEmpty)
        }
        let slow = Session.Progress(completedBytes: 1, totalBytes: .max, bytesPerSecond: 0.3)
        #expect(slow.estimatedTimeRemaining == nil)
    }

    @Test func anOffsetAndAnyStatedLengthHaveASum() async {
        let meter = ProgressMeter()
        meter.startDownload(at: 10)
        meter.store(sent: 0, of: nil, received: 5, of: .max)
        #expect(meter.download.completedBytes == 15 && meter.download.totalBytes == .max)
    }

    @Test func theDescriptionHasUnits() {
        func text(_ completed: Int64, of total: Int64?, _ speed: Double? = nil, isFinished: Bool = false) -> String {
            "\(Session.Progress(completedBytes: completed, totalBytes: total, bytesPerSecond: speed, isFinished: isFinished))"
        }
        #expect(text(0, of: nil) == "0 bytes")
        #expect(text(29_631_367, of: 57_200_000, 10_192_903.2) == "29.6 MB of 57.2 MB (51%), 10.1 MB/s, 3 s left")
        #expect(text(999, of: 1_000, 0.5) == "999 bytes of 1.0 kB (99%), 0 bytes/s, 2 s left")
        #expect(text(0, of: 3_661_000, 1_000) == "0 bytes of 3.6 MB (0%), 1.0 kB/s, 1 h 2 min left")
        #expect(text(7, of: nil, isFinished: true) == "7 bytes, ended")
        #expect(text(.max, of: .max, isFinished: true) == "9223372.0 TB of 9223372.0 TB (100%), ended")
    }

    @Test func lateSubscriberReceivesTheLastValue() async {
        let meter = ProgressMeter()
        meter.store(sent: 3, of: 3, received: 8, of: 8)
        meter.finish()
        for _ in 0..<2 {
            let values = await all(meter.downloadStream)
            #expect(values == [Session.Progress(completedBytes: 8, totalBytes: 8, isFinished: true)])
            #expect(await all(meter.uploadStream).map(\.completedBytes) == [3])
        }
    }

    @Test func anUnknownTotalIsNil() async {
        let meter = ProgressMeter()
        var iterator = meter.downloadStream.makeAsyncIterator()
        meter.store(sent: 0, of: nil, received: 5, of: nil)
        let value = await iterator.next()
        #expect(value?.totalBytes == nil)
        #expect(value?.fractionCompleted == nil)
        #expect(value?.estimatedTimeRemaining == nil)
    }

    @Test func bytesOfAnUnknownTotalArePublished() async {
        let meter = ProgressMeter()
        var iterator = meter.downloadStream.makeAsyncIterator()
        #expect(await iterator.next()?.completedBytes == 0)
        for bytes in [5, 9, 10] as [Int64] {
            meter.store(sent: 0, of: nil, received: bytes, of: nil)
            #expect(await iterator.next()?.completedBytes == bytes)
        }
    }

    @Test func changedTotalIsPublishedWithoutNewBytes() async {
        let meter = ProgressMeter()
        var iterator = meter.downloadStream.makeAsyncIterator()
        #expect(await iterator.next()?.totalBytes == nil)
        meter.store(sent: 0, of: nil, received: 0, of: 50)
        #expect(await iterator.next()?.totalBytes == 50)
        meter.store(sent: 0, of: nil, received: 0, of: 70)
        #expect(await iterator.next()?.totalBytes == 70)
    }

    @Test func unchangedValueIsNotPublished() async {
        let meter = ProgressMeter()
        var iterator = meter.downloadStream.makeAsyncIterator()
        _ = await iterator.next()
        meter.store(sent: 0, of: nil, received: 0, of: nil)
        meter.store(sent: 9, of: 9, received: 0, of: nil)
        meter.store(sent: 9, of: 9, received: 1, of: nil)
        #expect(await iterator.next()?.completedBytes == 1)
    }

    @Test func progressOfARepeatedBodyNeverDecreases() async {
        let meter = ProgressMeter()
        var iterator = meter.uploadStream.makeAsyncIterator()
        meter.store(sent: 80, of: 100, received: 0, of: nil)
        #expect(await iterator.next()?.completedBytes == 80)
        meter.store(sent: 10, of: 120, received: 0, of: nil)
        let again = await iterator.next()
        #expect(again?.completedBytes == 80)
        #expect(again?.totalBytes == 120)
        meter.store(sent: 90, of: 120, received: 0, of: nil)
        #expect(await iterator.next()?.completedBytes == 90)
        meter.store(sent: 20, of: nil, received: 0, of: nil)
        meter.finish()
        let last = await iterator.next()
        #expect(last?.completedBytes == 90)
        #expect(last?.totalBytes == 120)
    }

    @Test func theNumbersOfANewAttemptStartOver() async {
        let meter = ProgressMeter()
        var (uploads, downloads) = (meter.uploadStream.makeAsyncIterator(), meter.downloadStream.makeAsyncIterator())
        meter.beginAttempt(7)
        meter.store(sent: 80, of: 100, received: 40, of: 50)
        #expect(await uploads.next() == Session.Progress(completedBytes: 80, totalBytes: 100))
        #expect(await downloads.next() == Session.Progress(completedBytes: 40, totalBytes: 50))
        meter.beginAttempt(8)
        #expect(await uploads.next() == Session.Progress(attempt: 2))
        #expect(await downloads.next() == Session.Progress(attempt: 2))
        #expect(meter.counts(8) && !meter.counts(7))
        meter.store(sent: 10, of: 100, received: 5, of: 60)
        #expect(await downloads.next() == Session.Progress(completedBytes: 5, totalBytes: 60, attempt: 2))
        meter.finish()
        let last = await uploads.next()
        #expect(last?.completedBytes == 10 && last?.attempt == 2 && last?.isFinished == true)
    }

    @Test func aBodyThatIsNotTheResultDoesNotCount() async {
        let meter = ProgressMeter()
        var iterator = meter.downloadStream.makeAsyncIterator()
        meter.beginAttempt(1)
        meter.setBodyCounted(false)
        meter.store(sent: 0, of: nil, received: 40, of: 40)
        #expect(await iterator.next() == Session.Progress())
        // The result after all, such as a redirect that is not followed.
        meter.setBodyCounted(true)
        #expect(await iterator.next() == Session.Progress(completedBytes: 40, totalBytes: 40))
        meter.setBodyCounted(false)
        meter.beginAttempt(2)
        meter.store(sent: 0, of: nil, received: 3, of: 9)
        #expect(await iterator.next() == Session.Progress(completedBytes: 3, totalBytes: 9, attempt: 2))
    }

    @Test func aDownloadFromItsBeginningIsANewAttempt() async {
        let meter = ProgressMeter()
        var iterator = meter.downloadStream.makeAsyncIterator()
        meter.startDownload(at: 40)
        meter.startDownload(at: 60)
        #expect(await iterator.next() == Session.Progress(completedBytes: 60))
        meter.startDownload(at: 0)
        #expect(await iterator.next() == Session.Progress(attempt: 2))
    }

    /// All bytes that are discarded can have come in the first attempt, so that the offset was 0 before, too.
    @Test func aDownloadThatStartsOverIsANewAttempt() async {
        let meter = ProgressMeter()
        var iterator = meter.downloadStream.makeAsyncIterator()
        meter.startDownload(at: 0)
        #expect(await iterator.next() == Session.Progress())
        meter.store(sent: 0, of: nil, received: 30, of: 100)
        #expect(await iterator.next() == Session.Progress(completedBytes: 30, totalBytes: 100))
        meter.startDownload(at: 0)
        #expect(await iterator.next() == Session.Progress(attempt: 2))
        meter.startDownload(at: 0)
        meter.store(sent: 0, of: nil, received: 5, of: 60)
        #expect(await iterator.next() == Session.Progress(completedBytes: 5, totalBytes: 60, attempt: 2))
    }

    @Test func theFractionIsLessThanOneBeforeTheEnd() {
        let whole = Session.Progress(completedBytes: 100, totalBytes: 100)
        let fraction = whole.fractionCompleted ?? 1
        #expect(fraction < 1 && Float(fraction) < 1 && fraction > 0.999_999)
        #expect("\(whole)" == "100 bytes of 100 bytes (99%)")
        let over = Session.Progress(completedBytes: 200, totalBytes: 100)
        #expect(over.fractionCompleted == fraction)
        #expect(Session.Progress(completedBytes: 100, totalBytes: 100, isFinished: true).fractionCompleted == 1)
    }

    @Test func aResumedDownloadStartsAtItsOffset() async {
        let meter = ProgressMeter()
        var iterator = meter.downloadStream.makeAsyncIterator()
        _ = await iterator.next()
        meter.startDownload(at: 40)
        #expect(await iterator.next()?.completedBytes == 40)
        meter.store(sent: 0, of: nil, received: 10, of: 60)
        let value = await iterator.next()
        #expect(value?.completedBytes == 50)
        #expect(value?.totalBytes == 100)
    }

    /// The body of a response counts only once it is known to bring bytes of the file.
    @Test func aRestCountsFromItsAcceptanceOn() {
        let meter = ProgressMeter()
        meter.startDownload(at: 40, of: 100, countsBody: false)
        meter.store(sent: 0, of: nil, received: 2, of: 2)
        #expect(meter.download == Session.Progress(completedBytes: 40, totalBytes: 100))
        meter.countRest(until: 60, of: 100)
        #expect(meter.download == Session.Progress(completedBytes: 42, totalBytes: 100))
        // A body can be longer than its part.
        meter.store(sent: 0, of: nil, received: 25, of: nil)
        #expect(meter.download == Session.Progress(completedBytes: 60, totalBytes: 100))
        meter.startDownload(at: 60, of: 100, countsBody: false)
        #expect(meter.download == Session.Progress(completedBytes: 60, totalBytes: 100))
        // The bytes of a wrong body are discarded.
        meter.endDownload(at: 50, of: 100)
        meter.store(sent: 0, of: nil, received: 30, of: nil)
        #expect(meter.download == Session.Progress(completedBytes: 50, totalBytes: 100, attempt: 2))
    }

    @Test func aWholeInPlaceOfTheRestBeginsAnAttempt() {
        let meter = ProgressMeter()
        meter.startDownload(at: 40, of: 100, countsBody: false)
        meter.store(sent: 0, of: nil, received: 30, of: 90)
        meter.countWhole(of: nil)
        #expect(meter.download == Session.Progress(completedBytes: 30, totalBytes: 90, attempt: 2))
    }

    @Test func emptyBodyIsCompleteAtItsEnd() async {
        let meter = ProgressMeter()
        var iterator = meter.downloadStream.makeAsyncIterator()
        meter.store(sent: 0, of: nil, received: 0, of: 0)
        #expect(await iterator.next()?.fractionCompleted == 0)
        meter.finish()
        #expect(await iterator.next()?.fractionCompleted == 1)
    }

    @Test func subscriberDuringTheEndReceivesIt() async {
        for round in 0..<3_000 {
            let meter = ProgressMeter()
            meter.store(sent: 1, of: 1, received: 1, of: 1)
            async let finished: Void = Self.run { meter.finish() }
            if round % 2 == 0 { await Task.yield() }
            let last = await all(meter.downloadStream).last
            #expect(last?.isFinished == true)
            await finished
        }
    }

    @concurrent
    private static func run(_ body: @Sendable () -> Void) async { body() }
}
