import Dispatch
import TernConcurrency

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Removes the temporary files of processes that were killed.
///
/// An orphan is a regular file of this user with a single link and a name of the form of ``TemporaryName``, on which no
/// process holds a lock. The system releases a lock when its process ends for any reason. Links are never followed. All
/// work runs on a queue of its own.
package final class OrphanSweeper: Sendable {
    package static let shared = OrphanSweeper()

    private struct State {
        var schedule = SweepSchedule()
        /// Whether a sweep of the temporary folder is scheduled.
        var isQueued = false
    }

    private let queue = DispatchQueue(label: "tern.orphans", qos: .utility)
    private let state = Lock(State())

    package init() {}

    /// Schedules a sweep of the temporary folder and returns at once.
    package func sweepTemporaryFolder() {
        let isFirst = state.withLock { state in
            defer { state.isQueued = true }
            return !state.isQueued
        }
        guard isFirst else { return }
        queue.async { [self] in
            state.withLock { $0.isQueued = false }
            sweep(TemporaryFolder.path, of: nil)
        }
    }

    /// Removes the files that earlier downloads to a destination left beside it, and returns when that is done.
    package func sweep(beside destination: String) async {
        let (folder, name) = (FilePath.folder(of: destination), FilePath.name(of: destination))
        await withCheckedContinuation { continuation in
            queue.async { [self] in
                sweep(folder, of: name)
                continuation.resume()
            }
        }
    }

    private func sweep(_ folder: String, of destination: String?) {
        guard state.withLock({ $0.schedule.isDue(folder, at: MonotonicClock.nanoseconds()) }) else { return }
        let (count, orphans) = Self.names(in: folder, of: destination)
        state.withLock { $0.schedule.record(folder, entries: count, at: MonotonicClock.nanoseconds()) }
        for name in orphans { Self.removeIfOrphan(FilePath.join(folder, name)) }
    }

    /// Returns the number of entries, and the names of possible orphans. A folder that cannot be read has none.
    private static func names(in folder: String, of destination: String?) -> (count: Int, orphans: [String]) {
        guard let stream = unsafe opendir(folder) else { return (0, []) }
        defer { unsafe closedir(stream) }
        var (count, orphans) = (0, [String]())
        while let entry = unsafe readdir(stream) {
            count += 1
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { name in
                unsafe name.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            guard name.utf8.first == UInt8(ascii: destination == nil ? "t" : "."), let known = TemporaryName(name),
                known.isOrphan(of: destination)
            else { continue }
            orphans.append(name)
        }
        return (count, orphans)
    }

    /// Removes a file while holding its lock, so that a download that creates a file of this name at the same time
    /// either is detected or detects the removal.
    private static func removeIfOrphan(_ path: String) {
        let descriptor = unsafe open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        var (opened, named) = (stat(), stat())
        guard unsafe fstat(descriptor, &opened) == 0, opened.st_mode & S_IFMT == S_IFREG,
            opened.st_uid == geteuid(), opened.st_nlink == 1, flock(descriptor, LOCK_EX | LOCK_NB) == 0,
            unsafe lstat(path, &named) == 0, named.st_dev == opened.st_dev, named.st_ino == opened.st_ino
        else { return }
        // A file that cannot be removed, for example on a disk that became read-only, only costs space.
        _ = unsafe unlink(path)
    }
}

/// Decides when a folder is swept.
///
/// A listing takes time for every entry of the folder, so a folder with many entries is swept at most once a minute,
/// and any other folder every time.
package struct SweepSchedule: Sendable {
    package static let largeFolderCount = 1_000
    package static let interval: UInt64 = 60_000_000_000
    private static let limit = 64

    private var largeFolders: [String: UInt64] = [:]

    package init() {}

    package func isDue(_ folder: String, at now: UInt64) -> Bool {
        guard let last = largeFolders[folder] else { return true }
        return now >= last && now - last >= Self.interval
    }

    package mutating func record(_ folder: String, entries: Int, at now: UInt64) {
        if entries <= Self.largeFolderCount {
            largeFolders[folder] = nil
            return
        }
        if largeFolders.count >= Self.limit, largeFolders[folder] == nil { largeFolders = [:] }
        largeFolders[folder] = now
    }
}
