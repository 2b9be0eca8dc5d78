import Testing

@testable import Tern

@Suite("AdmissionQueue")
struct AdmissionQueueTests {
    private static let normal = Request.Priority.normal.rawValue

    /// Submits transfers to one origin, and returns those that can start at once.
    private func submit(
        _ ids: some Sequence<UInt64>, to origin: String = "a", _ queue: inout AdmissionQueue, priority: Int = normal
    ) -> [UInt64] {
        ids.filter { queue.submit($0, origin, priority: priority) }
    }

    @Test func originHasALimitAndOthersWait() {
        var queue = AdmissionQueue(limitPerOrigin: 2, limit: 100)
        #expect(submit(1...5, &queue) == [1, 2])
        #expect(queue.waitingCount == 3)
        #expect(submit(6...7, to: "b", &queue) == [6, 7])
    }

    @Test func sessionHasALimitForAllOrigins() {
        var queue = AdmissionQueue(limitPerOrigin: 10, limit: 3)
        #expect(submit(1...2, &queue) == [1, 2])
        #expect(submit(3...4, to: "b", &queue) == [3])
        #expect(submit([5], to: "c", &queue) == [])
        #expect(queue.release("a") == [4])
        #expect(queue.release("a") == [5])
        #expect(queue.waitingCount == 0)
    }

    @Test(arguments: [0, -1])
    func limitBelowOneCountsAsOne(limit: Int) {
        var queue = AdmissionQueue(limitPerOrigin: limit, limit: limit)
        #expect(submit(1...2, &queue) == [1])
        #expect(queue.release("a") == [2])
    }

    @Test func waitingWorkStartsInOrderOfAge() {
        var queue = AdmissionQueue(limitPerOrigin: 1, limit: 100)
        _ = submit(1...4, &queue)
        #expect(queue.release("a") == [2])
        #expect(queue.release("a") == [3])
        #expect(queue.release("a") == [4])
        #expect(queue.release("a") == [])
    }

    @Test func urgentTransferStartsFirstAndEqualOnesByAge() {
        var queue = AdmissionQueue(limitPerOrigin: 1, limit: 100)
        _ = queue.submit(1, "a", priority: 2)
        for (id, priority) in [(2, 0), (3, 2), (4, 4), (5, 2), (6, 4), (7, 0)] as [(UInt64, Int)] {
            #expect(queue.submit(id, "a", priority: priority) == false)
        }
        #expect((0..<6).flatMap { _ in queue.release("a") } == [4, 6, 3, 5, 2, 7])
    }

    @Test func newTransferDoesNotOvertakeWaitingOnes() {
        var queue = AdmissionQueue(limitPerOrigin: 2, limit: 2)
        #expect(submit([1], &queue) == [1])
        #expect(submit([2], to: "b", &queue) == [2])
        #expect(submit([3], &queue) == [])
        #expect(queue.release("b") == [3])
        #expect(submit([4], &queue) == [])
    }

    @Test func changedPriorityMovesAWaitingTransferAndKeepsItsAge() {
        var queue = AdmissionQueue(limitPerOrigin: 1, limit: 100)
        _ = submit(1...5, &queue)
        queue.prioritize(4, "a", priority: 4)
        queue.prioritize(2, "a", priority: 0)
        #expect(queue.release("a") == [4])
        queue.prioritize(5, "a", priority: 0)
        #expect(queue.release("a") == [3])
        #expect(queue.release("a") == [2])
        #expect(queue.release("a") == [5])
    }

    @Test func priorityOfARunningTransferChangesNothing() {
        var queue = AdmissionQueue(limitPerOrigin: 1, limit: 100)
        _ = submit(1...2, &queue)
        queue.prioritize(1, "a", priority: 4)
        queue.prioritize(9, "a", priority: 4)
        queue.prioritize(2, "other", priority: 4)
        #expect(queue.waitingCount == 1)
        #expect(queue.release("a") == [2])
    }

    @Test func abandonedWaiterNeverStarts() {
        var queue = AdmissionQueue(limitPerOrigin: 1, limit: 100)
        _ = submit(1...3, &queue)
        #expect(queue.withdraw(2, "a") == true)
        #expect(queue.withdraw(2, "a") == false)
        #expect(queue.withdraw(1, "a") == false)
        #expect(queue.withdraw(3, "b") == false)
        #expect(queue.waitingCount == 1)
        #expect(queue.release("a") == [3])
        #expect(queue.release("a") == [])
    }

    @Test func originsAlternate() {
        var queue = AdmissionQueue(limitPerOrigin: 10, limit: 1)
        #expect(submit([1], &queue) == [1])
        _ = submit(11...13, to: "a", &queue)
        _ = submit(21...22, to: "b", &queue)
        _ = submit([31], to: "c", &queue)
        var order: [UInt64] = []
        var origin = "a"
        for _ in 0..<6 {
            let next = queue.release(origin)
            order += next
            origin = next.first.map { $0 < 20 ? "a" : $0 < 30 ? "b" : "c" } ?? origin
        }
        #expect(order == [11, 21, 31, 12, 22, 13])
    }

    @Test func originAtItsLimitDoesNotDelayOthers() {
        var queue = AdmissionQueue(limitPerOrigin: 1, limit: 2)
        _ = submit([1], to: "a", &queue)
        _ = submit([2], to: "b", &queue)
        _ = submit([3], to: "a", &queue)
        _ = submit([4], to: "b", &queue)
        #expect(queue.release("b") == [4])
        #expect(queue.waitingCount == 1)
        #expect(queue.release("a") == [3])
    }

    @Test func separateConnectionsHaveTheirOwnLimit() {
        var queue = AdmissionQueue(limitPerOrigin: 3, limit: 100)
        _ = queue.learn("a", streamsPerConnection: 2)
        #expect(queue.submit(1, "a", priority: 0) == true)
        #expect(queue.learn("a", streamsPerConnection: 2) == [])
        #expect((2...4).filter { queue.submit($0, "a", priority: 0, isExclusive: true) } == [2, 3])
        #expect(queue.withdraw(4, "a") == true)
        // The shared connection has room for one more.
        #expect(queue.submit(5, "a", priority: 0) == true)
        #expect(queue.submit(6, "a", priority: 0) == false)
        #expect(queue.submit(7, "a", priority: 0, isExclusive: true) == false)
        #expect(queue.release("a", isExclusive: true) == [6])
        #expect(queue.release("a") == [7])
    }

    @Test func connectionsOfAllOriginsAreCounted() {
        var queue = AdmissionQueue(limitPerOrigin: 10, limit: 3)
        #expect(queue.submit(1, "a", priority: 0) == true)
        #expect(queue.learn("a", streamsPerConnection: 100) == [])
        #expect((2...50).allSatisfy { queue.submit($0, "a", priority: 0) })
        #expect((51...53).filter { queue.submit($0, "b", priority: 0, isExclusive: true) } == [51, 52])
        #expect(queue.submit(54, "a", priority: 0) == true)
        #expect(queue.submit(55, "a", priority: 0, isExclusive: true) == false)
        #expect(queue.release("b", isExclusive: true) == [53])
        #expect(queue.release("b", isExclusive: true) == [55])
    }

    @Test func multiplexingRaisesTheLimit() {
        var queue = AdmissionQueue(limitPerOrigin: 1, limit: 1)
        #expect(submit(1...5, &queue) == [1])
        #expect(queue.learn("a", streamsPerConnection: 3) == [2, 3])
        #expect(queue.learn("a", streamsPerConnection: 3) == [])
        #expect(queue.learn("unknown", streamsPerConnection: 3) == [])
        #expect(queue.release("a") == [4])
        #expect(queue.waitingCount == 1)
    }

    @Test func tableOfOriginsStaysBounded() {
        var queue = AdmissionQueue(limitPerOrigin: 1, limit: 2)
        for number in 0..<5_000 as Range<UInt64> {
            let origin = "host \(number)"
            #expect(queue.submit(number, origin, priority: Self.normal) == true)
            #expect(queue.release(origin) == [])
        }
        #expect(submit(1...3, &queue) == [1])
    }

    /// Runs a model of 20,000 random steps: the limits hold, no transfer is lost, and none starts twice.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func everyOrderOfStepsKeepsAllTransfers(seed: UInt64) {
        var random = SmallRandom(seed)
        var queue = AdmissionQueue(limitPerOrigin: 3, limit: 7)
        var active: [UInt64: String] = [:]
        var waiting: [UInt64: String] = [:]
        func admit(_ ids: [UInt64]) {
            for id in ids {
                #expect(active[id] == nil)
                active[id] = waiting.removeValue(forKey: id)
                #expect(active[id] != nil)
            }
        }
        for id in 0..<20_000 as Range<UInt64> {
            let origin = "o\(random.next() % 5)"
            switch random.next() % 4 {
            case 0, 1:
                if queue.submit(id, origin, priority: Int(random.next() % 5)) {
                    active[id] = origin
                } else {
                    waiting[id] = origin
                }
            case 2:
                guard let (id, origin) = active.min(by: { $0.key < $1.key }) else { continue }
                active[id] = nil
                admit(queue.release(origin))
            default:
                guard let (id, origin) = waiting.max(by: { $0.key < $1.key }) else { continue }
                if random.next() % 2 == 0 {
                    #expect(queue.withdraw(id, origin) == true)
                    waiting[id] = nil
                } else {
                    queue.prioritize(id, origin, priority: Int(random.next() % 5))
                }
            }
            #expect(active.count <= 7)
            #expect(Dictionary(grouping: active.values) { $0 }.allSatisfy { $0.value.count <= 3 })
            #expect(queue.waitingCount == waiting.count)
        }
        while let (id, origin) = active.first {
            active[id] = nil
            admit(queue.release(origin))
        }
        #expect(waiting.isEmpty)
    }
}

/// A generator that gives the same numbers in every run.
struct SmallRandom: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 | 1 }

    mutating func next() -> UInt64 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return state
    }
}

@Suite("AdmissionQueue: order")
struct AdmissionQueueOrderTests {
    @Test func newestStartsFirstOnRequestAfterMoreUrgentOnes() {
        var queue = AdmissionQueue(limitPerOrigin: 1, limit: 10, order: .lastInFirstOut)
        for id in 1...4 as ClosedRange<UInt64> { _ = queue.submit(id, "a", priority: 2) }
        _ = queue.submit(5, "a", priority: 3)
        _ = queue.submit(6, "a", priority: 1)
        var order: [UInt64] = []
        while let next = queue.release("a").first { order.append(next) }
        #expect(order == [5, 4, 3, 2, 6])
    }
}
