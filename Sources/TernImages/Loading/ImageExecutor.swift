import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The threads that pictures are decoded and processed on: so many and no more, of a lower priority than the rest of the
/// program, so that actors and a user interface are served while every core decodes.
public final class ImageExecutor: TaskExecutor {
    /// Those of every pipeline that is given no others: one for each core.
    public static let shared = ImageExecutor()

    /// How many threads there are at most.
    public let threadCount: Int
    private let threads: WorkerThreads

    /// Threads of one's own; without a number one for each core. They begin with the first job, and end with the executor.
    public init(threadCount: Int? = nil) {
        self.threadCount = max(1, threadCount ?? WorkerThreads.coreCount)
        threads = WorkerThreads(count: self.threadCount)
    }

    deinit { threads.end() }

    /// Puts a job behind those that wait.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let executor = unsafe asUnownedTaskExecutor()
        threads.run { unsafe job.runSynchronously(on: executor) }
    }

    /// Runs the work on one of the threads. The current task's cancellation reaches it.
    ///
    /// By a task of its own that ends by resuming the caller: a preference of the caller's, or a group's end, would take
    /// the caller from its actor and back, and an actor that has more to do changes threads at each leave.
    func run<Value: Sendable>(
        _ work: @escaping @Sendable () throws(ImageError) -> Value
    ) async throws(ImageError) -> Value {
        let waiter = Waiter<Result<Value, ImageError>>()
        let job = Task(executorPreference: self) { waiter.resume(returning: Self.outcome(of: work)) }
        // It has ended when this returns, also if it was cancelled.
        return try await waiter.wait(onCancel: { job.cancel() }).get()
    }

    private static func outcome<Value: Sendable>(
        of work: @Sendable () throws(ImageError) -> Value
    ) -> Result<Value, ImageError> {
        // It may have been cancelled while it waited for a thread.
        if Task.isCancelled { return .failure(.cancelled) }
        do throws(ImageError) { return .success(try work()) } catch { return .failure(error) }
    }
}
