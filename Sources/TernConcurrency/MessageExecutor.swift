/// A serial executor that also takes messages. Messages and the jobs of actors run in the order in which they came.
///
/// A message costs less than a job: it needs no Swift task. Synchronous code can send it.
package protocol MessageExecutor: SerialExecutor {
    /// Sends a message. Never blocks.
    func post(_ message: any ExecutorMessage, operation: UInt64)
}

/// An object that a `MessageExecutor` calls.
package protocol ExecutorMessage: AnyObject, Sendable {
    /// Called on the executor.
    ///
    /// - Parameter operation: The number that was posted with the object, whose meaning only the object knows.
    func perform(_ operation: UInt64)
}
