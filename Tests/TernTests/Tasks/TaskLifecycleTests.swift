import Testing

@testable import Tern

@Suite("TaskLifecycle")
struct TaskLifecycleTests {
    private enum Step: CaseIterable {
        case resume
        case pause
        case cancel
        case end
    }

    @Test func aNewTaskIsSuspendedAndFresh() {
        let life = TaskLifecycle()
        #expect(life.state == .suspended)
        #expect(life.isFresh)
        #expect(!life.isPaused)
        #expect(!life.isCancelled)
    }

    @Test func theFirstResumeStartsAndTheSecondDoesNothing() {
        var life = TaskLifecycle()
        #expect(life.resume() == .start)
        #expect(life.state == .running)
        #expect(!life.isFresh)
        #expect(life.resume() == .none)
        #expect(life.state == .running)
    }

    @Test func pausingAFreshTaskDoesNothing() {
        var life = TaskLifecycle()
        #expect(life.pause() == .none)
        #expect(life.isFresh)
        #expect(!life.isPaused)
        #expect(life.resume() == .start)
    }

    @Test func pauseAndResumeActOnlyOnARealChange() {
        var life = TaskLifecycle()
        _ = life.resume()
        for _ in 0..<3 {
            #expect(life.pause() == .pauseAttempt)
            #expect(life.pause() == .none)
            #expect(life.isPaused)
            #expect(life.state == .suspended)
            #expect(life.resume() == .resumeAttempt)
            #expect(life.resume() == .none)
            #expect(!life.isPaused)
            #expect(life.state == .running)
        }
    }

    @Test func aFreshTaskThatIsCancelledEndsWithoutEverStarting() {
        var life = TaskLifecycle()
        #expect(life.cancel() == .endUnstarted)
        #expect(life.isCancelled)
        #expect(life.resume() == .none)
        #expect(life.cancel() == .none)
        #expect(life.end(.cancelled) == true)
        #expect(life.state == .cancelled)
    }

    @Test(arguments: [false, true])
    func cancellingEndsTheTransferOnceAndForGood(whilePaused: Bool) {
        var life = TaskLifecycle()
        _ = life.resume()
        if whilePaused { _ = life.pause() }
        #expect(life.cancel() == .cancelAttempt)
        #expect(life.cancel() == .none)
        #expect(life.resume() == .none)
        #expect(life.pause() == .none)
    }

    @Test(arguments: [Session.TaskState.completed, .failed, .cancelled])
    func firstEndIsFinal(state: Session.TaskState) {
        var life = TaskLifecycle()
        _ = life.resume()
        #expect(life.end(state) == true)
        #expect(life.state == state)
        #expect(life.state.isTerminal)
        for other in [Session.TaskState.completed, .failed, .cancelled] {
            #expect(life.end(other) == false)
            #expect(life.state == state)
        }
        #expect(life.cancel() == .none)
        #expect(!life.isCancelled)
        #expect(life.resume() == .none)
        #expect(life.pause() == .none)
        #expect(life.state == state)
    }

    /// Runs every order of seven calls: a start comes at most once and first, pauses and resumes alternate, and one end
    /// comes.
    @Test func everyOrderOfCallsKeepsTheRules() {
        var orders: [[Step]] = [[]]
        for _ in 0..<7 { orders = orders.flatMap { order in Step.allCases.map { order + [$0] } } }
        let broken = orders.first { order in !Self.keepsTheRules(order) }
        #expect(broken == nil)
    }

    private static func keepsTheRules(_ order: [Step]) -> Bool {
        var life = TaskLifecycle()
        var (starts, stops, ends) = (0, 0, 0)
        var isMoving = false
        for step in order {
            let action: TaskLifecycle.Action
            switch step {
            case .resume: action = life.resume()
            case .pause: action = life.pause()
            case .cancel: action = life.cancel()
            case .end:
                action = .none
                if life.end(.completed) { ends += 1 }
            }
            switch action {
            case .none: break
            case .start:
                guard starts == 0, stops == 0, ends == 0 else { return false }
                starts += 1
                isMoving = true
            case .resumeAttempt:
                guard starts == 1, !isMoving, stops == 0, ends == 0 else { return false }
                isMoving = true
            case .pauseAttempt:
                guard isMoving, stops == 0, ends == 0 else { return false }
                isMoving = false
            case .cancelAttempt:
                guard starts == 1, stops == 0, ends == 0 else { return false }
                stops += 1
            case .endUnstarted:
                guard starts == 0, stops == 0, ends == 0 else { return false }
                stops += 1
            }
            guard (ends > 0) == life.state.isTerminal, ends <= 1 else { return false }
            if ends == 0, (life.state == .running) != isMoving { return false }
        }
        return true
    }
}
