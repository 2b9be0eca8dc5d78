import TernConcurrency

/// Turns a stream of newest states into a stream of what has changed between two of them. One reader at a time.
final class ChangeReader<Element: Sendable>: Sendable {
    private struct Place {
        var seen = ImageTask.Snapshot()
        var waiting: [Element] = []
    }

    private let states: AsyncStream<ImageTask.Snapshot>
    private let elements: @Sendable (ImageTask.Snapshot, ImageTask.Snapshot) -> [Element]
    private let place = Lock(Place())

    init(
        _ states: AsyncStream<ImageTask.Snapshot>,
        _ elements: @escaping @Sendable (ImageTask.Snapshot, ImageTask.Snapshot) -> [Element]
    ) {
        self.states = states
        self.elements = elements
    }

    func next() async -> Element? {
        while true {
            if let waiting = place.withLock({ $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }) { return waiting }
            var iterator = states.makeAsyncIterator()
            guard let state = await iterator.next() else { return nil }
            place.withLock { place in
                place.waiting = elements(place.seen, state)
                place.seen = state
            }
        }
    }
}
