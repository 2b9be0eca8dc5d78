import Dispatch

/// The one thread on which a cache's index lives and its files are written. A slow disk holds up this thread and no
/// other.
final class DiskExecutor: SerialExecutor {
    private static let key = DispatchSpecificKey<ObjectIdentifier>()
    private let queue = DispatchQueue(label: "tern.disk-cache")

    init() { queue.setSpecific(key: Self.key, value: ObjectIdentifier(self)) }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let executor = unsafe asUnownedSerialExecutor()
        queue.async { unsafe job.runSynchronously(on: executor) }
    }

    /// Runs the closure on the thread, after what waits there.
    func submit(_ body: @escaping @Sendable () -> Void) { queue.async(execute: body) }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor { unsafe UnownedSerialExecutor(ordinary: self) }

    func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }

    func isIsolatingCurrentContext() -> Bool? {
        DispatchQueue.getSpecific(key: Self.key) == ObjectIdentifier(self)
    }
}

/// A few threads that read value files: they need nothing of the index, and so need not wait for a commit.
final class DiskReaders: Sendable {
    private let queues: [DispatchQueue]

    init(count: Int) { queues = (0..<max(1, count)).map { DispatchQueue(label: "tern.disk-cache.reader-\($0)") } }

    /// Runs `body` on the thread that `number` falls to, and returns what it returns.
    func run<Result: Sendable>(_ number: Int64, _ body: @escaping @Sendable () -> Result) async -> Result {
        let queue = queues[Int(UInt64(bitPattern: number) % UInt64(queues.count))]
        return await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: body()) }
        }
    }
}
