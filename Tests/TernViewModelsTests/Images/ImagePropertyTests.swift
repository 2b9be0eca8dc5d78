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

/// Tests random orders of loads, cancellations, replacements, removals, sizes, visibility and released views, with
/// early and late results. Nothing is shown after a cancellation or a replacement, each load ends once, activity
/// alternates, and no view is kept alive.
@MainActor
@Suite("Image loads in any order", .timeLimit(.minutes(1)))
struct ImagePropertyTests {
    private static let slots = [ImageSlot.image, .highlighted]

    @MainActor
    private final class View: ImageViewModel {
        /// The view's own bindings; nil for bindings in the table.
        let stored: ViewBindings?
        var size: PixelSize?
        /// The content that may be shown in a slot: the width of the newest load, which is unique to it; nil for none.
        var current: [ImageSlot: Int] = [:]
        var faults: [String] = []
        private var active: [ImageSlot: Int] = [:]

        init(isStored: Bool) { stored = isStored ? ViewBindings() : nil }

        var bindings: ViewBindings { stored ?? ViewBindings(of: self) }

        func showImage(_ update: ImageUpdate, in slot: ImageSlot) {
            switch update.content {
            case .image(let image):
                // The frames of an animation count up from its width.
                let width = image.size.width / 10 * 10
                if width != current[slot] { faults.append("\(width) is shown, not \(current[slot] ?? 0)") }
            case .custom(let of):
                if of as? Int != current[slot] { faults.append("a placeholder or failure of \(of) is shown") }
            case .none: faults.append("a slot is cleared")
            }
        }

        func imageSize(for slot: ImageSlot) -> PixelSize? { size }

        func beginImageActivity(in slot: ImageSlot) {
            if active[slot, default: 0] != 0 { faults.append("activity begins twice") }
            active[slot, default: 0] += 1
        }

        func endImageActivity(in slot: ImageSlot) {
            if active[slot, default: 0] != 1 { faults.append("activity ends that has not begun") }
            active[slot, default: 0] -= 1
        }

        func imageLoadEnded(_ load: ImageLoad) {
            if load.result == nil { faults.append("told of an end that is none") }
            if let number = ImagePropertyTests.number(of: load.request), number != current[load.slot] {
                faults.append("told of the end of \(number), not of the newest")
            }
        }

        var isIdle: Bool { active.values.allSatisfy { $0 == 0 } }
    }

    /// Returns the number in the path of a request; nil without a URL.
    private static func number(of request: ImageRequest) -> Int? {
        let words = request.source.url?.path().split(separator: "/") ?? []
        return words.lazy.compactMap { Int($0.drop { $0 == "x" }) }.first
    }

    private final class Weak {
        weak var view: View?
        init(_ view: View) { self.view = view }
    }

    /// One run of random steps.
    @MainActor
    private final class Run {
        private var random: SeededGenerator
        private let photos = Photos()
        private let clock = ManualClock()
        private var views: [View] = []
        private var gone: [Weak] = []
        /// The loads of the view that was released last.
        private var orphans: [ImageLoad] = []
        private var faults: [String] = []
        private var loads: [ImageLoad] = []
        private var ends: [Int: Int] = [:]
        private var tellings: [Int: Int] = [:]
        private var callers: [Task<Void, Never>] = []

        init(seed: Int) {
            random = SeededGenerator(seed: seed)
            for _ in 0..<2 { addView() }
        }

        private func addView() {
            let view = View(isStored: Bool.random(using: &random))
            view.imagePipeline = photos.pipeline
            views.append(view)
        }

        func step() async {
            checkOrphans()
            let view = views[Int.random(in: 0..<views.count, using: &random)]
            let slot = ImagePropertyTests.slots[Int.random(in: 0..<2, using: &random)]
            switch Int.random(in: 0..<16, using: &random) {
            case 0, 1, 2, 3: load(view, slot)
            case 4:
                view.current[slot] = nil
                stop(view, slot)
                view.cancelImageLoad(in: slot)
            case 5:
                guard let load = loads.randomElement(using: &random) else { return }
                for view in views where view.imageLoads[load.slot] === load { view.current[load.slot] = nil }
                load.cancel()
            case 6:
                // The load continues, and is not shown.
                view.current[slot] = nil
                stop(view, slot)
                view.imageLoads.remove(slot)
            case 7:
                view.current = [:]
                for slot in ImagePropertyTests.slots { stop(view, slot) }
                view.imageLoads.cancelAll()
            case 8:
                view.size = PixelSize(width: 1_000_000, height: 1)
                view.imageSizesChanged()
            case 9: view.setImagesVisible(Bool.random(using: &random))
            case 10: replaceView()
            case 11, 12: photos.clock.advance(by: .milliseconds(600))
            case 13: clock.advance(by: .milliseconds(70))
            default: for _ in 0..<Int.random(in: 1..<30, using: &random) { await Task.yield() }
            }
        }

        /// Stops the animation, which shows the image of an ended load; the next content of the slot would end it.
        private func stop(_ view: View, _ slot: ImageSlot) { view.bindings.cancel(.playback(slot)) }

        private func load(_ view: View, _ slot: ImageSlot) {
            let number = (loads.count + 1) * 10
            let path = ["/slow/\(number)", "/\(number)/3", "/slow/\(number)/3", "/slow/x\(number)", "/\(number)"]
                .randomElement(using: &random)
            let isRepeated = Int.random(in: 0..<4, using: &random) == 0
            var request =
                isRepeated ? (loads.last?.originalRequest ?? photos.request("/\(number)")) : photos.request(path ?? "/")
            if Int.random(in: 0..<10, using: &random) == 0 { request = ImageRequest(nil) }
            let waitsForTransition = Bool.random(using: &random)
            // The request contains the number, to distinguish an existing load that is returned again from a new one.
            let kept = ImagePropertyTests.number(of: request) ?? number
            var display = ImageDisplay(placeholder: .custom(kept), failure: .custom(kept))
            display.waitsForTransition = waitsForTransition
            display.clock = clock
            display.decodesToViewSize = Int.random(in: 0..<4, using: &random) == 0
            display.revalidatesCachedImage = Int.random(in: 0..<4, using: &random) == 0
            var receiver: ImageLoad.Receiver?
            if Int.random(in: 0..<5, using: &random) == 0 {
                receiver = { [weak self, weak view] _ in self?.take(kept, in: slot, of: view) }
            }
            stop(view, slot)
            view.current[slot] = kept
            let index = loads.count
            let completion: ImageLoad.Completion = { [weak self, weak view] result in
                self?.record(result, ofLoad: index, number: kept, in: slot, of: view)
            }
            let load = view.loadImage(
                from: request, into: slot, display: display, completion: completion, receive: receiver)
            guard !loads.contains(where: { $0 === load }) else { return loads.append(load) }
            loads.append(load)
            callers.append(
                Task { [weak self] in
                    // `try?`: other tests check the result; this one only counts the ends.
                    _ = try? await load.value
                    self?.ends[index, default: 0] += 1
                })
        }

        private func take(_ number: Int, in slot: ImageSlot, of view: View?) {
            if view?.current[slot] != number { faults.append("a caller is given \(number) after its time") }
        }

        private func record(
            _ result: Result<ImageResponse, ImageError>, ofLoad index: Int, number: Int, in slot: ImageSlot,
            of view: View?
        ) {
            tellings[index, default: 0] += 1
            if view?.current[slot] != number { faults.append("a caller is told of \(number) after its time") }
            if case .failure(let error) = result, error.kind == .cancelled { faults.append("told of a cancellation") }
        }

        private func replaceView() {
            let index = Int.random(in: 0..<views.count, using: &random)
            faults += views[index].faults
            gone.append(Weak(views[index]))
            orphans = ImagePropertyTests.slots.flatMap { views[index].imageLoads.all(for: $0) }
            views.remove(at: index)
            addView()
        }

        /// Checks that no load continues after its view was released.
        private func checkOrphans() {
            if orphans.isEmpty { return }
            BindingTable.shared.sweep()
            if orphans.contains(where: \.isActive) { faults.append("a load has outlived its view") }
            orphans = []
        }

        func finish() async {
            checkOrphans()
            for view in views {
                view.size = PixelSize(width: 1_000_000, height: 1)
                view.imageSizesChanged()
            }
            BindingTable.shared.sweep()
            // The time limit of the test also ends the wait.
            while loads.contains(where: \.isActive), !Task.isCancelled {
                photos.clock.advance(by: .seconds(1))
                await Task.yield()
            }
            for caller in callers { await caller.value }
        }

        func verify(_ seed: Int) {
            faults += views.flatMap(\.faults)
            #expect(faults.isEmpty, "seed \(seed)")
            #expect(loads.allSatisfy { !$0.isActive }, "seed \(seed): a load has not ended")
            #expect(ends.values.allSatisfy { $0 == 1 } && tellings.values.allSatisfy { $0 == 1 }, "seed \(seed)")
            #expect(ends.count == Set(loads.map(ObjectIdentifier.init)).count, "seed \(seed)")
            #expect(gone.allSatisfy { $0.view == nil }, "seed \(seed): a view was kept alive")
            for view in views {
                #expect(view.isIdle, "seed \(seed): activity goes on")
                #expect(ImagePropertyTests.slots.allSatisfy { view.imageLoads[$0] == nil }, "seed \(seed)")
            }
        }
    }

    @Test(arguments: 0..<10)
    func nothingIsShownAfterItsTimeAndEachLoadEndsOnce(block: Int) async throws {
        for seed in block * 20..<(block + 1) * 20 {
            let run = Run(seed: seed)
            for _ in 0..<60 { await run.step() }
            await run.finish()
            run.verify(seed)
        }
    }
}
