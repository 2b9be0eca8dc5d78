import Tern
import TernTesting
import Testing

@testable import TernTransfers

/// The ends of a queue's items, compared with a plain list.
@Suite("Queue: ends")
struct QueueEndsTests {
    private struct Plain {
        var ends: [(number: Int64, id: QueueEnds.ID)] = []

        func first(after number: Int64) -> (number: Int64, id: QueueEnds.ID)? {
            ends.filter { $0.number > number }.min { $0.number < $1.number }
        }
    }

    @Test(arguments: 0..<20) func endsAreThoseOfAPlainList(seed: UInt64) {
        var random = SplitMix(state: seed)
        var plain = Plain()
        for number in 1...Int64.random(in: 1...50, using: &random) {
            plain.ends.append((number * 3, QueueEnds.ID(rawValue: number)))
        }
        plain.ends.shuffle(using: &random)
        var ends = QueueEnds(plain.ends)
        var next: Int64 = 51
        for _ in 0..<2_000 {
            switch Int.random(in: 0..<5, using: &random) {
            case 0:
                // Not always the last one.
                let number = next * 3 - Int64.random(in: 0..<2, using: &random) * 4
                guard !plain.ends.contains(where: { $0.number == number }) else { break }
                plain.ends.append((number, QueueEnds.ID(rawValue: next)))
                ends.add(QueueEnds.ID(rawValue: next), number: number)
                next += 1
            case 1:
                guard let first = plain.first(after: 0) else { break }
                plain.ends.removeAll { $0.number == first.number }
                ends.remove(first.id, number: first.number)
            case 2:
                guard let any = plain.ends.randomElement(using: &random), plain.ends.count > 10 else { break }
                plain.ends.removeAll { $0.number == any.number }
                ends.remove(any.id, number: any.number)
            default:
                let number = Int64.random(in: 0...(next * 3 + 5), using: &random)
                let (found, expected) = (ends.first(after: number), plain.first(after: number))
                #expect(found?.number == expected?.number && found?.id == expected?.id)
            }
            // An item that has not ended, or another end, is not removed.
            ends.remove(QueueEnds.ID(rawValue: next + 7), number: next * 3)
        }
        #expect(ends.ids == plain.ends.sorted { $0.number < $1.number }.map(\.id))
        #expect(ends.lastNumber == plain.ends.map(\.number).max())
    }

    /// With a search of the whole list, this takes hours.
    @Test func manyEndsAreFoundAndRemovedAtOnce() {
        let count: Int64 = 200_000
        var ends = QueueEnds()
        for number in 1...count { ends.add(QueueEnds.ID(rawValue: number), number: number) }
        var found: Int64 = 0
        while let end = ends.first(after: found) { found = end.number }
        #expect(found == count)
        for number in 1...count { ends.remove(QueueEnds.ID(rawValue: number), number: number) }
        #expect(ends.first(after: 0) == nil && ends.ids.isEmpty && ends.lastNumber == nil)
    }
}
