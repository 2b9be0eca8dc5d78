// The rules that decide when a load may begin: a slot at its stage, the rate limit, scrolling, and remembered failures. All
// are pure.

/// The queue of one stage, with a limited number of slots. Each change is O(1), however many loads wait.
///
/// The waiting loads form one doubly linked list for each priority, in flat arrays: a change of priority, a cancellation and
/// the choice of the next load touch a constant number of nodes.
struct StageQueue: Sendable {
    private struct Node {
        var load: Int
        var priority: LoadPriority
        var previous = -1
        var next = -1
    }

    let limit: Int
    let order: ImagePipeline.Order
    /// The number of loads that hold a slot.
    private(set) var running = 0
    private var nodes: [Node] = []
    private var free: [Int] = []
    private var nodeOf: [Int: Int] = [:]
    private var heads = [Int](repeating: -1, count: LoadPriority.count)
    private var tails = [Int](repeating: -1, count: LoadPriority.count)

    init(limit: Int, order: ImagePipeline.Order) {
        self.limit = max(1, limit)
        self.order = order
    }

    /// Creates the queue of a stage.
    init(_ stage: LoadStage, _ configuration: ImagePipeline.Configuration) {
        let threads = configuration.executor.threadCount
        let limit =
            switch stage {
            case .fetch: configuration.maximumFetches
            // Twice the threads, so that a thread finds its next image without waiting for the actor.
            case .decode: configuration.maximumDecodes ?? 2 * threads
            case .process: configuration.maximumProcesses ?? threads
            }
        self.init(limit: limit, order: configuration.order)
    }

    /// The number of loads that wait.
    var waiting: Int { nodeOf.count }

    /// A Boolean value that indicates whether `next` would return a load.
    var hasNext: Bool { running < limit && !nodeOf.isEmpty }

    /// Returns true if the load gets a slot now; otherwise it waits until `next` returns it.
    mutating func enter(_ load: Int, _ priority: LoadPriority) -> Bool {
        if running < limit, nodeOf.isEmpty {
            running += 1
            return true
        }
        append(load, priority)
        return false
    }

    /// Queues a load until `next` returns it, even if a slot is free.
    mutating func append(_ load: Int, _ priority: LoadPriority) {
        let index = free.popLast() ?? nodes.count
        if index == nodes.count {
            nodes.append(Node(load: load, priority: priority))
        } else {
            nodes[index] = Node(load: load, priority: priority)
        }
        nodeOf[load] = index
        link(index)
    }

    /// Frees a slot.
    mutating func leave() { running -= 1 }

    /// Gives a slot to the next load; returns nil if no load waits or no slot is free.
    mutating func next() -> Int? {
        guard running < limit, !nodeOf.isEmpty else { return nil }
        guard let level = heads.lastIndex(where: { $0 >= 0 }) else { return nil }
        let index = order == .firstInFirstOut ? heads[level] : tails[level]
        let load = nodes[index].load
        remove(load)
        running += 1
        return load
    }

    /// Removes a waiting load. Returns false if the load does not wait.
    @discardableResult
    mutating func remove(_ load: Int) -> Bool {
        guard let index = nodeOf.removeValue(forKey: load) else { return false }
        unlink(index)
        free.append(index)
        return true
    }

    /// Changes the priority of a waiting load: it goes behind the loads that have this priority already.
    mutating func move(_ load: Int, to priority: LoadPriority) {
        guard let index = nodeOf[load], nodes[index].priority != priority else { return }
        unlink(index)
        nodes[index].priority = priority
        link(index)
    }

    private mutating func link(_ index: Int) {
        let level = nodes[index].priority.level
        nodes[index].previous = tails[level]
        nodes[index].next = -1
        if tails[level] >= 0 { nodes[tails[level]].next = index } else { heads[level] = index }
        tails[level] = index
    }

    private mutating func unlink(_ index: Int) {
        let (level, previous, next) = (nodes[index].priority.level, nodes[index].previous, nodes[index].next)
        if previous >= 0 { nodes[previous].next = next } else { heads[level] = next }
        if next >= 0 { nodes[next].previous = previous } else { tails[level] = previous }
    }
}

/// A rate limit: a number of tokens per second, and a burst after a pause. Time is passed in.
struct TokenBucket: Sendable {
    private let perSecond: Double
    private let burst: Double
    private var tokens: Double
    private var updated: Duration = .zero

    init(_ limit: ImagePipeline.RateLimit) {
        perSecond = max(0.001, limit.perSecond)
        burst = Double(max(1, limit.burst))
        tokens = burst
    }

    /// Takes a token and returns zero; or returns the time until there is one. No token is reserved: the first in the queue at
    /// that time takes it.
    mutating func take(at now: Duration) -> Duration {
        tokens = min(burst, tokens + max(0, (now - updated) / .seconds(1)) * perSecond)
        updated = max(updated, now)
        // The sum of fractions may be below one by a rounding error.
        guard tokens < 1 - 1e-9 else {
            tokens -= 1
            return .zero
        }
        return .seconds((1 - tokens) / perSecond)
    }

    /// Returns an unused token.
    mutating func returnToken() { tokens = min(burst, tokens + 1) }
}

/// Holds back loads until scrolling has settled. It says when the caller must check again.
struct ScrollDebouncer: Sendable {
    /// The action that the caller must take.
    enum Action: Equatable {
        case none
        /// Call `settlingTimeEnded` with this generation after the settling time.
        case wait(generation: Int)
        /// Let these loads begin.
        case release([Int])
    }

    /// A Boolean value that indicates whether loads may begin.
    private(set) var isSettled = true
    private var generation = 0
    private var waiting: [Int] = []

    /// Handles a report of the view.
    mutating func report(isScrolling: Bool) -> Action {
        generation += 1
        if isScrolling {
            isSettled = false
            return .none
        }
        return isSettled ? .none : .wait(generation: generation)
    }

    /// Handles the end of the settling time. Without effect if the view has reported something since.
    mutating func settlingTimeEnded(generation: Int) -> Action {
        guard generation == self.generation, !isSettled else { return .none }
        isSettled = true
        defer { waiting = [] }
        return .release(waiting)
    }

    /// Returns true if the load may begin now; otherwise it waits.
    mutating func enter(_ load: Int) -> Bool {
        if !isSettled { waiting.append(load) }
        return isSettled
    }

    mutating func remove(_ load: Int) { waiting.removeAll { $0 == load } }
}

/// Remembers failures that would only repeat themselves, with a limited number and lifetime. Time is passed in.
///
/// Only definite failures are kept, such as a status that refuses the request or bytes that are no image. Failures that the
/// network may have caused are not.
struct NegativeCache<Key: Hashable & Sendable>: Sendable {
    private let limit: Int
    private let lifetime: Duration
    private var entries: [Key: (error: ImageError, until: Duration)] = [:]

    init(limit: Int, lifetime: Duration) {
        self.limit = limit
        self.lifetime = lifetime
    }

    var count: Int { entries.count }

    mutating func error(for key: Key, at now: Duration) -> ImageError? {
        guard let entry = entries[key] else { return nil }
        if entry.until > now { return entry.error }
        entries[key] = nil
        return nil
    }

    mutating func record(_ error: ImageError, for key: Key, at now: Duration) {
        guard lifetime > .zero, limit > 0, error.isRemembered else { return }
        if entries.count >= limit, entries[key] == nil {
            entries = entries.filter { $0.value.until > now }
            // Still full: the entry that expires first is removed.
            if entries.count >= limit, let first = entries.min(by: { $0.value.until < $1.value.until }) {
                entries[first.key] = nil
            }
        }
        entries[key] = (error, now + lifetime)
    }

    mutating func remove(_ key: Key) { entries[key] = nil }

    mutating func removeAll() { entries = [:] }
}

extension ImageRequest.Options {
    /// Returns a Boolean value that indicates whether a request with these options loads in spite of a remembered failure.
    func ignores(_ failure: ImageError?) -> Bool {
        if retriesFailed { return true }
        // A truncated file may be enough for this request.
        guard allowsPartial, let failure else { return false }
        return failure.kind != .network
    }
}
