import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The disk cache of a pipeline, opened at the first use. The pipeline works without it if it cannot be opened.
final class DiskTier: Sendable {
    private enum State {
        case closed
        case opening(Task<Result<DiskCache, DiskCacheError>, Never>)
        case open(DiskCache)
        case unavailable(String)
    }

    /// The writes of processed images that have not ended, by number.
    struct Writes {
        var tasks: [Int: Task<String?, Never>] = [:]
        var last: Task<String?, Never>?
        var lastNumber = 0
    }

    let configuration: ImagePipeline.Configuration
    let writes = Lock(Writes())
    private let state = Lock(State.closed)

    init(_ configuration: ImagePipeline.Configuration) {
        self.configuration = configuration
        switch configuration.disk {
        case .cache(let cache): state.withLock { $0 = .open(cache) }
        case .none: state.withLock { $0 = .unavailable("the pipeline has no disk cache") }
        case .standard, .folder: break
        }
    }

    /// The reason why there is no disk cache; nil while there is one or it was not opened yet.
    var reason: String? {
        state.withLock { if case .unavailable(let reason) = $0 { reason } else { nil } }
    }

    var isOpen: Bool {
        state.withLock { if case .open = $0 { true } else { false } }
    }

    /// The disk cache if it is open. Without a wait.
    var openCache: DiskCache? {
        state.withLock { if case .open(let cache) = $0 { cache } else { nil } }
    }

    /// The disk cache; nil if it cannot be opened. The first access opens it.
    var cache: DiskCache? {
        get async {
            let state = self.state.withLock { state -> State in
                if case .closed = state { state = .opening(Task { await self.opened() }) }
                return state
            }
            switch state {
            case .open(let cache): return cache
            case .unavailable, .closed: return nil
            case .opening(let task):
                let result = await task.value
                return self.state.withLock { state in
                    switch result {
                    case .success(let cache):
                        state = .open(cache)
                        return cache
                    case .failure(let error):
                        state = .unavailable("\(error)")
                        return nil
                    }
                }
            }
        }
    }

    private func opened() async -> Result<DiskCache, DiskCacheError> {
        let (folder, configuration) = Self.place(of: configuration.disk)
        return await SharedDiskCaches.cache(at: folder, configuration)
    }

    /// Returns the folder and the configuration of a cache that the tier opens itself.
    static func place(of disk: ImagePipeline.Disk) -> (folder: URL, configuration: DiskCache.Configuration) {
        if case .folder(let url, let configuration) = disk { return (url, configuration) }
        return (DiskCache.standardFolder("tern-images"), DiskCache.Configuration())
    }
}
