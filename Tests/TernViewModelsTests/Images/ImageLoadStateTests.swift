import Testing

@testable import TernViewModels

/// The life of one load: activity begins and ends once, and the load ends once.
@Suite struct ImageLoadStateTests {
    @Test func aLoadBeginsOnce() {
        var state = ImageLoadState()
        #expect(state.begin(isValid: true, hasSize: true) == .load)
        #expect(state.begin(isValid: true, hasSize: true) == .none)
        #expect(state.sized() == .none)
    }

    @Test func withoutAURLNothingIsLoaded() {
        var state = ImageLoadState()
        #expect(state.begin(isValid: false, hasSize: false) == .refuse)
        #expect(state.lost() == .end(endsActivity: false))
    }

    @Test func aLoadWaitsForItsSizeOnce() {
        var state = ImageLoadState()
        #expect(state.begin(isValid: true, hasSize: false) == .awaitSize)
        #expect(state.waits() == .none)
        #expect(state.sized() == .load)
        #expect(state.sized() == .none)
    }

    @Test func activityEndsBeforeThePictureAndNotAgain() {
        var state = ImageLoadState()
        _ = state.begin(isValid: true, hasSize: true)
        #expect(state.waits() == .beginActivity)
        #expect(state.waits() == .none)
        #expect(state.arrived() == .endActivity)
        #expect(state.arrived() == .none)
        #expect(state.finished(awaitsTransition: false) == .end(endsActivity: false))
        #expect(state.lost() == .none)
    }

    @Test func theEndWaitsForTheTransitionIfTold() {
        var state = ImageLoadState()
        _ = state.begin(isValid: true, hasSize: true)
        _ = state.arrived()
        #expect(state.transitionEnded() == .none)
        #expect(state.finished(awaitsTransition: true) == .awaitTransition)
        #expect(state.finished(awaitsTransition: true) == .none)
        #expect(state.transitionEnded() == .end(endsActivity: false))
        #expect(state.transitionEnded() == .none)
    }

    /// Every sequence of five events: begins and ends of activity alternate, and the end comes at most once.
    @Test func inAnyOrderActivityAlternatesAndTheEndIsOne() {
        typealias Step = (inout ImageLoadState) -> ImageLoadState.Action
        let steps: [Step] = [
            { $0.begin(isValid: true, hasSize: true) }, { $0.begin(isValid: true, hasSize: false) }, { $0.sized() },
            { $0.waits() }, { $0.arrived() }, { $0.removed() }, { $0.finished(awaitsTransition: false) },
            { $0.finished(awaitsTransition: true) }, { $0.transitionEnded() }, { $0.lost() },
        ]
        func run(_ state: ImageLoadState, _ isActive: Bool, _ hasEnded: Bool, _ depth: Int) {
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
                run(next, active, ended, depth - 1)
            }
        }
        run(ImageLoadState(), false, false, 5)
    }
}
