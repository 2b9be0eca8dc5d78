import Tern

/// The subscribers of one load, in the order in which they joined, and their highest priority.
///
/// Pure: it decides which subscribers get a result, and when a load must end. Every change is O(1), however many there
/// are.
///
/// `SharedRequests` of Tern differs: there one of the callers performs the work itself, every failure is shared, and
/// another caller takes over after a cancellation. Here the pipeline performs it, and subscribers have priorities.
struct SubscriberList<Subscriber: Identifiable> {
    /// The result of a removal.
    enum Removal: Equatable {
        /// Others stay; the new priority of the load if it has changed.
        case stays(newPriority: LoadPriority?)
        /// No subscriber is left: the load must be cancelled.
        case ends
        /// There was no such subscriber.
        case unknown
    }

    /// The result of a failure.
    enum Failure {
        /// All subscribers get the failure.
        case end
        /// Only this subscriber gets the failure, and it has left; the load must run again for the others.
        case retry(first: Subscriber)
    }

    private struct Entry {
        let subscriber: Subscriber
        var priority: LoadPriority
    }

    /// A search among so few costs less than a table.
    private static var searchLimit: Int { 8 }

    /// The first subscriber, as long as it is the only one: most loads have one, which needs no array.
    private var only: Entry?
    /// In the order of joining; nil for subscribers that have left. Empty while there is at most one.
    private var entries: [Entry?] = []
    /// The index of the first entry that may be a subscriber.
    private var first = 0
    /// The indices by subscriber; empty in a short list.
    private var indices: [Subscriber.ID: Int] = [:]
    /// The priorities of the entries.
    private var priorities = PriorityCounts()
    private var wasRetried = false
    /// The number of subscribers.
    private(set) var count = 0

    /// The number of entries, those of subscribers that have left included.
    var capacity: Int { entries.count }
    /// The highest priority among the subscribers.
    var priority: LoadPriority { only?.priority ?? priorities.highest }
    /// The subscribers in the order in which they joined.
    var all: [Subscriber] {
        if let only { return [only.subscriber] }
        return entries[first...].compactMap { $0?.subscriber }
    }

    /// Calls the closure for each subscriber, in the order in which they joined. The closure must not change the list.
    func visit(_ body: (Subscriber) -> Void) {
        if let only { return body(only.subscriber) }
        for index in first..<entries.count { if let entry = entries[index] { body(entry.subscriber) } }
    }

    /// Adds a subscriber. Returns the new priority of the load if it has changed.
    mutating func add(_ subscriber: Subscriber, _ priority: LoadPriority) -> LoadPriority? {
        let before = self.priority
        count += 1
        append(Entry(subscriber: subscriber, priority: priority))
        return changed(from: before)
    }

    private mutating func append(_ entry: Entry) {
        if only == nil, entries.isEmpty {
            only = entry
            return
        }
        if let only = only.take() {
            entries.append(only)
            priorities.add(only.priority)
        }
        entries.append(entry)
        priorities.add(entry.priority)
        if !indices.isEmpty {
            indices[entry.subscriber.id] = entries.count - 1
        } else if entries.count > Self.searchLimit {
            indexEntries()
        }
    }

    /// Removes a subscriber.
    mutating func remove(_ id: Subscriber.ID) -> Removal {
        let before = priority
        if let only {
            guard only.subscriber.id == id else { return .unknown }
            self.only = nil
            count = 0
            return .ends
        }
        guard let index = index(of: id) else { return .unknown }
        removeEntry(at: index)
        return count == 0 ? .ends : .stays(newPriority: changed(from: before))
    }

    /// Changes the priority of a subscriber. Returns the new priority of the load if it has changed.
    mutating func update(_ id: Subscriber.ID, _ priority: LoadPriority) -> LoadPriority? {
        let before = self.priority
        if let entry = only {
            guard entry.subscriber.id == id else { return nil }
            only?.priority = priority
        } else {
            guard let index = index(of: id), let old = entries[index]?.priority else { return nil }
            entries[index]?.priority = priority
            priorities.remove(old)
            priorities.add(priority)
        }
        return changed(from: before)
    }

    /// Removes all subscribers, and returns a list of them.
    mutating func takeAll() -> SubscriberList {
        defer { self = SubscriberList() }
        return self
    }

    /// Handles the failure of a load. Only the first subscriber gets a failure that may pass; the load then runs once
    /// more, and all others get that result.
    /// - Parameter isFinal: True if a second attempt would fail in the same way, so that all subscribers get the
    ///   failure.
    mutating func fail(isFinal: Bool) -> Failure {
        // More than one subscriber: the list has entries.
        guard !isFinal, count > 1, !wasRetried else { return .end }
        while first < entries.count, entries[first] == nil { first += 1 }
        guard first < entries.count, let subscriber = entries[first]?.subscriber else { return .end }
        wasRetried = true
        removeEntry(at: first)
        return .retry(first: subscriber)
    }

    private func changed(from before: LoadPriority) -> LoadPriority? {
        let after = priority
        return after == before ? nil : after
    }

    private func index(of id: Subscriber.ID) -> Int? {
        if !indices.isEmpty { return indices[id] }
        return entries[first...].firstIndex { $0?.subscriber.id == id }
    }

    private mutating func removeEntry(at index: Int) {
        guard let entry = entries[index] else { return }
        entries[index] = nil
        if !indices.isEmpty { indices[entry.subscriber.id] = nil }
        priorities.remove(entry.priority)
        count -= 1
        // Drops the entries of subscribers that have left, once these are the majority, so that memory does not grow
        // while one subscriber stays and others come and go. O(1) for each subscriber that has left.
        guard entries.count > 2 * count + 32 else { return }
        entries = entries[first...].filter { $0 != nil }
        first = 0
        indices = [:]
        if entries.count > Self.searchLimit { indexEntries() }
    }

    private mutating func indexEntries() {
        for index in entries.indices { if let entry = entries[index] { indices[entry.subscriber.id] = index } }
    }
}

/// The number of subscribers of each priority.
struct PriorityCounts {
    /// By level; empty before the first subscriber.
    private var counts: [UInt32] = []

    mutating func add(_ priority: LoadPriority) {
        if counts.isEmpty { counts = [UInt32](repeating: 0, count: LoadPriority.count) }
        counts[priority.level] += 1
    }

    mutating func remove(_ priority: LoadPriority) { counts[priority.level] -= 1 }

    /// The highest priority whose count is above zero; the lowest one if all are zero.
    var highest: LoadPriority {
        LoadPriority(level: counts.lastIndex { $0 > 0 } ?? 0)
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

    fileprivate init(level: Int) { self.level = level }

    /// The priority of a load without subscribers.
    static let lowest = LoadPriority(level: 0)

    /// The priority of the request.
    var requested: Request.Priority { Request.Priority(rawValue: level / 2) ?? .normal }

    var isVisible: Bool { level % 2 == 1 }

    static func < (left: LoadPriority, right: LoadPriority) -> Bool { left.level < right.level }
}
