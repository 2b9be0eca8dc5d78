import Synchronization
import Tern
import TernConcurrency

extension LoopbackServer {
    /// A door between a test and a handler, opened once: it puts their steps in order without a sleep.
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
    /// In the other direction a handler calls `open()` and the test awaits `wait()`.
    public final class Gate: Sendable {
        private struct State {
            var isOpen = false
            var tasks = Waiters<Void>()
            var bells: [Int: Bell] = [:]
            var lastBell = 0
        }

        private let state = Lock(State())

        /// A closed gate.
        public init() {}

        /// Whether the gate was opened.
        public var isOpen: Bool { state.withLock { $0.isOpen } }

        /// Lets everybody through, now and later. Opening twice does nothing.
        public func open() {
            let (tasks, bells) = state.withLock { state in
                state.isOpen = true
                let bells = Array(state.bells.values)
                state.bells = [:]
                return (state.tasks.take { true }.map(\.continuation), bells)
            }
            for task in tasks { task.resume(returning: true) }
            for bell in bells { bell.ring() }
        }

        /// Returns once the gate is open. For tests: a handler calls `Exchange.wait(for:)`, which may block.
        /// - Throws: `CancellationError` when the task is cancelled.
        public func wait() async throws(CancellationError) {
            let ticket = state.withLock { $0.tasks.drawTicket() }
            try await Waiters<Void>.suspend { continuation in
                let outcome = state.withLock { state -> Bool? in
                    if Task.isCancelled { return false }
                    if state.isOpen { return true }
                    state.tasks.add(ticket, (), continuation)
                    return nil
                }
                if let outcome { continuation.resume(returning: outcome) }
            } cancel: {
                self.state.withLock { $0.tasks.remove(ticket) }
            }
        }

        /// Has `bell` rung at the opening; nil when the gate is open already.
        func add(_ bell: Bell) -> Int? {
            state.withLock { state in
                guard !state.isOpen else { return nil }
                state.lastBell += 1
                state.bells[state.lastBell] = bell
                return state.lastBell
            }
        }

        func remove(bell: Int) { state.withLock { _ = $0.bells.removeValue(forKey: bell) } }
    }
}
