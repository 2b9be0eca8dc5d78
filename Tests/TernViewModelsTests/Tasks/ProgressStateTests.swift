import Tern
import TernViewModels
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

    @Test mutating func progressShowsFractionsAndKeepsItsAnimation() {
        let action = state.next(progress(1, of: 4))
        let shown = ProgressUpdate(fraction: 0.25, isAnimated: true, progress: progress(1, of: 4))
        #expect(action == .show(shown))
    }

    @Test mutating func anUnknownTotalIsIndeterminateUntilItIsKnown() {
        let (first, second) = (fraction(progress(1, of: nil)), fraction(progress(2, of: 4)))
        #expect(first == .some(nil) && second == 0.5)
    }

    @Test mutating func theFractionNeverDecreases() {
        let known = [fraction(progress(2, of: 4)), fraction(progress(1, of: 4)), fraction(progress(3, of: 100))]
        let lost = fraction(progress(4, of: nil))
        #expect(known == [0.5, 0.5, 0.5] && lost == 0.5)
    }

    @Test mutating func theFractionOfANewAttemptStartsOver() {
        let first = fraction(Session.Progress(completedBytes: 3, totalBytes: 4))
        let second = fraction(Session.Progress(completedBytes: 1, totalBytes: 100, attempt: 2))
        let third = fraction(Session.Progress(completedBytes: 2, totalBytes: 400, attempt: 2))
        #expect(first == 0.75 && second == 0.01 && third == 0.01)
    }

    @Test mutating func anEqualUpdateIsNotShownTwice() {
        _ = state.next(progress(1, of: 4))
        let again = state.next(progress(1, of: 4))
        #expect(again == .none)
    }

    @Test mutating func theLastElementIsShownOnceAndIsTheEnd() {
        _ = state.next(progress(1, of: 4))
        let last = state.next(progress(1, of: 4, isFinished: true))
        let late = state.next(progress(4, of: 4))
        let end = state.end()
        #expect(late == .none && end == .none)
        guard case .finish(let shown) = last else {
            Issue.record("it did not finish")
            return
        }
        #expect(shown.isFinished && shown.fraction == 0.25)
    }

    @Test mutating func aStreamThatJustEndsFinishesWithWhatWasShown() {
        _ = state.next(progress(3, of: 4))
        guard case .finish(let shown) = state.end() else {
            Issue.record("it did not finish")
            return
        }
        #expect(shown.isFinished && shown.fraction == 0.75 && shown.progress.completedBytes == 3)
    }

    @Test mutating func anEmptyBodyIsWholeAtItsEnd() {
        let (first, last) = (fraction(progress(0, of: 0)), fraction(progress(0, of: 0, isFinished: true)))
        #expect(first == 0 && last == 1)
    }

    @Test mutating func moreBytesThanTheTotalAreNotMoreThanOne() throws {
        let (before, last) = (fraction(progress(9, of: 4)), fraction(progress(9, of: 4, isFinished: true)))
        let first = try #require(before ?? nil)
        #expect(first > 0.99 && first < 1 && last == 1)
    }
}

/// Tests the invariant of all bindings with random orders of bind, rebind, unbind, reuse, released views, and early and
/// late elements: a view shows only its current binding, each binding ends once, and no view is kept alive.
@MainActor
@Suite("Bindings in any order", .timeLimit(.minutes(1)))
struct ProgressPropertyTests {
    /// A stream that its total identifies.
    private final class Source {
        let number: Int
        let stream: AsyncStream<Session.Progress>
        private let continuation: AsyncStream<Session.Progress>.Continuation
        private var sent: Int64 = 0

        init(_ number: Int) {
            self.number = number
            (stream, continuation) = AsyncStream.makeStream()
        }

        func send(isFinished: Bool = false) {
            sent += 1
            let total = Int64(1_000_000 + number)
            continuation.yield(Session.Progress(completedBytes: sent, totalBytes: total, isFinished: isFinished))
        }

        func finish() { continuation.finish() }
    }

    /// The expected bindings of one view.
    @MainActor
    private final class Expectation {
        var bound: [ProgressUpdate.Direction: Int] = [:]
        var finished: [Int: Int] = [:]
        var faults: [String] = []
        private var highest: [Int: Int64] = [:]

        func check(_ shown: ProgressUpdate) {
            let bytes = shown.progress.completedBytes
            // A stream that ends without an element has no total to identify it.
            let number = shown.progress.totalBytes.map { Int($0 - 1_000_000) } ?? bound[shown.direction] ?? -1
            if bound[shown.direction] != number {
                faults.append("\(number) was shown while \(bound[shown.direction] ?? -1) was bound")
            }
            if bytes < highest[number, default: 0] { faults.append("\(number) went back to \(bytes)") }
            highest[number] = bytes
            if shown.isFinished {
                finished[number, default: 0] += 1
                bound[shown.direction] = nil
            }
        }
    }

    private class View: ProgressViewModel {
        let expectation = Expectation()
        var bindings: ViewBindings { ViewBindings(of: self) }
        func showProgress(_ progress: ProgressUpdate) { expectation.check(progress) }
    }

    private final class TableView: View {
        let table: BindingTable
        init(_ table: BindingTable) { self.table = table }
        override var bindings: ViewBindings { ViewBindings(of: self, in: table) }
    }

    private final class StoredView: View {
        private let own = ViewBindings()
        override var bindings: ViewBindings { own }
    }

    private final class Weak {
        weak var view: View?
        init(_ view: View) { self.view = view }
    }

    /// One run of a number of random steps.
    @MainActor
    private final class Run {
        private var random: SeededGenerator
        private let table = BindingTable()
        private var views: [View] = []
        private var sources: [Source] = []
        private var bindings: [ViewBinding] = []
        private var expectations: [Expectation] = []
        private var gone: [Weak] = []

        init(seed: Int) {
            random = SeededGenerator(seed: seed)
            for _ in 0..<3 { addView() }
        }

        private func addView() {
            let view = Bool.random(using: &random) ? TableView(table) : StoredView()
            views.append(view)
            expectations.append(view.expectation)
        }

        func step() async {
            let view = views[Int.random(in: 0..<views.count, using: &random)]
            let direction: ProgressUpdate.Direction = Bool.random(using: &random) ? .upload : .download
            let source = sources.randomElement(using: &random)
            switch Int.random(in: 0..<12, using: &random) {
            case 0, 1, 2: bind(view, direction)
            case 3:
                view.expectation.bound[direction] = nil
                view.unbindProgress(direction)
            case 4:
                view.expectation.bound[direction] = nil
                view.progressBinding(direction)?.unbind()
            case 5: source?.send(isFinished: true)
            case 6: source?.finish()
            case 7, 8, 9: source?.send()
            case 10: replaceView()
            default: for _ in 0..<Int.random(in: 1..<8, using: &random) { await Task.yield() }
            }
        }

        private func bind(_ view: View, _ direction: ProgressUpdate.Direction) {
            let source = Source(sources.count)
            sources.append(source)
            // Early elements, and an early end.
            for _ in 0..<Int.random(in: 0..<3, using: &random) { source.send() }
            if Int.random(in: 0..<8, using: &random) == 0 { source.finish() }
            view.expectation.bound[direction] = source.number
            bindings.append(view.bindProgress(source.stream, as: direction))
        }

        private func replaceView() {
            let index = Int.random(in: 0..<views.count, using: &random)
            gone.append(Weak(views[index]))
            // From now on nothing may be shown.
            views[index].expectation.bound = [:]
            views.remove(at: index)
            addView()
        }

        func finish() async {
            for source in sources { source.finish() }
            await eventually { bindings.allSatisfy { !$0.isActive } }
            await eventually { table.count == 0 }
        }

        func verify(_ seed: Int) {
            #expect(expectations.flatMap(\.faults).isEmpty, "seed \(seed)")
            #expect(gone.allSatisfy { $0.view == nil }, "seed \(seed): a view was kept alive")
            #expect(bindings.allSatisfy { $0.outcome != nil }, "seed \(seed): a binding has not ended")
            #expect(table.count == 0 && views.allSatisfy { $0.bindings.isEmpty }, "seed \(seed): something is left")
            // Each finished binding has shown one last element, and no other binding has.
            let shown = expectations.reduce(0) { $0 + $1.finished.values.reduce(0, +) }
            let finished = bindings.filter { $0.outcome == .finished }.count
            #expect(expectations.allSatisfy { $0.finished.values.allSatisfy { $0 == 1 } }, "seed \(seed)")
            #expect(finished <= shown, "seed \(seed)")
        }
    }

    @Test(arguments: 0..<20)
    func onlyWhatIsBoundIsShown(block: Int) async {
        for seed in block * 15..<(block + 1) * 15 {
            let run = Run(seed: seed)
            for _ in 0..<120 { await run.step() }
            await run.finish()
            run.verify(seed)
        }
    }
}
