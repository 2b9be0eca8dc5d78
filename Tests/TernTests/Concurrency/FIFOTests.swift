import TernConcurrency
import Testing

@Suite("FIFO")
struct FIFOTests {
    @Test func requestsStartInOrderOfPriority() {
        var queue = FIFO<Int>()
        var random = SystemRandomNumberGenerator()
        var (added, taken) = (0, 0)
        for _ in 0..<20_000 {
            if Int.random(in: 0..<5, using: &random) < 3 {
                queue.append(added)
                added += 1
            } else {
                let isThere = taken < added
                #expect(queue.first == (isThere ? taken : nil))
                #expect(queue.popFirst() == (isThere ? taken : nil))
                if isThere { taken += 1 }
            }
            #expect(queue.count == added - taken && queue.isEmpty == (added == taken))
        }
        while let element = queue.popFirst() {
            #expect(element == taken)
            taken += 1
        }
        #expect(taken == added && queue.first == nil)
    }

    @Test func removingByAConditionKeepsTheOrderOfTheRest() {
        var queue = FIFO<Int>()
        for number in 0..<10 { queue.append(number) }
        _ = queue.popFirst()
        queue.removeAll { $0.isMultiple(of: 3) }
        queue.append(10)
        #expect(queue.count == 7)
        var rest: [Int] = []
        while let element = queue.popFirst() { rest.append(element) }
        #expect(rest == [1, 2, 4, 5, 7, 8, 10])
    }

    @Test func takenElementIsReleasedAtOnce() {
        final class Thing {}
        var queue = FIFO<Thing>()
        weak var first: Thing?
        do {
            let thing = Thing()
            first = thing
            queue.append(thing)
        }
        queue.append(Thing())
        #expect(first != nil)
        _ = queue.popFirst()
        #expect(first == nil && queue.count == 1)
    }
}
