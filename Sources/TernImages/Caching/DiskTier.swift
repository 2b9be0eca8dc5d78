import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The disk of a pipeline: opened when it is first needed, and done without when it cannot be had.
final class DiskTier: Sendable {
    private enum State {
        case closed
        case opening(Task<Result<DiskCache, DiskCacheError>, Never>)
        case open(DiskCache)
        case unavailable(String)
    }

    private let place: ImagePipeline.Disk
    private let state = Lock(State.closed)

    init(_ place: ImagePipeline.Disk) {
        self.place = place
        switch place {
        case .cache(let cache): state.withLock { $0 = .open(cache) }
        case .none: state.withLock { $0 = .unavailable("there is none") }
        case .standard, .folder: break
        }
    }

    /// Why there is no disk; nil while there is one, or may be.
    var reason: String? {
        state.withLock { if case .unavailable(let reason) = $0 { reason } else { nil } }
    }

    /// Whether it was opened.
    var isOpen: Bool {
        state.withLock { if case .open = $0 { true } else { false } }
    }

    /// The cache; nil if it cannot be had.
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
        if case .folder(let url, let configuration) = place { return await SharedDisks.cache(at: url, configuration) }
        return await SharedDisks.cache(at: Self.standardFolder, DiskCache.Configuration())
    }

    /// A folder of the program's own in the user's folder for caches (XDG Base Directory: `$XDG_CACHE_HOME`, else
    /// `~/.cache`; on Apple's systems the Caches folder).
    private static var standardFolder: URL {
        let program = ProcessInfo.processInfo.arguments.first?.split(separator: "/").last.map(String.init) ?? "program"
        let base =
            FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first
            ?? FileManager.default.temporaryDirectory
        return base.appending(path: program).appending(path: "tern-images")
    }
}
