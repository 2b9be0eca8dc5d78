import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The disk caches of this process by folder: pipelines of one folder have one cache, since a folder has one owner.
enum SharedDisks {
    private struct Entry {
        weak var cache: DiskCache?
        var opening: Task<Result<DiskCache, DiskCacheError>, Never>?
    }

    private enum Step {
        case open(DiskCache)
        case wait(Task<Result<DiskCache, DiskCacheError>, Never>)
    }

    private static let entries = Lock<[String: Entry]>([:])

    /// The cache of a folder that is open, or one that is opened now. The configuration is that of who came first.
    static func cache(
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
            // Held weakly from now on: it ends with the last pipeline that uses it.
            entries.withLock { entries in
                guard entries[path]?.opening == opening else { return }
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
