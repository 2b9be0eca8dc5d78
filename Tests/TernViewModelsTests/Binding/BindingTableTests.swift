import Tern
import TernTesting
import Testing

@testable import TernViewModels

@MainActor
@Suite("Bindings", .timeLimit(.minutes(1)))
struct BindingTableTests {
    private let table = BindingTable()

    private func stream() -> (AsyncStream<Session.Progress>, AsyncStream<Session.Progress>.Continuation) {
        AsyncStream.makeStream()
    }

    @Test func aBindingEndsWithItsStreamAndLeavesNothing() async {
        let bar = Bar(in: table)
        let (stream, continuation) = stream()
        let binding = bar.bindProgress(stream)
        #expect(table.count == 1 && bar.progressBinding() === binding && binding.isActive)
        continuation.yield(Session.Progress(completedBytes: 10, totalBytes: 10, isFinished: true))
        await bar.log.wait(for: 1)
        await eventually { !binding.isActive }
        #expect(binding.outcome == .finished && table.count == 0 && bar.bindings.isEmpty)
    }

    @Test func aLookUpMakesNoEntry() {
        let bar = Bar(in: table)
        #expect(bar.progressBinding() == nil && bar.bindings.isEmpty)
        bar.unbindProgress()
        bar.bindings.cancelAll()
        #expect(table.count == 0)
    }

    @Test func viewsWhoseAddressesAreNotUsedAgainAreSweptToo() {
        let (stream, continuation) = stream()
        // An unowned reference keeps the memory of a released object.
        var graves: [Grave] = []
        for _ in 0..<10_000 {
            let bar = Bar(in: table)
            bar.bindProgress(stream)
            graves.append(Grave(view: bar))
        }
        #expect(table.count <= 129 && graves.count == 10_000)
        continuation.finish()
    }

    private struct Grave {
        unowned let view: Bar
    }

    @Test(.enabled(if: Addresses.areUsedAgain)) func aReusedAddressInheritsNothing() {
        let (stream, continuation) = stream()
        var addresses: [ObjectIdentifier: ViewBinding] = [:]
        var reused = 0
        for _ in 0..<1_000 where reused < 10 {
            let bar = Bar(in: table)
            let address = ObjectIdentifier(bar)
            if let old = addresses[address] {
                reused += 1
                #expect(bar.progressBinding() == nil, "a view has found the binding of one that had its address")
                #expect(bar.bindings[value: BindingKey<Int>("number")] == nil)
                #expect(old.outcome == .viewReleased)
            }
            addresses[address] = bar.bindProgress(stream)
            bar.bindings[value: BindingKey<Int>("number")] = 1
        }
        #expect(reused == 10, "the allocator gave no address twice")
        continuation.finish()
    }

    @Test func aHundredThousandViewsLeaveAnEmptyTable() async {
        var last: ViewBinding?
        for number in 0..<100_000 {
            let bar = Bar(in: table)
            let (stream, continuation) = stream()
            last = bar.bindProgress(stream)
            // Every second stream never ends by itself.
            if number.isMultiple(of: 2) { continuation.finish() }
            if number.isMultiple(of: 1_000) { await Task.yield() }
        }
        #expect(last?.outcome == .viewReleased)
        // The number of remaining entries is limited by the changes since the last sweep, and the next one removes
        // them.
        #expect(table.count <= 129)
        table.sweep()
        #expect(table.count == 0)
    }

    @Test func viewsWhoseBindingsEndLeaveAnEmptyTableByThemselves() async {
        for _ in 0..<1_000 {
            let bar = Bar(in: table)
            let (stream, continuation) = stream()
            bar.bindProgress(stream)
            continuation.finish()
        }
        await eventually { table.count == 0 }
    }

    @Test func storedBindingsEndWithTheirView() async {
        let (stream, continuation) = stream()
        let ended = Log<Void>()
        continuation.onTermination = { _ in Task { @MainActor in ended.append(()) } }
        var bar: StoredBar? = StoredBar()
        let log = bar?.log
        weak let weakBar = bar
        let binding = bar?.bindProgress(stream)
        continuation.yield(Session.Progress(completedBytes: 1, totalBytes: 2))
        await log?.wait(for: 1)
        bar = nil
        #expect(weakBar == nil, "a binding has kept its view alive")
        #expect(binding?.outcome == .viewReleased)
        await ended.wait(for: 1)
        continuation.yield(Session.Progress(completedBytes: 2, totalBytes: 2))
        await settle()
        #expect(log?.events.count == 1)
    }

    @Test func aViewInTheTableIsNotKeptAliveAndItsBindingEndsWithTheNextElement() async {
        let (stream, continuation) = stream()
        var bar: Bar? = Bar(in: table)
        let log = bar?.log
        weak let weakBar = bar
        let binding = bar?.bindProgress(stream)
        continuation.yield(Session.Progress(completedBytes: 1, totalBytes: 3))
        await log?.wait(for: 1)
        bar = nil
        #expect(weakBar == nil && binding?.outcome == .viewReleased && table.count == 1)
        continuation.yield(Session.Progress(completedBytes: 2, totalBytes: 3))
        await eventually { table.count == 0 }
        #expect(log?.events.count == 1)
    }

    @Test func valuesAreKeptWhileTheViewLivesAndSurviveCancelAll() {
        let key = BindingKey<String>("name")
        var bar: Bar? = Bar(in: table)
        bar?.bindings[value: key] = "a"
        bar?.bindings.cancelAll()
        #expect(bar?.bindings[value: key] == "a" && bar?.bindings[value: BindingKey<Int>("name")] == nil)
        bar?.bindings[value: key] = nil
        #expect(table.count == 0)
        bar?.bindings[value: key] = "b"
        bar = nil
        table.sweep()
        #expect(table.count == 0)
    }

    @Test func unbindingTouchesItsOwnSlotAlone() {
        let bar = Bar(in: table)
        let (download, _) = stream()
        let (upload, _) = stream()
        let first = bar.bindProgress(download)
        let second = bar.bindProgress(upload, as: .upload)
        bar.unbindProgress(.download)
        #expect(first.outcome == .unbound && second.isActive && bar.progressBinding(.upload) === second)
    }

    @Test func theTableOfTheProcessIsTheDefault() {
        final class Plain: BindableView {}
        let view = Plain()
        let key = BindingKey<Int>("n")
        view.bindings[value: key] = 7
        #expect(view.bindings[value: key] == 7 && BindingTable.shared.count > 0)
        view.bindings[value: key] = nil
        #expect(view.bindings.isEmpty)
    }
}

@MainActor
@Suite("Slots of a view")
struct ViewBindingsTests {
    final class Load: BindingContent {
        private(set) var losses: [SlotRemovalReason] = []
        var whenLost: (@MainActor () -> Void)?

        func didLeaveSlot(_ reason: SlotRemovalReason) {
            losses.append(reason)
            whenLost?()
        }

        nonisolated func viewWasReleased() {}
    }

    private let bindings = ViewBindings()
    private let image = BindingKey<Load>("image")
    private let highlighted = BindingKey<Load>("highlighted")

    @Test func settingEndsThePreviousOfThatKeyAlone() {
        let (first, second, other) = (Load(), Load(), Load())
        let registration = bindings.set(first, for: image)
        bindings.set(other, for: highlighted)
        #expect(registration.isCurrent)
        let next = bindings.set(second, for: image)
        #expect(first.losses == [.replaced] && other.losses.isEmpty && !registration.isCurrent && next.isCurrent)
        #expect(bindings[image] === second && next.generation > registration.generation)
        registration.remove()
        #expect(bindings[image] === second, "a late end has removed its successor")
    }

    @Test func cancelEndsAndRemoveForgets() {
        let (first, second) = (Load(), Load())
        bindings.set(first, for: image)
        bindings.add(second, for: image)
        #expect(bindings.contents(of: image).count == 2 && bindings[image] === second)
        bindings.cancel(image)
        #expect(first.losses == [.cancelled] && second.losses == [.cancelled] && bindings[image] == nil)
        let third = Load()
        let registration = bindings.set(third, for: image)
        bindings.remove(image)
        #expect(third.losses.isEmpty && !registration.isCurrent && bindings.isEmpty)
    }

    @Test func cancelAllEndsEverySlot() {
        let (first, second) = (Load(), Load())
        bindings.set(first, for: image)
        bindings.set(second, for: highlighted)
        bindings.cancelAll()
        #expect(first.losses == [.cancelled] && second.losses == [.cancelled] && bindings.isEmpty)
    }

    @Test func aContentThatBindsAgainWhileItIsReplacedHasTheSlot() {
        let (first, second, third) = (Load(), Load(), Load())
        let (bindings, image) = (bindings, image)
        first.whenLost = { bindings.set(third, for: image) }
        bindings.set(first, for: image)
        let registration = bindings.set(second, for: image)
        #expect(bindings[image] === third && second.losses == [.replaced] && !registration.isCurrent)
    }

    @Test func nothingCanBeBoundToAReleasedView() {
        final class Plain: BindableView {}
        var view: Plain? = Plain()
        let bindings = view.map { ViewBindings(of: $0) }
        view = nil
        let registration = bindings?.set(Load(), for: image)
        #expect(registration?.isCurrent == false && registration?.generation == 0)
    }
}

@Suite("Slots")
struct SlotMapTests {
    private var slots = SlotMap<String>()
    private let image = BindingKey<String>("image").slot
    private let badge = BindingKey<String>("badge").slot

    @Test mutating func aSecondContentDisplacesTheFirst() {
        let first = slots.set("a", generation: 1, in: image)
        let second = slots.set("b", generation: 2, in: image)
        #expect(first.isEmpty && second == ["a"])
        #expect(!slots.holds(1, in: image) && slots.holds(2, in: image))
        #expect(slots.newest(of: image) == "b")
    }

    @Test mutating func keysOfOneNameAndDifferentTypesAreDifferentSlots() {
        let other = BindingKey<Int>("image").slot
        _ = slots.set("a", generation: 1, in: image)
        let displaced = slots.set("b", generation: 2, in: other)
        #expect(displaced.isEmpty && slots.contents(of: image) == ["a"] && slots.contents(of: other) == ["b"])
    }

    @Test mutating func aSlotHoldsSeveralAndEachLeavesAlone() {
        slots.add("a", generation: 1, in: image)
        slots.add("b", generation: 2, in: image)
        let removed = slots.remove(1, in: image)
        #expect(removed == "a" && slots.contents(of: image) == ["b"])
        let all = slots.set("c", generation: 3, in: image)
        #expect(all == ["b"])
    }

    @Test mutating func aLateEndRemovesItsOwnEntryOnly() {
        _ = slots.set("a", generation: 1, in: image)
        _ = slots.set("b", generation: 2, in: image)
        let removed = slots.remove(1, in: image)
        #expect(removed == nil && slots.newest(of: image) == "b")
    }

    @Test mutating func emptiedSlotsLeaveNothing() {
        _ = slots.set("a", generation: 1, in: image)
        slots.add("b", generation: 2, in: badge)
        let one = slots.removeAll(in: image)
        #expect(one == ["a"] && !slots.isEmpty)
        let rest = slots.removeAll()
        #expect(rest == ["b"] && slots.isEmpty && slots.all.isEmpty)
    }
}
