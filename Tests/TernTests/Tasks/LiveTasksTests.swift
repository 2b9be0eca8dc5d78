import TernConcurrency
import Testing

@testable import Tern

@Suite("LiveTasks")
struct LiveTasksTests {
    private final class Item: Sendable {
        let number: UInt64
        init(_ number: UInt64) { self.number = number }
    }

    private final class Watcher: ExecutorMessage {
        func perform(_ operation: UInt64) {}
    }

    private var tasks = LiveTasks<Item>()

    private mutating func join(_ item: Item, isStarted: Bool = false) {
        let isTaken = tasks.join(item, number: item.number, isStarted: isStarted)
        #expect(isTaken)
    }

    @Test mutating func aTaskThatWasNeverResumedIsHeldWeakly() {
        var waiting: Item? = Item(1)
        if let waiting { join(waiting) }
        join(Item(2), isStarted: true)
        #expect(Set(tasks.tasks.map(\.number)) == [1, 2])
        weak let remembered = waiting
        waiting = nil
        #expect(remembered == nil)
        #expect(tasks.tasks.map(\.number) == [2])
        #expect(tasks.task(1) == nil)
        // It is live until the end of its last handle was reported.
        #expect(tasks.leave(2) != nil)
        #expect(!tasks.isEmpty)
        #expect(tasks.leave(1) == nil)
        #expect(tasks.isEmpty)
    }

    @Test mutating func aStartedTaskIsHeldUntilItsEnd() {
        var item: Item? = Item(1)
        weak let remembered = item
        if let item {
            join(item)
            tasks.start(item, number: 1)
        }
        item = nil
        #expect(remembered != nil)
        #expect(tasks.task(1) === remembered)
        _ = tasks.leave(1)
        #expect(remembered == nil)
        #expect(tasks.isEmpty)
    }

    @Test mutating func aClosedSessionTakesNoTask() {
        join(Item(1), isStarted: true)
        tasks.close()
        #expect(!tasks.isOpen)
        let isTaken = tasks.join(Item(2), number: 2, isStarted: true)
        #expect(!isTaken)
        #expect(tasks.tasks.map(\.number) == [1])
        _ = tasks.leave(1)
        #expect(tasks.isEmpty)
    }

    @Test mutating func aWatcherIsKeptWhileThereIsATask() {
        let watcher = Watcher()
        #expect(tasks.watch(watcher) == [])
        #expect(tasks.watcher == nil)
        join(Item(1), isStarted: true)
        let item = Item(2)
        join(item)
        #expect(tasks.watch(watcher) == [1, 2])
        #expect(tasks.watcher === watcher)
        #expect(tasks.stopWatching() === watcher)
        #expect(tasks.watcher == nil)
    }

    private struct Generator: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    /// Random calls agree with two sets of numbers.
    @Test(arguments: 1...4) mutating func randomCallsAgreeWithAPlainModel(seed: UInt64) {
        var random = Generator(state: seed)
        var (waiting, started): ([UInt64: Item], Set<UInt64>) = ([:], [])
        for number in 1...UInt64(20_000) {
            let any = waiting.keys.sorted().randomElement(using: &random) ?? 0
            switch Int.random(in: 0..<5, using: &random) {
            case 0 where waiting.count + started.count < 12:
                let item = Item(number)
                waiting[number] = item
                join(item)
            case 1 where waiting.count + started.count < 12:
                started.insert(number)
                join(Item(number), isStarted: true)
            case 2:
                guard let item = waiting.removeValue(forKey: any) else { continue }
                tasks.start(item, number: any)
                started.insert(any)
            case 3:
                guard waiting.removeValue(forKey: any) != nil else { continue }
                #expect(tasks.leave(any) == nil)
            default:
                guard let ended = started.sorted().randomElement(using: &random) else { continue }
                started.remove(ended)
                #expect(tasks.leave(ended)?.number == ended)
            }
            #expect(Set(tasks.tasks.map(\.number)) == started.union(waiting.keys))
            #expect(tasks.isEmpty == (started.isEmpty && waiting.isEmpty))
        }
    }
}
