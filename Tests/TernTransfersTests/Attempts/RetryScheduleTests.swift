import Foundation
import Testing

@testable import Tern
@testable import TernTransfers

@Suite("Durable downloads: retries")
struct RetryScheduleTests {
    private let request: Request

    init() throws { request = try Request(.get, "https://a.example/f") }

    private func failure(
        _ kind: NetworkError.Kind = .connectionLost, status: Int? = nil, headers: Headers = [:],
        elapsed: Duration = .zero
    ) -> RetrySchedule.Failure {
        let head = status.map { ResponseHead(status: $0, version: .http11, target: request.target, headers: headers) }
        let error = NetworkError(
            FailureCause(status == nil ? kind : .status, "a test"), request: request, response: head)
        return RetrySchedule.Failure(error: error, request: request, elapsed: elapsed, random: 1)
    }

    @Test func delaysDoubleUpToTheirBound() {
        var schedule = RetrySchedule(TransferRetry())
        let delays = (0..<9).map { _ in schedule.decide(failure()) }
        #expect(delays[0] == .retry(after: .milliseconds(500)))
        #expect(delays[3] == .retry(after: .seconds(4)))
        #expect(delays[8] == .retry(after: .seconds(30)))
        #expect(schedule.decide(failure()) == .giveUp(nil))
    }

    @Test func newBytesResetTheCount() {
        var schedule = RetrySchedule(TransferRetry())
        for _ in 0..<100 {
            var failure = failure()
            failure.hasNewBytes = true
            #expect(schedule.decide(failure) == .retry(after: .milliseconds(500)))
        }
    }

    @Test func timeWithoutProgressEndsTheDownload() {
        var rules = TransferRetry()
        rules.timeWithoutProgress = .seconds(60)
        var schedule = RetrySchedule(rules)
        #expect(schedule.decide(failure(elapsed: .seconds(59))) == .retry(after: .milliseconds(500)))
        guard case .giveUp(_?) = schedule.decide(failure(elapsed: .seconds(60))) else {
            Issue.record("the download continues")
            return
        }
    }

    @Test func bytesThatMovedRestartTheTimeAlone() {
        var rules = TransferRetry()
        rules.timeWithoutProgress = .seconds(60)
        var schedule = RetrySchedule(rules)
        var moving = failure(elapsed: .seconds(3_600))
        moving.hasMovedBytes = true
        #expect(schedule.decide(moving) == .retry(after: .milliseconds(500)))
        #expect(schedule.decide(failure(elapsed: .seconds(3_601))) == .retry(after: .seconds(1)))
        for _ in 0..<7 { _ = schedule.decide(moving) }
        #expect(schedule.decide(moving) == .giveUp(nil))
    }

    @Test func attemptsAndTimeInAllAreLimited() {
        var rules = TransferRetry()
        rules.maximumAttempts = 2
        rules.maximumTime = .seconds(100)
        var schedule = RetrySchedule(rules)
        var progressing = failure()
        progressing.hasNewBytes = true
        #expect(schedule.decide(progressing) == .retry(after: .milliseconds(500)))
        #expect(schedule.decide(progressing) == .giveUp("the limit of attempts is reached"))
        var second = RetrySchedule(rules)
        guard case .giveUp(_?) = second.decide(failure(elapsed: .seconds(100))) else {
            Issue.record("the download continues")
            return
        }
    }

    @Test func retryAfterIsTheLeastDelayAndBounded() {
        var schedule = RetrySchedule(TransferRetry())
        #expect(
            schedule.decide(failure(status: 503, headers: ["Retry-After": "100"]))
                == .retry(after: .milliseconds(100_500)))
        let reason = "the server asks to wait 121.0 seconds, longer than the limit of 120.0 seconds"
        #expect(schedule.decide(failure(status: 429, headers: ["Retry-After": "121"])) == .giveUp(reason))
        let digits = String(repeating: "9", count: 30)
        let endless = "the server asks to wait 4294967296.0 seconds, longer than the limit of 120.0 seconds"
        #expect(schedule.decide(failure(status: 429, headers: ["Retry-After": digits])) == .giveUp(endless))
        var other = RetrySchedule(TransferRetry())
        #expect(
            other.decide(failure(status: 503, headers: ["Retry-After": "1.5"])) == .retry(after: .milliseconds(500)))
    }

    @Test func waitForTheNetworkCostsNoAttempt() {
        var schedule = RetrySchedule(TransferRetry())
        var offline = failure(.dns)
        offline.hasNetwork = false
        for delay in [1, 2, 4, 8, 16, 30, 30, 30] {
            #expect(schedule.decide(offline) == .waitForNetwork(upTo: .seconds(delay)))
        }
        schedule.addOfflineTime(.seconds(3_600))
        #expect(schedule.decide(failure(elapsed: .seconds(3_600))) == .retry(after: .milliseconds(500)))
    }

    @Test(arguments: [
        FileFailure("open", "/a", code: EMFILE) as any Error, FileFailure("open", "/a", code: ENFILE),
        OutOfDescriptors(),
    ])
    func theWaitForADescriptorCostsNoAttempt(_ cause: any Error) {
        var rules = TransferRetry()
        (rules.maximumAttempts, rules.maximumTime) = (1, .seconds(600))
        var schedule = RetrySchedule(rules)
        var lacking = failure()
        lacking.error = NetworkError(
            FailureCause(.connectionFailed, "a test", underlying: cause), request: request)
        for delay in [1, 2, 4, 8, 16, 30, 30] {
            #expect(schedule.decide(lacking) == .waitForDescriptor(.seconds(delay)))
        }
        lacking.elapsed = .seconds(599)
        #expect(schedule.decide(lacking) == .waitForDescriptor(.seconds(1)))
        lacking.elapsed = .seconds(600)
        #expect(schedule.decide(lacking) == .giveUp("the time limit of 600.0 seconds is reached"))
    }

    @Test func waitForTheNetworkBeginsAnewAfterAnotherFailure() {
        var rules = TransferRetry()
        rules.offlineWait = .seconds(7)
        var schedule = RetrySchedule(rules)
        var offline = failure(.connectionFailed)
        offline.hasNetwork = false
        #expect(schedule.decide(offline) == .waitForNetwork(upTo: .seconds(1)))
        #expect(schedule.decide(failure(elapsed: .seconds(1))) == .retry(after: .milliseconds(500)))
        offline.elapsed = .seconds(20)
        #expect(schedule.decide(offline) == .waitForNetwork(upTo: .seconds(1)))
    }

    @Test func refusedURLIsReplacedTwice() {
        var schedule = RetrySchedule(TransferRetry())
        #expect(schedule.decide(failure(status: 403)) == .giveUp(nil))
        var replaceable = failure(status: 403)
        replaceable.canReplaceURL = true
        #expect(schedule.decide(replaceable) == .replaceURL)
        #expect(schedule.decide(replaceable) == .replaceURL)
        #expect(schedule.decide(replaceable) == .giveUp("a new URL was refused, too"))
        replaceable.hasNewBytes = true
        #expect(schedule.decide(replaceable) == .replaceURL)
    }

    @Test(arguments: [NetworkError.Kind.untrustedServer, .fileSystem, .digestMismatch, .malformedResponse])
    func permanentFailureEndsTheDownload(kind: NetworkError.Kind) {
        var schedule = RetrySchedule(TransferRetry())
        #expect(schedule.decide(failure(kind)) == .giveUp(nil))
    }

    @Test func theWaitForTheNetworkEndsWithTheWholeTime() {
        var rules = TransferRetry()
        rules.maximumTime = .seconds(100)
        var schedule = RetrySchedule(rules)
        var offline = failure(.dns, elapsed: .seconds(40))
        offline.hasNetwork = false
        #expect(schedule.decide(offline) == .waitForNetwork(upTo: .seconds(1)))
        offline.elapsed = .milliseconds(99_500)
        #expect(schedule.decide(offline) == .waitForNetwork(upTo: .milliseconds(500)))
        rules.offlineWait = .seconds(7)
        schedule = RetrySchedule(rules)
        for (elapsed, delay) in [(40, 1), (41, 2), (43, 4)] {
            offline.elapsed = .seconds(elapsed)
            #expect(schedule.decide(offline) == .waitForNetwork(upTo: .seconds(delay)))
        }
        offline.elapsed = .seconds(47)
        #expect(schedule.decide(offline) == .giveUp("the network was unreachable and did not return in time"))
        rules.endsOffline = true
        schedule = RetrySchedule(rules)
        #expect(schedule.decide(offline) == .endOffline)
    }

    @Test func aProgressBeforeTheFirstByteCounts() {
        var schedule = RetrySchedule(TransferRetry())
        schedule.recordProgress(at: .seconds(3_600))
        #expect(schedule.decide(failure(elapsed: .seconds(3_601))) == .retry(after: .milliseconds(500)))
    }
}
