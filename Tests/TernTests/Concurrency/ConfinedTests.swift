import TernConcurrency
import Testing

@Suite("Confined")
struct ConfinedTests {
    private final class Item {}

    @Test func aChangeStays() {
        let numbers = Confined<[Int]>([])
        numbers.value.append(1)
        numbers.value += [2, 3]
        numbers.value.swapAt(0, 2)
        #expect(numbers.value == [3, 2, 1])
    }

    @Test func theValueIsReleasedWithItsPlace() {
        weak var item: Item?
        do {
            let place = Confined<Item?>(Item())
            item = place.value
            #expect(item != nil)
        }
        #expect(item == nil)
    }
}
