import Testing

@testable import TernViewModels

@Suite("Slots")
struct SlotMapTests {
    private var slots = SlotMap<String>()
    private let image = BindingKey<String>("image").slot
    private let badge = BindingKey<String>("badge").slot

    @Test mutating func aSecondContentDisplacesTheFirst() {
        let first = slots.set("a", 1, in: image)
        let second = slots.set("b", 2, in: image)
        #expect(first.isEmpty && second == ["a"])
        #expect(!slots.holds(1, in: image) && slots.holds(2, in: image))
        #expect(slots.newest(of: image) == "b")
    }

    @Test mutating func keysOfOneNameAndDifferentTypesAreDifferentSlots() {
        let other = BindingKey<Int>("image").slot
        _ = slots.set("a", 1, in: image)
        let displaced = slots.set("b", 2, in: other)
        #expect(displaced.isEmpty && slots.contents(of: image) == ["a"] && slots.contents(of: other) == ["b"])
    }

    @Test mutating func aSlotHoldsSeveralAndEachLeavesAlone() {
        slots.add("a", 1, in: image)
        slots.add("b", 2, in: image)
        let removed = slots.remove(1, in: image)
        #expect(removed == "a" && slots.contents(of: image) == ["b"])
        let all = slots.set("c", 3, in: image)
        #expect(all == ["b"])
    }

    @Test mutating func aLateEndRemovesItsOwnEntryOnly() {
        _ = slots.set("a", 1, in: image)
        _ = slots.set("b", 2, in: image)
        let removed = slots.remove(1, in: image)
        #expect(removed == nil && slots.newest(of: image) == "b")
    }

    @Test mutating func emptiedSlotsLeaveNothing() {
        _ = slots.set("a", 1, in: image)
        slots.add("b", 2, in: badge)
        let one = slots.removeAll(in: image)
        #expect(one == ["a"] && !slots.isEmpty)
        let rest = slots.removeAll()
        #expect(rest == ["b"] && slots.isEmpty && slots.all.isEmpty)
    }
}
