import Tern

/// The loads under way by key, with their subscribers. Pure: it decides which callers share a load, and what they get.
///
/// Only the first subscriber gets a failure that may pass; the load then runs once more, and all others get that result. A
/// load without subscribers leaves the table at once, so that the next request for its key starts a new one.
///
/// `SharedRequests` of Tern differs: there one of the callers performs the work itself, every failure is shared, and
/// another caller takes over after a cancellation. Here the pipeline performs it, and subscribers have priorities.
struct LoadTable<Key: Hashable & Sendable, Subscriber: Sendable>: Sendable {
    /// The result of joining a load.
    enum JoinResult: Equatable {
        /// No such load is under way: the caller must start it.
        case begin
        /// The load is under way, with a new priority if it has changed.
        case joined(load: Int, newPriority: LoadPriority?)
    }

    /// The result of a failure.
    enum FailureResult {
        /// The load has ended; these subscribers get the failure.
        case end([Subscriber])
        /// Only the first subscriber gets the failure; the load must run again for the others.
        case retry(firstSubscriber: Subscriber)
    }

    private var loads: [Int: SubscriberList<Key, Subscriber>] = [:]
    private var loadOf: [Key: Int] = [:]

    var count: Int { loads.count }

    func subscriberCount(of load: Int) -> Int { loads[load]?.count ?? 0 }

    /// Returns the subscribers of a load in the order in which they joined.
    func subscribers(of load: Int) -> [Subscriber] { loads[load]?.all ?? [] }

    /// Returns the highest priority among the subscribers of a load.
    func priority(of load: Int) -> LoadPriority { loads[load]?.priority ?? .lowest }

    /// Adds a subscriber to the load of a key.
    /// - Parameter newLoad: The number of the load if it begins.
    mutating func join(
        _ key: Key, as newLoad: Int, with subscription: Subscription, subscriber: Subscriber
    ) -> JoinResult {
        guard let load = loadOf[key] else {
            var list = SubscriberList<Key, Subscriber>(key: key)
            list.add(subscriber, subscription)
            loadOf[key] = newLoad
            loads[newLoad] = list
            return .begin
        }
        let before = loads[load]?.priority
        loads[load]?.add(subscriber, subscription)
        let after = loads[load]?.priority
        return .joined(load: load, newPriority: after == before ? nil : after)
    }

    /// Removes a subscription.
    mutating func leave(_ load: Int, subscription: Int) -> LeaveResult {
        guard let before = loads[load]?.priority, loads[load]?.remove(subscription) == true else { return .unknown }
        if subscriberCount(of: load) == 0 {
            remove(load)
            return .ends
        }
        let after = priority(of: load)
        return .stays(newPriority: after == before ? nil : after)
    }

    /// Changes the priority of a subscription. Returns the new priority of the load if it has changed.
    mutating func update(_ load: Int, _ subscription: Subscription) -> LoadPriority? {
        guard let before = loads[load]?.priority else { return nil }
        loads[load]?.update(subscription)
        let after = priority(of: load)
        return after == before ? nil : after
    }

    /// Ends a load. Returns its subscribers.
    mutating func finish(_ load: Int) -> [Subscriber] {
        let subscribers = subscribers(of: load)
        remove(load)
        return subscribers
    }

    /// Handles the failure of a load.
    /// - Parameter isFinal: True if a second attempt would fail in the same way, so that all subscribers get the failure.
    mutating func fail(_ load: Int, isFinal: Bool) -> FailureResult {
        guard !isFinal, subscriberCount(of: load) > 1, loads[load]?.wasRepeated == false,
            let firstSubscriber = loads[load]?.removeFirstSubscriber()
        else { return .end(finish(load)) }
        loads[load]?.wasRepeated = true
        return .retry(firstSubscriber: firstSubscriber)
    }

    private mutating func remove(_ load: Int) {
        guard let removed = loads.removeValue(forKey: load) else { return }
        loadOf[removed.key] = nil
    }
}

/// The membership of one subscriber in a load.
struct Subscription: Sendable, Hashable {
    /// A number that is unique among all subscriptions of a pipeline.
    let id: Int
    var priority: LoadPriority
}

/// The result of leaving a load.
enum LeaveResult: Equatable {
    /// Others stay; the new priority of the load if it has changed.
    case stays(newPriority: LoadPriority?)
    /// No subscriber is left: the load must be cancelled.
    case ends
    /// There is no such load or no such subscription.
    case unknown
}

/// The subscribers of one load, in the order in which they joined, and their highest priority. Pure; every change is O(1).
struct SubscriberList<Key: Sendable, Subscriber: Sendable>: Sendable {
    let key: Key
    /// In the order of joining; nil for subscribers that have left.
    private(set) var entries: [(subscription: Subscription, subscriber: Subscriber)?] = []
    var wasRepeated = false
    private var first = 0
    private var indexOf: [Int: Int] = [:]
    private var priorityCounts = [Int](repeating: 0, count: LoadPriority.count)

    init(key: Key) { self.key = key }

    var count: Int { indexOf.count }
    var priority: LoadPriority { LoadPriority.highest(priorityCounts) }
    var all: [Subscriber] { entries[first...].compactMap { $0?.subscriber } }

    mutating func add(_ subscriber: Subscriber, _ subscription: Subscription) {
        indexOf[subscription.id] = entries.count
        entries.append((subscription, subscriber))
        priorityCounts[subscription.priority.level] += 1
    }

    /// Removes a subscription. Returns false if there is none with this identifier.
    mutating func remove(_ id: Int) -> Bool {
        guard let index = indexOf.removeValue(forKey: id) else { return false }
        if let priority = entries[index]?.subscription.priority { priorityCounts[priority.level] -= 1 }
        entries[index] = nil
        compact()
        return true
    }

    /// Drops the entries of subscribers that have left, once these are the majority, so that memory does not grow while one
    /// subscriber stays and others come and go. O(1) for each subscriber that has left.
    private mutating func compact() {
        guard entries.count > 2 * indexOf.count + 32 else { return }
        entries = entries[first...].filter { $0 != nil }
        first = 0
        for (index, entry) in entries.enumerated() { if let entry { indexOf[entry.subscription.id] = index } }
    }

    mutating func update(_ subscription: Subscription) {
        guard let index = indexOf[subscription.id], let old = entries[index]?.subscription.priority else { return }
        entries[index]?.subscription = subscription
        priorityCounts[old.level] -= 1
        priorityCounts[subscription.priority.level] += 1
    }

    /// Removes and returns the first subscriber.
    mutating func removeFirstSubscriber() -> Subscriber? {
        while first < entries.count {
            guard let (subscription, subscriber) = entries[first] else {
                first += 1
                continue
            }
            first += 1
            _ = remove(subscription.id)
            return subscriber
        }
        return nil
    }
}

/// The place of a load in a queue: the priority of the request, and among equals visible images first.
struct LoadPriority: Sendable, Hashable, Comparable {
    /// The number of levels.
    static let count = Request.Priority.allCases.count * 2

    /// The level, from 0 (last) to `count` - 1 (first).
    let level: Int

    init(_ requested: Request.Priority, isVisible: Bool) {
        level = requested.rawValue * 2 + (isVisible ? 1 : 0)
    }

    private init(level: Int) { self.level = level }

    /// The priority of a load without subscribers.
    static let lowest = LoadPriority(level: 0)

    /// The priority of the request.
    var requested: Request.Priority { Request.Priority(rawValue: level / 2) ?? .normal }

    var isVisible: Bool { level % 2 == 1 }

    static func < (left: LoadPriority, right: LoadPriority) -> Bool { left.level < right.level }

    /// Returns the highest priority whose count is above zero.
    static func highest(_ counts: [Int]) -> LoadPriority {
        counts.lastIndex { $0 > 0 }.map(LoadPriority.init(level:)) ?? .lowest
    }
}
