import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The pieces of a response, kept while it comes, for those who make previews of them. None is copied.
final class ImageFeed: Sendable {
    /// How far one reader has come.
    struct Cursor: Sendable {
        var taken = 0
        var generation = 0
    }

    private struct State {
        var chunks: [Data] = []
        /// Counts how often the response began anew.
        var generation = 0
        /// Whether the readers were woken since somebody last looked.
        var isTold = false
    }

    private let state = Lock(State())
    private let wake: @Sendable () -> Void

    /// - Parameter wake: called when there is something after all was looked at.
    init(wake: @escaping @Sendable () -> Void) { self.wake = wake }

    func append(_ chunk: Data) {
        let wakes = state.withLock { state in
            state.chunks.append(chunk)
            defer { state.isTold = true }
            return !state.isTold
        }
        if wakes { wake() }
    }

    /// What came is void.
    func restart() {
        state.withLock { state in
            state.chunks = []
            state.generation += 1
        }
    }

    /// What has come since the reader's last look; nil if what it has taken is void.
    func pieces(after cursor: inout Cursor) -> [Data]? {
        state.withLock { state in
            state.isTold = false
            guard state.generation == cursor.generation else { return nil }
            defer { cursor.taken = state.chunks.count }
            return Array(state.chunks[cursor.taken...])
        }
    }
}
