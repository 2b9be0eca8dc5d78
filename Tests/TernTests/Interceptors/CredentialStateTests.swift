import Testing

@testable import Tern

@Suite("Credential state")
struct CredentialStateTests {
    private typealias State = CredentialState<String>

    private func text(_ action: State.Action) -> String {
        switch action {
        case .use(let issued): "use \(issued.credential) #\(issued.generation)"
        case .refresh(let spent): "refresh \(spent ?? "none")"
        case .wait: "wait"
        case .tooMany: "too many"
        }
    }

    @Test func requestWithoutACredentialFetchesOneAndOthersWait() {
        var state = State(nil, limit: 5, window: .seconds(30))
        #expect(text(state.action(now: 0, expiring: nil)) == "refresh none")
        #expect(text(state.action(now: 0, expiring: nil)) == "wait")
        _ = state.renewed("a")
        #expect(text(state.action(now: 0, expiring: nil)) == "use a #1")
    }

    @Test func refusalOfAnOldCredentialRenewsNothing() {
        var state = State("a", limit: 5, window: .seconds(30))
        #expect(text(state.action(afterRefusalOf: 0, now: 0)) == "refresh a")
        #expect(text(state.action(afterRefusalOf: 0, now: 0)) == "wait")
        _ = state.renewed("b")
        #expect(text(state.action(afterRefusalOf: 0, now: 0)) == "use b #1")
        #expect(text(state.action(afterRefusalOf: 1, now: 0)) == "refresh b")
    }

    /// The result of a refresh that began before a login is that of the user before.
    @Test(arguments: ["a2", nil]) func aCredentialThatIsSetDuringARefreshStays(refreshed: String?) {
        var state = State("a", limit: 5, window: .seconds(30))
        #expect(text(state.action(afterRefusalOf: 0, now: 0)) == "refresh a")
        state.replace("b")
        #expect(text(state.action(now: 0, expiring: nil)) == "use b #1")
        #expect(text(state.action(afterRefusalOf: 0, now: 0)) == "use b #1")
        // Refreshes never overlap.
        #expect(text(state.action(afterRefusalOf: 1, now: 0)) == "wait")
        let isUsed = refreshed.map { state.renewed($0) != nil } ?? state.refreshFailed()
        #expect(!isUsed)
        #expect(text(state.action(now: 0, expiring: nil)) == "use b #1")
        #expect(text(state.action(afterRefusalOf: 1, now: 0)) == "refresh b")
    }

    @Test func aLogoutDuringARefreshStays() {
        var state = State("a", limit: 5, window: .seconds(30))
        #expect(text(state.action(afterRefusalOf: 0, now: 0)) == "refresh a")
        state.replace(nil)
        #expect(text(state.action(now: 0, expiring: nil)) == "wait")
        let renewed = state.renewed("a2")
        #expect(renewed?.credential == nil)
        #expect(state.current?.credential == nil)
        #expect(text(state.action(now: 0, expiring: nil)) == "refresh none")
    }

    @Test func expiredCredentialIsRenewedBeforeItsUse() {
        var state = State("a", limit: 5, window: .seconds(30))
        #expect(text(state.action(now: 0, expiring: 0)) == "refresh a")
        state.refreshFailed()
        #expect(text(state.action(now: 0, expiring: 0)) == "refresh a")
        _ = state.renewed("b")
        #expect(text(state.action(now: 0, expiring: 0)) == "use b #1")
    }

    @Test func tooManyRefreshesInTheWindowAreRefused() {
        var state = State("a", limit: 2, window: .seconds(30))
        for generation in 0..<2 {
            #expect(text(state.action(afterRefusalOf: generation, now: 0)).hasPrefix("refresh"))
            _ = state.renewed("b")
        }
        #expect(text(state.action(afterRefusalOf: 2, now: 29_999_999_999)) == "too many")
        #expect(text(state.action(afterRefusalOf: 2, now: 30_000_000_000)) == "refresh b")
    }

    @Test func credentialFromOutsideCountsAsARenewal() {
        var state = State("a", limit: 2, window: .seconds(30))
        state.replace("login")
        #expect(text(state.action(afterRefusalOf: 0, now: 0)) == "use login #1")
        state.replace(nil)
        #expect(text(state.action(now: 0, expiring: nil)) == "refresh none")
    }
}
