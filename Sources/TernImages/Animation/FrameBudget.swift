import TernCache
import TernConcurrency

/// Limits the bytes of the decoded frames of all animations, and holds the frames.
///
/// The limit holds at every moment. A frame on the screen is additionally held by its view.
public final class FrameBudget: Sendable {
    /// The default budget of all animations.
    public static let shared = FrameBudget()

    private struct Shared {
        var cache: FrameCache
        var readers = 0
        var lastStore = 0
    }

    private let shared: Lock<Shared>

    /// Creates a budget. The default limit is the lesser of 20% of the memory and 60% of the free memory.
    public init(limit: Int? = nil) {
        let limit =
            limit ?? Self.defaultLimit(memory: MemoryBudget.current.memory, available: MemoryInfo.current?.available)
        shared = Lock(Shared(cache: FrameCache(limit: limit)))
    }

    /// The limit in bytes. A lower limit takes effect at once.
    public var limit: Int {
        get { shared.withLock { $0.cache.limit } }
        set {
            // Frames are released after the lock.
            let evicted = shared.withLock { $0.cache.setLimit(newValue) }
            withExtendedLifetime(evicted) {}
        }
    }

    /// The bytes of the frames that are held now.
    public var used: Int { shared.withLock { $0.cache.used } }

    /// Releases the least recently needed frames until at most this number of bytes is held, for example under memory
    /// pressure.
    public func trim(to bytes: Int = 0) {
        let evicted = shared.withLock { $0.cache.makeRoom(bytes) }
        withExtendedLifetime(evicted) {}
    }

    /// Releases half of the bytes on a warning, and everything at a higher level of memory pressure.
    func trim(for level: MemoryPressureLevel) { trim(to: level == .warning ? used / 2 : 0) }

    /// The highest number of bytes that were held at any time.
    var peak: Int { shared.withLock { $0.cache.peak } }

    /// Returns the lesser of 20% of the memory and 60% of the free memory; 64 MiB if neither is known.
    static func defaultLimit(memory: UInt64?, available: UInt64?) -> Int {
        let shares = [memory.map { $0 / 5 }, available.map { $0 / 5 * 3 }].compactMap { $0 }
        return Int(clamping: shares.min() ?? 64 << 20)
    }
}

extension FrameBudget {
    /// Returns a number for the frames of one animation.
    func makeStore() -> Int {
        shared.withLock { shared in
            shared.lastStore += 1
            return shared.lastStore
        }
    }

    func removeAll(of store: Int) {
        let evicted = shared.withLock { $0.cache.removeAll(of: store) }
        withExtendedLifetime(evicted) {}
    }

    func addReader() { shared.withLock { $0.readers += 1 } }

    func removeReader() { shared.withLock { $0.readers -= 1 } }

    /// Returns the number of frames that one reader may have decoded, the current one included: its equal share of the
    /// limit, at least 1. More frames would only evict those that others need next.
    func share(ofFrames bytes: Int) -> Int {
        shared.withLock { max(1, $0.cache.limit / max(1, $0.readers) / max(1, bytes)) }
    }

    func frame(_ index: Int, of store: Int) -> ImageFrame? {
        shared.withLock { $0.cache.frame(FrameCache.Key(store: store, index: index)) }
    }

    /// Returns the frames that are not held. Marks the others as needed, the first as the most recent.
    func missing(_ indices: [Int], of store: Int) -> [Int] {
        shared.withLock { shared in
            for index in indices.reversed() { shared.cache.markNeeded(FrameCache.Key(store: store, index: index)) }
            return indices.filter { !shared.cache.holds(FrameCache.Key(store: store, index: $0)) }
        }
    }

    /// Inserts a frame. The caller releases the evicted frames outside its own locks.
    func insert(_ frame: ImageFrame, at index: Int, of store: Int) -> [ImageFrame] {
        shared.withLock { $0.cache.insert(frame, for: FrameCache.Key(store: store, index: index)) }
    }
}

/// The frames of all animations within one byte limit. The least recently needed frames are evicted first. Pure.
struct FrameCache {
    struct Key: Hashable {
        let store: Int
        let index: Int
    }

    private struct Entry {
        let frame: ImageFrame
        var tick: UInt64
    }

    private(set) var limit: Int
    private(set) var used = 0
    /// The highest number of bytes that were held at any time.
    private(set) var peak = 0
    private var entries: [Key: Entry] = [:]
    private var tick: UInt64 = 0
    /// The keys in the order in which they were needed. A key that was needed again appears twice; the earlier entry is
    /// skipped.
    private var order: [(tick: UInt64, key: Key)] = []
    private var head = 0

    init(limit: Int) { self.limit = max(0, limit) }

    /// Returns the frame if it is held. Does not mark it as needed.
    func frame(_ key: Key) -> ImageFrame? { entries[key]?.frame }

    func holds(_ key: Key) -> Bool { entries[key] != nil }

    /// Marks a frame as needed now or soon.
    mutating func markNeeded(_ key: Key) {
        guard entries[key] != nil else { return }
        let tick = appendToOrder(key)
        entries[key]?.tick = tick
    }

    /// Inserts a frame unless it is larger than the limit. Returns the evicted frames for the caller to release.
    mutating func insert(_ frame: ImageFrame, for key: Key) -> [ImageFrame] {
        let bytes = frame.image.byteCount
        guard entries[key] == nil, bytes <= limit else { return [] }
        let evicted = makeRoom(limit - bytes)
        entries[key] = Entry(frame: frame, tick: appendToOrder(key))
        used += bytes
        peak = max(peak, used)
        return evicted
    }

    mutating func setLimit(_ limit: Int) -> [ImageFrame] {
        self.limit = max(0, limit)
        return makeRoom(self.limit)
    }

    /// Evicts the least recently needed frames until at most this number of bytes is held.
    mutating func makeRoom(_ bytes: Int) -> [ImageFrame] {
        var evicted: [ImageFrame] = []
        while used > max(0, bytes), head < order.count {
            let (tick, key) = order[head]
            head += 1
            guard let entry = entries[key], entry.tick == tick else { continue }
            evicted.append(remove(key, entry))
        }
        return evicted
    }

    /// Evicts all frames of an animation.
    mutating func removeAll(of store: Int) -> [ImageFrame] {
        entries.filter { $0.key.store == store }.map { remove($0.key, $0.value) }
    }

    private mutating func remove(_ key: Key, _ entry: Entry) -> ImageFrame {
        entries[key] = nil
        used -= entry.frame.image.byteCount
        return entry.frame
    }

    private mutating func appendToOrder(_ key: Key) -> UInt64 {
        tick += 1
        order.append((tick, key))
        // At least half of the entries are stale: the others are moved together.
        if order.count > 2 * entries.count + 64 {
            order = order[head...].filter { entries[$0.key]?.tick == $0.tick || $0.tick == tick }
            head = 0
        }
        return tick
    }
}
