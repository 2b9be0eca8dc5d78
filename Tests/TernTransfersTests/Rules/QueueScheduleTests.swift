import Testing

@testable import TernTransfers

@Suite("Queue: decisions")
struct QueueScheduleTests {
    typealias ID = TransferQueue.ItemID

    private func id(_ number: Int) -> ID { ID(rawValue: Int64(number)) }

    private func entry(
        _ number: Int, host: String = "a", group: String? = nil, priority: Int = 2,
        _ change: (inout QueueSchedule.Entry) -> Void = { _ in }
    ) -> QueueSchedule.Entry {
        var entry = QueueSchedule.Entry(
            id: id(number), priority: priority, position: Int64(number), host: host, group: group)
        change(&entry)
        return entry
    }

    private func started(_ transfers: Int = 2, perHost: Int = 2) -> QueueSchedule {
        var schedule = QueueSchedule(limits: QueueSchedule.Limits(transfers: transfers, perHost: perHost))
        _ = schedule.start()
        return schedule
    }

    private func starts(_ actions: [QueueSchedule.Action]) -> [Int] {
        actions.compactMap { if case .start(let id) = $0 { Int(id.rawValue) } else { nil } }
    }

    @Test func firstItemsStartUpToTheLimit() {
        var schedule = started()
        #expect(starts(schedule.add([entry(3), entry(1), entry(2)])) == [1, 2])
        #expect(schedule.state(id(1)) == .running && schedule.state(id(3)) == .waiting)
        #expect(schedule.transferEnded(id(1), .finished).contains(.changed(id(1), .finished)))
        #expect(schedule.state(id(3)) == .running)
    }

    @Test func nothingStartsBeforeTheStart() {
        var schedule = QueueSchedule(limits: QueueSchedule.Limits(transfers: 2, perHost: 2))
        #expect(schedule.add([entry(1)]).isEmpty)
        #expect(schedule.isIdle)
        #expect(schedule.start() == [.start(id(1)), .changed(id(1), .running)])
        #expect(!schedule.isIdle)
    }

    @Test func hostLimitLetsOtherHostsPass() {
        var schedule = started(3, perHost: 1)
        #expect(starts(schedule.add([entry(1), entry(2), entry(3, host: "b")])) == [1, 3])
        #expect(starts(schedule.transferEnded(id(1), .failed(isRetryable: true))) == [2])
        #expect(schedule.state(id(1)) == .failed(retryable: true))
    }

    @Test func greaterPriorityStartsFirst() {
        var schedule = started(1)
        #expect(starts(schedule.add([entry(1, priority: 1), entry(2, priority: 4)])) == [2])
        _ = schedule.place([id(1): (priority: 1, position: 9)])
        _ = schedule.add([entry(3, priority: 1)])
        #expect(starts(schedule.transferEnded(id(2), .finished)) == [3])
    }

    @Test func pausedItemKeepsItsSlotUntilItsTransferHasEnded() {
        var schedule = started(1)
        _ = schedule.add([entry(1), entry(2)])
        #expect(schedule.perform(.pause, on: [id(1)]) == [.stop(id(1)), .changed(id(1), .paused)])
        #expect(schedule.perform(.resume, on: [id(1)]) == [.changed(id(1), .waiting)])
        #expect(schedule.perform(.pause, on: [id(1)]) == [.changed(id(1), .paused)])
        #expect(starts(schedule.transferEnded(id(1), .failed(isRetryable: false))) == [2])
        #expect(schedule.state(id(1)) == .paused)
    }

    @Test func resumedItemStartsAgainAfterItsTransferHasEnded() {
        var schedule = started(1)
        _ = schedule.add([entry(1)])
        _ = schedule.perform(.pause, on: [id(1)])
        #expect(starts(schedule.perform(.resume, on: [id(1)])).isEmpty)
        #expect(starts(schedule.transferEnded(id(1), .failed(isRetryable: true))) == [1])
    }

    @Test func transferThatFinishesWhileItIsStoppedHasFinished() {
        for command in [QueueSchedule.Command.pause, .cancel] {
            var schedule = started(1)
            _ = schedule.add([entry(1)])
            _ = schedule.perform(command, on: [id(1)])
            #expect(schedule.transferEnded(id(1), .finished) == [.changed(id(1), .finished)])
        }
    }

    @Test func cancelledItemHasFailedAndCanBeTriedAgain() {
        var schedule = started(1)
        _ = schedule.add([entry(1), entry(2)])
        #expect(schedule.perform(.cancel, on: [id(2)]) == [.changed(id(2), .failed(retryable: true))])
        #expect(schedule.perform(.cancel, on: [id(2)]).isEmpty)
        #expect(schedule.perform(.retry, on: [id(2)]) == [.changed(id(2), .waiting)])
    }

    @Test func removedItemIsDiscardedAfterItsTransfer() {
        var schedule = started(1)
        _ = schedule.add([entry(1), entry(2), entry(3)])
        #expect(schedule.perform(.remove, on: [id(1), id(3)]) == [.stop(id(1)), .discard(id(3))])
        #expect(schedule.state(id(1)) == nil)
        #expect(schedule.items(for: .pause, among: [id(1)]).isEmpty)
        #expect(schedule.transferEnded(id(1), .failed(isRetryable: true)).first == .discard(id(1)))
        #expect(schedule.state(id(2)) == .running)
    }

    @Test func onlyEndedItemsAreAcknowledged() {
        var schedule = started(1)
        _ = schedule.add([entry(1), entry(2), entry(3)])
        #expect(schedule.perform(.acknowledge, on: [id(1), id(2)]).isEmpty)
        _ = schedule.transferEnded(id(1), .finished)
        _ = schedule.perform(.cancel, on: [id(3), id(2)])
        #expect(schedule.perform(.acknowledge, on: [id(1), id(3)]) == [.forget(id(1)), .forget(id(3))])
        // The transfer of 2 has not ended yet.
        #expect(schedule.perform(.acknowledge, on: [id(2)]).isEmpty)
        #expect(schedule.state(id(2)) == nil)
        #expect(schedule.transferEnded(id(2), .failed(isRetryable: true)) == [.forget(id(2))])
        #expect(schedule.entries.isEmpty)
    }

    @Test func groupWaitsForTheGroupsItDependsOn() {
        var schedule = started(3, perHost: 3)
        #expect(schedule.setDependencies(of: "b", on: ["a"]) == [])
        #expect(starts(schedule.add([entry(1, group: "b"), entry(2, group: "a"), entry(3, group: "a")])) == [2, 3])
        #expect(starts(schedule.transferEnded(id(2), .finished)).isEmpty)
        _ = schedule.transferEnded(id(3), .failed(isRetryable: true))
        #expect(schedule.state(id(1)) == .waiting)
        #expect(schedule.isIdle)
        #expect(starts(schedule.perform(.acknowledge, on: [id(3)])) == [1])
    }

    @Test func newDependencyHoldsWaitingItemsAndItsEndLetsThemStart() {
        var schedule = started(1)
        _ = schedule.add([entry(1, group: "a"), entry(2, group: "b")])
        _ = schedule.setDependencies(of: "b", on: ["a"])
        _ = schedule.perform(.pause, on: [id(1)])
        #expect(starts(schedule.transferEnded(id(1), .failed(isRetryable: true))).isEmpty)
        #expect(schedule.setDependencies(of: "b", on: []) == [.start(id(2)), .changed(id(2), .running)])
    }

    @Test func cycleOfGroupsIsRefused() {
        var schedule = started()
        #expect(schedule.setDependencies(of: "a", on: ["a"]) == nil)
        #expect(schedule.setDependencies(of: "b", on: ["a"]) != nil)
        #expect(schedule.setDependencies(of: "c", on: ["b"]) != nil)
        #expect(schedule.setDependencies(of: "a", on: ["c"]) == nil)
    }

    @Test func itemWithoutNetworkGivesItsPlaceToOthersAndStartsWhenTheNetworkIsBack() {
        var schedule = started(1)
        _ = schedule.setNetwork(isUnreachable: true, isMetered: false)
        // A machine without a default route can still reach some hosts.
        #expect(starts(schedule.add([entry(1), entry(2), entry(3, host: "b")])) == [1])
        let actions = schedule.transferEnded(id(1), .offline)
        #expect(starts(actions) == [3])
        #expect(actions.contains(.changed(id(1), .waitingForNetwork)))
        #expect(actions.contains(.changed(id(2), .waitingForNetwork)))
        #expect(!schedule.isIdle)
        _ = schedule.transferEnded(id(3), .finished)
        let back = schedule.setNetwork(isUnreachable: false, isMetered: false)
        #expect(back.contains(.changed(id(2), .waiting)))
        #expect(starts(back) == [1])
    }

    /// The status of the network tells of default routes alone.
    @Test func hostsWithoutARouteAreTriedAgain() {
        var schedule = started(1)
        _ = schedule.setNetwork(isUnreachable: true, isMetered: false)
        _ = schedule.add([entry(1), entry(2)])
        #expect(!schedule.hasOfflineHosts)
        _ = schedule.transferEnded(id(1), .offline)
        #expect(schedule.hasOfflineHosts && schedule.isOffline(id(1)) && schedule.isOffline(id(2)))
        let actions = schedule.tryOfflineHosts()
        #expect(starts(actions) == [1])
        #expect(actions.contains(.changed(id(2), .waiting)))
        #expect(!schedule.hasOfflineHosts)
        #expect(starts(schedule.transferEnded(id(1), .offline)) == [])
        #expect(schedule.state(id(1)) == .waitingForNetwork)
    }

    @Test func offlineItemWaitsForItsTurnIfTheNetworkIsBackAlready() {
        var schedule = started(1)
        _ = schedule.add([entry(1)])
        #expect(starts(schedule.transferEnded(id(1), .offline)) == [1])
    }

    @Test func meteredNetworkStopsTheItemsThatMustNotUseIt() {
        var schedule = started(2)
        _ = schedule.add([entry(1) { $0.requiresUnmetered = true }, entry(2)])
        let actions = schedule.setNetwork(isUnreachable: false, isMetered: true)
        #expect(actions == [.stop(id(1)), .changed(id(1), .waitingForNetwork)])
        _ = schedule.transferEnded(id(1), .failed(isRetryable: true))
        #expect(schedule.state(id(1)) == .waitingForNetwork)
        #expect(starts(schedule.setNetwork(isUnreachable: false, isMetered: false)) == [1])
    }

    @Test func raisedLimitsStartMoreAndLoweredOnesStopNothing() {
        var schedule = started(1)
        _ = schedule.add([entry(1), entry(2), entry(3)])
        #expect(starts(schedule.setLimits(QueueSchedule.Limits(transfers: 3, perHost: 2))) == [2])
        #expect(schedule.setLimits(QueueSchedule.Limits(transfers: 1, perHost: 1)).isEmpty)
        #expect(starts(schedule.transferEnded(id(1), .finished)).isEmpty)
        #expect(starts(schedule.transferEnded(id(2), .finished)) == [3])
    }

    @Test func storedStatesAreKept() {
        var schedule = started(5, perHost: 5)
        let actions = schedule.add([
            entry(1) { $0.intent = .paused }, entry(2) { $0.intent = .finished },
            entry(3) { ($0.intent, $0.isRetryable) = (.failed, true) }, entry(4),
        ])
        #expect(starts(actions) == [4])
        #expect(schedule.state(id(1)) == .paused && schedule.state(id(2)) == .finished)
        #expect(schedule.state(id(3)) == .failed(retryable: true))
        #expect(schedule.state(id(9)) == nil)
    }

    @Test func itemNamedTwiceIsChangedOnce() {
        var schedule = started(1)
        _ = schedule.add([entry(1)])
        #expect(schedule.perform(.pause, on: [id(1), id(1)]) == [.stop(id(1)), .changed(id(1), .paused)])
    }
}
