import TernImages
import Testing

@testable import TernViewModels

/// What a slot shows of its loads' events.
@Suite struct ImageSlotStateTests {
    typealias Fillings = ImageSlotState.Fillings
    private let error = ImageError(.network, "lost")
    private var all: Fillings { Fillings(isThere: Set(ImageSlotState.Filling.allCases)) }

    private func begun(_ generation: UInt64 = 1) -> ImageSlotState {
        var state = ImageSlotState()
        state.begin(generation, url: nil)
        return state
    }

    @Test func anotherSizeIsBetterThanAPlaceholder() {
        var state = begun()
        #expect(state.wait(1, all) == .fill(.variant))
        #expect(state.phase == .placeholder)
    }

    @Test func withoutAPlaceholderWhatIsThereStays() {
        var state = begun()
        #expect(state.wait(1, Fillings()) == .none)
        #expect(state.phase == .idle)
        #expect(state.succeed(1, .network, .whenLoaded) == .picture(hasTransition: true))
        state.begin(2, url: nil)
        #expect(state.wait(2, Fillings()) == .none)
        #expect(state.phase == .placeholder)
    }

    @Test func clearingTakesItAwayUnlessThereIsAPlaceholder() {
        var state = begun()
        #expect(state.wait(1, Fillings(clears: true)) == .fill(.nothing))
        #expect(state.wait(1, Fillings(isThere: [.placeholder], clears: true)) == .fill(.placeholder))
    }

    @Test func aDelayedPlaceholderIsShownOnFailureAlone() {
        let fillings = Fillings(isThere: [.placeholder], delaysPlaceholder: true)
        var state = begun()
        #expect(state.wait(1, fillings) == .none)
        #expect(state.fail(1, error, fillings) == .fill(.placeholder))
        #expect(state.phase == .failure(error))
    }

    @Test func aFailureThatIsKnownAtOnceShowsThePlaceholderThatWasNotShown() {
        var state = begun()
        #expect(state.fail(1, error, Fillings(isThere: [.placeholder])) == .fill(.placeholder))
        state = begun()
        _ = state.wait(1, Fillings(isThere: [.placeholder]))
        #expect(state.fail(1, error, Fillings(isThere: [.placeholder])) == .none)
        #expect(state.phase == .failure(error))
    }

    @Test func aFailurePictureIsShownAlsoOverAPreview() {
        var state = begun()
        _ = state.wait(1, all)
        #expect(state.preview(1) == .picture(hasTransition: false))
        #expect(state.preview(1) == .picture(hasTransition: false))
        #expect(state.phase == .preview(2))
        var kept = state
        #expect(kept.fail(1, error, Fillings(isThere: [.placeholder])) == .none)
        #expect(state.fail(1, error, all) == .fill(.failure))
    }

    @Test func withoutAURLTheFallbackIsShownElseThePlaceholderElseNothing() {
        let expected: [(Set<ImageSlotState.Filling>, ImageSlotState.Filling)] = [
            ([.fallback, .placeholder], .fallback), ([.placeholder, .failure], .placeholder),
            ([.failure, .variant], .nothing), ([], .nothing),
        ]
        for (isThere, shown) in expected {
            for delays in [false, true] {
                var state = begun()
                #expect(state.refuse(1, error, Fillings(isThere: isThere, delaysPlaceholder: delays)) == .fill(shown))
                #expect(state.phase == .failure(error))
            }
        }
    }

    @Test func whatWasInMemoryComesAtOnce() {
        typealias Transition = ImageRequest.Presentation.Transition
        let expected: [(ImageResponse.Source, Transition, Bool)] = [
            (.memory, .whenLoaded, false), (.disk, .whenLoaded, true), (.original, .whenLoaded, true),
            (.network, .whenLoaded, true), (.memory, .always, true), (.network, .never, false),
        ]
        for (source, transition, hasTransition) in expected {
            var state = begun()
            #expect(state.succeed(1, source, transition) == .picture(hasTransition: hasTransition))
            #expect(state.phase == .success(source))
        }
    }

    @Test func whatTheCallerSetsIsNotSetTwice() {
        var state = begun()
        #expect(state.preview(1, isSet: false) == .none)
        #expect(state.succeed(1, .network, isSet: false, .always) == .none)
        #expect(state.phase == .success(.network))
        #expect(state.wait(1, all) == .none)
    }

    @Test func anEarlierLoadMayShowUntilALaterOneHas() {
        var state = begun()
        state.begin(2, url: nil)
        #expect(state.succeed(1, .network, .never) == .picture(hasTransition: false))
        #expect(state.refuse(2, error, all) == .none)
        #expect(state.fail(2, error, all) == .none, "the failure of one does not take the picture of another")
        #expect(state.succeed(2, .network, .never) == .picture(hasTransition: false))
        #expect(state.succeed(1, .network, .never) == .none)
        #expect(state.preview(1) == .none)
        #expect(state.fail(1, error, all) == .none)
        #expect(state.phase == .success(.network))
    }

    @Test func aPreviewNeverFollowsThePicture() {
        var state = begun()
        _ = state.succeed(1, .network, .never)
        #expect(state.preview(1) == .none)
        state.begin(2, url: nil)
        #expect(state.preview(2) == .picture(hasTransition: false))
        #expect(state.phase == .preview(1))
    }

    /// All orders of six events of two loads: an earlier load's picture never comes after a later one's, and a filling is
    /// always the newest load's.
    @Test func noOrderTakesALaterPictureBack() {
        enum Event: CaseIterable { case wait, preview, succeed, fail }
        let steps = [1, 2].flatMap { load in Event.allCases.map { (UInt64(load), $0) } }
        func run(_ state: ImageSlotState, _ pictured: UInt64, _ depth: Int) {
            guard depth > 0 else { return }
            for (load, event) in steps {
                var next = state
                let action =
                    switch event {
                    case .wait: next.wait(load, all)
                    case .preview: next.preview(load)
                    case .succeed: next.succeed(load, .network, .whenLoaded)
                    case .fail: next.fail(load, error, all)
                    }
                var now = pictured
                switch action {
                case .none: break
                case .fill: #expect(load == 2)
                case .picture:
                    #expect(load >= pictured)
                    now = load
                }
                run(next, now, depth - 1)
            }
        }
        var state = begun()
        state.begin(2, url: nil)
        run(state, 0, 5)
    }
}
