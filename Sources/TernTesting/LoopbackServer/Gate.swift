import Synchronization
import Tern
import TernConcurrency

extension LoopbackServer {
    /// A gate between a test and a handler that opens once. It orders their steps without a sleep.
    ///
    /// ```swift
    /// let gate = LoopbackServer.Gate()
    /// let server = try LoopbackServer { exchange in
    ///     try exchange.wait(for: gate)             // blocks the connection's own thread
    ///     try exchange.respond(text: "late")
    /// }
    /// // … assert what must hold while the server is silent …
    /// gate.open()
    /// ```
    ///
    /// In the other direction, a handler calls `open()` and the test awaits `wait()`.
    public final class Gate: Sendable {
        private struct State {
            var isOpen = false
            var tasks = Waiters<Void>()
            var pipes: [Int: WakeupPipe] = [:]
            var lastPipe = 0
        }

        private let state = Lock(State())

        /// Creates a closed gate.
        public init() {}

        /// A Boolean value that indicates whether the gate is open.
        public var isOpen: Bool { state.withLock { $0.isOpen } }

        /// Opens the gate for all current and later callers. Opening it again has no effect.
        public func open() {
            let (tasks, pipes) = state.withLock { state in
                state.isOpen = true
                let pipes = Array(state.pipes.values)
                state.pipes = [:]
                return (state.tasks.take { true }.map(\.continuation), pipes)
            }
            for task in tasks { task.resume(returning: true) }
            for pipe in pipes { pipe.signal() }
        }

        /// Returns when the gate is open. For tests; a handler calls `Exchange.wait(for:)`, which blocks.
        ///
        /// - Throws: `CancellationError` if the task is cancelled.
        public func wait() async throws(CancellationError) {
            let id = state.withLock { $0.tasks.nextID() }
            try await Waiters<Void>.suspend { continuation in
                let outcome = state.withLock { state -> Bool? in
                    if Task.isCancelled { return false }
                    if state.isOpen { return true }
                    state.tasks.add(id, condition: (), continuation: continuation)
                    return nil
                }
                if let outcome { continuation.resume(returning: outcome) }
            } cancel: {
                self.state.withLock { $0.tasks.remove(id) }
            }
        }

        /// Registers a pipe to signal when the gate opens; returns nil if it is already open.
        func add(_ pipe: WakeupPipe) -> Int? {
            state.withLock { state in
                guard !state.isOpen else { return nil }
                state.lastPipe += 1
                state.pipes[state.lastPipe] = pipe
                return state.lastPipe
            }
        }

        func remove(pipe: Int) { state.withLock { _ = $0.pipes.removeValue(forKey: pipe) } }
    }
}
