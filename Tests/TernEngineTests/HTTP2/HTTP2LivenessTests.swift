import Testing

@testable import TernEngine

/// A reference to a value under test, because `#expect` cannot call a mutating function.
private final class Watched {
    private var liveness: HTTP2Liveness

    init(_ limits: HTTP2Liveness.Limits, now: UInt64) { liveness = HTTP2Liveness(limits, now: now) }

    var deadline: UInt64 { liveness.deadline }

    func received(at now: UInt64) { liveness.received(at: now) }
    func responseProgressed() { liveness.responseProgressed() }
    func rested() { liveness.rested() }

    func started(isFirst: Bool, at now: UInt64) -> Bool {
        liveness.started(isFirst: isFirst, at: now, acknowledged: 0)
    }

    func expired(at now: UInt64, acknowledged: Int = 0) -> HTTP2Liveness.Action {
        liveness.expired(at: now, acknowledged: acknowledged)
    }
}

@Suite struct HTTP2LivenessTests {
    private static let limits = HTTP2Liveness.Limits(silences: [15, 60, 300], answer: 10, unused: 5)

    private func started() -> Watched {
        let liveness = Watched(Self.limits, now: 0)
        #expect(!liveness.started(isFirst: true, at: 0))
        return liveness
    }

    @Test func silenceIsFollowedByPingAndByTheEnd() {
        let liveness = started()
        #expect(liveness.deadline == 15)
        #expect(liveness.expired(at: 14) == .wait)
        #expect(liveness.expired(at: 15) == .ping)
        #expect(liveness.deadline == 25)
        #expect(liveness.expired(at: 24) == .wait)
        #expect(liveness.expired(at: 25) == .close)
    }

    @Test func eachByteStartsTheSilenceAgain() {
        let liveness = started()
        liveness.received(at: 7)
        #expect(liveness.deadline == 22)
        #expect(liveness.expired(at: 22) == .ping)
        liveness.received(at: 31)
        #expect(liveness.deadline == 31 + 60)
    }

    @Test func silencesGrowUntilAResponseProgresses() {
        let liveness = started()
        var now: UInt64 = 0
        for silence: UInt64 in [15, 60, 300, 300] {
            #expect(liveness.deadline == now + silence)
            now += silence
            #expect(liveness.expired(at: now) == .ping)
            now += 1
            liveness.received(at: now)
        }
        liveness.responseProgressed()
        #expect(liveness.deadline == now + 15)
    }

    @Test func furtherStreamsDoNotDelayPing() {
        let liveness = started()
        #expect(!liveness.started(isFirst: false, at: 14))
        #expect(liveness.deadline == 15)
    }

    @Test func theSilenceBeginsWithTheFirstStream() {
        let liveness = started()
        liveness.received(at: 1)
        liveness.rested()
        #expect(!liveness.started(isFirst: true, at: 5))
        #expect(liveness.deadline == 20)
    }

    @Test(arguments: [(4, false), (5, true), (1_000, true)])
    func anUnusedConnectionIsAskedWithItsFirstStream(_ now: UInt64, isAsked: Bool) {
        let liveness = started()
        liveness.rested()
        #expect(liveness.started(isFirst: true, at: now) == isAsked)
        guard isAsked else { return }
        #expect(liveness.deadline == now + 10)
        #expect(liveness.expired(at: now + 10) == .close)
    }

    @Test func acknowledgedBytesStartTheLimitForTheAnswerAgain() {
        let liveness = started()
        #expect(liveness.expired(at: 15, acknowledged: 100) == .ping)
        #expect(liveness.expired(at: 25, acknowledged: 101) == .wait)
        #expect(liveness.deadline == 35)
        #expect(liveness.expired(at: 35, acknowledged: 101) == .close)
    }

    @Test func aConnectionWithoutStreamsHasNoLimitForItsAnswer() {
        let liveness = started()
        #expect(liveness.expired(at: 15) == .ping)
        liveness.rested()
        #expect(liveness.expired(at: 25) == .wait)
    }

    @Test func limitsWithoutEndNeverExpire() {
        let limits = HTTP2Liveness.Limits(silences: [], answer: .max, unused: .max)
        let liveness = Watched(limits, now: 1)
        #expect(!liveness.started(isFirst: true, at: .max - 1))
        #expect(liveness.deadline == .max)
    }
}
