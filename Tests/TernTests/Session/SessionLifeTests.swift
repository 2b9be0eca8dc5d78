import TernConcurrency
import Testing

@testable import Tern

@Suite("SessionLife")
struct SessionLifeTests {
    private var life = SessionLife()
    private let first = Waiter<Void>()
    private let second = Waiter<Void>()
    private let third = Waiter<Void>()

    /// Returns the numbers of the waiters whose wait has ended, in their order.
    private func ended(_ change: SessionLife.Change) -> [Int] {
        change.waiters.map { $0 === first ? 1 : $0 === second ? 2 : 3 }
    }

    @Test mutating func aDrainEndsWithTheLastOfItsTasks() {
        #expect(!life.needsEnds)
        life.addDrain(first, of: [1, 2])
        life.addDrain(second, of: [2])
        #expect(life.needsEnds)
        #expect(ended(life.taskEnded(3, isIdle: false)) == [])
        #expect(ended(life.taskEnded(2, isIdle: false)) == [2])
        #expect(ended(life.taskEnded(2, isIdle: false)) == [])
        let change = life.taskEnded(1, isIdle: true)
        #expect(ended(change) == [1] && !change.isInvalidated)
        #expect(!life.needsEnds && life.phase == .open)
    }

    @Test mutating func everyDrainEndsWithTheSameTask() {
        life.addDrain(first, of: [1])
        life.addDrain(second, of: [1])
        #expect(ended(life.taskEnded(1, isIdle: true)) == [1, 2])
    }

    @Test mutating func aCancelledDrainWaitsForNothing() {
        life.addDrain(first, of: [1])
        life.remove(first)
        #expect(!life.needsEnds)
        #expect(ended(life.taskEnded(1, isIdle: true)) == [])
    }

    @Test mutating func aSessionWithoutATaskIsInvalidatedAtOnce() {
        let change = life.finish(isIdle: true)
        #expect(change.isInvalidated && life.phase == .invalidated && !life.needsEnds)
        let (again, late) = (life.finish(isIdle: true), life.taskEnded(1, isIdle: true))
        #expect(!again.isInvalidated && !late.isInvalidated)
    }

    @Test mutating func aSessionIsInvalidatedOnceWithItsLastTask() {
        let start = life.finish(isIdle: false)
        #expect(!start.isInvalidated && life.phase == .finishing && life.needsEnds)
        life.addEndWaiter(first)
        life.addEndWaiter(second)
        life.addDrain(third, of: [1, 2])
        life.remove(second)
        #expect(ended(life.taskEnded(1, isIdle: false)) == [])
        let change = life.taskEnded(2, isIdle: true)
        #expect(change.isInvalidated && ended(change) == [3, 1])
        #expect(!life.needsEnds && life.phase == .invalidated)
    }

    /// The end of one task can arrive when the last one has left, too.
    @Test mutating func aDrainOutlivesTheInvalidationUntilItsOwnTask() {
        life.addDrain(first, of: [2])
        _ = life.finish(isIdle: false)
        let change = life.taskEnded(1, isIdle: true)
        #expect(change.isInvalidated && life.needsEnds)
        #expect(ended(life.taskEnded(2, isIdle: true)) == [1])
        #expect(!life.needsEnds)
    }
}
