import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The pieces of a response on their way to whoever makes previews of them, each taken once, none copied.
final class ImageFeed: Sendable {
    /// What has come since the last look.
    struct Pieces: Sendable {
        var chunks: [Data] = []
        /// Whether what was taken before is void: the response begins anew.
        var isRestarted = false
    }

    private let pieces = Lock(Pieces())
    private let wake: @Sendable () -> Void

    /// - Parameter wake: called when there is something after there was nothing.
    init(wake: @escaping @Sendable () -> Void) { self.wake = wake }

    func append(_ chunk: Data) {
        let isFirst = pieces.withLock { pieces in
            pieces.chunks.append(chunk)
            return pieces.chunks.count == 1
        }
        if isFirst { wake() }
    }

    func restart() { pieces.withLock { $0 = Pieces(isRestarted: true) } }

    func take() -> Pieces {
        pieces.withLock { pieces in
            defer { pieces = Pieces() }
            return pieces
        }
    }
}
