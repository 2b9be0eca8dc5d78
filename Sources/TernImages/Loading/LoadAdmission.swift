import TernConcurrency

// The rules that decide when a load may begin: a slot at its stage, the rate limit, scrolling, and remembered failures.
// All are pure.

/// The place of a load in the queue of a stage, which the load owns.
struct QueuePlace: Sendable {
    let stage: LoadStage
    fileprivate let index: Int
    /// The number of entries that the node has served before: it serves one after another.
    fileprivate let generation: Int
}

/// The queue of one stage, with a limited number of slots. Each change is O(1), however many loads wait.
///
/// The waiting loads form one doubly linked list for each priority, in flat arrays: a change of priority, a
/// cancellation and the choice of the next load touch a constant number of nodes.
struct StageQueue<Entry> {
    private struct Node {
        /// Nil in a node that is free.
        var entry: Entry?
        var priority: LoadPriority
        var generation = 0
        var previous = -1
        var next = -1
    }

    let stage: LoadStage
    /// The number of slots. A lower limit takes no slot from the loads that have one.
    var limit: Int
    let order: ImagePipeline.Order
    /// The number of loads that hold a slot.
    private(set) var running = 0
    /// The number of loads that wait.
    private(set) var waiting = 0
    private var nodes: [Node] = []
    private var free: [Int] = []
    private var heads = [Int](repeating: -1, count: LoadPriority.count)
    private var tails = [Int](repeating: -1, count: LoadPriority.count)

    init(_ stage: LoadStage = .fetch, limit: Int, order: ImagePipeline.Order) {
        self.stage = stage
        self.limit = max(1, limit)
        self.order = order
    }

    /// Creates the queue of a stage.
    init(_ stage: LoadStage, _ configuration: ImagePipeline.Configuration) {
        let threads = configuration.executor.threadCount
        let limit =
            switch stage {
            case .fetch: configuration.maximumFetches
            case .decode: DecodePace(configuration).limit
            case .process: configuration.maximumProcesses ?? threads
            }
        self.init(stage, limit: limit, order: configuration.order)
    }

    /// Whether `next` would return a load.
    var hasNext: Bool { running < limit && waiting > 0 }

    /// Gives a slot to a load, and returns true, if one is free and no load waits.
    mutating func takeSlot() -> Bool {
        guard running < limit, waiting == 0 else { return false }
        running += 1
        return true
    }

    /// Queues a load until `next` returns it, even if a slot is free.
    mutating func append(_ entry: Entry, _ priority: LoadPriority) -> QueuePlace {
        let index = free.popLast() ?? nodes.count
        if index == nodes.count {
            nodes.append(Node(entry: entry, priority: priority))
        } else {
            nodes[index].entry = entry
            nodes[index].priority = priority
        }
        waiting += 1
        link(index)
        return QueuePlace(stage: stage, index: index, generation: nodes[index].generation)
    }

    /// Frees a slot.
    mutating func leave() { running -= 1 }

    /// Gives a slot to the next load, and returns it; returns nil if no load waits or no slot is free.
    mutating func next() -> Entry? {
        guard hasNext, let level = heads.lastIndex(where: { $0 >= 0 }) else { return nil }
        let index = order == .firstInFirstOut ? heads[level] : tails[level]
        running += 1
        return removeNode(index)
    }

    /// Removes a waiting load. Returns false if the load does not wait.
    @discardableResult
    mutating func remove(_ place: QueuePlace) -> Bool {
        guard contains(place) else { return false }
        removeNode(place.index)
        return true
    }

    /// Changes the priority of a waiting load: it goes behind the loads that have this priority already.
    mutating func move(_ place: QueuePlace, to priority: LoadPriority) {
        let index = place.index
        guard contains(place), nodes[index].priority != priority else { return }
        unlink(index)
        nodes[index].priority = priority
        link(index)
    }

    /// Returns a Boolean value that indicates whether a load still waits at its place.
    func contains(_ place: QueuePlace) -> Bool {
        nodes[place.index].generation == place.generation
    }

    @discardableResult
    private mutating func removeNode(_ index: Int) -> Entry? {
        unlink(index)
        free.append(index)
        waiting -= 1
        nodes[index].generation += 1
        return nodes[index].entry.take()
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

/// Decides how many images the threads are given to decode at a time. Pure.
///
/// Each thread is given two images, so that it finds the next one without waiting for the actor. Waking a thread takes
/// as long as decoding an icon. While images are as short as that, each thread is given about half a millisecond of
/// them at a time.
struct DecodePace: Sendable {
    /// The work for one thread at a time, in nanoseconds.
    private static let share = 500_000.0
    /// The smallest number of images for one thread at a time.
    private static let leastForThread = 2
    /// The largest number. It limits how many images a more urgent one waits for.
    private static let mostForThread = 32

    private let threads: Int
    /// The number that the user has chosen; nil if the pipeline chooses.
    private let fixed: Int?
    /// The moving average of the time that an image takes, in nanoseconds.
    private var average = share
    /// The number of images that all threads together are given at a time.
    private(set) var limit: Int

    init(_ configuration: ImagePipeline.Configuration) {
        self.init(threads: configuration.executor.threadCount, fixed: configuration.maximumDecodes)
    }

    init(threads: Int, fixed: Int?) {
        self.threads = threads
        self.fixed = fixed.map { max(1, $0) }
        limit = self.fixed ?? Self.leastForThread * threads
    }

    /// Adds the time of an image, and updates the limit.
    mutating func record(nanoseconds: UInt64) {
        guard fixed == nil else { return }
        let time = max(1, Double(nanoseconds))
        // A long one counts at once, because those that wait behind it cannot be reordered.
        average = time > average ? time : average + (time - average) / 8
        limit = min(max(Self.leastForThread, Int(Self.share / average)), Self.mostForThread) * threads
    }
}

/// A rate limit: a number of tokens per second, and a burst after a pause. Time is passed in.
struct FetchRateLimiter: Sendable {
    private let perSecond: Double
    private let burst: Double
    private var tokens: Double
    private var updated: Duration = .zero

    init(_ limit: ImagePipeline.RateLimit) {
        perSecond = max(0.001, limit.perSecond)
        burst = Double(max(1, limit.burst))
        tokens = burst
    }

    /// Takes a token and returns zero; or returns the time until there is one. No token is reserved: the first in the
    /// queue at that time takes it.
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
}

/// Holds back loads until scrolling has settled. It says when the caller must check again.
struct ScrollDebouncer<Load: Equatable> {
    /// The action that the caller must take.
    enum Action: Equatable {
        case none
        /// Call `settlingTimeEnded` with this generation after the settling time.
        case wait(generation: Int)
        /// Let these loads begin.
        case release([Load])
    }

    /// Whether loads may begin.
    private(set) var isSettled = true
    private var generation = 0
    private(set) var waiting: [Load] = []

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
    mutating func enter(_ load: Load) -> Bool {
        if !isSettled { waiting.append(load) }
        return isSettled
    }

    /// Removes a load. Returns false if it does not wait.
    @discardableResult
    mutating func remove(_ load: Load) -> Bool {
        guard let index = waiting.firstIndex(of: load) else { return false }
        waiting.remove(at: index)
        return true
    }
}

/// Remembers failures that would only repeat themselves, with a limited number and lifetime. Time is passed in.
///
/// Only definite failures are kept, such as a status that refuses the request or bytes that are no image. Failures that
/// the network may have caused are not. A refusal (401 and 403) is that of one user: it is kept with the cookies and
/// credentials of its request.
struct NegativeCache<Key: Hashable & Sendable>: Sendable {
    private let limit: Int
    private let lifetime: Duration
    private struct Entry {
        let error: ImageError
        let until: Duration
        let user: ImageUser
    }

    private var entries: [Key: Entry] = [:]

    init(limit: Int, lifetime: Duration) {
        self.limit = limit
        self.lifetime = lifetime
    }

    var count: Int { entries.count }

    /// Whether no failure is remembered. Without one, nobody needs to read the clock.
    var isEmpty: Bool { entries.isEmpty }

    /// Returns the failure of a key; nil without one.
    ///
    /// - Parameter user: The user as whom the request would be sent now. Called for a refusal only.
    mutating func error(for key: Key, at now: Duration, user: () -> ImageUser) -> ImageError? {
        guard let entry = entries[key] else { return nil }
        if entry.until > now, !entry.error.isRefusal || entry.user == user() { return entry.error }
        entries[key] = nil
        return nil
    }

    /// Remembers a failure.
    ///
    /// - Parameter user: The user as whom the request was sent.
    mutating func record(_ error: ImageError, for key: Key, at now: Duration, user: ImageUser) {
        guard lifetime > .zero, limit > 0, error.isRemembered, !error.isRefusal || user != .unknown else { return }
        if entries.count >= limit, entries[key] == nil {
            entries = entries.filter { $0.value.until > now }
            // Still full: the entry that expires first is removed.
            if entries.count >= limit, let first = entries.min(by: { $0.value.until < $1.value.until }) {
                entries[first.key] = nil
            }
        }
        entries[key] = Entry(error: error, until: now + lifetime, user: user)
    }

    mutating func remove(_ key: Key) { entries[key] = nil }

    mutating func removeAll() { entries = [:] }
}

/// The user as whom a request is sent, as far as the session knows.
enum ImageUser: Sendable, Hashable {
    /// The session adds neither cookies nor an authorization.
    case nobody
    /// A hash value of the cookies and the authorization that the session adds.
    case fields(Int)
    /// A hook or an interceptor adds what distinguishes users.
    case unknown
}

extension ImageRequest.Options {
    /// Returns a Boolean value that indicates whether a request with these options loads in spite of a remembered
    /// failure.
    func ignores(_ failure: ImageError?) -> Bool {
        if retriesFailed { return true }
        // A truncated file may be enough for this request.
        guard allowsPartial, let failure else { return false }
        return failure.kind != .network
    }
}
