#if os(Linux)
import Glibc
import Testing

@testable import DiskCrashChild
@testable import TernCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Kills a child process at random points: by itself in the middle of a system call or a statement, or from outside at
/// any instant. Each time, the cache is reopened and compared with the acknowledged changes.
@Suite(.serialized)
struct DiskCrashTests {
    /// `make crash-test` sets more.
    static let points = ProcessInfo.processInfo.environment["TERN_CRASH_POINTS"].flatMap { Int($0) } ?? 32

    /// The values that a key can have after a kill.
    private struct Allowed {
        /// The version and size of the last acknowledged value; nil if that was a removal.
        var acknowledged: (version: Int, size: Int)?
        /// The changes that were begun and not acknowledged. They may be done or not.
        var begun: (version: Int, size: Int?)?
    }

    @Test(.timeLimit(.minutes(30)), arguments: [0, 6 << 20])
    func nothingAcknowledgedIsLostToAKill(limit: Int) async throws {
        try await withDiskFolder { folder in
            let path = DiskCache.path(folder)
            let journal = path + ".journal"
            defer { unsafe unlink(journal) }
            var allowed: [String: Allowed] = [:]
            var read = 0
            var (lost, torn, leaked) = (0, 0, 0)
            var times: [Duration] = []
            var entries = 0
            var random = Random(state: UInt64(limit) &+ 20_260_101)
            for point in 1...max(1, limit == 0 ? Self.points * 3 / 4 : Self.points / 4) {
                let isKilledFromOutside = point % 2 == 0
                try Self.runChild(
                    [path, journal, "\(point)", isKilledFromOutside ? "0" : "\(1 + random.below(3_000))", "\(limit)"],
                    killAfter: isKilledFromOutside ? UInt32(2_000 + random.below(60_000)) : nil)
                let text = try Data(contentsOf: URL(filePath: journal))
                Self.replay(text.dropFirst(read), &allowed)
                read = text.count
                let begin = ContinuousClock.now
                let cache = try await DiskCache(
                    folder: folder, configuration: unlimited { $0.byteLimit = limit == 0 ? nil : limit })
                let time = ContinuousClock.now - begin
                entries = max(entries, try await cache.usage.count)
                times.append(time)
                for (key, state) in allowed {
                    let value = try await cache.value(for: key)
                    let candidates = [
                        state.acknowledged, state.begun.flatMap { begun in begun.size.map { (begun.version, $0) } },
                    ]
                    .compactMap(\.self)
                    if let value {
                        if let found = candidates.first(where: {
                            CrashPattern.value(for: key, version: $0.0, size: $0.1) == value
                        }) {
                            allowed[key] = Allowed(acknowledged: found)
                        } else {
                            torn += 1
                        }
                    } else {
                        let mayBeGone = state.acknowledged == nil || state.begun.map { $0.size == nil } == true
                        if !mayBeGone && limit == 0 { lost += 1 }
                        allowed[key] = Allowed()
                    }
                }
                leaked += try cache.leaks().count
                if limit > 0 {
                    let taken = try diskFiles(folder).values.reduce(0, +)
                    #expect(taken <= limit)
                }
                try await cache.close()
            }
            times.sort()
            let (quick, median) = (times[times.count / 10], times[times.count / 2])
            print("crash test, limit \(limit): \(entries) entries; recovery \(quick), the median \(median)")
            #expect(lost == 0)
            #expect(torn == 0)
            #expect(leaked == 0)
            // The test checks the best tenth, and only prints the median, which includes the effect of other programs.
            #expect(quick <= .milliseconds(50) * max(1, (entries + 9_999) / 10_000))
        }
    }

    private static func replay(_ text: Data, _ allowed: inout [String: Allowed]) {
        for line in String(decoding: text, as: UTF8.self).split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count >= 3, let version = Int(words[2]) else { continue }
            let key = String(words[1])
            switch words[0] {
            case "B": allowed[key, default: Allowed()].begun = (version, Int(words[3]))
            case "R": allowed[key, default: Allowed()].begun = (version, nil)
            default:
                guard let begun = allowed[key]?.begun, begun.version == version else { continue }
                allowed[key] = Allowed(acknowledged: begun.size.map { (version, $0) })
            }
        }
    }

    private static func runChild(_ arguments: [String], killAfter microseconds: UInt32?) throws {
        let child = try DiskChild(arguments)
        if let microseconds {
            // The kill can come at any instant of the child's work.
            usleep(microseconds)
            child.kill()
        }
        try child.ended()
    }
}
#endif
