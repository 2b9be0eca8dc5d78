import Testing

@testable import TernEngine

@Suite("Timer queue")
struct TimerQueueTests {
    private func expired(_ queue: inout TimerQueue, now: UInt64) -> [UInt64] {
        var ids: [UInt64] = []
        queue.takeExpired(now: now, into: &ids)
        return ids
    }

    @Test func timersExpireInTheOrderOfTheirDeadlines() {
        var queue = TimerQueue()
        for (id, deadline) in [(1, 30), (2, 10), (3, 20), (4, 40)] as [(UInt64, UInt64)] {
            _ = queue.schedule(id, at: deadline)
        }
        #expect(queue.nextDeadline == 10)
        #expect(expired(&queue, now: 9) == [])
        #expect(expired(&queue, now: 30) == [2, 3, 1])
        #expect(queue.nextDeadline == 40 && queue.count == 1)
    }

    @Test func emptyQueueHasNoDeadline() {
        var queue = TimerQueue()
        #expect(queue.nextDeadline == nil)
        #expect(expired(&queue, now: .max) == [])
    }

    @Test(arguments: [0, UInt64.max])
    func deadlinesAtTheEndsOfTimeWork(deadline: UInt64) {
        var queue = TimerQueue()
        _ = queue.schedule(1, at: deadline)
        #expect(expired(&queue, now: deadline) == [1])
    }

    @Test func cancelledTimerDoesNotExpire() {
        var queue = TimerQueue()
        let first = queue.schedule(1, at: 10)
        _ = queue.schedule(2, at: 20)
        #expect(queue.cancel(first) == true)
        #expect(queue.cancel(first) == false)
        #expect(queue.reschedule(first, at: 5) == false)
        #expect(queue.nextDeadline == 20)
        #expect(expired(&queue, now: 100) == [2])
    }

    @Test func tokenOfAnExpiredTimerIsRefusedAfterItsSlotIsUsedAgain() {
        var queue = TimerQueue()
        let old = queue.schedule(1, at: 10)
        #expect(expired(&queue, now: 10) == [1])
        let new = queue.schedule(2, at: 20)
        #expect(queue.cancel(old) == false)
        #expect(queue.reschedule(old, at: 5) == false)
        #expect(queue.reschedule(new, at: 30) == true)
        #expect(queue.nextDeadline == 30)
    }

    @Test(arguments: [5, 15, 25, 100] as [UInt64])
    func rescheduledTimerMoves(deadline: UInt64) {
        var queue = TimerQueue()
        let token = queue.schedule(1, at: 10)
        _ = queue.schedule(2, at: 20)
        #expect(queue.reschedule(token, at: deadline) == true)
        #expect(expired(&queue, now: 1_000) == (deadline < 20 ? [1, 2] : [2, 1]))
    }

    @Test(arguments: 1...10 as ClosedRange<UInt64>)
    func randomOperationsAgreeWithASortedTable(seed: UInt64) {
        var random = PoolRandom(seed)
        var queue = TimerQueue()
        var timers: [UInt64: (deadline: UInt64, token: TimerQueue.Token)] = [:]
        var now: UInt64 = 0
        for id in 0..<3_000 as Range<UInt64> {
            let deadline = now + UInt64(random.below(200))
            let chosen = timers.keys.min { $0 &* 0x9E37_79B9 < $1 &* 0x9E37_79B9 }
            switch (random.below(5), chosen) {
            case (2, let chosen?):
                if let token = timers[chosen]?.token { #expect(queue.reschedule(token, at: deadline) == true) }
                timers[chosen]?.deadline = deadline
            case (3, let chosen?):
                if let token = timers.removeValue(forKey: chosen)?.token { #expect(queue.cancel(token) == true) }
            case (4, _):
                now += UInt64(random.below(50))
                let ids = expired(&queue, now: now)
                #expect(ids.count == Set(ids).count)
                #expect(Set(ids) == Set(timers.filter { $0.value.deadline <= now }.keys))
                let deadlines = ids.compactMap { timers[$0]?.deadline }
                #expect(deadlines == deadlines.sorted())
                for id in ids { timers[id] = nil }
            default: timers[id] = (deadline, queue.schedule(id, at: deadline))
            }
            #expect(queue.count == timers.count)
            #expect(queue.nextDeadline == timers.values.map(\.deadline).min())
        }
    }
}
