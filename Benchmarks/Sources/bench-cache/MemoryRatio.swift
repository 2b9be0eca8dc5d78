/// Which share of look-ups each policy serves, on traces made here.
enum MemoryRatio {
    private static let keys = 50_000
    private static let length = 500_000

    static func run() {
        print("### Hit ratio\n")
        print(
            "Synthetic traces of \(length) look-ups, most over \(keys) keys, made with a fixed seed; a miss is followed by "
                + "an insert. In percent, for caches of 1% and of 10% of the keys; in bold the best. S3-FIFO and LRU are "
                + "`MemoryCache` itself, by its public interface; SIEVE and W-TinyLFU (window 1%) are written here.\n")
        print("| trace | size | S3-FIFO (ours) | LRU (ours) | SIEVE | W-TinyLFU |")
        print("|---|---:|---:|---:|---:|---:|")
        var differences: [Double] = []
        for size in [keys / 100, keys / 10] {
            for (name, trace) in traces(size) {
                let ratios = [
                    ratio(OursS3FIFO.self, trace, size), ratio(OursLRU.self, trace, size),
                    ratio(Sieve.self, trace, size), ratio(WTinyLFU.self, trace, size),
                ]
                differences.append(ratios[0] - ratios[1])
                let best = ratios.max() ?? 0
                let cells = ratios.map { $0 >= best - 0.05 ? "**\(decimal($0))**" : decimal($0) }
                print("| \(name) | \(size) | \(cells.joined(separator: " | ")) |")
            }
        }
        let mean = differences.reduce(0, +) / Double(max(1, differences.count))
        print("\nS3-FIFO against LRU: \(decimal(mean)) points on average, worst \(decimal(differences.min() ?? 0)).\n")
    }

    private static func ratio<Policy: ComparedPolicy>(_ type: Policy.Type, _ trace: [Int], _ size: Int) -> Double {
        var policy = Policy(capacity: size)
        var hits = 0
        for key in trace where policy.access(key) { hits += 1 }
        return Double(hits) / Double(trace.count) * 100
    }

    private static func traces(_ size: Int) -> [(String, [Int])] {
        [
            ("Zipf 0.8", zipf(0.8)), ("Zipf 1.0", zipf(1.0)), ("Zipf 1.2", zipf(1.2)),
            ("Zipf 1.0, each 10,000th starts a scan of twice the size", scans(size * 2)),
            ("Zipf 1.0, every second look-up a key never seen again", oneHits()),
            ("Zipf 1.0 whose favourites change all 50,000", drift()),
            ("loop over 1.2 times the size", loop(size * 6 / 5)),
            ("loop over 3 times the size", loop(size * 3)),
            ("Zipf 1.0 and a loop over the size, half and half", mixed(size)),
        ]
    }

    /// Ranks from a Zipf distribution, in a scrambled order of keys.
    private static func zipf(_ exponent: Double, seed: UInt64 = 1) -> [Int] {
        var sums: [Double] = []
        var sum = 0.0
        for rank in 1...keys {
            sum += power(Double(rank), -exponent)
            sums.append(sum)
        }
        var generator = SeededGenerator(seed: seed)
        return (0..<length).map { _ in
            let wanted = generator.unit() * sum
            var low = 0
            var high = keys - 1
            while low < high {
                let middle = (low + high) / 2
                if sums[middle] < wanted { low = middle + 1 } else { high = middle }
            }
            return low
        }
    }

    private static func scans(_ scan: Int) -> [Int] {
        var result: [Int] = []
        var fresh = keys
        for (number, key) in zipf(1.0).enumerated() {
            if number % 10_000 == 9_999 {
                result += fresh..<fresh + scan
                fresh += scan
            }
            result.append(key)
        }
        return Array(result.prefix(length))
    }

    private static func oneHits() -> [Int] {
        zipf(1.0).enumerated().map { number, key in number % 2 == 0 ? key : keys + number }
    }

    private static func drift() -> [Int] {
        zipf(1.0).enumerated().map { number, key in (key + number / 50_000 * 7_919) % keys }
    }

    private static func loop(_ size: Int) -> [Int] { (0..<length).map { $0 % size } }

    private static func mixed(_ size: Int) -> [Int] {
        zipf(1.0).enumerated().map { number, key in number % 2 == 0 ? key : keys + number / 2 % size }
    }
}
