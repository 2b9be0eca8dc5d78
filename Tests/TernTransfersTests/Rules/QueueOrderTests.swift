import Testing

@testable import TernTransfers

@Suite("Queue: places")
struct QueueOrderTests {
    typealias ID = TransferQueue.ItemID

    private func id(_ number: Int) -> ID { ID(rawValue: Int64(number)) }

    private func positions(_ numbers: [Int64]) -> [QueueOrder.Position] {
        numbers.enumerated().map { QueueOrder.Position(id: id($0 + 1), number: $1) }
    }

    /// Returns the order after a move.
    private func order(
        _ numbers: [Int64], moving moved: [Int], to place: TransferQueue.Place
    ) -> [Int] {
        let all = positions(numbers)
        let changes = QueueOrder.numbers(moving: moved.map { id($0) }, to: place, among: all)
        return all.map { ($0.id, changes[$0.id] ?? $0.number) }
            .sorted { ($0.1, $0.0) < ($1.1, $1.0) }.map { Int($0.0.rawValue) }
    }

    @Test func movedItemsStandAtTheirPlaceInTheirOrder() {
        let spaced: [Int64] = [100, 200, 300, 400]
        #expect(order(spaced, moving: [4, 2], to: .first) == [4, 2, 1, 3])
        #expect(order(spaced, moving: [1], to: .last) == [2, 3, 4, 1])
        #expect(order(spaced, moving: [4, 3], to: .before(id(2))) == [1, 4, 3, 2])
        #expect(order(spaced, moving: [1], to: .after(id(3))) == [2, 3, 1, 4])
        #expect(order([7], moving: [1], to: .first) == [1])
    }

    @Test func itemsGetNewNumbersWhenThereIsNoRoom() {
        #expect(order([1, 2, 3, 4], moving: [4, 3], to: .after(id(1))) == [1, 4, 3, 2])
        #expect(order([5, 5, 5], moving: [3], to: .before(id(2))) == [1, 3, 2])
        #expect(order([QueueOrder.bound, 0], moving: [2], to: .last) == [1, 2])
        let changes = QueueOrder.numbers(moving: [id(2)], to: .last, among: positions([QueueOrder.bound, 0]))
        #expect(changes.values.allSatisfy { $0 <= QueueOrder.bound })
    }

    @Test func placeBesideAMissingOrMovedItemMovesNothing() {
        #expect(QueueOrder.numbers(moving: [id(1)], to: .before(id(9)), among: positions([1, 2])).isEmpty)
        #expect(QueueOrder.numbers(moving: [id(1)], to: .after(id(1)), among: positions([1, 2])).isEmpty)
    }

    @Test func newItemsStandAtTheEndWhileThereIsRoom() {
        #expect(QueueOrder.numbers(forNew: 2, after: nil) == [QueueOrder.gap, 2 * QueueOrder.gap])
        #expect(QueueOrder.numbers(forNew: 1, after: 5) == [5 + QueueOrder.gap])
        #expect(QueueOrder.numbers(forNew: 1, after: QueueOrder.bound) == nil)
    }
}
