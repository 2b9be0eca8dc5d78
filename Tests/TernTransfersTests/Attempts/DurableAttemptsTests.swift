import Tern
import TernTesting
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The state and the texts that downloads and uploads have in common.
@Suite("Durable transfers: attempts", .timeLimit(.minutes(1)))
struct DurableAttemptsTests {
    private typealias Downloads = DurableAttempts<DurableDownloadEvent, Int>
    private typealias Uploads = DurableAttempts<DurableUploadEvent, Int>

    private let request: Request
    private let clock = ManualClock()

    init() throws { request = try Request(.get, "https://a.test/file") }

    private func attempts<Event>(_ change: (inout TransferRetry) -> Void = { _ in }) -> DurableAttempts<Event, Int> {
        var retry = TransferRetry()
        change(&retry)
        let session = Session(stub: StubTransport { _ in .data(Data()) })
        return DurableAttempts(.success(request), session: session, retry: retry, clock: clock)
    }

    private var failure: RetrySchedule.Failure {
        RetrySchedule.Failure(
            error: NetworkError(FailureCause(.connectionLost, "a test"), request: request), request: request)
    }

    @Test func waitIsShownUntilTheNextAttempt() async throws {
        let attempts: Downloads = attempts()
        async let next = attempts.next(RetrySchedule(TransferRetry()), after: failure)
        try await clock.waitForSleepers(1)
        let delay = try #require(clock.nextDeadline).offset
        #expect(attempts.wait == .delay(delay))
        clock.advance(by: delay)
        _ = try await next
        #expect(attempts.wait == nil)
        #expect(attempts.trace == [.failed("\(failure.error)"), .waited(delay)])
    }

    /// Each segment has a schedule of its own.
    @Test func failuresOfAllSchedulesCountTogether() async throws {
        var retry = TransferRetry()
        retry.maximumAttempts = 2
        retry.policy.firstDelay = .zero
        let (schedule, attempts): (RetrySchedule, Downloads) = (RetrySchedule(retry), attempts())
        _ = try await attempts.next(schedule, after: failure)
        let error = await #expect(throws: NetworkError.self) {
            try await attempts.next(schedule, after: failure)
        }
        #expect(error?.reason.contains("the limit of attempts is reached") == true)
    }

    @Test func textsNameTheTransferAndWhatItHasMoved() throws {
        let (downloads, uploads): (Downloads, Uploads) = (attempts(), attempts())
        #expect(downloads.cancellation.reason == "the download was cancelled")
        #expect(uploads.cancellation.reason == "the upload was cancelled")
        #expect(downloads.ending(failure.error, rest: "nothing is kept").reason == failure.error.reason)
        clock.advance(by: .milliseconds(2_500))
        downloads.begin()
        downloads.addMoved(7)
        #expect(
            downloads.ending(failure.error, rest: "nothing is kept").reason
                == "a test; 1 attempt in 2.5 seconds, 7 bytes received, nothing is kept")
        for _ in 0..<2 { uploads.begin() }
        let error = uploads.ending(failure.error, rest: "the server has no part")
        #expect(error.attempts == 2 && error.reason.hasSuffix("; 0 bytes sent, the server has no part"), "\(error)")
    }

    @Test func cancelledTransferHasNoFurtherRequest() async throws {
        let attempts: Uploads = attempts()
        let request = request
        let task = Task {
            unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            return try attempts.prepared(request)
        }
        let error = await #expect(throws: NetworkError.self) { try await task.value }
        #expect(error?.kind == .cancelled)
        #expect(try attempts.prepared(request).isRetriedByCaller)
    }

    @Test func requestHasTheRestOfTheTime() throws {
        let attempts: Uploads = attempts { $0.maximumTime = .seconds(60) }
        clock.advance(by: .seconds(45))
        #expect(try attempts.prepared(request).timeouts.total == .seconds(15))
        clock.advance(by: .seconds(45))
        #expect(try attempts.prepared(request).timeouts.total == .milliseconds(1))
    }

    @Test func traceKeepsTheNewestDecisions() {
        let attempts: Downloads = attempts()
        for number in Int64(0)..<1_001 { attempts.record(.continued(at: number)) }
        #expect(attempts.trace.count == 1_000 && attempts.trace.first == .continued(at: 1))
    }
}
