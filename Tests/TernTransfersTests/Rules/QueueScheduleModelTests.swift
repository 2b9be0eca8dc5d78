import Foundation
import Testing

@testable import TernTransfers

/// Compares the schedule with a model that keeps plain lists and looks at every item for each decision.
@Suite("Queue: decisions against a model", .timeLimit(.minutes(5)))
struct QueueScheduleModelTests {
    static let steps = ProcessInfo.processInfo.environment["TERN_QUEUE_STEPS"].flatMap { Int($0) } ?? 5_000

    @Test(arguments: [UInt64(1), 2, 3])
    func scheduleDecidesLikeTheModel(seed: UInt64) throws {
        var random = SplitMix(state: seed)
        var pair = SchedulePair()
        for step in 0..<Self.steps {
            pair.perform(&random)
            try #require(pair.difference == nil, "seed \(seed), step \(step): \(pair.difference ?? "")")
        }
        #expect(pair.starts > Self.steps / 20)
    }
}

/// A generator whose numbers depend on its seed alone.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}

/// The schedule and its model, which see the same operations.
private struct SchedulePair {
    typealias ID = TransferQueue.ItemID

    private struct Item {
        let id: ID
        var priority: Int
        var position: Int64
        let host: String
        let group: String?
        let requiresUnmetered: Bool
        var intent: QueueSchedule.Intent
        var isRetryable = false
        var isRunning = false
        var isStopping = false
        var isGone = false
    }

    private var schedule = QueueSchedule(limits: QueueSchedule.Limits(transfers: 3, perHost: 2))
    private var limits = QueueSchedule.Limits(transfers: 3, perHost: 2)
    private var items: [ID: Item] = [:]
    private var dependencies: [String: Set<String>] = [:]
    private var offlineHosts: Set<String> = []
    private var isUnreachable = false
    private var isMetered = false
    private var isStarted = false
    private var lastID: Int64 = 0
    private(set) var difference: String?
    private(set) var starts = 0

    private static let groups = ["a", "b", "c", "d"]

    mutating func perform(_ random: inout SplitMix) {
        var actions: [QueueSchedule.Action] = []
        let some = Array(items.keys).sorted().filter { _ in Int.random(in: 0..<6, using: &random) == 0 }
        switch Int.random(in: 0..<17, using: &random) {
        case 0: actions = add(&random)
        case 1, 2: actions = command(.pause, some.prefix(2))
        case 3, 4: actions = command(.resume, some[...])
        case 5, 6: actions = command(.retry, some[...])
        case 7: actions = command(.cancel, some.prefix(1))
        case 8: actions = command(.remove, some.prefix(2))
        case 9: actions = command(.acknowledge, some[...])
        case 10:
            isUnreachable = Int.random(in: 0..<3, using: &random) == 0
            isMetered = !isUnreachable && Bool.random(using: &random)
            if !isUnreachable { offlineHosts = [] }
            if isMetered {
                for id in items.keys where items[id]?.requiresUnmetered == true && items[id]?.isRunning == true {
                    stop(id)
                }
            }
            actions = schedule.setNetwork(isUnreachable: isUnreachable, isMetered: isMetered)
        case 11:
            limits = QueueSchedule.Limits(
                transfers: Int.random(in: 1...5, using: &random), perHost: Int.random(in: 1...3, using: &random))
            actions = schedule.setLimits(limits)
        case 12:
            let group = Self.groups.randomElement(using: &random) ?? ""
            let others = Set(Self.groups.filter { _ in Int.random(in: 0..<4, using: &random) == 0 })
            let new = schedule.setDependencies(of: group, on: others)
            if reaches(others, group) != (new == nil) { difference = "a cycle" }
            if new != nil { dependencies[group] = others }
            actions = new ?? []
        case 13:
            var changes: [ID: (priority: Int, position: Int64)] = [:]
            for id in some {
                let (priority, position) = (
                    Int.random(in: 0...4, using: &random), Int64.random(in: 0..<50, using: &random)
                )
                changes[id] = (priority, position)
                if items[id]?.isGone == false {
                    items[id]?.priority = priority
                    items[id]?.position = position
                }
            }
            // A removed item has no place any more.
            actions = schedule.place(changes.filter { items[$0.key]?.isGone == false })
        case 14 where !isStarted:
            isStarted = true
            actions = schedule.start()
        default: actions = end(&random)
        }
        // The schedule forgets the hosts of which it has no item.
        offlineHosts.formIntersection(items.values.map(\.host))
        follow(actions)
        compare()
    }

    private mutating func add(_ random: inout SplitMix) -> [QueueSchedule.Action] {
        var new: [QueueSchedule.Entry] = []
        for _ in 0..<Int.random(in: 1...4, using: &random) where items.count < 40 {
            lastID += 1
            let intent: QueueSchedule.Intent = Int.random(in: 0..<5, using: &random) == 0 ? .paused : .waiting
            let item = Item(
                id: ID(rawValue: lastID), priority: Int.random(in: 0...4, using: &random),
                position: Int64.random(in: 0..<50, using: &random),
                host: ["x", "y", "z"].randomElement(using: &random) ?? "",
                group: Bool.random(using: &random) ? Self.groups.randomElement(using: &random) : nil,
                requiresUnmetered: Int.random(in: 0..<4, using: &random) == 0, intent: intent)
            items[item.id] = item
            var entry = QueueSchedule.Entry(
                id: item.id, priority: item.priority, position: item.position, host: item.host, group: item.group)
            (entry.intent, entry.requiresUnmetered) = (intent, item.requiresUnmetered)
            new.append(entry)
        }
        return schedule.add(new)
    }

    private mutating func stop(_ id: ID) {
        items[id]?.isRunning = false
        items[id]?.isStopping = true
    }

    private mutating func command(
        _ command: QueueSchedule.Command, _ ids: ArraySlice<ID>
    ) -> [QueueSchedule.Action] {
        for id in ids {
            guard var item = items[id], !item.isGone else { continue }
            switch (command, item.intent) {
            case (.pause, .waiting): item.intent = .paused
            case (.resume, .paused), (.retry, .failed): item.intent = .waiting
            case (.cancel, .waiting), (.cancel, .paused): (item.intent, item.isRetryable) = (.failed, true)
            case (.remove, _), (.acknowledge, .failed), (.acknowledge, .finished): item.isGone = true
            default: continue
            }
            items[id] = item
            if item.isRunning { stop(id) }
            if item.isGone, items[id]?.isStopping == false { items[id] = nil }
        }
        return schedule.perform(command, on: Array(ids))
    }

    private mutating func end(_ random: inout SplitMix) -> [QueueSchedule.Action] {
        let active = items.values.filter { $0.isRunning || $0.isStopping }.map(\.id).sorted()
        guard let id = active.randomElement(using: &random), var item = items[id] else { return [] }
        let outcomes: [QueueSchedule.Outcome] = [
            .finished, .failed(isRetryable: true), .failed(isRetryable: false), .offline,
        ]
        let outcome = outcomes.randomElement(using: &random) ?? .finished
        let wasRunning = item.isRunning
        (item.isRunning, item.isStopping) = (false, false)
        if item.isGone {
            items[id] = nil
        } else {
            switch outcome {
            case .finished: item.intent = .finished
            case .failed(let isRetryable) where wasRunning: (item.intent, item.isRetryable) = (.failed, isRetryable)
            case .offline where wasRunning && isUnreachable: offlineHosts.insert(item.host)
            case .failed, .offline: break
            }
            items[id] = item
        }
        return schedule.transferEnded(id, outcome)
    }

    /// Checks that each start is the one that the model would choose next.
    private mutating func follow(_ actions: [QueueSchedule.Action]) {
        for action in actions {
            guard case .start(let id) = action else { continue }
            starts += 1
            if next != id { difference = "\(id) starts, and the model starts \(next?.description ?? "none")" }
            items[id]?.isRunning = true
        }
        if let next { difference = "the model starts \(next), too" }
    }

    private var next: ID? {
        let active = items.values.filter { $0.isRunning || $0.isStopping }
        guard isStarted, active.count < limits.transfers else { return nil }
        return items.values.filter { item in
            item.intent == .waiting && !item.isGone && !item.isRunning && !item.isStopping
                && active.filter { $0.host == item.host }.count < limits.perHost && !waitsForNetwork(item)
                && !isBlocked(item)
        }.min { left, right in
            left.priority != right.priority
                ? left.priority > right.priority
                : left.position != right.position ? left.position < right.position : left.id < right.id
        }?.id
    }

    private func waitsForNetwork(_ item: Item) -> Bool {
        offlineHosts.contains(item.host) || (item.requiresUnmetered && isMetered)
    }

    private func isBlocked(_ item: Item) -> Bool {
        guard let group = item.group, let others = dependencies[group] else { return false }
        return items.values.contains { other in
            other.group.map { others.contains($0) } == true && !other.isGone && other.intent != .finished
        }
    }

    private func reaches(_ groups: Set<String>, _ target: String) -> Bool {
        var (seen, next) = (Set<String>(), Array(groups))
        while let group = next.popLast() {
            if group == target { return true }
            if seen.insert(group).inserted { next += dependencies[group] ?? [] }
        }
        return false
    }

    private struct Lane: Hashable {
        let host: String
        let group: String?
        let requiresUnmetered: Bool
    }

    /// The number of lanes, hosts and groups that the items and the dependencies name.
    private var nameCount: Int {
        let lanes = Set(
            items.values.map { Lane(host: $0.host, group: $0.group, requiresUnmetered: $0.requiresUnmetered) })
        let dependent = dependencies.filter { !$0.value.isEmpty }
        let groups = Set(items.values.compactMap(\.group)).union(dependent.keys).union(dependent.values.joined())
        return lanes.count + Set(items.values.map(\.host)).count + groups.count
    }

    private mutating func compare() {
        guard difference == nil else { return }
        for item in items.values {
            let state: TransferQueue.State? =
                if item.isGone { nil } else if item.isRunning { .running } else {
                    switch item.intent {
                    case .waiting: waitsForNetwork(item) ? .waitingForNetwork : .waiting
                    case .paused: .paused
                    case .failed: .failed(retryable: item.isRetryable)
                    case .finished: .finished
                    }
                }
            let found = schedule.state(item.id)
            if found != state {
                difference = "item \(item.id) is \(String(describing: found)), not \(String(describing: state))"
            }
        }
        if schedule.entries.count != items.count { difference = "\(schedule.entries.count) items, not \(items.count)" }
        if schedule.nameCount != nameCount {
            difference = "\(schedule.nameCount) names in use, not \(nameCount)"
        }
        let isIdle =
            !items.values.contains { $0.isRunning || $0.isStopping }
            && (!isStarted
                || !items.values.contains { $0.intent == .waiting && !$0.isGone && !isBlocked($0) })
        if schedule.isIdle != isIdle { difference = "idle: \(schedule.isIdle)" }
    }
}
