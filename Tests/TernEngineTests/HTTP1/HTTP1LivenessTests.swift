import Testing

@testable import TernEngine

@Suite struct HTTP1LivenessTests {
    private static let second: UInt64 = 1_000_000_000

    private func path(_ silence: UInt64, retransmissions: Int = 0, probes: Int = 0) -> PathState {
        PathState(silence: silence * Self.second, retransmissions: retransmissions, unansweredProbes: probes)
    }

    private func started() -> HTTP1Liveness {
        var liveness = HTTP1Liveness(HTTP1Liveness.Limits())
        #expect(liveness.started(at: 100 * Self.second) == 108 * Self.second)
        return liveness
    }

    /// Looks at each second from the first on, and returns that in which the connection is ended; nil for none in an
    /// hour.
    private func end(_ liveness: inout HTTP1Liveness, _ path: (UInt64) -> PathState) -> UInt64? {
        var next = 108 * Self.second
        while next < 3_700 * Self.second {
            switch liveness.look(at: next, path(next / Self.second - 100)) {
            case .wait(let time): next = time
            case .probe(let time): next = time
            case .close: return next / Self.second - 100
            }
        }
        return nil
    }

    @Test func aRequestThatIsNeverAcknowledgedEndsWithin20Seconds() {
        var liveness = started()
        #expect(end(&liveness) { path($0 + 50, retransmissions: 5) } == 16)
    }

    @Test func aPeerThatVanishesAfterItsAcknowledgementIsFoundByProbes() {
        var liveness = started()
        #expect(end(&liveness) { path($0, probes: Int($0) / 3 - 2) } == 16)
    }

    @Test func aServerThatTakesAnHourIsNotDisturbed() {
        var liveness = started()
        #expect(end(&liveness) { path($0 % 5) } == nil)
        // One probe on its way, and a zero window whose probes are answered.
        var other = started()
        #expect(end(&other) { path($0, probes: 1) } == nil)
    }

    @Test func theSilenceBeforeTheRequestDoesNotCount() {
        var liveness = started()
        let look = liveness.look(at: 101 * Self.second, path(500, retransmissions: 1))
        #expect(look == .wait(until: 108 * Self.second))
    }

    @Test func probesBecomeFrequentOnceAndSeldomAfterTheAnswer() {
        var liveness = started()
        #expect(liveness.look(at: 108 * Self.second, path(8)) == .probe(nextLook: 112 * Self.second))
        #expect(liveness.look(at: 112 * Self.second, path(12)) == .wait(until: 116 * Self.second))
        #expect(liveness.rested() && !liveness.rested())
    }

    @Test func timesDoNotOverflow() {
        var liveness = HTTP1Liveness(HTTP1Liveness.Limits(unprobed: .max, dead: .max, interval: .max))
        #expect(liveness.started(at: 5) == .max)
        #expect(liveness.look(at: 0, PathState(silence: .max)) == .wait(until: .max))
    }
}
