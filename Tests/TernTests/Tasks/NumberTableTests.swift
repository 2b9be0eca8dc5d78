import Testing

@testable import Tern

@Suite("NumberTable")
struct NumberTableTests {
    @Test func aNewTableIsEmpty() {
        let table = NumberTable<String>()
        #expect(table.isEmpty)
        #expect(table[1] == nil)
        #expect(table.numbers.isEmpty)
        #expect(table.values.isEmpty)
    }

    @Test func aValueIsFoundUntilItIsRemoved() {
        var table = NumberTable<String>()
        table[7] = "seven"
        #expect(table[7] == "seven")
        #expect(table.removeValue(for: 7) == "seven")
        #expect(table[7] == nil)
        #expect(table.removeValue(for: 7) == nil)
        #expect(table.isEmpty)
    }

    @Test func settingAgainReplacesTheValue() {
        var table = NumberTable<String>()
        table[7] = "seven"
        table[7] = "again"
        #expect(table.count == 1)
        #expect(table[7] == "again")
        table[7] = nil
        #expect(table.isEmpty)
    }

    @Test func theNumbersOfAFullTableAreAllFound() {
        var table = NumberTable<UInt64>()
        let numbers = (0..<6).map { UInt64($0 * 1_024 + 7) }
        for number in numbers { table[number] = number }
        for number in numbers { #expect(table[number] == number) }
        // Each removal closes the gap for those behind it.
        for (index, number) in numbers.enumerated() {
            #expect(table.removeValue(for: number) == number)
            for left in numbers[(index + 1)...] { #expect(table[left] == left) }
        }
    }

    /// Random insertions and removals, compared with a dictionary. The numbers ascend as those of tasks do, with old
    /// ones that stay long.
    @Test(arguments: [1 as UInt64, 2, 3, 4])
    func theTableEqualsADictionaryAfterRandomChanges(seed: UInt64) {
        var random = Random(state: seed)
        var table = NumberTable<UInt64>()
        var model: [UInt64: UInt64] = [:]
        var last: UInt64 = 0
        for step in 0..<20_000 {
            if model.isEmpty || random.next() % 2 == 0 {
                last += 1 + random.next() % 3
                table[last] = last
                model[last] = last
            } else {
                let number = last - min(last, random.next() % 64)
                #expect(table.removeValue(for: number) == model.removeValue(forKey: number))
            }
            #expect(table.count == model.count)
            if step % 1_000 == 0 { #expect(table.numbers.sorted() == model.keys.sorted()) }
        }
        #expect(Set(table.values) == Set(model.values))
    }

    private struct Random {
        var state: UInt64

        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state >> 33
        }
    }
}
