import Testing

@testable import TernViewModels

@Suite("Web load state")
struct WebLoadStateTests {
    private enum Event: CaseIterable {
        case resumed, succeeded, failed, shown, lost
    }

    private func apply(_ event: Event, to state: inout WebLoadState) -> WebLoadState.Action {
        switch event {
        case .resumed: state.resumed()
        case .succeeded: state.succeeded()
        case .failed: state.failed()
        case .shown: state.shown()
        case .lost: state.lost()
        }
    }

    @Test func aGoodLoadStartsShowsAndFinishes() {
        var state = WebLoadState()
        let actions = [Event.resumed, .resumed, .succeeded, .shown, .lost].map { apply($0, to: &state) }
        #expect(actions == [.start, .none, .show, .finish, .none] && state.hasEnded)
    }

    @Test func whatIsLostWhileItIsShownIsCancelled() {
        var state = WebLoadState()
        let actions = [Event.resumed, .succeeded, .lost, .shown].map { apply($0, to: &state) }
        #expect(actions == [.start, .show, .endCancelled(tellsView: true), .none])
    }

    @Test func theViewHearsNothingOfALoadThatNeverStarted() {
        var state = WebLoadState()
        let action = state.lost()
        #expect(action == .endCancelled(tellsView: false))
    }

    /// Every order of five events out of the five kinds.
    @Test func everyOrderEndsOnceAndShowsNothingAfterItsEnd() {
        let all = Event.allCases
        for number in 0..<3_125 {
            var (state, rest, actions) = (WebLoadState(), number, [WebLoadState.Action]())
            for _ in 0..<5 {
                let wasEnded = state.hasEnded
                let action = apply(all[rest % 5], to: &state)
                rest /= 5
                if wasEnded { #expect(action == .none) }
                actions.append(action)
            }
            let kinds: [WebLoadState.Action] = [
                .fail, .finish, .endCancelled(tellsView: true), .endCancelled(tellsView: false),
            ]
            let ends = actions.filter { kinds.contains($0) }
            #expect(ends.count == (state.hasEnded ? 1 : 0) && actions.filter { $0 == .start }.count <= 1)
            #expect(actions.filter { $0 == .show }.count <= 1)
        }
    }
}
