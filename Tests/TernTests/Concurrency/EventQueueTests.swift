import TernTesting
import Testing

@testable import Tern
@testable import TernConcurrency

@Suite("EventQueue", .timeLimit(.minutes(1)))
struct EventQueueTests {
    private enum Event: Hashable, Sendable {
        case number(Int)
        case dropped(Int)
    }

    private func queue(_ limit: Int = TaskRegistry.eventLimit) -> EventQueue<Event> {
        EventQueue(limit: limit) { .dropped($0) }
    }

    private func wake(_ waiters: [Waiter<Void>]) {
        for waiter in waiters { waiter.resume() }
    }

    private func push(_ numbers: ClosedRange<Int>, _ queue: EventQueue<Event>) {
        for number in numbers { wake(queue.push(.number(number))) }
    }

    private func rest(_ queue: EventQueue<Event>) async -> [Event] {
        wake(queue.finish())
        var events: [Event] = []
        for await event in queue.stream() { events.append(event) }
        return events
    }

    @Test func theRegistryKeeps1024Events() {
        #expect(TaskRegistry.eventLimit == 1_024)
    }

    @Test func valuesWithinTheLimitAreKept() async {
        let queue = queue()
        push(1...1_024, queue)
        #expect(await rest(queue) == (1...1_024).map { .number($0) })
    }

    @Test func droppedEventsAreCountedInPlace() async {
        let queue = queue()
        push(1...1_030, queue)
        #expect(await rest(queue) == (1...1_024).map { .number($0) } + [.dropped(6)])
    }

    @Test func eventsContinueAfterAGap() async {
        let queue = queue(3)
        var iterator = queue.stream().makeAsyncIterator()
        push(1...5, queue)
        #expect(await iterator.next() == .number(1))
        // The gap is not delivered yet: an event that arrives now comes after it, and cannot be delivered before it.
        push(6...6, queue)
        #expect(await iterator.next() == .number(2))
        #expect(await iterator.next() == .number(3))
        #expect(await iterator.next() == .dropped(3))
        push(7...8, queue)
        #expect(await rest(queue) == [.number(7), .number(8)])
    }

    @Test func theBufferIsCompactedWithoutLosingItsPlace() {
        var buffer = EventBuffer<Int>(limit: 600)
        var next = 0
        var expected = 0
        for round in 0..<2_000 {
            for _ in 0..<(round % 5) where next - expected < 600 {
                buffer.push(next)
                next += 1
            }
            for _ in 0..<(round % 4) {
                guard let event = buffer.pop(gap: { _ in -1 }) else { continue }
                #expect(event == expected)
                expected += 1
            }
        }
        while let event = buffer.pop(gap: { _ in -1 }) {
            #expect(event == expected)
            expected += 1
        }
        #expect(expected == next)
    }

    /// The reader releases the content of an event, outside of all locks: the buffer does not hold it until it is
    /// compacted.
    @Test func takenEventIsReleased() {
        final class Held: Sendable {}
        var buffer = EventBuffer<Held?>(limit: 10)
        weak var first: Held?
        do {
            let held = Held()
            first = held
            buffer.push(held)
            buffer.push(Held())
        }
        #expect(first != nil)
        _ = buffer.pop { _ in nil }
        #expect(first == nil)
    }

    @Test func noEventFollowsTheEnd() async {
        let queue = queue()
        push(1...2, queue)
        wake(queue.finish())
        push(3...3, queue)
        #expect(await rest(queue) == [.number(1), .number(2)])
    }

    @Test func aReaderThatWaitsIsWokenByAnEventAndByTheEnd() async {
        let queue = queue()
        let reader = Task {
            var events: [Event] = []
            for await event in queue.stream() { events.append(event) }
            return events
        }
        for number in 1...50 {
            push(number...number, queue)
            await Task.yield()
        }
        wake(queue.finish())
        #expect(await reader.value == (1...50).map { .number($0) })
    }

    @Test func aCancelledReaderEnds() async {
        for round in 0..<200 {
            let queue = queue()
            let reader = Task {
                var count = 0
                for await _ in queue.stream() { count += 1 }
                return count
            }
            for _ in 0..<(round % 3) { await Task.yield() }
            reader.cancel()
            push(1...2, queue)
            #expect(await reader.value <= 2)
        }
    }

    @Test func readersOfOneStreamShareItsEventsAndEnd() async {
        for round in 0..<50 {
            let queue = queue()
            let stream = queue.stream()
            let readers = (0..<2).map { _ in
                Task {
                    var events: [Event] = []
                    for await event in stream { events.append(event) }
                    return events
                }
            }
            for number in 1...20 {
                push(number...number, queue)
                if (number + round) % 3 == 0 { await Task.yield() }
            }
            for _ in 0..<10 { await Task.yield() }
            wake(queue.finish())
            var all: [Event] = []
            for reader in readers { all += await reader.value }
            #expect(Set(all) == Set((1...20).map { .number($0) }))
        }
    }
}
