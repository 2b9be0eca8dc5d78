import Dispatch

/// A serial executor on a dispatch queue of its own: for actors that make blocking calls, and for transports without a
/// loop.
package final class QueueExecutor: MessageExecutor {
    private static let key = DispatchSpecificKey<ObjectIdentifier>()
    private let queue: DispatchQueue

    /// The executor that the actors of all transports without a loop share.
    package static let shared = QueueExecutor("tern.session")
    /// The executor that reads and writes the files of all transfers.
    package static let files = QueueExecutor("tern.files")

    package init(_ label: String) {
        queue = DispatchQueue(label: label)
        queue.setSpecific(key: Self.key, value: ObjectIdentifier(self))
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let executor = unsafe asUnownedSerialExecutor()
        queue.async { unsafe job.runSynchronously(on: executor) }
    }

    /// Runs the closure on the queue, after the work that waits there.
    package func submit(_ body: @escaping @Sendable () -> Void) { queue.async(execute: body) }

    package func post(_ message: any ExecutorMessage, operation: UInt64) {
        queue.async { message.perform(operation) }
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        unsafe UnownedSerialExecutor(ordinary: self)
    }

    package func checkIsolated() {
        dispatchPrecondition(condition: .onQueue(queue))
    }

    package func isIsolatingCurrentContext() -> Bool? {
        DispatchQueue.getSpecific(key: Self.key) == ObjectIdentifier(self)
    }
}
