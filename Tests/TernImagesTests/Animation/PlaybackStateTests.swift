import Testing

@testable import TernImages

private func milliseconds(_ count: Int) -> Duration { .milliseconds(count) }

/// Returns a started state with known durations.
private func playing(
    _ durations: [Int], loops: Int = 0, direction: PlaybackOptions.Direction = .forward, rate: Double = 1
) -> PlaybackState {
    var state = PlaybackState(
        count: durations.count, loopCount: loops, options: PlaybackOptions(direction: direction, rate: rate))
    for (index, duration) in durations.enumerated() { state.setDuration(milliseconds(duration), of: index) }
    state.start(at: .zero)
    return state
}

/// Follows the state from change to change. Returns the frames with the times at which they are shown, and whether it
/// ended.
private func follow(_ state: inout PlaybackState, changes: Int) -> (shown: [(Int, Duration)], ended: Bool) {
    var (shown, now): ([(Int, Duration)], Duration) = ([], .zero)
    for _ in 0..<changes {
        switch state.advance(to: now) {
        case .show(let index, let until):
            shown.append((index, now))
            guard let until else { return (shown, false) }
            now = until
        case .end(let index):
            if shown.last?.0 != index { shown.append((index, now)) }
            return (shown, true)
        case .needsDuration: return (shown, false)
        }
    }
    return (shown, false)
}

@Suite struct PlaybackStateTests {
    @Test(arguments: [0.25, 0.5, 1, 2, 4]) func tenThousandLoopsDoNotDrift(rate: Double) {
        let durations = [100, 33, 41, 70, 16]
        var state = playing(durations, rate: rate)
        let loops = 10_000
        let (shown, _) = follow(&state, changes: loops * durations.count)
        #expect(shown.map(\.0).prefix(7) == [0, 1, 2, 3, 4, 0, 1])
        let length = milliseconds(durations.reduce(0, +)) / Int(rate * 4) * 4
        for loop in [1, 9, 9_999] { #expect(shown[loop * durations.count].1 == length * loop) }
        #expect(state.loopsDone == loops - 1)
    }

    @Test func aRateThatDividesNothingStaysWithinAnAttosecond() {
        var state = playing([7, 11, 13], rate: 3)
        let (shown, _) = follow(&state, changes: 3_000)
        let exact = milliseconds(31) * 999 / 3
        #expect(shown[999 * 3].1 - exact <= Duration(secondsComponent: 0, attosecondsComponent: 1))
    }

    @Test func loopsAreCountedAndTheLastFrameStays() {
        var forward = playing([10, 20, 30], loops: 2)
        let (shown, ended) = follow(&forward, changes: 100)
        #expect(shown.map(\.0) == [0, 1, 2, 0, 1, 2])
        #expect(ended)
        #expect(forward.advance(to: .seconds(9)) == .end(2))
        var reverse = playing([10, 20, 30], loops: 2, direction: .reverse)
        #expect(follow(&reverse, changes: 100).shown.map(\.0) == [2, 1, 0, 2, 1, 0])
        var bounce = playing([10, 20, 30], loops: 2, direction: .bounce)
        #expect(follow(&bounce, changes: 100).shown.map(\.0) == [0, 1, 2, 1, 0, 1, 2, 1, 0])
        #expect(bounce.hasEnded)
        var pair = playing([10, 20], loops: 2, direction: .bounce)
        #expect(follow(&pair, changes: 100).shown.map(\.0) == [0, 1, 0, 1, 0])
        var still = playing([10])
        #expect(still.advance(to: .zero) == .end(0))
    }

    @Test func theOptionsLoopCountWinsOverTheFiles() {
        var state = PlaybackState(count: 2, loopCount: 0, options: PlaybackOptions(loopCount: 1))
        for index in 0..<2 { state.setDuration(milliseconds(10), of: index) }
        state.start(at: .zero)
        #expect(follow(&state, changes: 50).shown.map(\.0) == [0, 1])
    }

    @Test func aLateReaderKeepsTheTime() {
        var state = playing([10, 20, 30])
        #expect(state.advance(to: milliseconds(35)) == .show(2, until: milliseconds(60)))
        // Many loops at once, as after a suspension of the process.
        let month = Duration.seconds(30 * 86_400)
        #expect(state.advance(to: month + milliseconds(12)) == .show(1, until: month + milliseconds(30)))
        #expect(state.loopsDone == 43_200_000)
    }

    @Test(arguments: PlaybackOptions.Direction.allCases)
    func skippingManyLoopsIsTheSameAsPlayingThem(direction: PlaybackOptions.Direction) {
        let durations = [17, 5, 29, 11]
        for late in stride(from: 0, to: 2_000, by: 13) {
            var step = playing(durations, loops: 25, direction: direction)
            var jump = step
            var now = Duration.zero
            while case .show(_, let until?) = step.advance(to: now), until <= milliseconds(late) { now = until }
            #expect(jump.advance(to: milliseconds(late)) == step.advance(to: milliseconds(late)))
            #expect(jump.loopsDone == step.loopsDone)
        }
    }

    @Test func pausingKeepsWhatIsLeftOfTheFrame() {
        var state = playing([100, 100])
        #expect(state.advance(to: milliseconds(130)) == .show(1, until: milliseconds(200)))
        state.pause(at: milliseconds(130))
        #expect(state.advance(to: .seconds(50)) == .show(1, until: nil))
        state.resume(at: .seconds(60))
        #expect(state.advance(to: .seconds(60)) == .show(1, until: .seconds(60) + milliseconds(70)))
        state.resume(at: .seconds(61))
        #expect(state.advance(to: .seconds(60) + milliseconds(69)) == .show(1, until: .seconds(60) + milliseconds(70)))
    }

    @Test func theRateChangesInTheMiddleOfAFrame() {
        var state = playing([100, 100])
        _ = state.advance(to: milliseconds(40))
        state.setRate(4, at: milliseconds(40))
        #expect(state.advance(to: milliseconds(40)) == .show(0, until: milliseconds(55)))
        state.setRate(1_000, at: milliseconds(40))
        #expect(state.advance(to: milliseconds(40)) == .show(0, until: milliseconds(55)))
        state.setRate(0, at: milliseconds(50))
        #expect(state.advance(to: milliseconds(50)) == .show(0, until: milliseconds(130)))
        state.setRate(.nan, at: milliseconds(50))
        #expect(state.advance(to: milliseconds(50)) == .show(0, until: milliseconds(70)))
    }

    @Test func seekingGoesToAFrameOrATime() {
        var state = playing([100, 50, 70, 30])
        state.seek(toFrame: 2, at: milliseconds(10))
        #expect(state.advance(to: milliseconds(10)) == .show(2, until: milliseconds(80)))
        state.seek(to: milliseconds(120), at: milliseconds(20))
        #expect(state.advance(to: milliseconds(20)) == .show(1, until: milliseconds(50)))
        state.seek(toFrame: 99, at: milliseconds(30))
        #expect(state.advance(to: milliseconds(30)) == .show(3, until: milliseconds(60)))
        state.seek(to: .seconds(9), at: milliseconds(40))
        #expect(state.advance(to: milliseconds(40)) == .show(0, until: milliseconds(140)))
        state.pause(at: milliseconds(40))
        state.seek(toFrame: 1, at: milliseconds(40))
        #expect(state.advance(to: milliseconds(900)) == .show(1, until: nil))
    }

    @Test func aSeekAfterTheEndPlaysTheLastLoopAgain() {
        var state = playing([10, 10, 10], loops: 1)
        #expect(state.advance(to: milliseconds(30)) == .end(2))
        state.seek(toFrame: 1, at: milliseconds(50))
        #expect(state.advance(to: milliseconds(50)) == .show(1, until: milliseconds(60)))
        #expect(state.advance(to: milliseconds(70)) == .end(2))
    }

    @Test func reversingContinuesFromThePositionInTheFrame() {
        var state = playing([100, 100, 100])
        #expect(state.advance(to: milliseconds(130)) == .show(1, until: milliseconds(200)))
        state.setDirection(.reverse, at: milliseconds(130))
        #expect(state.advance(to: milliseconds(130)) == .show(1, until: milliseconds(160)))
        #expect(state.advance(to: milliseconds(160)) == .show(0, until: milliseconds(260)))
        state.setDirection(.bounce, at: milliseconds(200))
        #expect(state.advance(to: milliseconds(260)) == .show(1, until: milliseconds(360)))
    }

    @Test func unknownDurationsAreAskedForAsTheyAreNeeded() {
        var state = PlaybackState(count: 3, loopCount: 0)
        #expect(state.advance(to: .zero) == .needsDuration(0))
        state.setDuration(milliseconds(50), of: 0)
        #expect(state.advance(to: .seconds(3)) == .show(0, until: nil))
        state.start(at: .seconds(3))
        #expect(state.advance(to: .seconds(3)) == .show(0, until: .seconds(3) + milliseconds(50)))
        #expect(state.advance(to: .seconds(4)) == .needsDuration(1))
        state.setDuration(.zero, of: 1)
        state.setDuration(.seconds(9), of: 1)
        #expect(state.advance(to: .seconds(4)) == .needsDuration(2))
        state.seek(to: milliseconds(51), at: .seconds(4))
        #expect(state.advance(to: .seconds(4)) == .needsDuration(2))
        state.setDuration(milliseconds(10), of: 2)
        #expect(state.advance(to: .seconds(5)) == .show(2, until: .seconds(5) + milliseconds(10)))
    }

    @Test func upcomingFramesAreInTheOrderOfPlay() {
        #expect(playing([1, 1, 1, 1]).upcoming(3) == [0, 1, 2])
        #expect(playing([1, 1, 1, 1]).upcoming(9) == [0, 1, 2, 3])
        #expect(playing([1, 1, 1, 1], direction: .reverse).upcoming(3) == [3, 2, 1])
        var last = playing([1, 1, 1, 1])
        last.seek(toFrame: 3, at: .zero)
        #expect(last.upcoming(3) == [3, 0, 1])
        var once = playing([1, 1, 1, 1], loops: 1)
        once.seek(toFrame: 3, at: .zero)
        #expect(once.upcoming(3) == [3])
        #expect(playing([1, 1, 1], direction: .bounce).upcoming(9) == [0, 1, 2])
    }
}
