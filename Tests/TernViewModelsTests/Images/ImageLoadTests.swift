import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernImages
@testable import TernViewModels

/// Tests one load: its activity begins and ends once, and the load ends once.
@Suite struct ImageLoadStateTests {
    @Test func aLoadBeginsOnce() {
        var state = ImageLoadState()
        #expect(state.begin(isValid: true, hasSize: true) == .load)
        #expect(state.begin(isValid: true, hasSize: true) == .none)
        #expect(state.receiveSize() == .none)
    }

    @Test func withoutAURLNothingIsLoaded() {
        var state = ImageLoadState()
        #expect(state.begin(isValid: false, hasSize: false) == .failWithoutURL)
        #expect(state.cancel() == .end(endsActivity: false))
    }

    @Test func aLoadWaitsForItsSizeOnce() {
        var state = ImageLoadState()
        #expect(state.begin(isValid: true, hasSize: false) == .awaitSize)
        #expect(state.startWaiting() == .none)
        #expect(state.receiveSize() == .load)
        #expect(state.receiveSize() == .none)
    }

    @Test func activityEndsBeforeThePictureAndNotAgain() {
        var state = ImageLoadState()
        _ = state.begin(isValid: true, hasSize: true)
        #expect(state.startWaiting() == .beginActivity)
        #expect(state.startWaiting() == .none)
        #expect(state.receiveImage() == .endActivity)
        #expect(state.receiveImage() == .none)
        #expect(state.finish(awaitsTransition: false) == .end(endsActivity: false))
        #expect(state.cancel() == .none)
    }

    @Test func theEndWaitsForTheTransitionIfTold() {
        var state = ImageLoadState()
        _ = state.begin(isValid: true, hasSize: true)
        _ = state.receiveImage()
        #expect(state.endTransition() == .none)
        #expect(state.finish(awaitsTransition: true) == .awaitTransition)
        #expect(state.finish(awaitsTransition: true) == .none)
        #expect(state.endTransition() == .end(endsActivity: false))
        #expect(state.endTransition() == .none)
    }

    /// Tries every sequence of five events: begins and ends of the activity alternate, and the end occurs at most once.
    @Test func inAnyOrderActivityAlternatesAndTheEndIsOne() {
        typealias Step = (inout ImageLoadState) -> ImageLoadState.Action
        let steps: [Step] = [
            { $0.begin(isValid: true, hasSize: true) }, { $0.begin(isValid: true, hasSize: false) },
            { $0.receiveSize() },
            { $0.startWaiting() }, { $0.receiveImage() }, { $0.removeFromSlot() },
            { $0.finish(awaitsTransition: false) },
            { $0.finish(awaitsTransition: true) }, { $0.endTransition() }, { $0.cancel() },
        ]
        func run(_ state: ImageLoadState, isActive: Bool, hasEnded: Bool, depth: Int) {
            guard depth > 0 else { return }
            for step in steps {
                var (next, active, ended) = (state, isActive, hasEnded)
                let action = step(&next)
                if hasEnded { #expect(action == .none) }
                switch action {
                case .beginActivity:
                    #expect(!active)
                    active = true
                case .endActivity:
                    #expect(active)
                    active = false
                case .end(let endsActivity):
                    #expect(endsActivity == active)
                    (active, ended) = (false, true)
                default: break
                }
                run(next, isActive: active, hasEnded: ended, depth: depth - 1)
            }
        }
        run(ImageLoadState(), isActive: false, hasEnded: false, depth: 5)
    }
}

/// Tests the end of a load together with simultaneous events.
@MainActor
@Suite("Image loads' ends", .timeLimit(.minutes(1)))
struct ImageLoadEndTests {
    private let photos = Photos()

    @MainActor
    private final class Answering: ImageViewModel {
        let bindings = ViewBindings()
        private(set) var widths: [Int] = []
        /// Called while the first image is shown.
        var meanwhile: (@MainActor () -> Void)?

        func showImage(_ update: ImageUpdate, in slot: ImageSlot) {
            widths += update.image.map { [$0.size.width] } ?? []
            let work = meanwhile
            meanwhile = nil
            work?()
        }
    }

    private func response(_ width: Int, _ source: ImageResponse.Source) async throws -> ImageResponse {
        var response = try await photos.pipeline.response(for: photos.request("/\(width)"))
        response.source = source
        return response
    }

    @Test(arguments: [false, true])
    func aChangedPictureThatComesWhileTheFirstIsShownIsShownToo(isThereAtOnce: Bool) async throws {
        let (first, changed) = (try await response(40, .original), try await response(50, .network))
        let view = Answering()
        var request = photos.request("/slow/1")
        request.options.revalidation = .always
        let task = photos.pipeline.task(for: request)
        view.meanwhile = {
            var callers: [Waiter<Bool>] = []
            task.finish(.success(changed), callers: &callers)
            for caller in callers { caller.resume(returning: true) }
        }
        if isThereAtOnce { task.deliver(first) }
        let load = view.showImage(of: task)
        if !isThereAtOnce { task.deliver(first) }
        #expect(try await load.value.image.size.width == 50)
        #expect(view.widths == [40, 50])
    }

    @Test func theFirstEndDecides() async throws {
        let sharedState = ImageLoadSharedState()
        #expect(sharedState.finish(.success(try await response(40, .network))))
        #expect(!sharedState.finish(.success(try await response(50, .network))))
        #expect(!sharedState.cancel())
        #expect(try await sharedState.value().image.size.width == 40)
    }

    @Test func aCallerWhoGivesUpEndsItsWaitAlone() async throws {
        let sharedState = ImageLoadSharedState()
        let caller = Task { () -> ImageError.Kind? in
            do throws(ImageError) {
                _ = try await sharedState.value()
                return nil
            } catch {
                return error.kind
            }
        }
        caller.cancel()
        #expect(await caller.value == .cancelled)
        #expect(sharedState.result == nil)
    }
}
