import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The chunks of a response, kept while it arrives, for the loads that decode previews from it. No chunk is copied.
final class ChunkBuffer: Sendable {
    /// The position of one reader.
    struct Cursor: Sendable {
        var readCount = 0
        var generation = 0
    }

    private struct State {
        var chunks: [Data] = []
        /// Counts the restarts of the response.
        var generation = 0
        /// Whether the readers were notified since one of them last read.
        var isNotified = false
    }

    private let state = Lock(State())
    private let notify: @Sendable () -> Void

    /// - Parameter notify: Called when chunks arrive after everything was read.
    init(notify: @escaping @Sendable () -> Void) { self.notify = notify }

    func append(_ chunk: Data) {
        let notifies = state.withLock { state in
            state.chunks.append(chunk)
            defer { state.isNotified = true }
            return !state.isNotified
        }
        if notifies { notify() }
    }

    /// Discards all chunks, because the response starts again.
    func restart() {
        state.withLock { state in
            state.chunks = []
            state.generation += 1
        }
    }

    /// Returns the chunks since the reader's last call; nil if the response has started again since.
    func read(_ cursor: inout Cursor) -> [Data]? {
        state.withLock { state in
            state.isNotified = false
            guard state.generation == cursor.generation else { return nil }
            defer { cursor.readCount = state.chunks.count }
            return Array(state.chunks[cursor.readCount...])
        }
    }
}

/// The decoding of previews for one load, while its bytes arrive.
struct PreviewDecoding: Sendable {
    let decoding: ProgressiveDecoding
    private let chunks: ChunkBuffer
    private var cursor = ChunkBuffer.Cursor()

    init(of chunks: ChunkBuffer, key: ImageLoadKey, configuration: ImagePipeline.Configuration) {
        self.chunks = chunks
        decoding = ProgressiveDecoding(
            options: key.imageKey.decoding, policy: key.options.progressive, clock: configuration.clock,
            executor: configuration.executor, keepsBytes: false)
    }

    /// Passes the new chunks to the decoder. Returns false if the response has started again: the previews end then.
    mutating func decodeNewChunks() -> Bool {
        guard let new = chunks.read(&cursor) else { return false }
        for chunk in new { decoding.receive(chunk) }
        return true
    }
}

extension ImagePipeline.Configuration {
    /// Returns a Boolean value that indicates whether a load with these options decodes previews: the bytes must be
    /// readable as they arrive, by the system's decoder.
    func showsPreviews(_ options: ImageRequest.Options) -> Bool {
        options.progressive.every > 0 && hooks.decrypt == nil && hooks.transform == nil && decoders.areSystem
    }
}
