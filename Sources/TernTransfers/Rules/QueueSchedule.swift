/// Decides which transfers of a queue run: from the items, their order, the limits, the groups and the network. Pure.
///
/// Items that differ only in their order wait in one lane: they have the same host, the same group and the same demand
/// on the network, so that all of a lane may start, or none. A decision looks at the front of each lane.
struct QueueSchedule: Sendable {
    typealias ID = TransferQueue.ItemID
    typealias State = TransferQueue.State

    /// The part of an item's state that is stored.
    enum Intent: Int64, Sendable {
        case waiting
        case paused
        case failed
        case finished
    }

    /// The facts on an item.
    struct Entry: Sendable {
        let id: ID
        var priority: Int
        var position: Int64
        let host: String
        let group: String?
        var requiresUnmetered = false
        var intent = Intent.waiting
        /// Whether a failed item can succeed when it is tried again.
        var isRetryable = false

        fileprivate var activity = Activity.idle
        /// The action at the end of the transfer of an item that was removed; nil for other items.
        fileprivate var removal: Action?
        fileprivate var reported = State.waiting
        fileprivate var lane = 0

        init(id: ID, priority: Int, position: Int64, host: String, group: String? = nil) {
            (self.id, self.priority, self.position, self.host, self.group) = (id, priority, position, host, group)
        }

        fileprivate var key: Key { Key(priority: priority, position: position, id: id) }
    }

    /// The next step of the queue. The actions are performed in their order.
    enum Action: Sendable, Hashable {
        case start(ID)
        /// Ends the transfer of an item, which is reported by `transferEnded`.
        case stop(ID)
        case changed(ID, State)
        /// Forgets an item that was removed, and its part. No transfer of it is left.
        case discard(ID)
        /// Forgets an item that was acknowledged. No transfer of it is left.
        case forget(ID)
    }

    /// The end of a transfer.
    enum Outcome: Sendable, Hashable {
        case finished
        case failed(isRetryable: Bool)
        /// Without a network, no connection could be opened.
        case offline
    }

    /// The limits on the number of transfers, at least 1 each.
    struct Limits: Sendable, Hashable {
        var transfers: Int
        var perHost: Int
    }

    fileprivate enum Activity { case idle, running, stopping }

    /// The place of an item: the greatest priority first, then the smallest position.
    fileprivate struct Key: Comparable {
        let priority: Int
        let position: Int64
        let id: ID

        static func < (left: Key, right: Key) -> Bool {
            if left.priority != right.priority { return left.priority > right.priority }
            return left.position != right.position ? left.position < right.position : left.id < right.id
        }
    }

    private struct LaneName: Hashable, Sendable {
        let host: Int
        let group: Int?
        let requiresUnmetered: Bool
    }

    private struct Lane {
        let name: LaneName
        /// The items that may start, the last one in front.
        var waiting: [Key] = []
    }

    private struct Host {
        /// The number of transfers, including those that are about to end.
        var active = 0
        /// Whether a connection failed for want of a network, which has not returned yet.
        var isOffline = false
    }

    private struct Group {
        /// The number of items that have not finished.
        var unfinished = 0
        var dependencies: Set<Int> = []
    }

    private(set) var limits: Limits
    private(set) var entries: [ID: Entry] = [:]
    // Each item uses its lane, each lane its host and its group. A group with dependencies uses itself and them.
    private var lanes: [Lane] = []
    private var laneNumbers = Numbering<LaneName>()
    private var hosts: [Host] = []
    private var hostNumbers = Numbering<String>()
    private var groups: [Group] = []
    private var groupNumbers = Numbering<String>()
    private var active = 0
    private var isUnreachable = false
    private var isMetered = false
    private(set) var isStarted = false

    init(limits: Limits) { self.limits = limits }

    // MARK: Items

    /// Adds items whose numbers are new.
    mutating func add(_ new: [Entry]) -> [Action] {
        var touched: Set<Int> = []
        for var entry in new {
            entry.lane = takeLane(of: entry)
            if let group = lanes[entry.lane].name.group, entry.intent != .finished { groups[group].unfinished += 1 }
            if entry.intent == .waiting {
                lanes[entry.lane].waiting.append(entry.key)
                touched.insert(entry.lane)
            }
            entry.reported = state(of: entry)
            entries[entry.id] = entry
        }
        for lane in touched { lanes[lane].waiting.sort(by: >) }
        return next()
    }

    /// A change of items that a user asks for.
    enum Command: Sendable, CaseIterable {
        /// Pauses items that wait or run.
        case pause
        /// Lets paused items wait.
        case resume
        /// Lets failed items wait.
        case retry
        /// Ends items that have not ended, as failed ones that can be tried again.
        case cancel
        /// Removes items and their parts.
        case remove
        /// Forgets items that have ended.
        case acknowledge
    }

    /// Returns the items that a command concerns.
    func items(for command: Command, among ids: [ID]) -> [ID] {
        ids.filter { id in
            guard let entry = entries[id], entry.removal == nil else { return false }
            return switch command {
            case .pause: entry.intent == .waiting
            case .resume: entry.intent == .paused
            case .retry: entry.intent == .failed
            case .cancel: entry.intent == .waiting || entry.intent == .paused
            case .remove: true
            case .acknowledge: entry.intent == .failed || entry.intent == .finished
            }
        }
    }

    /// Performs a command on the items that it concerns. Items with a transfer stay until it has ended.
    mutating func perform(_ command: Command, on ids: [ID]) -> [Action] {
        var actions: [Action] = []
        for id in ids {
            // Looked up one by one: an item can be named twice.
            guard var entry = items(for: command, among: [id]).first.flatMap({ entries[$0] }) else { continue }
            take(entry)
            switch command {
            case .pause: entry.intent = .paused
            case .resume, .retry: entry.intent = .waiting
            case .cancel: (entry.intent, entry.isRetryable) = (.failed, true)
            case .remove, .acknowledge:
                if let group = lanes[entry.lane].name.group, entry.intent != .finished {
                    groups[group].unfinished -= 1
                }
                let removal = command == .remove ? Action.discard(id) : .forget(id)
                guard entry.activity != .idle else {
                    remove(entry)
                    actions.append(removal)
                    continue
                }
                entry.removal = removal
            }
            if entry.activity == .running {
                entry.activity = .stopping
                actions.append(.stop(id))
            }
            queue(entry)
            report(&entry, &actions)
            entries[id] = entry
        }
        return actions + next()
    }

    /// Changes the places of items.
    mutating func place(_ changes: [ID: (priority: Int, position: Int64)]) -> [Action] {
        for (id, change) in changes {
            guard var entry = entries[id] else { continue }
            take(entry)
            (entry.priority, entry.position) = change
            entries[id] = entry
            queue(entry)
        }
        return next()
    }

    // MARK: Transfers

    /// Records the end of a transfer that `start` began.
    mutating func transferEnded(_ id: ID, _ outcome: Outcome) -> [Action] {
        guard var entry = entries[id], entry.activity != .idle else { return [] }
        var actions: [Action] = []
        let wasRunning = entry.activity == .running
        let host = lanes[entry.lane].name.host
        active -= 1
        hosts[host].active -= 1
        entry.activity = .idle
        if let removal = entry.removal {
            remove(entry)
            return [removal] + next()
        }
        switch outcome {
        case .finished:
            entry.intent = .finished
            if let group = lanes[entry.lane].name.group { groups[group].unfinished -= 1 }
        case .failed(let isRetryable) where wasRunning:
            entry.intent = .failed
            entry.isRetryable = isRetryable
        case .offline where wasRunning && isUnreachable:
            hosts[host].isOffline = true
        case .failed, .offline:
            // The transfer was stopped, or the network is back: the item is what it was told to be.
            break
        }
        queue(entry)
        report(&entry, &actions)
        entries[id] = entry
        if hosts[host].isOffline { reportLanes(&actions) { $0.host == host } }
        return actions + next()
    }

    // MARK: Circumstances

    /// Lets transfers start from now on.
    mutating func start() -> [Action] {
        isStarted = true
        return next()
    }

    /// Lets no transfer start from now on.
    mutating func stop() { isStarted = false }

    mutating func setLimits(_ limits: Limits) -> [Action] {
        self.limits = limits
        return next()
    }

    /// Sets the state of the network. On a metered one, the items that must not use it are stopped.
    mutating func setNetwork(isUnreachable: Bool, isMetered: Bool) -> [Action] {
        guard isUnreachable != self.isUnreachable || isMetered != self.isMetered else { return [] }
        self.isUnreachable = isUnreachable
        self.isMetered = isMetered
        if !isUnreachable { for index in hosts.indices { hosts[index].isOffline = false } }
        var actions: [Action] = []
        if isMetered {
            for id in entries.keys.sorted() {
                guard var entry = entries[id], entry.requiresUnmetered, entry.activity == .running else { continue }
                entry.activity = .stopping
                actions.append(.stop(id))
                report(&entry, &actions)
                entries[id] = entry
            }
        }
        reportLanes(&actions) { _ in true }
        return actions + next()
    }

    /// Whether a host waits for the network.
    var hasOfflineHosts: Bool { hosts.contains { $0.isOffline } }

    /// Returns whether the host of an item waits for the network.
    func isOffline(_ id: ID) -> Bool { entries[id].map { hosts[lanes[$0.lane].name.host].isOffline } ?? false }

    /// Lets the items of the hosts that wait for the network start, because a host can be reached without a default
    /// route. A host that still cannot be reached waits again.
    mutating func tryOfflineHosts() -> [Action] {
        var actions: [Action] = []
        for index in hosts.indices where hosts[index].isOffline {
            hosts[index].isOffline = false
            reportLanes(&actions) { $0.host == index }
        }
        return actions + next()
    }

    /// Whether nothing runs, and nothing is left that could start by itself.
    var isIdle: Bool {
        active == 0 && (!isStarted || lanes.allSatisfy { $0.waiting.isEmpty || isBlocked($0.name.group) })
    }

    // MARK: Groups

    /// Lets the items of a group start when all items of other groups have finished. Returns nil, and changes nothing,
    /// if the group would wait for itself.
    mutating func setDependencies(of name: String, on names: Set<String>) -> [Action]? {
        let group = takeGroup(name)
        let dependencies = Set(names.map { takeGroup($0) })
        if wouldWaitForItself(group, dependencies) {
            releaseGroups(dependencies)
            releaseGroups([group])
            return nil
        }
        let old = groups[group].dependencies
        groups[group].dependencies = dependencies
        releaseGroups(old)
        // A group with dependencies uses itself once. `takeGroup` above added a use: too many if there was one, or if
        // none is needed now.
        if !old.isEmpty { releaseGroups([group]) }
        if dependencies.isEmpty { releaseGroups([group]) }
        return next()
    }

    private func wouldWaitForItself(_ group: Int, _ dependencies: Set<Int>) -> Bool {
        var (seen, next) = (Set<Int>(), Array(dependencies))
        while let other = next.popLast() {
            if other == group { return true }
            if seen.insert(other).inserted { next += groups[other].dependencies }
        }
        return false
    }

    private func isBlocked(_ group: Int?) -> Bool {
        guard let group else { return false }
        return groups[group].dependencies.contains { groups[$0].unfinished > 0 }
    }

    // MARK: The decision

    /// Starts as many items as may run, the first ones first.
    private mutating func next() -> [Action] {
        guard isStarted, active < limits.transfers else { return [] }
        var actions: [Action] = []
        var open = lanes.indices.filter { !lanes[$0].waiting.isEmpty && mayStart(lanes[$0].name) }
        while active < limits.transfers {
            open.removeAll { lanes[$0].waiting.isEmpty || hosts[lanes[$0].name.host].active >= limits.perHost }
            let best = open.min { left, right in
                guard let first = lanes[left].waiting.last, let second = lanes[right].waiting.last else { return false }
                return first < second
            }
            guard let best, let key = lanes[best].waiting.popLast(), var entry = entries[key.id] else { break }
            active += 1
            hosts[lanes[best].name.host].active += 1
            entry.activity = .running
            actions.append(.start(key.id))
            report(&entry, &actions)
            entries[key.id] = entry
        }
        return actions
    }

    private func mayStart(_ lane: LaneName) -> Bool { !waitsForNetwork(lane) && !isBlocked(lane.group) }

    private func waitsForNetwork(_ lane: LaneName) -> Bool {
        hosts[lane.host].isOffline || (lane.requiresUnmetered && isMetered)
    }

    /// Adds an item to its lane, if it may start.
    private mutating func queue(_ entry: Entry) {
        guard entry.intent == .waiting, entry.activity == .idle, entry.removal == nil else { return }
        let index = place(of: entry.key, in: lanes[entry.lane].waiting)
        lanes[entry.lane].waiting.insert(entry.key, at: index)
    }

    /// Removes an item from its lane, if it is there.
    private mutating func take(_ entry: Entry) {
        guard entry.intent == .waiting, entry.activity == .idle, entry.removal == nil else { return }
        let index = place(of: entry.key, in: lanes[entry.lane].waiting)
        lanes[entry.lane].waiting.remove(at: index)
    }

    /// Returns the index of a key in a lane, the greatest key of which stands first.
    private func place(of key: Key, in waiting: [Key]) -> Int {
        var (low, high) = (0, waiting.count)
        while low < high {
            let middle = (low + high) / 2
            if waiting[middle] > key { low = middle + 1 } else { high = middle }
        }
        return low
    }

    // MARK: States

    /// Returns the state of an item; nil if there is none.
    func state(_ id: ID) -> State? { entries[id].flatMap { $0.removal == nil ? state(of: $0) : nil } }

    /// Returns whether an item was removed or acknowledged, and its transfer has not ended.
    func isRemoved(_ id: ID) -> Bool { entries[id]?.removal != nil }

    private func state(of entry: Entry) -> State {
        if entry.activity == .running { return .running }
        return switch entry.intent {
        case .waiting: waitsForNetwork(lanes[entry.lane].name) ? .waitingForNetwork : .waiting
        case .paused: .paused
        case .failed: .failed(retryable: entry.isRetryable)
        case .finished: .finished
        }
    }

    private func report(_ entry: inout Entry, _ actions: inout [Action]) {
        let state = state(of: entry)
        if entry.removal != nil || state == entry.reported { return }
        entry.reported = state
        actions.append(.changed(entry.id, state))
    }

    private mutating func reportLanes(_ actions: inout [Action], where isConcerned: (LaneName) -> Bool) {
        for lane in lanes where isConcerned(lane.name) {
            for key in lane.waiting.reversed() {
                guard var entry = entries[key.id] else { continue }
                report(&entry, &actions)
                entries[key.id] = entry
            }
        }
    }

    // MARK: Lanes, hosts and groups

    /// The number of lanes, hosts and groups that are in use.
    var nameCount: Int { laneNumbers.count + hostNumbers.count + groupNumbers.count }

    private mutating func remove(_ entry: Entry) {
        entries[entry.id] = nil
        let name = lanes[entry.lane].name
        guard laneNumbers.release(entry.lane) else { return }
        _ = hostNumbers.release(name.host)
        if let group = name.group { releaseGroups([group]) }
    }

    /// Returns the lane of an item that uses it from now on.
    private mutating func takeLane(of entry: Entry) -> Int {
        let isNewHost = hostNumbers[entry.host] == nil
        let host = hostNumbers.take(entry.host)
        if host == hosts.count { hosts.append(Host()) } else if isNewHost { hosts[host] = Host() }
        let group = entry.group.map { takeGroup($0) }
        let name = LaneName(host: host, group: group, requiresUnmetered: entry.requiresUnmetered)
        if laneNumbers[name] != nil {
            // The lane uses its host and its group once, for all of its items.
            _ = hostNumbers.release(host)
            if let group { releaseGroups([group]) }
            return laneNumbers.take(name)
        }
        let lane = laneNumbers.take(name)
        if lane == lanes.count { lanes.append(Lane(name: name)) } else { lanes[lane] = Lane(name: name) }
        return lane
    }

    /// Returns the number of a group that has one more use from now on.
    private mutating func takeGroup(_ name: String) -> Int {
        let isNew = groupNumbers[name] == nil
        let group = groupNumbers.take(name)
        if group == groups.count { groups.append(Group()) } else if isNew { groups[group] = Group() }
        return group
    }

    private mutating func releaseGroups(_ released: Set<Int>) {
        for group in released { _ = groupNumbers.release(group) }
    }
}
