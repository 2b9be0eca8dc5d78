import Dispatch
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A limited number of threads that decode and process images, with a lower priority than the rest of the program, so
/// that actors and user interfaces stay responsive while every core decodes.
public final class ImageExecutor: TaskExecutor {
    /// The default executor of all pipelines, with one thread for each core.
    public static let shared = ImageExecutor()

    /// The maximum number of threads.
    public let threadCount: Int
    private let threads: WorkerThreads

    /// Creates an executor, by default with one thread for each core. The threads start with the first job, and end
    /// with the executor.
    public init(threadCount: Int? = nil) {
        self.threadCount = max(1, threadCount ?? WorkerThreads.coreCount)
        threads = WorkerThreads(count: self.threadCount)
    }

    deinit { threads.end() }

    /// Adds a job at the end of the queue.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let executor = unsafe asUnownedTaskExecutor()
        threads.run { unsafe job.runSynchronously(on: executor) }
    }

    /// Runs the work on one of the threads. Cancelling the current task cancels the work.
    ///
    /// The work runs in a separate task that resumes the caller. An executor preference or a task group would leave the
    /// caller's actor and return, and a busy actor changes threads each time.
    func run<Value: Sendable>(
        _ work: @escaping @Sendable () throws(ImageError) -> Value
    ) async throws(ImageError) -> Value {
        let waiter = Waiter<Result<Value, ImageError>>()
        let job = start(work) { waiter.resume(returning: $0) }
        // Also waits for cancelled work to end.
        return try await waiter.wait(onCancel: { job.cancel() }).get()
    }

    /// Starts the work on one of the threads, and reports its result there. Cancelling the returned task cancels the
    /// work, whose result is reported nevertheless.
    func start<Value: Sendable>(
        _ work: @escaping @Sendable () throws(ImageError) -> Value,
        then report: @escaping @Sendable (Result<Value, ImageError>) -> Void
    ) -> Task<Void, Never> {
        // Ends with the work. Its owner cancels it.
        Task(executorPreference: self) { report(Self.outcome(of: work)) }
    }

    private static func outcome<Value: Sendable>(
        of work: @Sendable () throws(ImageError) -> Value
    ) -> Result<Value, ImageError> {
        // The work may have been cancelled in the queue.
        if Task.isCancelled { return .failure(.cancelled) }
        return Result(catching: work)
    }
}

/// A fixed number of threads that take jobs from one queue, oldest first, with a lower priority than other threads.
final class WorkerThreads: Sendable {
    typealias Job = @Sendable () -> Void

    /// The number of cores that are online. Limits of this process, such as a processor affinity or a quota of a
    /// container, do not change it.
    static var coreCount: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

    private struct Queue {
        var jobs = FIFO<Job>()
        var started = 0
        var idle = 0
        var isEnded = false
    }

    private let count: Int
    private let queue = Lock(Queue())
    private let signal = DispatchSemaphore(value: 0)

    init(count: Int) { self.count = count }

    func run(_ job: @escaping Job) {
        let startsThread = queue.withLock { queue in
            queue.jobs.append(job)
            guard queue.started < count, queue.idle < queue.jobs.count else { return false }
            queue.started += 1
            return true
        }
        if startsThread { start() }
        signal.signal()
    }

    /// Ends the threads once the queue is empty.
    func end() {
        let started = queue.withLock { queue in
            queue.isEnded = true
            return queue.started
        }
        for _ in 0..<started { signal.signal() }
    }

    private func start() {
        if SystemThread.start({ self.work() }) != 0 {
            // No thread can be created now: a system queue runs this job.
            queue.withLock { $0.started -= 1 }
            DispatchQueue.global(qos: .utility).async { self.workOnce() }
        }
    }

    private func work() {
        Self.lowerPriority()
        while true {
            queue.withLock { $0.idle += 1 }
            signal.wait()
            let (job, isEnded) = queue.withLock { queue -> (Job?, Bool) in
                queue.idle -= 1
                return (queue.jobs.popFirst(), queue.isEnded)
            }
            if let job { job() } else if isEnded { return }
        }
    }

    private func workOnce() {
        signal.wait()
        queue.withLock { $0.jobs.popFirst() }?()
    }

    /// Adds five to the nice value of the thread on Linux; sets the utility class on Apple's systems.
    private static func lowerPriority() {
        #if canImport(Darwin)
        pthread_set_qos_class_self_np(QOS_CLASS_UTILITY, 0)
        #elseif canImport(Glibc)
        // Relative to the nice value of the process, which is that of the main thread. This thread has inherited its
        // own value from the thread that gave the first job, and libdispatch raises some of its threads by up to four.
        let which = __priority_which_t(PRIO_PROCESS.rawValue)
        setpriority(which, 0, getpriority(which, id_t(getpid())) + 5)
        #endif
    }
}
