import Synchronization
import TernCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The process that the crash test kills. It changes a cache from four tasks until it is killed, by itself at a given
/// system call or statement, or from outside. It records what it begins and what is acknowledged.
///
///     DiskCrashChild FOLDER JOURNAL SEED KILL-AT LIMIT
///
/// Each line of the journal is one `write` to a file, so that it survives the kill like the cache's own writes: `B key
/// version size` before an insert begins, `R key version 0` before a removal, `A key version` after its end.
@main
struct DiskCrashChild {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 6, let seed = UInt64(arguments[3]), let killAt = Int(arguments[4]),
            let limit = Int(arguments[5])
        else { exit(2) }
        let journal = unsafe open(arguments[2], O_WRONLY | O_CREAT | O_APPEND, 0o600)
        guard journal >= 0 else { exit(3) }
        let trap = Trap(killAt)
        var dependencies = DiskStore.Dependencies()
        dependencies.files = TrappedFiles(trap: trap)
        dependencies.fault = { _ in
            trap.step()
            return nil
        }
        var configuration = DiskCache.Configuration()
        configuration.byteLimit = limit == 0 ? nil : limit
        configuration.minimumFreeBytes = 0
        let cache = try await DiskCache(
            folder: URL(filePath: arguments[1]), configuration: configuration, dependencies: dependencies)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<4 {
                group.addTask {
                    do {
                        try await work(on: cache, number: number, journal: journal, seed: seed)
                    } catch {
                        print("\(error)")
                        exit(4)
                    }
                }
            }
        }
    }

    private static func work(
        on cache: DiskCache, number: Int, journal: Int32, seed: UInt64
    ) async throws {
        var random = Random(state: seed &* 31 &+ UInt64(number) &+ 1)
        var version = Int(seed) * 1_000_000
        while true {
            version += 1
            let key = "\(number)-\(random.below(60))"
            let size = random.below(3) == 0 ? 16_000 + random.below(60_000) : random.below(4_000)
            let value = CrashPattern.value(for: key, version: version, size: size)
            switch random.below(10) {
            case 0:
                record(in: journal, "R \(key) \(version) 0")
                try await cache.remove(key)
                record(in: journal, "A \(key) \(version)")
            case 1:
                record(in: journal, "B \(key) \(version) \(size)")
                try cache.enqueue(value, for: key)
                try await cache.flush()
                record(in: journal, "A \(key) \(version)")
            case 2:
                record(in: journal, "B \(key) \(version) \(size)")
                let writer = try await cache.writer(for: key, metadata: Data(key.utf8))
                for start in stride(from: 0, to: size, by: 7_000) {
                    try await writer.write(value[start..<min(start + 7_000, size)])
                }
                if random.below(8) == 0 {
                    // The writer is abandoned or released. The old value stays.
                    if random.below(2) == 0 { await writer.abandon() }
                } else {
                    try await writer.commit()
                    record(in: journal, "A \(key) \(version)")
                }
            case 3:
                let items = (0..<5).map { offset in
                    let key = "\(number)-\((random.below(12)) * 5 + offset)"
                    return (key, DiskCache.Item(CrashPattern.value(for: key, version: version, size: size), for: key))
                }
                for (key, _) in items { record(in: journal, "B \(key) \(version) \(size)") }
                try await cache.insert(contentsOf: items.map(\.1))
                for (key, _) in items { record(in: journal, "A \(key) \(version)") }
            default:
                record(in: journal, "B \(key) \(version) \(size)")
                try await cache.insert(value, for: key, tags: random.below(4) == 0 ? ["group"] : [])
                record(in: journal, "A \(key) \(version)")
                if random.below(3) == 0 { _ = try await cache.value(for: key) }
            }
        }
    }

    private static func record(in journal: Int32, _ text: String) {
        let line = text + "\n"
        _ = unsafe write(journal, line, line.utf8.count)
    }
}

/// Kills this process at a given step.
private final class Trap: Sendable {
    private let steps = Atomic<Int>(0)
    private let killAt: Int

    init(_ killAt: Int) { self.killAt = killAt }

    func step() {
        if steps.add(1, ordering: .relaxed).newValue == killAt { kill(getpid(), SIGKILL) }
    }
}

/// The system's files; each call is a step.
private struct TrappedFiles: DiskFileSystem {
    let trap: Trap
    private let files = PosixDiskFiles()

    init(trap: Trap) { self.trap = trap }

    func makeFolder(_ path: String) throws(DiskCacheError) {
        trap.step()
        try files.makeFolder(path)
    }
    func open(_ path: String) throws(DiskCacheError) -> Int32 {
        trap.step()
        return try files.open(path)
    }
    func create(_ path: String) throws(DiskCacheError) -> Int32 {
        trap.step()
        return try files.create(path)
    }
    func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, path: String) throws(DiskCacheError) {
        // Writes half of the bytes first, because a kill can come in the middle of a value.
        let half = unsafe UnsafeRawBufferPointer(rebasing: bytes[..<(bytes.count / 2)])
        unsafe try files.write(half, to: descriptor, path: path)
        trap.step()
        unsafe try files.write(
            UnsafeRawBufferPointer(rebasing: bytes[(bytes.count / 2)...]), to: descriptor, path: path)
        trap.step()
    }
    func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int, path: String
    ) throws(DiskCacheError) -> Int {
        unsafe try files.read(descriptor, into: buffer, at: offset, path: path)
    }
    func status(_ descriptor: Int32, _ path: String) throws(DiskCacheError) -> DiskFileStatus {
        try files.status(descriptor, path)
    }
    func status(of path: String) throws(DiskCacheError) -> DiskFileStatus? { try files.status(of: path) }
    func close(_ descriptor: Int32) { files.close(descriptor) }
    func rename(_ path: String, to destination: String) throws(DiskCacheError) {
        trap.step()
        try files.rename(path, to: destination)
        trap.step()
    }
    func remove(_ path: String) throws(DiskCacheError) {
        trap.step()
        try files.remove(path)
        trap.step()
    }
    func removeFolder(_ path: String) throws(DiskCacheError) {
        trap.step()
        try files.removeFolder(path)
    }
    func names(in path: String) throws(DiskCacheError) -> [String] { try files.names(in: path) }
    func freeBytes(at path: String) throws(DiskCacheError) -> Int { try files.freeBytes(at: path) }
}
