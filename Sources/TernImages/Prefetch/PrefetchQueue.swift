/// What a prefetcher loads, in which order, and how much at a time. Pure: changes return what is to be begun or stopped.
struct PrefetchQueue: Sendable {
    /// One picture of a batch.
    struct Item: Sendable, Hashable {
        let batch: UInt64
        let index: Int
    }

    private let limit: Int
    private var waiting: [Item] = []
    private var head = 0
    private(set) var running: Set<Item> = []
    private(set) var isPaused = false

    init(limit: Int) { self.limit = max(1, limit) }

    var waitingCount: Int { waiting.count - head }

    /// Adds the pictures of a batch behind all others; those that begin now.
    mutating func add(batch: UInt64, count: Int) -> [Item] {
        waiting += (0..<count).map { Item(batch: batch, index: $0) }
        return begin()
    }

    /// One has ended; those that begin now.
    mutating func ended(_ item: Item) -> [Item] {
        running.remove(item)
        return begin()
    }

    /// Takes a batch out: what is to be stopped, and what begins now in its place.
    mutating func cancel(batch: UInt64) -> (stop: [Item], begin: [Item]) {
        waiting = waiting[head...].filter { $0.batch != batch }
        head = 0
        let stopped = running.filter { $0.batch == batch }
        running.subtract(stopped)
        return (Array(stopped), begin())
    }

    /// Nothing begins any more; what runs goes on.
    mutating func pause() { isPaused = true }

    mutating func resume() -> [Item] {
        isPaused = false
        return begin()
    }

    private mutating func begin() -> [Item] {
        var begun: [Item] = []
        while !isPaused, running.count < limit, head < waiting.count {
            let item = waiting[head]
            head += 1
            running.insert(item)
            begun.append(item)
        }
        if head == waiting.count {
            waiting.removeAll(keepingCapacity: true)
            head = 0
        }
        return begun
    }
}
