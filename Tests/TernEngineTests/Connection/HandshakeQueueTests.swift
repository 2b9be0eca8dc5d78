import Testing

@testable import TernEngine

/// The order of handshakes with one address (RFC 6455 §4.1).
struct HandshakeQueueTests {
    private typealias Key = HandshakeQueue.Key

    private static func address(_ last: UInt32, _ port: UInt16 = 80) -> Key { .address(.ipv4(last, port: port)) }

    @Test func oneHandshakeRunsForEachAddress() {
        var queue = HandshakeQueue()
        var runs = (1...3).map { queue.enter($0, for: [Self.address(1)]) }
        #expect(runs == [true, false, false])
        runs = [queue.enter(4, for: [Self.address(2)]), queue.enter(5, for: [Self.address(1, 81)])]
        #expect(runs == [true, true])
        var next = queue.leave(1)
        #expect(next == [2])
        next = queue.leave(2)
        #expect(next == [3])
        next = queue.leave(3) + queue.leave(4) + queue.leave(5)
        #expect(next == [])
        #expect(queue.count == 0)
    }

    @Test func namesOfOneAddressShareItsTurn() {
        var queue = HandshakeQueue()
        let runs = [
            queue.enter(1, for: [Self.address(1), Self.address(2)]),
            queue.enter(2, for: [Self.address(2), Self.address(3)]),
            // Waits for the second, which came before it.
            queue.enter(3, for: [Self.address(3)]),
            queue.enter(4, for: [.name("a:80")]), queue.enter(5, for: [.name("b:80")]),
            queue.enter(6, for: []),
        ]
        #expect(runs == [true, false, false, true, true, true])
        var next = queue.leave(1)
        #expect(next == [2])
        next = queue.leave(2)
        #expect(next == [3])
    }

    @Test func oneThatLeavesBeforeItsTurnIsPassedOver() {
        var queue = HandshakeQueue()
        for id in 1...4 as ClosedRange<UInt64> { _ = queue.enter(id, for: [Self.address(1)]) }
        var next = queue.leave(2)
        #expect(next == [])
        next = queue.leave(2) + queue.leave(9)
        #expect(next == [])
        next = queue.leave(1)
        #expect(next == [3])
        next = queue.leave(3)
        #expect(next == [4])
    }

    /// Compares random histories with a model: a handshake runs when none of the earlier ones has a key of it.
    @Test func everyHistoryKeepsTheOrder() {
        var state: UInt64 = 19
        func random(_ bound: UInt64) -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state >> 33) % bound
        }
        for _ in 0..<300 {
            var queue = HandshakeQueue()
            var model: [(id: UInt64, keys: Set<Key>)] = []
            var running: Set<UInt64> = []
            for id in 1...40 as ClosedRange<UInt64> {
                let keys = Set((0...random(3)).map { _ in Self.address(UInt32(random(5))) })
                if queue.enter(id, for: keys) { running.insert(id) }
                model.append((id, keys))
                if random(2) == 0, !model.isEmpty {
                    let left = model.remove(at: Int(random(UInt64(model.count)))).id
                    running.remove(left)
                    running.formUnion(queue.leave(left))
                }
                var taken: Set<Key> = []
                var expected: Set<UInt64> = []
                for entry in model {
                    if taken.isDisjoint(with: entry.keys) { expected.insert(entry.id) }
                    taken.formUnion(entry.keys)
                }
                #expect(running == expected)
            }
            for entry in model { _ = queue.leave(entry.id) }
            #expect(queue.count == 0)
        }
    }
}
