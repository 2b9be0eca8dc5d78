import TernCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Nanoseconds an operation, through the public interface, from another module, in a release build.
enum MemorySpeed {
    /// What is cached: an object, so that each hit has the reference count to pay that real values have.
    final class Blob: Sendable {
        let size: Int
        init(_ size: Int) { self.size = size }
    }

    static let entries = 2_000
    static let rounds = 7
    static let operations = 1_000_000

    static func run() async {
        print("### Speed\n")
        print(
            "\(entries) entries, look-ups in random order; nanoseconds of processor time an operation, of each thread; "
                + "medians of \(rounds) rounds of \(operations). Values are objects but in the first row. Throughput of "
                + "two threads against one: by processor time, and by the wall; the last column is by the wall for two "
                + "threads that share nothing, and says how much of two processors the machine gave to this process.\n")
        print(
            "| | hit, 1 thread | hit, 2 threads | 2 threads, by processor time | by the wall | nothing shared, by the wall "
                + "| miss | insert + evict |")
        print("|---|---:|---:|---:|---:|---:|---:|---:|")
        await row("S3-FIFO, `Int` keys, `Int` values", .s3FIFO, keys: Array(0..<entries * 2), value: 1) { $0 }
        await row("S3-FIFO, `Int` keys", .s3FIFO, keys: Array(0..<entries * 2), value: Blob(1)) { $0.size }
        await row("LRU, `Int` keys", .lru, keys: Array(0..<entries * 2), value: Blob(1)) { $0.size }
        let names = (0..<entries * 2).map { "https://images.example.com/photos/\($0 &* 7_919)/large.jpg" }
        await row("S3-FIFO, `String` keys of 50 bytes", .s3FIFO, keys: names, value: Blob(1)) { $0.size }
        await row("LRU, `String` keys of 50 bytes", .lru, keys: names, value: Blob(1)) { $0.size }
        print("")
    }

    private static func row<Key: Hashable & Sendable, Value: Sendable>(
        _ name: String, _ policy: MemoryCachePolicy, keys: [Key], value: @autoclosure () -> Value,
        size: @Sendable @escaping (Value) -> Int
    ) async {
        let cache = MemoryCache<Key, Value>(countLimit: entries, policy: policy)
        for key in keys[..<entries] { cache[key] = value() }
        let held = Array(keys[..<entries])
        let absent = Array(keys[entries...])
        let other = MemoryCache<Key, Value>(countLimit: entries, policy: policy)
        for key in held { other[key] = value() }
        var one: [Time] = []
        var two: [Time] = []
        var apart: [Time] = []
        for _ in 0..<rounds {
            one.append(hits(cache, held, seed: 1, size: size))
            two.append(await together(cache, cache, held, size: size))
            apart.append(await together(cache, other, held, size: size))
        }
        func ratio(_ times: [Time], _ part: (Time) -> Double) -> Double {
            zip(one, times).map { 2 * part($0) / part($1) }.median
        }
        let miss = (0..<rounds).map { _ in hits(cache, absent, seed: 3, isHit: false, size: size).cpu }.median
        let insert = (0..<rounds).map { _ in inserts(cache, keys, value()) }.median
        let cells = [
            name, judged(one.map(\.cpu).median, atMost: 40), decimal(two.map(\.cpu).median),
            decimal(ratio(two, \.cpu), 2) + "×", judged(ratio(two, \.wall), 2, atLeast: 1.3, unit: "×"),
            decimal(ratio(apart, \.wall), 2) + "×", decimal(miss), decimal(insert),
        ]
        print("| " + cells.joined(separator: " | ") + " |")
    }

    /// Nanoseconds an operation.
    struct Time: Sendable {
        var wall = 0.0
        var cpu = 0.0
    }

    /// Processor time of the calling thread, in nanoseconds.
    private static func processorTime() -> Double {
        var time = timespec()
        unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) * 1e9 + Double(time.tv_nsec)
    }

    /// Look-ups in a fixed random order.
    @inline(never)
    private static func hits<Key: Hashable & Sendable, Value: Sendable>(
        _ cache: MemoryCache<Key, Value>, _ keys: [Key], seed: UInt64, isHit: Bool = true,
        size: (Value) -> Int
    ) -> Time {
        var generator = SeededGenerator(seed: seed)
        let order = (0..<65_536).map { _ in keys[Int(generator.next() % UInt64(keys.count))] }
        var found = 0
        let clock = ContinuousClock()
        let start = clock.now
        let before = processorTime()
        for number in 0..<operations {
            if let value = cache.value(for: order[number & 65_535]) { found += size(value) }
        }
        let time = Time(
            wall: start.duration(to: clock.now) / .nanoseconds(operations),
            cpu: (processorTime() - before) / Double(operations))
        precondition(found == (isHit ? operations : 0), "\(found) hits")
        return time
    }

    private static func together<Key: Hashable & Sendable, Value: Sendable>(
        _ first: MemoryCache<Key, Value>, _ second: MemoryCache<Key, Value>, _ keys: [Key],
        size: @Sendable @escaping (Value) -> Int
    ) async -> Time {
        await withTaskGroup(of: Time.self) { group in
            group.addTask { hits(first, keys, seed: 1, size: size) }
            group.addTask { hits(second, keys, seed: 2, size: size) }
            return await group.reduce(into: Time()) { sum, time in
                sum.wall += time.wall / 2
                sum.cpu += time.cpu / 2
            }
        }
    }

    @inline(never)
    private static func inserts<Key: Hashable & Sendable, Value: Sendable>(
        _ cache: MemoryCache<Key, Value>, _ keys: [Key], _ value: Value
    ) -> Double {
        let count = operations / 4
        let before = processorTime()
        var place = 0
        for _ in 0..<count {
            cache.insert(value, for: keys[place])
            place = place + 1 == keys.count ? 0 : place + 1
        }
        return (processorTime() - before) / Double(count)
    }
}
