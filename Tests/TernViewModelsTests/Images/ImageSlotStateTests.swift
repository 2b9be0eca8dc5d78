import TernImages
import Testing

@testable import TernViewModels

/// Tests the content that a slot shows after the events of its loads.
@Suite struct ImageSlotStateTests {
    typealias Substitutes = ImageSlotState.Substitutes
    private let error = ImageError(.network, "lost")
    private var all: Substitutes { Substitutes(available: Set(ImageSlotState.Substitute.allCases)) }

    private func begun(_ generation: UInt64 = 1) -> ImageSlotState {
        var state = ImageSlotState()
        state.begin(generation, url: nil)
        return state
    }

    @Test func aPhaseIsPrintedWithItsValue() {
        let phases: [ImagePhase] = [.idle, .placeholder, .preview(2), .success(.memory), .failure(error)]
        #expect(
            phases.map { "\($0)" } == ["idle", "placeholder", "preview 2", "success (memory)", "failure (\(error))"])
    }

    @Test func anotherSizeIsBetterThanAPlaceholder() {
        var state = begun()
        #expect(state.wait(1, all) == .showSubstitute(.variant))
        #expect(state.phase == .placeholder)
    }

    @Test func withoutAPlaceholderWhatIsThereStays() {
        var state = begun()
        #expect(state.wait(1, Substitutes()) == .none)
        #expect(state.phase == .idle)
        #expect(state.succeed(1, source: .network, transition: .whenLoaded) == .showImage(hasTransition: true))
        state.begin(2, url: nil)
        #expect(state.wait(2, Substitutes()) == .none)
        #expect(state.phase == .placeholder)
    }

    @Test func clearingTakesItAwayUnlessThereIsAPlaceholder() {
        var state = begun()
        #expect(state.wait(1, Substitutes(clearsContent: true)) == .showSubstitute(.nothing))
        #expect(
            state.wait(1, Substitutes(available: [.placeholder], clearsContent: true)) == .showSubstitute(.placeholder))
    }

    @Test func aDelayedPlaceholderIsShownOnFailureAlone() {
        let substitutes = Substitutes(available: [.placeholder], showsPlaceholderOnlyOnFailure: true)
        var state = begun()
        #expect(state.wait(1, substitutes) == .none)
        #expect(state.fail(1, error: error, substitutes: substitutes) == .showSubstitute(.placeholder))
        #expect(state.phase == .failure(error))
    }

    @Test func aFailureThatIsKnownAtOnceShowsThePlaceholderThatWasNotShown() {
        var state = begun()
        #expect(
            state.fail(1, error: error, substitutes: Substitutes(available: [.placeholder]))
                == .showSubstitute(.placeholder))
        state = begun()
        _ = state.wait(1, Substitutes(available: [.placeholder]))
        #expect(state.fail(1, error: error, substitutes: Substitutes(available: [.placeholder])) == .none)
        #expect(state.phase == .failure(error))
    }

    @Test func aFailurePictureIsShownAlsoOverAPreview() {
        var state = begun()
        _ = state.wait(1, all)
        #expect(state.preview(1) == .showImage(hasTransition: false))
        #expect(state.preview(1) == .showImage(hasTransition: false))
        #expect(state.phase == .preview(2))
        var kept = state
        #expect(kept.fail(1, error: error, substitutes: Substitutes(available: [.placeholder])) == .none)
        #expect(state.fail(1, error: error, substitutes: all) == .showSubstitute(.failure))
    }

    @Test func withoutAURLTheFallbackIsShownElseThePlaceholderElseNothing() {
        let expected: [(Set<ImageSlotState.Substitute>, ImageSlotState.Substitute)] = [
            ([.fallback, .placeholder], .fallback), ([.placeholder, .failure], .placeholder),
            ([.failure, .variant], .nothing), ([], .nothing),
        ]
        for (available, substitute) in expected {
            for delays in [false, true] {
                var state = begun()
                #expect(
                    state.failWithoutURL(
                        1, error: error,
                        substitutes: Substitutes(available: available, showsPlaceholderOnlyOnFailure: delays))
                        == .showSubstitute(substitute))
                #expect(state.phase == .failure(error))
            }
        }
    }

    @Test func imagesInMemoryHaveNoTransition() {
        typealias Transition = ImageDisplay.Transition
        let expected: [(ImageResponse.Source, Transition, Bool)] = [
            (.memory, .whenLoaded, false), (.processed, .whenLoaded, true), (.original, .whenLoaded, true),
            (.network, .whenLoaded, true), (.memory, .always, true), (.network, .never, false),
        ]
        for (source, transition, hasTransition) in expected {
            var state = begun()
            #expect(
                state.succeed(1, source: source, transition: transition) == .showImage(hasTransition: hasTransition))
            #expect(state.phase == .success(source))
        }
    }

    @Test func anImageThatTheCallerSetsIsNotSetTwice() {
        var state = begun()
        #expect(state.preview(1, setsView: false) == .none)
        #expect(state.succeed(1, source: .network, setsView: false, transition: .always) == .none)
        #expect(state.phase == .success(.network))
        #expect(state.wait(1, all) == .none)
    }

    @Test func anEarlierLoadMayShowUntilALaterOneHas() {
        var state = begun()
        state.begin(2, url: nil)
        #expect(state.succeed(1, source: .network, transition: .never) == .showImage(hasTransition: false))
        #expect(state.failWithoutURL(2, error: error, substitutes: all) == .none)
        #expect(
            state.fail(2, error: error, substitutes: all) == .none,
            "the failure of one does not take the picture of another")
        #expect(state.succeed(2, source: .network, transition: .never) == .showImage(hasTransition: false))
        #expect(state.succeed(1, source: .network, transition: .never) == .none)
        #expect(state.preview(1) == .none)
        #expect(state.fail(1, error: error, substitutes: all) == .none)
        #expect(state.phase == .success(.network))
    }

    @Test func aPreviewNeverFollowsThePicture() {
        var state = begun()
        _ = state.succeed(1, source: .network, transition: .never)
        #expect(state.preview(1) == .none)
        state.begin(2, url: nil)
        #expect(state.preview(2) == .showImage(hasTransition: false))
        #expect(state.phase == .preview(1))
    }

    /// Tries all orders of five events of two loads: the image of an earlier load never follows that of a later one,
    /// and only the newest load shows substitutes.
    @Test func noOrderTakesALaterPictureBack() {
        enum Event: CaseIterable { case wait, preview, succeed, fail }
        let steps = [1, 2].flatMap { load in Event.allCases.map { (UInt64(load), $0) } }
        func run(_ state: ImageSlotState, lastShown: UInt64, depth: Int) {
            guard depth > 0 else { return }
            for (load, event) in steps {
                var next = state
                let action =
                    switch event {
                    case .wait: next.wait(load, all)
                    case .preview: next.preview(load)
                    case .succeed: next.succeed(load, source: .network, transition: .whenLoaded)
                    case .fail: next.fail(load, error: error, substitutes: all)
                    }
                var now = lastShown
                switch action {
                case .none: break
                case .showSubstitute: #expect(load == 2)
                case .showImage:
                    #expect(load >= lastShown)
                    now = load
                }
                run(next, lastShown: now, depth: depth - 1)
            }
        }
        var state = begun()
        state.begin(2, url: nil)
        run(state, lastShown: 0, depth: 5)
    }
}
