import Observation
import Tern
import TernTesting
import TernViewModels
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@MainActor
@Suite("Observable view models", .timeLimit(.minutes(1)))
struct ObservableTests {
    private let slow = Slow()

    /// Returns a Boolean value that indicates whether the observer of the properties that `read` reads gets a change.
    private func isTold(_ read: () -> Void, when change: () async throws -> Void) async rethrows -> Bool {
        let log = Log<Void>()
        withObservationTracking(read) {
            // Called on the main actor, where all models live.
            MainActor.assumeIsolated { log.append(()) }
        }
        try await change()
        return !log.events.isEmpty
    }

    @Test func progressIsObserved() async throws {
        let model = ObservableProgress()
        let task = try slow.task()
        #expect(model.fraction == nil && !model.isFinished && !model.isIndeterminate)
        let told = try await isTold {
            _ = model.fraction
        } when: {
            model.bindDownloadProgress(of: task)
            #expect(model.isIndeterminate)
            task.resume()
            try await slow.steps(3)
            await eventually { model.isFinished }
        }
        #expect(told && model.fraction == 1 && !model.isIndeterminate)
    }

    @Test func activityAndRefreshAreObserved() async throws {
        let model = ObservableActivity()
        let task = try slow.task()
        task.resume()
        let told = await isTold {
            _ = model.isActivityShown
        } when: {
            model.bindActivity(to: task)
            model.bindRefresh(to: task)
        }
        #expect(told && model.isActivityShown && model.isRefreshing)
        task.cancel()
        await eventually { !model.isActivityShown && !model.isRefreshing }
        #expect(model.activityBinding == nil || model.activityBinding?.isActive == true)
    }

    @Test func alertsComeOneAfterTheOther() async throws {
        let model = ObservableAlert()
        let session = Session(stub: StubTransport { _ in .status(500) })
        let tasks = try (0..<2).map { _ in
            session.task(for: try Request(.get, "https://a.example/"), startsImmediately: true)
        }
        for task in tasks { model.bindAlert(to: task) }
        await eventually { model.alertBindings.isEmpty }
        let first = model.current
        #expect(model.isPresented && first != nil)
        model.isPresented = false
        #expect(model.isPresented && model.current?.id != first?.id)
        model.dismiss()
        model.dismiss()
        #expect(!model.isPresented && model.current == nil)
    }

    @Test func networkActivityIsObserved() async throws {
        let model = ObservableNetworkActivity()
        let clock = ManualClock()
        let activity = NetworkActivity(clock: clock)
        await activity.follow(slow.session.tasks)
        await activity.setEnabled(true)
        model.bindNetworkActivity(activity)
        let task = try slow.task()
        task.resume()
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(1))
        await eventually { model.isVisible }
        await activity.setEnabled(false)
        await eventually { !model.isVisible }
        task.cancel()
    }

    @Test func webContentIsObserved() async throws {
        let model = ObservableWebContent()
        let site = Site()
        model.webSession = site.session
        model.decision = { $0.kind == .link ? .ignore : nil }
        let load = model.load(try site.request("/page"))
        #expect(model.isLoading)
        _ = try await load.value
        #expect(!model.isLoading && model.content?.mimeType == "text/html" && model.progress.isFinished)
        #expect(!model.navigate(WebNavigation(.link, try site.request("/b"))) && !model.isLoading)
        model.load(try site.request("/slow"))
        model.cancelLoading()
        #expect(!model.isLoading && model.error == nil)
        model.load(try site.request("/missing"))
        await eventually { !model.isLoading }
        #expect(model.error?.status == 404)
    }
}
