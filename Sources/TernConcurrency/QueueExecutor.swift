import Dispatch

/// A serial executor over a queue of its own: for actors that block (files), and for transports without a loop.
package final class QueueExecutor: SerialExecutor {
    private let queue: DispatchQueue

    /// Shared by the actors of all transports that have no loop.
    package static let shared = QueueExecutor("tern.session")
    /// The one thread that reads and writes the files of all transfers.
    package static let files = QueueExecutor("tern.files")

    package init(_ label: String) {
        queue = DispatchQueue(label: label)
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let executor = unsafe asUnownedSerialExecutor()
        queue.async { unsafe job.runSynchronously(on: executor) }
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        unsafe UnownedSerialExecutor(ordinary: self)
    }

    package func checkIsolated() {
        dispatchPrecondition(condition: .onQueue(queue))
    }
}
