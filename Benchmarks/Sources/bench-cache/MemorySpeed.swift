import Synchronization
import TernCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Nanoseconds an operation, through the public interface, from another module, in a release build.
enum MemorySpeed {
    /// A cached value. It is an object, so that each hit costs a reference count, as with real values.
    final class Blob: Sendable {
        let size: Int
        init(_ size: Int) { self.size = size }
    }

    static let entries = 2_000
    static let rounds = 25
    static let operations = 50_000
    /// Pairs of threads are run until so many rounds had both processors for themselves, or so many have not.
    static let patience = 1_500

    static func run() async {
        print("### Speed\n")
        print(
            "\(entries) entries, look-ups in random order; nanoseconds of processor time an operation, of each thread; "
                + "medians of \(rounds) rounds of \(operations). Values are objects but in the first row; two threads have "
                + "keys of their own, and share cache and values. Two threads against one is throughput: of rounds in "
                + "which each of the two had a processor for itself all the time (from the start of both to the end of both it is "
                + "at most 5% more than the processor time of each), so that it is by the wall as well; beside it how many rounds were run for that.\n"
        )
        print(
            "| | hit, 1 thread | hit, 2 threads | 2 threads against 1 | the same, with a cache each | rounds run "
                + "| miss | insert + evict |")
        print("|---|---:|---:|---:|---:|---:|---:|---:|")
        let numbers = Keys(one: Array(0..<entries * 2), two: Array(0..<entries * 2))
        await row("S3-FIFO, `Int` keys, `Int` values", .s3FIFO, numbers, 45, value: 1) { $0 }
        await row("S3-FIFO, `Int` keys", .s3FIFO, numbers, 45, value: Blob(1)) { $0.size }
        await row("LRU, `Int` keys", .lru, numbers, nil, value: Blob(1)) { $0.size }
        let names = Keys(one: numbers.one.map(name), two: numbers.one.map(name))
        await row("S3-FIFO, `String` keys of 50 bytes", .s3FIFO, names, nil, value: Blob(1)) { $0.size }
        await row("LRU, `String` keys of 50 bytes", .lru, names, nil, value: Blob(1)) { $0.size }
        await bounds(numbers.one)
        print("")
        print(
            "Targets: a hit of at most 45 ns on one thread, and two threads together at least as many as one; both are those "
                + "of the default policy. LRU moves an entry with each use, so its look-ups take turns. The hash of a string "
                + "of 50 bytes by the standard library is in the last row but one: a hit by such a key costs more than that. "
                + "The last row takes the same objects out of an array, which nobody writes: two threads that count "
                + "references to the same objects slow each other down whatever cache is around it.\n")
    }

    private static func name(_ number: Int) -> String {
        "https://images.example.com/photos/\(number &* 7_919)/large.jpg"
    }

    /// Equal keys that share no memory: what two threads that know nothing of each other have.
    private struct Keys<Key: Hashable & Sendable>: Sendable {
        let one: [Key]
        let two: [Key]
    }

    private static func row<Key: Hashable & Sendable, Value: Sendable>(
        _ name: String, _ policy: MemoryCachePolicy, _ keys: Keys<Key>, _ limit: Double?,
        value: @autoclosure () -> Value, size: @Sendable @escaping (Value) -> Int
    ) async {
        let cache = MemoryCache<Key, Value>(.count(entries, policy)) { _ in 1 }
        for key in keys.one[..<entries] { cache[key] = value() }
        let held = Keys(one: Array(keys.one[..<entries]), two: Array(keys.two[..<entries]))
        let absent = Array(keys.one[entries...])
        let other = MemoryCache<Key, Value>(.count(entries, policy)) { _ in 1 }
        for key in held.two { other[key] = value() }
        let one = alone { hits(cache, held.one, seed: 1, size: size) }
        let two = await together {
            hits(cache, held.one, seed: 1, $0, size: size)
        } _: {
            hits(cache, held.two, seed: 2, $0, size: size)
        }
        let apart = await together {
            hits(cache, held.one, seed: 1, $0, size: size)
        } _: {
            hits(other, held.two, seed: 2, $0, size: size)
        }
        let miss = alone { hits(cache, absent, seed: 3, isHit: false, size: size) }
        let insert = (0..<rounds).map { _ in inserts(cache, keys.one, value()) }.median
        var cells = [name, limit == nil ? decimal(one) : judged(one, atMost: 45)]
        if let two {
            let throughput = 2 * one / two.time
            cells.append(decimal(two.time))
            cells.append(limit == nil ? two.ratio(one) : judged(throughput, 2, atLeast: 1, unit: "×"))
        } else {
            cells += ["–", "–"]
        }
        cells.append(apart?.ratio(one) ?? "–")
        cells += [tries(two), decimal(miss), decimal(insert)]
        print("| " + cells.joined(separator: " | ") + " |")
    }

    /// The times of two threads that ran at once.
    private struct Pair {
        /// Nanoseconds an operation of each.
        let time: Double
        let tries: Int

        func ratio(_ one: Double) -> String { decimal(2 * one / time, 2) + "×" }
    }

    private static func tries(_ pair: Pair?) -> String { pair.map { "\($0.tries)" } ?? "over \(patience)" }

    /// Measures the lower bounds of any cache: the hash of a string, and the reference count of an object of two
    /// threads.
    private static func bounds(_ numbers: [Int]) async {
        let names = numbers.map(name)
        let hash = alone { time(names) { $0.hashValue == 0 ? 0 : 1 } }
        print("| `hashValue` of a `String` of 50 bytes, no cache | \(decimal(hash)) | | | | | | |")
        let objects = numbers[..<entries].map { _ in Blob(1) }
        // Two ways, of which the compiler does not know which is taken: it would count no references else.
        let ways: [@Sendable (Int) -> Blob] = [{ objects[$0] }, { objects[entries - 1 - $0] }]
        let take = ways[CommandLine.arguments.count > 9 ? 1 : 0]
        let indices = Array(0..<entries)
        let one = alone { time(indices, seed: 1) { take($0).size } }
        let two = await together {
            time(indices, seed: 1, $0) { take($0).size }
        } _: {
            time(indices, seed: 2, $0) { take($0).size }
        }
        let cells = [
            "objects out of an array, no cache", decimal(one), two.map { decimal($0.time) } ?? "–",
            two?.ratio(one) ?? "–", "", tries(two), "", "",
        ]
        print("| " + cells.joined(separator: " | ") + " |")
    }

    /// Nanoseconds an operation.
    struct Time: Sendable {
        let start: ContinuousClock.Instant
        let end: ContinuousClock.Instant
        let cpu: Double
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
        _ line: Line? = nil, size: (Value) -> Int
    ) -> Time {
        time(keys, seed: seed, isHit: isHit, line) { cache.value(for: $0).map(size) ?? 0 }
    }

    /// Measures `body` for each of the keys in a fixed random order. It returns 1 each time, or 0 without a value.
    @inline(__always)
    private static func time<Key>(
        _ keys: [Key], seed: UInt64 = 1, isHit: Bool = true, _ line: Line? = nil, _ body: (Key) -> Int
    ) -> Time {
        var generator = SeededGenerator(seed: seed)
        let order = (0..<65_536).map { _ in keys[Int(generator.next() % UInt64(keys.count))] }
        var found = 0
        line?.wait()
        let clock = ContinuousClock()
        let start = clock.now
        let before = processorTime()
        for number in 0..<operations { found += body(order[number & 65_535]) }
        let cpu = (processorTime() - before) / Double(operations)
        let time = Time(start: start, end: clock.now, cpu: cpu)
        precondition(found == (isHit ? operations : 0), "\(found) hits")
        return time
    }

    private static func alone(_ body: () -> Time) -> Double { (0..<rounds).map { _ in body().cpu }.median }

    /// Where two threads start at once.
    private final class Line: Sendable {
        private let count = Atomic(0)

        func wait() {
            count.add(1, ordering: .relaxed)
            while count.load(ordering: .relaxed) < 2 { sched_yield() }
        }
    }

    /// Two threads that really ran at once, or nil where others took the processors all the time.
    private static func together(
        _ first: @Sendable @escaping (Line) -> Time, _ second: @Sendable @escaping (Line) -> Time
    ) async -> Pair? {
        var kept: [Double] = []
        for tries in 1...patience {
            let line = Line()
            let times = await withTaskGroup(of: Time.self) { group in
                group.addTask { first(line) }
                group.addTask { second(line) }
                return await group.reduce(into: [Time]()) { $0.append($1) }
            }
            guard let start = times.map(\.start).min(), let end = times.map(\.end).max() else { continue }
            let limit = Duration.nanoseconds(operations) * 1.05
            // From the first one's start to the last one's end, hardly more than each of them worked.
            if times.allSatisfy({ start.duration(to: end) <= limit * $0.cpu }) {
                kept.append(times.map(\.cpu).reduce(0, +) / 2)
            }
            if kept.count == rounds { return Pair(time: kept.median, tries: tries) }
        }
        return nil
    }

    @inline(never)
    private static func inserts<Key: Hashable & Sendable, Value: Sendable>(
        _ cache: MemoryCache<Key, Value>, _ keys: [Key], _ value: Value
    ) -> Double {
        let count = operations
        let before = processorTime()
        var place = 0
        for _ in 0..<count {
            cache.insert(value, for: keys[place])
            place = place + 1 == keys.count ? 0 : place + 1
        }
        return (processorTime() - before) / Double(count)
    }
}
