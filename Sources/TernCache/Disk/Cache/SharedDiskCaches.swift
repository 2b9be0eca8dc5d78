import TernConcurrency

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The open disk caches of this process, by folder. Owners of the same folder share one cache, because a folder has one
/// owner in a process.
package enum SharedDiskCaches {
    private struct Entry {
        weak var cache: DiskCache?
        var opening: Task<Result<DiskCache, DiskCacheError>, Never>?
    }

    private enum Step {
        case open(DiskCache)
        case wait(Task<Result<DiskCache, DiskCacheError>, Never>)
    }

    private static let entries = Lock<[String: Entry]>([:])

    /// Returns the open cache of a folder, or opens it. The configuration of the first caller applies to all.
    package static func cache(
        at folder: URL, _ configuration: DiskCache.Configuration
    ) async -> Result<DiskCache, DiskCacheError> {
        let path = folder.standardizedFileURL.path(percentEncoded: false)
        let step = entries.withLock { entries -> Step in
            if let cache = entries[path]?.cache, !cache.isClosed { return .open(cache) }
            if let opening = entries[path]?.opening { return .wait(opening) }
            let opening = Task { await open(folder, configuration) }
            entries[path] = Entry(opening: opening)
            return .wait(opening)
        }
        switch step {
        case .open(let cache): return .success(cache)
        case .wait(let opening):
            let result = await opening.value
            // The entry is weak from now on: the cache closes with the last owner that uses it.
            entries.withLock { entries in
                guard entries[path]?.opening == opening else { return }
                // An error leaves no entry: the next caller tries again.
                entries[path] = (try? result.get()).map { Entry(cache: $0) }
            }
            return result
        }
    }

    @concurrent
    private static func open(
        _ folder: URL, _ configuration: DiskCache.Configuration
    ) async -> Result<DiskCache, DiskCacheError> {
        do throws(DiskCacheError) {
            return .success(try await DiskCache(folder: folder, configuration: configuration))
        } catch {
            return .failure(error)
        }
    }
}

extension DiskCache {
    /// Returns the folder of a name for this program in the user's folder for caches (XDG Base Directory:
    /// `$XDG_CACHE_HOME`, else `~/.cache`; on Apple's systems the Caches folder).
    package static func standardFolder(_ name: String) -> URL {
        let program = ProcessInfo.processInfo.arguments.first?.split(separator: "/").last.map(String.init) ?? "program"
        let base =
            FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first
            ?? FileManager.default.temporaryDirectory
        return base.appending(path: program).appending(path: name)
    }
}
