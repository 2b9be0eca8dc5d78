import Tern
import Testing

@testable import TernViewModels

@Suite("Progress state")
struct ProgressStateTests {
    private var state = ProgressState(.download, isAnimated: true)

    private func progress(_ completed: Int64, of total: Int64?, isFinished: Bool = false) -> Session.Progress {
        Session.Progress(completedBytes: completed, totalBytes: total, isFinished: isFinished)
    }

    private mutating func fraction(_ progress: Session.Progress) -> Double?? {
        switch state.next(progress) {
        case .none: nil
        case .show(let shown), .finish(let shown): shown.fraction
        }
    }

    @Test mutating func itShowsFractionsAndKeepsItsAnimation() {
        let action = state.next(progress(1, of: 4))
        let shown = ShownProgress(fraction: 0.25, isAnimated: true, progress: progress(1, of: 4))
        #expect(action == .show(shown))
    }

    @Test mutating func anUnknownTotalIsIndeterminateUntilItIsKnown() {
        let (first, second) = (fraction(progress(1, of: nil)), fraction(progress(2, of: 4)))
        #expect(first == .some(nil) && second == 0.5)
    }

    @Test mutating func itNeverGoesBackwards() {
        let known = [fraction(progress(2, of: 4)), fraction(progress(1, of: 4)), fraction(progress(3, of: 100))]
        let lost = fraction(progress(4, of: nil))
        #expect(known == [0.5, 0.5, 0.5] && lost == 0.5)
    }

    @Test mutating func theSameIsNotShownTwice() {
        _ = state.next(progress(1, of: 4))
        let again = state.next(progress(1, of: 4))
        #expect(again == .none)
    }

    @Test mutating func theLastElementIsShownOnceAndIsTheEnd() {
        _ = state.next(progress(1, of: 4))
        let last = state.next(progress(1, of: 4, isFinished: true))
        let late = state.next(progress(4, of: 4))
        let end = state.ended()
        #expect(late == .none && end == .none)
        guard case .finish(let shown) = last else {
            Issue.record("it did not finish")
            return
        }
        #expect(shown.isFinished && shown.fraction == 0.25)
    }

    @Test mutating func aStreamThatJustEndsFinishesWithWhatWasShown() {
        _ = state.next(progress(3, of: 4))
        guard case .finish(let shown) = state.ended() else {
            Issue.record("it did not finish")
            return
        }
        #expect(shown.isFinished && shown.fraction == 0.75 && shown.progress.completedBytes == 3)
    }

    @Test mutating func anEmptyBodyIsWholeAtItsEnd() {
        let (first, last) = (fraction(progress(0, of: 0)), fraction(progress(0, of: 0, isFinished: true)))
        #expect(first == 0 && last == 1)
    }
}
