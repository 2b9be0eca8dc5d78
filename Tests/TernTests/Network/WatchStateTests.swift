import Testing

@testable import Tern

@Suite("Watch state")
struct WatchStateTests {
    private var state = WatchState()

    @Test mutating func firstListenerOpensTheWatchAndTheLastClosesIt() {
        let first = state.joined()
        #expect(first == .open(1) && !state.isWatching && !state.isIdle)
        let isWanted = state.opened(1)
        #expect(isWanted && state.isWatching)
        let second = state.joined()
        let oneLeft = state.left()
        #expect(second == .nothing && oneLeft == .nothing)
        let last = state.left()
        #expect(last == .close && state.isIdle)
        let again = state.joined()
        #expect(again == .open(2))
    }

    @Test mutating func unneededWatchIsClosedByItsOpener() {
        _ = state.joined()
        let left = state.left()
        #expect(left == .nothing && !state.isCurrent(1))
        _ = state.joined()
        let isWanted = state.opened(1)
        #expect(!isWanted && state.isCurrent(2))
    }

    @Test mutating func failedWatchIsOpenedAgainByTheNextListener() {
        _ = state.joined()
        state.failed(1)
        #expect(state.isIdle)
        let next = state.joined()
        #expect(next == .open(2))
        // An older failure changes nothing.
        state.failed(1)
        #expect(!state.isIdle)
    }

    @Test mutating func endedStateOpensNoWatch() {
        _ = state.joined()
        _ = state.opened(1)
        let ended = state.ended()
        let twice = state.ended()
        #expect(ended == .close && twice == .nothing)
        let left = state.left()
        let joined = state.joined()
        #expect(left == .nothing && joined == .nothing && !state.isCurrent(1) && !state.isIdle)
    }
}
