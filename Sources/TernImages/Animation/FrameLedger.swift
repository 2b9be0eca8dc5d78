/// Frames of many animations within one number of bytes: the least recently needed leave first. Pure.
struct FrameLedger {
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
    /// The most bytes that were held at any time.
    private(set) var peak = 0
    private var entries: [Key: Entry] = [:]
    private var tick: UInt64 = 0
    /// Keys in the order in which they were needed; an entry needed again later stands there twice, and the earlier
    /// place is skipped.
    private var order: [(tick: UInt64, key: Key)] = []
    private var head = 0

    init(limit: Int) { self.limit = max(0, limit) }

    /// The frame, if it is held. Looking does not make it needed.
    func frame(_ key: Key) -> ImageFrame? { entries[key]?.frame }

    func holds(_ key: Key) -> Bool { entries[key] != nil }

    /// Says that a frame is needed now or soon.
    mutating func need(_ key: Key) {
        guard entries[key] != nil else { return }
        let tick = place(key)
        entries[key]?.tick = tick
    }

    /// Takes a frame in if there is room for it at all. What had to leave, for the caller to let go.
    mutating func keep(_ frame: ImageFrame, _ key: Key) -> [ImageFrame] {
        let bytes = frame.image.byteCount
        guard entries[key] == nil, bytes <= limit else { return [] }
        let left = makeRoom(limit - bytes)
        entries[key] = Entry(frame: frame, tick: place(key))
        used += bytes
        peak = max(peak, used)
        return left
    }

    mutating func setLimit(_ limit: Int) -> [ImageFrame] {
        self.limit = max(0, limit)
        return makeRoom(self.limit)
    }

    /// Lets the least recently needed go until at most so many bytes are held.
    mutating func makeRoom(_ bytes: Int) -> [ImageFrame] {
        var left: [ImageFrame] = []
        while used > max(0, bytes), head < order.count {
            let (tick, key) = order[head]
            head += 1
            guard let entry = entries[key], entry.tick == tick else { continue }
            left.append(remove(key, entry))
        }
        return left
    }

    /// Lets all frames of an animation go.
    mutating func removeAll(of store: Int) -> [ImageFrame] {
        entries.filter { $0.key.store == store }.map { remove($0.key, $0.value) }
    }

    private mutating func remove(_ key: Key, _ entry: Entry) -> ImageFrame {
        entries[key] = nil
        used -= entry.frame.image.byteCount
        return entry.frame
    }

    private mutating func place(_ key: Key) -> UInt64 {
        tick += 1
        order.append((tick, key))
        // Half of the places or more are stale: the live ones move together.
        if order.count > 2 * entries.count + 64 {
            order = order[head...].filter { entries[$0.key]?.tick == $0.tick || $0.tick == tick }
            head = 0
        }
        return tick
    }
}
