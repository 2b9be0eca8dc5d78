import Tern
import TernTesting
import TernViewModels
import Testing

@MainActor
@Suite("Binding network activity", .timeLimit(.minutes(1)))
struct NetworkActivityViewModelTests {
    private final class Indicator: NetworkActivityViewModel {
        let bindings = ViewBindings()
        let log = Log<Bool>()

        func showNetworkActivity(_ isVisible: Bool) { log.append(isVisible) }
    }

    private let slow = Slow()
    private let clock = ManualClock()
    private let indicator = Indicator()

    private func activity(isEnabled: Bool = true) async -> NetworkActivity {
        let activity = NetworkActivity(clock: clock)
        await activity.follow(slow.session.tasks)
        await activity.setEnabled(isEnabled)
        return activity
    }

    @Test func overlappingRequestsAreOneShowAndOneHide() async throws {
        let activity = await activity()
        indicator.bindNetworkActivity(activity)
        #expect(indicator.log.events == [false])
        let (first, second) = (try slow.task(), try slow.task())
        first.resume()
        second.resume()
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(1))
        await indicator.log.wait(for: 2)
        first.cancel()
        second.cancel()
        try await clock.waitForSleepers(1)
        clock.advance(by: .milliseconds(170))
        await indicator.log.wait(for: 3)
        await settle()
        #expect(indicator.log.events == [false, true, false] && indicator.networkActivityBinding != nil)
    }

    @Test func theActivityIsOffByDefaultAndDisablingHidesAtOnce() async throws {
        let activity = await activity(isEnabled: false)
        indicator.bindNetworkActivity(activity)
        let task = try slow.task()
        task.resume()
        await settle()
        #expect(clock.sleeperCount == 0 && indicator.log.events == [false])
        await activity.setEnabled(true)
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(1))
        await indicator.log.wait(for: 2)
        await activity.setEnabled(false)
        await indicator.log.wait(for: 3)
        #expect(indicator.log.events == [false, true, false])
        task.cancel()
    }

    @Test func aVisibleActivityIsShownWithinTheCall() async throws {
        let activity = await activity()
        let task = try slow.task()
        task.resume()
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(1))
        await eventually { activity.isVisible }
        let binding = indicator.bindNetworkActivity(activity)
        #expect(indicator.log.events == [true])
        #expect(indicator.bindNetworkActivity(nil) == nil && binding?.outcome == .unbound)
        #expect(indicator.log.events == [true], "left as it is")
        indicator.unbindNetworkActivity(hiding: true)
        #expect(indicator.log.events == [true, false])
        task.cancel()
    }

    @Test func theBindingHidesAndEndsWithItsActivity() async throws {
        var activity: NetworkActivity? = await activity()
        let task = try slow.task()
        task.resume()
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(1))
        await eventually { activity?.isVisible == true }
        let binding = indicator.bindNetworkActivity(activity)
        task.cancel()
        activity = nil
        await indicator.log.wait { $0.last == false }
        await eventually { binding?.isActive == false }
        #expect(binding?.outcome == .finished && indicator.log.events == [true, false])
    }
}
