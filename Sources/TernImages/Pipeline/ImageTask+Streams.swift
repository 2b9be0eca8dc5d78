public import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension ImageTask {
    /// The progress of the fetch: the current element first, and the last element in any case. The fraction of the last
    /// element is 1 if the load has an image. An image from a cache has only the last element, of zero bytes. With
    /// alternatives (`ImageRequest.alternatives`), the progress begins again with each source. Each access returns a
    /// separate stream.
    public var progress: AsyncStream<Session.Progress> {
        changes { old, new in
            if new.end != nil { return [new.progress] }
            return new.hasProgress && new.progress != old.progress ? [new.progress] : []
        }
    }

    /// The previews of a progressive load, each better than the one before. A slow reader gets the newest. The stream
    /// ends with the task. Each access returns a separate stream.
    public var previews: AsyncStream<RasterImage> {
        changes { old, new in
            guard new.previewCount > old.previewCount, new.end == nil, let preview = new.preview else { return [] }
            return [preview]
        }
    }

    /// The images in the order of delivery: one, or two for a stale image that has changed. The stream ends with the
    /// task; `events` and `response` report a failure. Each access returns a separate stream.
    public var responses: AsyncStream<ImageResponse> {
        changes { old, new in
            guard new.responseCount > old.responseCount, let response = new.response else { return [] }
            return [response]
        }
    }

    /// All events. A slow reader gets the newest of each kind. `.finished` comes last, always and once. Each access
    /// returns a separate stream, which begins with the current state.
    public var events: AsyncStream<Event> {
        changes { old, new in
            var events: [Event] = []
            if new.hasProgress, new.progress != old.progress, new.responseCount == 0 {
                events.append(.progress(new.progress))
            }
            if new.previewCount > old.previewCount, new.responseCount == 0, let preview = new.preview {
                events.append(.preview(preview))
            }
            if new.responseCount > old.responseCount, let response = new.response { events.append(.response(response)) }
            if let end = new.end {
                switch end {
                case .success: events.append(.finished(nil))
                case .failure(let error): events.append(.finished(error))
                }
            }
            return events
        }
    }

    /// An event of a load.
    public enum Event: Sendable {
        /// More bytes have arrived.
        case progress(Session.Progress)
        /// An image decoded from a part of the bytes.
        case preview(RasterImage)
        /// The image; a second event follows if a cached image has changed.
        case response(ImageResponse)
        /// The end, with the error if the load failed. The error's kind is `.cancelled` if the load was cancelled.
        case finished(ImageError?)
    }

    private func changes<Element: Sendable>(
        _ elements: @escaping ChangeReader<Element>.Changes
    ) -> AsyncStream<Element> {
        let reader = ChangeReader(latest.stream(), elements)
        return AsyncStream { await reader.next() }
    }

    /// The state of a task: the newest element of each kind.
    struct Snapshot: Sendable {
        var progress = Session.Progress()
        var hasProgress = false
        var previewCount = 0
        var preview: RasterImage?
        var responseCount = 0
        var response: ImageResponse?
        var end: Result<Void, ImageError>?

        /// Whether there is a result for callers.
        var hasResult: Bool {
            if response != nil { return true }
            return if case .failure? = end { true } else { false }
        }

        /// The result for callers. A failure after an image was delivered does not replace the image.
        var result: Result<ImageResponse, ImageError>? {
            if let response { return .success(response) }
            if case .failure(let error)? = end { return .failure(error) }
            return nil
        }

        /// Begins the progress again, for the next source. Returns false if none was reported.
        mutating func beginAgain() -> Bool {
            progress = Session.Progress()
            return hasProgress
        }

        mutating func add(_ response: ImageResponse) {
            self.response = response
            responseCount += 1
            preview = nil
        }

        mutating func end(_ result: Result<ImageResponse?, ImageError>) {
            if case .success(let response?) = result { add(response) }
            end = result.map { _ in }
            switch result {
            case .success: progress = wholeProgress
            case .failure:
                progress = Session.Progress(
                    completedBytes: progress.completedBytes, totalBytes: progress.totalBytes, isFinished: true)
            }
        }

        /// The last progress of a load that has its image. The arrival of the last bytes is not reported separately, and
        /// an image without a fetch has no bytes: the fraction is 1 in each case.
        var wholeProgress: Session.Progress {
            let count = progress.totalBytes ?? progress.completedBytes
            return Session.Progress(completedBytes: count, totalBytes: count, isFinished: true)
        }
    }
}

/// Turns a stream of states into a stream of the changes between them. For one reader at a time.
final class ChangeReader<Element: Sendable>: Sendable {
    /// Returns the elements for the change from one state to another.
    typealias Changes = @Sendable (_ old: ImageTask.Snapshot, _ new: ImageTask.Snapshot) -> [Element]

    private struct Position {
        var seen = ImageTask.Snapshot()
        var pending: [Element] = []
    }

    private let states: AsyncStream<ImageTask.Snapshot>
    private let changes: Changes
    private let position = Lock(Position())

    init(_ states: AsyncStream<ImageTask.Snapshot>, _ changes: @escaping Changes) {
        self.states = states
        self.changes = changes
    }

    func next() async -> Element? {
        while true {
            if let element = position.withLock({ $0.pending.isEmpty ? nil : $0.pending.removeFirst() }) {
                return element
            }
            var iterator = states.makeAsyncIterator()
            guard let state = await iterator.next() else { return nil }
            position.withLock { position in
                position.pending = changes(position.seen, state)
                position.seen = state
            }
        }
    }
}
