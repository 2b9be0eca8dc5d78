public import Tern
import TernConcurrency

// What a task tells while it runs: streams of what has changed in its newest state.

extension ImageTask {
    /// How far the fetch is, the current element first, the last one in any case. A picture from a cache has none but the
    /// last. Each access gives a stream of its own.
    public var progress: AsyncStream<Session.Progress> {
        changes { old, new in
            if new.end != nil { return [new.progress] }
            return new.hasProgress && new.progress != old.progress ? [new.progress] : []
        }
    }

    /// The previews of a progressive load, each better than the one before; a slow reader gets the newest. Ends with the
    /// task. Each access gives a stream of its own.
    public var previews: AsyncStream<RasterImage> {
        changes { old, new in
            guard new.previewCount > old.previewCount, new.end == nil, let preview = new.preview else { return [] }
            return [preview]
        }
    }

    /// The pictures in the order in which they come: one, or for a stale one that has changed two. Ends with the task; a
    /// failure is told by `events` and `response`.
    public var responses: AsyncStream<ImageResponse> {
        changes { old, new in
            guard new.responseCount > old.responseCount, let response = new.response else { return [] }
            return [response]
        }
    }

    /// All that happens, the newest of each kind for a slow reader; `.finished` comes last, in any case and once. Each
    /// access gives a stream of its own, which begins with what there is.
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

    /// Something that happens to a load.
    public enum Event: Sendable {
        /// More bytes have come.
        case progress(Session.Progress)
        /// A picture of less than all bytes.
        case preview(RasterImage)
        /// The picture; a second one if it has changed since it was cached.
        case response(ImageResponse)
        /// The end; the error if it failed, of kind `.cancelled` if it was cancelled.
        case finished(ImageError?)
    }

    private func changes<Element: Sendable>(
        _ elements: @escaping @Sendable (Snapshot, Snapshot) -> [Element]
    ) -> AsyncStream<Element> {
        let reader = ChangeReader(latest.stream(), elements)
        return AsyncStream { await reader.next() }
    }

    /// Everything that a task tells, in its newest form.
    struct Snapshot: Sendable {
        var progress = Session.Progress()
        var hasProgress = false
        var previewCount = 0
        var preview: RasterImage?
        var responseCount = 0
        var response: ImageResponse?
        var end: Result<Void, ImageError>?

        /// What a caller is given: a failure after a picture was delivered leaves the picture what it is.
        var result: Result<ImageResponse, ImageError>? {
            if let response { return .success(response) }
            if case .failure(let error)? = end { return .failure(error) }
            return nil
        }

        mutating func add(_ response: ImageResponse) {
            self.response = response
            responseCount += 1
            preview = nil
        }

        mutating func end(_ result: Result<ImageResponse?, ImageError>) {
            if case .success(let response?) = result { add(response) }
            end = result.map { _ in }
            // The last piece is not told of by itself.
            let (done, total) = (progress.completedBytes, progress.totalBytes)
            let isWhole = if case .success = result { true } else { false }
            progress = Session.Progress(
                completedBytes: isWhole ? total ?? done : done, totalBytes: total, isFinished: true)
        }
    }
}
