import Tern
import TernImages
import TernTesting
import Testing

@testable import TernViewModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests keys, several loads of one slot, the release of views, and pipelines.
@MainActor
@Suite("Image slots", .timeLimit(.minutes(1)))
struct ImageSlotsTests {
    private let photos = Photos()

    @MainActor
    private final class Plain: BindableView {
        let bindings = ViewBindings()
    }

    @Test func anyViewKeepsTasksByKey() async throws {
        let view = Plain()
        let tasks = (0..<4).map { photos.pipeline.task(for: photos.request("/slow/4\($0)")) }
        view.imageLoads.set(tasks[0], for: .image)
        let badge = view.imageLoads.set(tasks[1], for: ImageSlot("badge"))
        let first = view.imageLoads.set(tasks[2], for: .image)
        #expect(tasks[0].isFinished && !tasks[1].isFinished && !tasks[2].isFinished)
        view.imageLoads.add(tasks[3], for: .image)
        #expect(view.imageLoads.all(for: .image).count == 2)
        #expect(view.imageLoads.url(for: .image) == photos.url("/slow/43"))
        view.imageLoads.remove(ImageSlot("badge"))
        #expect(!tasks[1].isFinished && badge.isActive && view.imageLoads[ImageSlot("badge")] == nil)
        view.imageLoads.cancel(.image)
        #expect(tasks[2].isFinished && tasks[3].isFinished && !tasks[1].isFinished)
        #expect(await first.failure() == .cancelled)
        // A removed load continues for its callers.
        let taken = try await photos.whileSlowOnesCome { try await badge.value }
        #expect(taken.image.size.width == 41)
    }

    @Test func aViewDoesNotWaitForALoadThatWasTakenOut() async throws {
        let (photo, recorder) = (Photo(photos.pipeline), CompletionRecorder())
        let load = photo.loadImage(from: photos.url("/slow/40"), completion: recorder.record)
        photo.imageLoads.remove(.image)
        photo.loadImage(from: photos.url("/slow/41"))
        #expect(photo.lines == ["begin", "end", "begin"] && load.isActive)
        try await photos.clock.waitForSleepers(2)
        photos.clock.advance(by: .seconds(1))
        #expect(try await load.value.image.size.width == 40)
        await photo.log.wait { $0.last == "ended" }
        #expect(photo.lines == ["begin", "end", "begin", "end", "41 network slowly", "ended"])
        #expect(recorder.results.isEmpty)
    }

    @Test func theSameTaskAgainIsNotCancelled() async throws {
        let photo = Photo()
        let task = photos.pipeline.task(for: photos.request("/slow/40"))
        let load = photo.imageLoads.set(task, for: .image)
        #expect(photo.imageLoads.set(task, for: .image) === load)
        // A load that shows the task replaces it.
        let shown = photo.showImage(of: task)
        #expect(shown !== load && photo.showImage(of: task) === shown && photo.imageLoads[.image] === shown)
        #expect(!task.isFinished && photo.lines == ["begin"])
    }

    @Test func aLoadThatIsTakenOutBeforeTheViewHasASizeEnds() async throws {
        let photo = Photo(photos.pipeline)
        var display = ImageDisplay()
        display.decodesToViewSize = true
        let load = photo.loadImage(from: photos.url("/40"), display: display)
        photo.imageLoads.remove(.image)
        #expect(await load.failure() == .cancelled)
    }

    @Test func anEndTakesItsOwnEntryAlone() async throws {
        let view = Plain()
        let slow = view.imageLoads.set(photos.pipeline.task(for: photos.request("/slow/40")), for: .image)
        let quick = view.imageLoads.add(photos.pipeline.task(for: photos.request("/41")), for: .image)
        _ = try await quick.value
        await eventually { view.imageLoads.all(for: .image).count == 1 }
        #expect(view.imageLoads[.image] === slow)
    }

    @Test func cancelAllTouchesLoadsOfPicturesAlone() async throws {
        let photo = Photo(photos.pipeline)
        let other = Generic()
        photo.bindings.set(other, for: BindingKey<Generic>("other"))
        let loads = [ImageSlot.image, .highlighted].map { photo.loadImage(from: photos.url("/slow/40"), into: $0) }
        photo.imageLoads.cancelAll()
        #expect(loads.allSatisfy { !$0.isActive } && !other.isLost)
        #expect(photo.lines == ["begin", "begin", "end", "end"])
    }

    @MainActor
    private final class Generic: BindingContent {
        var isLost = false
        func didLeaveSlot(_ reason: SlotRemovalReason) { isLost = true }
        nonisolated func viewWasReleased() {}
    }

    @Test func slotsAreIndependent() async throws {
        try await photos.load("/40")
        let photo = Photo(photos.pipeline)
        photo.loadImage(from: photos.url("/40"))
        photo.loadImage(from: nil, into: .highlighted)
        #expect(photo.imagePhase() == .success(.memory))
        #expect(photo.imageLoads.url(for: .image) == photos.url("/40"))
        #expect(photo.imageLoads.url(for: .highlighted) == nil)
    }

    @Test func aLoadThatLeavesThePreviousOneShowsAfterIt() async throws {
        // The small image loads first. It shows until the large one does, and never after it.
        let photo = Photo(photos.pipeline)
        photo.loadImage(from: photos.url("/slow/10"))
        var display = ImageDisplay()
        display.cancelsPrevious = false
        photo.loadImage(from: photos.url("/slow/40"), display: display)
        #expect(photo.imageLoads.all(for: .image).count == 2)
        try await photos.clock.waitForSleepers(2)
        photos.clock.advance(by: .seconds(1))
        await eventually { photo.imageLoads[.image] == nil }
        let shown = photo.lines.filter { $0.contains("network") }
        #expect(shown == ["10 network slowly", "40 network slowly"] || shown == ["40 network slowly"])
    }

    @Test func aTaskThatRunsIsShown() async throws {
        let photo = Photo()
        let task = photos.pipeline.task(for: photos.request("/slow/40"))
        let load = photo.showImage(of: task, display: ImageDisplay(placeholder: .custom("grey")))
        #expect(photo.lines == ["grey placeholder", "begin"])
        try await photos.advance()
        await photo.log.wait { $0.last == "ended" }
        #expect(load.task === task && photo.lines.contains("40 network slowly"))
    }

    @Test func clearingEmptiesTheSlot() async throws {
        let photo = Photo(photos.pipeline)
        photo.loadImage(from: photos.url("/slow/40"))
        photo.clearImage()
        #expect(photo.lines == ["begin", "end", "nothing idle"])
        #expect(photo.imagePhase() == .idle && photo.imageLoads.url(for: .image) == nil)
    }

    // MARK: The views' ends

    @Test func aLoadDoesNotKeepItsViewAliveAndEndsWithIt() async throws {
        var photo: Photo? = Photo(photos.pipeline)
        let load = photo?.loadImage(from: photos.url("/slow/40"))
        weak let weakly = photo
        photo = nil
        #expect(weakly == nil)
        #expect(await load?.failure() == .cancelled)
        #expect(load?.task?.isFinished == true)
    }

    @Test func aLoadThatWaitsForASizeEndsWithItsView() async throws {
        var photo: Photo? = Photo(photos.pipeline)
        var display = ImageDisplay()
        display.decodesToViewSize = true
        let load = photo?.loadImage(from: photos.url("/40"), display: display)
        photo = nil
        #expect(await load?.failure() == .cancelled)
    }

    @MainActor
    private final class TableView: ImageViewModel {
        let table: BindingTable
        init(_ table: BindingTable) { self.table = table }
        var bindings: ViewBindings { ViewBindings(of: self, in: table) }
        func showImage(_ update: ImageUpdate, in slot: ImageSlot) {}
    }

    @Test func aReleasedViewEndsTheLoadsOfAllReleasedViews() async throws {
        let table = BindingTable()
        var views = (0..<60).map { _ in TableView(table) }
        let loads = views.enumerated().map { number, view in
            view.imagePipeline = photos.pipeline
            return view.loadImage(from: photos.url("/slow/\(number + 1)"))
        }
        views = []
        #expect(table.count == 60)
        // Some loads receive data at first, and none after that: waiting loads are not awaited.
        let passing = Task { try await photos.advance() }
        for load in loads { #expect(await load.failure() == .cancelled) }
        passing.cancel()
        #expect(table.count == 0)
    }

    @Test func aHundredThousandViewsLeaveAnEmptyTable() async throws {
        try await photos.load("/40")
        let table = BindingTable()
        var loads: [ImageLoad] = []
        for number in 0..<100_000 {
            let view = TableView(table)
            view.imagePipeline = photos.pipeline
            // Of ten loads one has no URL and one is in memory; of a hundred one is running.
            switch number % 100 {
            case 0: loads.append(view.loadImage(from: photos.url("/slow/40")))
            case let rest where rest % 10 == 1: view.loadImage(from: nil)
            case let rest where rest % 10 == 2: view.loadImage(from: photos.url("/40"))
            default: break
            }
            if number.isMultiple(of: 1_000) { await Task.yield() }
        }
        // The number of remaining entries is limited by the changes since the last sweep, and the next one removes
        // them.
        #expect(table.count <= 129)
        table.sweep()
        #expect(table.count == 0 && loads.count == 1_000 && loads.allSatisfy { !$0.isActive })
    }

    @Test(.enabled(if: Addresses.areUsedAgain)) func anAddressThatIsUsedAgainInheritsNothing() async throws {
        let table = BindingTable()
        var seen: Set<ObjectIdentifier> = []
        var again = 0
        for _ in 0..<1_000 {
            let view = TableView(table)
            if !seen.insert(ObjectIdentifier(view)).inserted { again += 1 }
            #expect(view.imageLoads.url(for: .image) == nil && view.imageLoads[.image] == nil)
            #expect(view.imagePipeline == nil)
            view.imagePipeline = photos.pipeline
            view.loadImage(from: nil)
            view.loadImage(from: photos.url("/slow/40"))
        }
        #expect(again > 0)
    }

    // MARK: Pipelines

    private class Base: ImageViewModel {
        func showImage(_ update: ImageUpdate, in slot: ImageSlot) {}
    }
    private class Middle: Base {}
    private final class Leaf: Middle {}
    private final class Other: Base {}

    @Test func theNearestPipelineIsTaken() async throws {
        let pipelines = (0..<4).map { _ in Photos().pipeline }
        defer { (Base.imagePipeline, Middle.imagePipeline, Leaf.imagePipeline) = (nil, nil, nil) }
        let (leaf, other) = (Leaf(), Other())
        #expect(leaf.currentImagePipeline === ImagePipeline.shared)
        Base.imagePipeline = pipelines[0]
        #expect(leaf.currentImagePipeline === pipelines[0] && other.currentImagePipeline === pipelines[0])
        Middle.imagePipeline = pipelines[1]
        #expect(leaf.currentImagePipeline === pipelines[1] && other.currentImagePipeline === pipelines[0])
        Leaf.imagePipeline = pipelines[2]
        leaf.imagePipeline = pipelines[3]
        #expect(leaf.currentImagePipeline === pipelines[3])
        // Each nil falls back one step.
        leaf.imagePipeline = nil
        #expect(leaf.currentImagePipeline === pipelines[2] && Leaf.imagePipeline === pipelines[2])
        Leaf.imagePipeline = nil
        #expect(leaf.currentImagePipeline === pipelines[1] && Leaf.imagePipeline == nil)
        Middle.imagePipeline = nil
        #expect(leaf.currentImagePipeline === pipelines[0])
        Base.imagePipeline = nil
        #expect(leaf.currentImagePipeline === ImagePipeline.shared)
    }
}
