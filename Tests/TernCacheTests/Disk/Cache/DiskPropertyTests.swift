import Testing

@testable import DiskCrashChild
@testable import TernCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Random operations, compared with a dictionary.
@Suite(.timeLimit(.minutes(2)))
struct DiskPropertyTests {
    private struct Known {
        var value: Data
        var expires: Date?
        var tag: String
    }

    @Test(arguments: 1...6)
    func theCacheBehavesLikeADictionary(seed: Int) async throws {
        try await withDiskFolder { folder in
            let time = TestTime()
            let configuration = unlimited { $0.now = time.now }
            var cache = try await DiskCache(folder: folder, configuration: configuration)
            var oracle: [String: Known] = [:]
            var random = Random(state: UInt64(seed))
            for step in 0..<400 {
                let key = "key \(random.below(30))"
                let tag = "tag \(random.below(4))"
                let value = bytes(random.below(4) == 0 ? 15_000 + random.below(40_000) : random.below(2_000), step)
                let life = random.below(5) == 0 ? random.below(40) : nil
                let known = Known(
                    value: value, expires: life.map { time.now().addingTimeInterval(Double($0)) }, tag: tag)
                let duration = life.map { Duration.seconds($0) }
                switch random.below(20) {
                case 0...5:
                    try await cache.insert(value, for: key, tags: [tag], timeToLive: duration)
                    oracle[key] = known
                case 6, 7:
                    try cache.enqueue(value, for: key, tags: [tag], timeToLive: duration)
                    oracle[key] = known
                    if random.below(3) == 0 { try await cache.flush() }
                case 8:
                    let writer = try await cache.writer(for: key, tags: [tag], timeToLive: duration)
                    try await writer.write(value.prefix(value.count / 2))
                    try await writer.write(value.dropFirst(value.count / 2))
                    try await writer.commit()
                    oracle[key] = known
                case 9:
                    let keys = (0..<6).map { _ in "key \(random.below(30))" }
                    try await cache.insert(
                        contentsOf: keys.map { DiskCache.Item(value, for: $0, tags: [tag], timeToLive: duration) })
                    for key in keys { oracle[key] = known }
                case 10, 11:
                    try await cache.remove(key)
                    oracle[key] = nil
                case 12 where random.below(4) == 0:
                    try await cache.removeAll(tagged: tag)
                    oracle = oracle.filter { $0.value.tag != tag }
                case 13 where random.below(8) == 0:
                    try await cache.removeAll()
                    oracle = [:]
                case 14: time.advance(Double(random.below(10)))
                case 15 where random.below(4) == 0:
                    try await cache.close()
                    cache = try await DiskCache(folder: folder, configuration: configuration)
                case 16: try await cache.removeExpired()
                default: break
                }
                let now = time.now()
                let asked = "key \(random.below(30))"
                let expected = oracle[asked].flatMap { known in
                    known.expires.map { $0 <= now } == true ? nil : known.value
                }
                #expect(cache.contains(asked) == (expected != nil))
                #expect(try await cache.value(for: asked) == expected)
            }
            try await cache.flush()
            let live = oracle.filter { known in known.value.expires.map { $0 > time.now() } ?? true }
            try await cache.removeExpired()
            #expect(try await cache.usage.count == live.count)
            #expect(try cache.leaks().filter { !$0.contains("/trash/") }.isEmpty)
            try await cache.close()
        }
    }

    /// Concurrent tasks that each own some keys, with concurrent readers. Each task sees its own last value.
    @Test(arguments: [1, 2])
    func concurrentOwnersSeeTheirOwnValues(seed: Int) async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            try await withThrowingTaskGroup(of: Void.self) { group in
                for owner in 0..<8 {
                    group.addTask {
                        var random = Random(state: UInt64(seed * 100 + owner))
                        var own: [String: Data] = [:]
                        for step in 0..<60 {
                            let key = "\(owner) \(random.below(5))"
                            let value = bytes(random.below(30_000), step)
                            switch random.below(5) {
                            case 0:
                                try await cache.remove(key)
                                own[key] = nil
                            case 1:
                                try cache.enqueue(value, for: key)
                                own[key] = value
                            default:
                                try await cache.insert(value, for: key)
                                own[key] = value
                            }
                            if random.below(3) == 0 { await Task.yield() }
                            #expect(try await cache.value(for: key) == own[key])
                            _ = try await cache.value(for: "\(random.below(8)) \(random.below(5))")
                        }
                    }
                }
                try await group.waitForAll()
            }
            try await cache.flush()
            #expect(try cache.leaks().isEmpty)
        }
    }
}
