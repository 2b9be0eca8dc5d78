import TernConcurrency

/// Messages to an actor from any thread, in order. One task handles all messages that have arrived by then.
final class Mailbox<Message: Sendable>: Sendable {
    private struct State {
        var messages: [Message] = []
        var hasRunningTask = false
    }

    private let state = Lock(State())

    /// Adds a message. Returns true if the caller must start a task that takes the messages, because none is running.
    func append(_ message: Message) -> Bool {
        state.withLock { state in
            state.messages.append(message)
            defer { state.hasRunningTask = true }
            return !state.hasRunningTask
        }
    }

    /// Replaces the array by the messages that have arrived. Returns false if there are none: the calling task must end then.
    func takeAll(_ messages: inout [Message]) -> Bool {
        messages.removeAll(keepingCapacity: true)
        state.withLock { state in
            // The two arrays are swapped, so that neither is allocated again.
            swap(&state.messages, &messages)
            guard messages.isEmpty else { return }
            state.hasRunningTask = false
            // Releases the memory of a burst.
            if state.messages.capacity > 1_024 { state.messages = [] }
        }
        return !messages.isEmpty
    }
}
