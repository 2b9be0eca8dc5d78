import Tern
import TernTesting
import TernViewModels
import Testing

@testable import TernViewModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@MainActor
@Suite("Web views", .timeLimit(.minutes(1)))
struct WebContentViewModelTests {
    private let site = Site()
    private let view: WebView

    init() { view = WebView(session: site.session) }

    private func kind(_ load: WebLoad) async -> NetworkError.Kind? {
        do throws(NetworkError) {
            _ = try await load.value
            return nil
        } catch {
            return error.kind
        }
    }

    @Test func startShowFinishComeInThisOrder() async throws {
        let load = view.load(try site.request("/page"))
        #expect(view.log.events == [.start("/page")] && view.webLoad === load && load.isActive)
        _ = try await load.value
        await view.log.wait(for: 3)
        #expect(view.log.events == [.start("/page"), .show("/page"), .finish("/page")])
        #expect(!load.isActive && view.webLoad == nil)
        #expect(view.progress.last?.isFinished == true && view.progress.last?.completedBytes == 5)
    }

    @Test func aViewThatOnlyShowsHasAllElseByDefault() async throws {
        final class Plain: WebContentViewModel {
            var shown: [WebContent] = []
            func showContent(_ content: WebContent) { shown.append(content) }
        }
        let plain = Plain()
        plain.webSession = site.session
        _ = try await plain.load(try site.request("/page")).value
        #expect(plain.shown.count == 1 && !plain.loadsLinksThroughTern)
        #expect(await kind(plain.load(try site.request("/missing"))) == .status)
        plain.webSession = nil
    }

    @Test func aRefusedStatusReachesTheViewAndTheCaller() async throws {
        let load = view.load(try site.request("/missing"))
        #expect(await kind(load) == .status)
        #expect(view.log.events == [.start("/missing"), .fail("/missing", .status)] && view.contents.isEmpty)
    }

    @Test(arguments: [true, false])
    func anotherLoadEndsThePreviousOnceWithCancelled(startsImmediately: Bool) async throws {
        let options = WebOptions(startsImmediately: startsImmediately)
        let first = view.load(try site.request("/slow"), options: options)
        if startsImmediately { try await site.clock.waitForSleepers(1) }
        let second = view.load(try site.request("/page"))
        #expect(!first.isActive && first.task.state != .completed)
        #expect(await kind(first) == .cancelled)
        _ = try await second.value
        site.clock.advance(by: .seconds(2))
        await eventually { first.task.state == .cancelled }
        await settle()
        let starts: [WebView.Event] = startsImmediately ? [.start("/slow"), .cancel("/slow")] : []
        #expect(view.log.events == starts + [.start("/page"), .show("/page"), .finish("/page")])
        first.cancel()
        first.resume()
        #expect(view.log.events.count == starts.count + 3)
    }

    @Test func aSuspendedLoadStartsWhenItIsResumedAndCanBePaused() async throws {
        let load = view.load(try site.request("/slow"), options: WebOptions(startsImmediately: false))
        #expect(view.log.events.isEmpty && load.task.state == .suspended)
        load.resume()
        #expect(view.log.events == [.start("/slow")])
        load.pause()
        #expect(load.task.state == .suspended)
        load.resume()
        #expect(view.log.events == [.start("/slow")], "started twice")
        try await site.clock.waitForSleepers(1)
        site.clock.advance(by: .seconds(1))
        _ = try await load.value
        #expect(view.log.events.last == .finish("/slow"))
    }

    @Test func cancellingEndsTheCallersWaits() async throws {
        let load = view.load(try site.request("/slow"))
        async let outcome = kind(load)
        async let other = kind(load)
        await Task.yield()
        view.cancelLoading()
        let ends = await [outcome, other]
        #expect(ends == [.cancelled, .cancelled] && view.log.events == [.start("/slow"), .cancel("/slow")])
        await eventually { load.task.state == .cancelled }
    }

    @Test func cancellingACallerEndsItsWaitAlone() async throws {
        let load = view.load(try site.request("/slow"))
        let caller = Task { await kind(load) }
        await settle()
        caller.cancel()
        #expect(await caller.value == .cancelled && load.isActive)
        try await site.clock.waitForSleepers(1)
        site.clock.advance(by: .seconds(1))
        #expect(await kind(load) == nil)
    }

    @Test func aTaskThatIsCancelledElsewhereIsAFailure() async throws {
        let load = view.load(try site.request("/slow"))
        await site.session.tasks.cancelAll()
        #expect(await kind(load) == .cancelled)
        #expect(view.log.events == [.start("/slow"), .fail("/slow", .cancelled)])
    }

    @Test func aLoadThatIsReplacedWhileItIsShownDoesNotFinish() async throws {
        let next = try site.request("/next")
        view.whenShown = { view in
            view.whenShown = nil
            view.load(next)
        }
        let load = view.load(try site.request("/page"))
        await view.log.wait { $0.last == .finish("/next") }
        #expect(await kind(load) == .cancelled)
        #expect(!view.log.events.contains(.finish("/page")) && view.log.events.contains(.cancel("/page")))
    }

    @Test(arguments: [true, false])
    func theLoadEndsWithItsView(startsImmediately: Bool) async throws {
        let log = Log<WebView.Event>()
        var view: WebView? = WebView(log, session: site.session)
        weak let weakView = view
        let options = WebOptions(startsImmediately: startsImmediately)
        let load = try #require(view?.load(try site.request("/slow"), options: options))
        // The known progress was shown, so no later element finds the view released.
        await eventually { view?.progress.isEmpty == false }
        await settle()
        view = nil
        #expect(weakView == nil, "a load has kept its view alive")
        #expect(await kind(load) == .cancelled)
        await eventually { load.task.state == .cancelled }
        #expect(log.events == (startsImmediately ? [.start("/slow")] : []) && !load.isActive)
    }

    @Test func aTappedLinkLoadsThroughTernAndBackWorks() async throws {
        let options = WebOptions(transform: .html { text, _ in text + "!" })
        _ = try await view.load(try site.request("/a"), options: options).value
        #expect(view.navigate(WebNavigation(.link, try site.request("/b"))), "off by default")
        view.loadsLinksThroughTern = true
        #expect(!view.navigate(WebNavigation(.link, try site.request("/b"))))
        await view.log.wait { $0.last == .finish("/b") }
        #expect(view.text == "/b!", "the transform of the page applies to what it leads to")
        #expect(view.canGoBack && !view.canGoForward)
        #expect(!view.navigate(WebNavigation(.back, try site.request("/a"))))
        await view.log.wait { $0.last == .finish("/a") }
        #expect(!view.canGoBack && view.canGoForward && view.text == "/a!")
        _ = try await view.goForward()?.value
        _ = try await view.reload()?.value
        #expect(view.text == "/b!" && view.canGoBack && !view.canGoForward && view.goForward() == nil)
        #expect(site.stub.calls.map(\.path) == ["/a", "/b", "/a", "/b", "/b"])
    }

    @Test func theHistoryHasNamesThatNoWebViewHas() async throws {
        for path in ["/a", "/b"] { _ = try await view.load(try site.request(path)).value }
        #expect(view.hasPreviousPage && !view.hasNextPage && view.loadNextPage() == nil)
        _ = try await view.loadPreviousPage()?.value
        #expect(!view.hasPreviousPage && view.hasNextPage)
        _ = try await view.reloadPage()?.value
        _ = try await view.loadNextPage()?.value
        #expect(site.stub.calls.map(\.path) == ["/a", "/b", "/a", "/a", "/b"])
    }

    @Test func aFailedStepBackStaysWhereItIs() async throws {
        for path in ["/a", "/slow"] {
            let load = view.load(try site.request(path))
            if path == "/slow" {
                try await site.clock.waitForSleepers(1)
                site.clock.advance(by: .seconds(1))
            }
            _ = try await load.value
        }
        view.goBack()
        view.cancelLoading()
        #expect(view.canGoBack && !view.canGoForward)
    }

    @Test func theHookDecides() async throws {
        view.decision = .ignore
        #expect(!view.navigate(WebNavigation(.link, try site.request("/b"))) && view.webLoad == nil)
        view.decision = .loadInView
        view.loadsLinksThroughTern = true
        #expect(view.navigate(WebNavigation(.link, try site.request("/b"))))
        view.decision = .loadThroughTern
        view.loadsLinksThroughTern = false
        #expect(!view.navigate(WebNavigation(.formSubmission, try site.request("/c"))))
        await view.log.wait { $0.last == .finish("/c") }
    }

    @Test func aFormThatRedirectedIsNotSentAgain() async throws {
        _ = try await view.load(try Request(.post, "https://a.example/form", body: .text("x"))).value
        _ = try await view.reload()?.value
        #expect(site.stub.calls.map { "\($0.method) \($0.path)" } == ["POST /form", "GET /thanks", "GET /thanks"])
    }
}

@Suite("Web load state")
struct WebLoadStateTests {
    private enum Event: CaseIterable {
        case resumed, succeeded, failed, shown, lost
    }

    private func apply(_ event: Event, to state: inout WebLoadState) -> WebLoadState.Action {
        switch event {
        case .resumed: state.resume()
        case .succeeded: state.succeed()
        case .failed: state.fail()
        case .shown: state.finishShowing()
        case .lost: state.cancel()
        }
    }

    @Test func aGoodLoadStartsShowsAndFinishes() {
        var state = WebLoadState()
        let actions = [Event.resumed, .resumed, .succeeded, .shown, .lost].map { apply($0, to: &state) }
        #expect(actions == [.start, .none, .show, .finish, .none] && state.hasEnded)
    }

    @Test func aLoadThatIsReplacedWhileItIsShownIsCancelled() {
        var state = WebLoadState()
        let actions = [Event.resumed, .succeeded, .lost, .shown].map { apply($0, to: &state) }
        #expect(actions == [.start, .show, .endCancelled(notifiesView: true), .none])
    }

    @Test func theViewHearsNothingOfALoadThatNeverStarted() {
        var state = WebLoadState()
        let action = state.cancel()
        #expect(action == .endCancelled(notifiesView: false))
    }

    /// Tries every order of five events of the five kinds.
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
                .fail, .finish, .endCancelled(notifiesView: true), .endCancelled(notifiesView: false),
            ]
            let ends = actions.filter { kinds.contains($0) }
            #expect(ends.count == (state.hasEnded ? 1 : 0) && actions.filter { $0 == .start }.count <= 1)
            #expect(actions.filter { $0 == .show }.count <= 1)
        }
    }
}
