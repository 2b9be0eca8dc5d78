extension Session {
    /// The state of a task.
    public enum TaskState: Sendable, Hashable {
        /// Not started yet, or paused: no byte moves.
        case suspended
        /// Started: waiting for a connection, moving bytes, or decoding.
        case running
        /// Ended with a value.
        case completed
        /// Ended with an error.
        case failed
        /// Ended by cancellation.
        case cancelled

        /// A Boolean value that indicates whether this state is the last one.
        public var isTerminal: Bool {
            switch self {
            case .suspended, .running: false
            case .completed, .failed, .cancelled: true
            }
        }
    }
}
