import Synchronization

@testable import TernTool

/// What a terminal was sent, write by write.
final class Written: Sendable {
    private let state = Mutex<[String]>([])
    private let (changes, change) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

    var texts: [String] { state.withLock { $0 } }

    func add(_ text: String) {
        state.withLock { $0.append(text) }
        change.yield()
    }

    /// Returns once the condition holds of what was written. One caller at a time.
    func until(_ condition: ([String]) -> Bool) async {
        if condition(texts) { return }
        for await _ in changes where condition(texts) { return }
    }

    /// A standard error that writes here.
    func terminal(isInteractive: Bool) -> Terminal {
        Terminal(isInteractive: isInteractive) { self.add($0) }
    }
}
