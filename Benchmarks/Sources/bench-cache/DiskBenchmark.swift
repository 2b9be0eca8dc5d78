#if canImport(CTernSQLite)
import TernCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The disk part: against our own re-implementations of YYCache's design and of a file for each key, in one run. Prints
/// its section of RESULTS-caches.md.
enum DiskBenchmark {
    static let rounds = 3

    /// Keys and sizes of the mixed set: 10,000 × 1 KB, 8,000 × 20 KB, 2,000 × 200 KB, shuffled.
    private static let mixed: [(key: String, size: Int)] = {
        var random = DiskRandom(state: 7)
        let sizes =
            Array(repeating: 1_000, count: 10_000) + Array(repeating: 20_000, count: 8_000)
            + Array(repeating: 200_000, count: 2_000)
        return sizes.shuffled(using: &random).enumerated().map { (key($0.offset), $0.element) }
    }()

    static func key(_ number: Int) -> String { "https://images.example.com/photos/\(number)/large.jpg?w=400" }

    static func run(_ part: String = "disk") async {
        // They are in the way of nobody if they cannot be removed.
        defer { try? FileManager.default.removeItem(atPath: home) }
        do {
            print("## Disk\n")
            print(
                "Medians of \(rounds) rounds, the peers in turn in each, by the wall; warm (page cache); ms unless said "
                    + "otherwise. \(ProcessInfo.processInfo.activeProcessorCount) processors; what else ran on them is in "
                    + "the table above.\n"
            )
            if !part.hasSuffix("reads") {
                try await mixedSet()
                if part.hasSuffix("mixed") { return }
                try await smallWrites()
            }
            for size in [256 << 10, 1 << 20] { try await largeReads(size) }
            try await opening()
        } catch {
            print("failed: \(error)")
        }
    }

    private static func mixedSet() async throws {
        let bytes = Data(repeating: 0x5A, count: 200_000)
        var (ourWrite, theirWrite, ourRead, theirRead, theirPlain) = (
            [Cost](), [Cost](), [Cost](), [Cost](), [Cost]()
        )
        for round in 0..<rounds {
            try await inFolder { folder in
                let cache = try await DiskCache(folder: URL(filePath: folder), configuration: configuration)
                ourWrite.append(
                    try await cost {
                        try await atOnce(64, mixed.count) { number in
                            try await cache.insert(bytes.prefix(mixed[number].size), for: mixed[number].key)
                        }
                    })
                let order = shuffled(mixed.count, seed: round)
                ourRead.append(
                    try await cost {
                        try await atOnce(16, mixed.count) { number in
                            let item = mixed[order[number]]
                            guard try await cache.value(for: item.key)?.count == item.size else {
                                throw DiskPeerError.missing
                            }
                        }
                    })
                try await cache.close()
            }
            try await inFolder { folder in
                let cache = try YYDesign(folder)
                theirWrite.append(
                    try await cost { for item in mixed { try cache.insert(bytes.prefix(item.size), item.key) } })
                let order = shuffled(mixed.count, seed: round)
                for touches in [false, true] {
                    let duration = try await cost {
                        for number in order {
                            guard try cache.value(mixed[number].key, touching: touches)?.count == mixed[number].size
                            else {
                                throw DiskPeerError.missing
                            }
                        }
                    }
                    if touches { theirRead.append(duration) } else { theirPlain.append(duration) }
                }
            }
        }
        print("### Mixed: 10,000 × 1 KB, 8,000 × 20 KB, 2,000 × 200 KB\n")
        print("| | write 20,000 | of the processors | read 20,000, with recency | of the processors |")
        print("|---|---:|---:|---:|---:|")
        func row(_ name: String, _ write: [Cost], _ read: [Cost]) {
            let cells = [write, read].flatMap { costs in
                costs.isEmpty ? ["", ""] : [decimal(costs.map(\.wall).median), decimal(costs.map(\.cpu).median)]
            }
            print("| " + ([name] + cells).joined(separator: " | ") + " |")
        }
        row("`DiskCache`, 64 inserts and 16 reads at once, checksums on", ourWrite, ourRead)
        row("YYCache's design (inline ≤ 20 KB, an UPDATE for each read)", theirWrite, theirRead)
        row("the same, no UPDATE", [], theirPlain)
        func ratio(_ theirs: [Cost], _ ours: [Cost], _ part: (Cost) -> Double) -> Double {
            theirs.map(part).median / ours.map(part).median
        }
        let cells = [
            judged(ratio(theirWrite, ourWrite, \.wall), 2, atLeast: 1.3),
            decimal(ratio(theirWrite, ourWrite, \.cpu), 2),
            judged(ratio(theirRead, ourRead, \.wall), 2, atLeast: 5), decimal(ratio(theirRead, ourRead, \.cpu), 2),
        ]
        print("| ratio | " + cells.joined(separator: " | ") + " |\n")
        print(
            "Reading uses both processors here, the design of YYCache one. On a disk of ext4 this is worth nothing within "
                + "five minutes of a mass deletion (an earlier run's, a build's): what makes files, pays for that.\n")
    }

    private static func smallWrites() async throws {
        let bytes = Data(repeating: 0x5A, count: 1_000)
        let count = 20_000
        var (concurrent, batched, files, one) = ([Double](), [Double](), [Double](), [Double]())
        for _ in 0..<rounds {
            try await inFolder { folder in
                let cache = try await DiskCache(folder: URL(filePath: folder), configuration: configuration)
                concurrent.append(
                    try await time { try await atOnce(64, count) { try await cache.insert(bytes, for: key($0)) } })
                try await cache.close()
            }
            try await inFolder { folder in
                let cache = try await DiskCache(folder: URL(filePath: folder), configuration: configuration)
                batched.append(
                    try await time {
                        for start in stride(from: 0, to: count, by: 500) {
                            try await cache.insert(
                                contentsOf: (start..<start + 500).map { DiskCache.Item(bytes, for: key($0)) })
                        }
                    })
                one.append(
                    try await time { for number in 0..<2_000 { try await cache.insert(bytes, for: key(number)) } } / 2)
                try await cache.close()
            }
            try await inFolder { folder in
                let cache = try FilePerKey(folder)
                files.append(try await time { for number in 0..<count { try cache.insert(bytes, key(number)) } })
            }
        }
        print("### 20,000 writes of 1 KB\n\n| | ms | times faster than files (target ≥ 2.5) |\n|---|---:|---:|")
        print("| a file for each key, temporary name and rename | \(decimal(files.median)) | |")
        print(
            "| `insert`, 64 at once | \(decimal(concurrent.median)) | \(judged(files.median / concurrent.median, 2, atLeast: 2.5)) |"
        )
        print(
            "| `insert(contentsOf:)`, 500 each | \(decimal(batched.median)) | \(judged(files.median / batched.median, 2, atLeast: 2.5)) |"
        )
        print("| one awaited after another, replacing | \(decimal(one.median)) µs each | |\n")
    }

    private static func largeReads(_ size: Int) async throws {
        let bytes = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        let (count, reads) = (64, 4_000)
        var (plain, many, single, mapped) = ([Double](), [Double](), [Double](), [Double]())
        try await inFolder { folder in
            let cache = try await DiskCache(folder: URL(filePath: folder + "/cache"), configuration: configuration)
            for number in 0..<count { try await cache.insert(bytes, for: key(number)) }
            let files = try FilePerKey(folder + "/files")
            for number in 0..<count { try files.insert(bytes, key(number)) }
            for _ in 0..<rounds {
                plain.append(try await time { for number in 0..<reads { try files.touch(key(number % count), size) } })
                many.append(
                    try await time {
                        try await atOnce(16, reads) { number in
                            guard try await cache.value(for: key(number % count))?.count == size else {
                                throw DiskPeerError.missing
                            }
                        }
                    })
                mapped.append(
                    try await time {
                        try await atOnce(16, reads) { number in
                            guard try await cache.mappedValue(for: key(number % count))?.count == size else {
                                throw DiskPeerError.missing
                            }
                        }
                    })
                single.append(
                    try await time {
                        for number in 0..<reads / 4 { _ = try await cache.value(for: key(number % count)) }
                    } * 4)
            }
            try await cache.close()
        }
        let each = { (ms: [Double]) in decimal(ms.median * 1_000 / Double(reads)) }
        let share = { (ms: [Double]) in 100 * plain.median / ms.median }
        let target = size > 1 << 19 ? 55.0 : 45.0
        print(
            "### Reads of \(size >> 10) KiB, checksum verified\n\n| | µs each | % of plain |\n|---|---:|---:|"
        )
        print("| plain open + read + close, one buffer, no checksum | \(each(plain)) | |")
        print("| `value(for:)`, 16 at once | \(each(many)) | \(judged(share(many), 0, atLeast: target)) |")
        print("| `mappedValue(for:)`, 16 at once | \(each(mapped)) | \(decimal(share(mapped), 0)) |")
        print("| `value(for:)`, one awaited after another | \(each(single)) | \(decimal(share(single), 0)) |\n")
    }

    private static func opening() async throws {
        try await inFolder { folder in
            let count = 100_000
            let bytes = Data(repeating: 1, count: 200)
            var opening = try await DiskCache(folder: URL(filePath: folder), configuration: configuration)
            for start in stride(from: 0, to: count, by: 1_000) {
                try await opening.insert(
                    contentsOf: (start..<start + 1_000).map { DiskCache.Item(bytes, for: key($0)) })
            }
            var (clean, recovered) = ([Cost](), [Cost]())
            for _ in 0..<rounds {
                try await opening.close()
                clean.append(
                    try await cost {
                        opening = try await DiskCache(folder: URL(filePath: folder), configuration: configuration)
                        guard try await opening.value(for: key(7)) != nil else { throw DiskPeerError.missing }
                    })
                try await opening.close()
                try FileManager.default.removeItem(atPath: folder + "/clean")
                recovered.append(
                    try await cost {
                        opening = try await DiskCache(folder: URL(filePath: folder), configuration: configuration)
                    })
            }
            let cache = opening
            let keys = (0..<1_000).map { key($0) }
            let absent = (0..<1_000).map { key(count + $0) }
            var found = 0
            let hit = try await cost {
                for number in 0..<1_000_000 where cache.contains(keys[number % 1_000]) { found += 1 }
            }
            let miss = try await cost {
                for number in 0..<1_000_000 where cache.contains(absent[number % 1_000]) { found += 1 }
            }
            let lookup = try await cost {
                for number in 0..<300_000 where try await cache.value(for: absent[number % 1_000]) != nil { found += 1 }
            }
            guard found == 1_000_000 else { throw DiskPeerError.missing }
            print("### 100,000 entries\n")
            print(
                "All of it is work of the processors: the second figure, which is judged, is what a machine with nothing "
                    + "else to do takes by the wall.\n")
            print("| | by the wall | processor time |\n|---|---:|---:|")
            let first = Cost(wall: clean.map(\.wall).median, cpu: clean.map(\.cpu).median)
            let mended = Cost(wall: recovered.map(\.wall).median, cpu: recovered.map(\.cpu).median)
            line("open to the first value, after a clean end", first, "ms", 1, atMost: 150)
            line("open after a kill", mended, "ms", 1, atMost: 500)
            line("`contains`, there", hit, "ns", 0, atMost: 1_000)
            line("`contains`, not there", miss, "ns", 0, atMost: 1_000)
            line("awaited `value(for:)`, not there", lookup / 0.3, "ns", 0, atMost: 1_000)
            print("")
            try await cache.close()
        }
    }

    // MARK: Means

    private static var configuration: DiskCache.Configuration {
        var configuration = DiskCache.Configuration()
        configuration.byteLimit = nil
        return configuration
    }

    private static func shuffled(_ count: Int, seed: Int) -> [Int] {
        var random = DiskRandom(state: UInt64(seed))
        return (0..<count).shuffled(using: &random)
    }

    /// Milliseconds.
    private static func time(_ body: () async throws -> Void) async throws -> Double {
        let duration = try await ContinuousClock().measure { try await body() }
        return Double(duration.components.seconds) * 1_000 + Double(duration.components.attoseconds) / 1e15
    }

    /// Milliseconds; of the processors, those of all threads of this process.
    private struct Cost {
        let wall: Double
        let cpu: Double

        static func / (cost: Cost, count: Double) -> Cost { Cost(wall: cost.wall / count, cpu: cost.cpu / count) }
    }

    private static func line(_ name: String, _ cost: Cost, _ unit: String, _ digits: Int, atMost limit: Double) {
        let wall = decimal(cost.wall, digits) + " " + unit
        print("| \(name) | \(wall) | \(judged(cost.cpu, digits, atMost: limit, unit: " " + unit)) |")
    }

    private static func cost(_ body: () async throws -> Void) async throws -> Cost {
        func processors() -> Double {
            var time = timespec()
            unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
            return Double(time.tv_sec) * 1e3 + Double(time.tv_nsec) / 1e6
        }
        let before = processors()
        let wall = try await time(body)
        return Cost(wall: wall, cpu: processors() - before)
    }

    /// So many tasks, each with every so-many-th number.
    private static func atOnce(
        _ width: Int, _ count: Int, _ body: @escaping @Sendable (Int) async throws -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for first in 0..<width {
                group.addTask { for number in stride(from: first, to: count, by: width) { try await body(number) } }
            }
            try await group.waitForAll()
        }
    }

    /// All folders of a run. They are removed at its end: ext4 gives no inode away again for a minute or five after its
    /// file was deleted, and looks through all of those for each file that is made meanwhile.
    private static let home =
        FileManager.default.temporaryDirectory.path() + "tern-bench-\(UInt64.random(in: 0 ... .max))"

    private static func inFolder(_ body: (String) async throws -> Void) async throws {
        let folder = home + "/\(UInt64.random(in: 0 ... .max))"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        // The writes of the run before reach the disk now, so that they are not measured here.
        sync()
        try await body(folder)
    }
}

/// SplitMix64: each run has the same order.
private struct DiskRandom: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}
#endif
