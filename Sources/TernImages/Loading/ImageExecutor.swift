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
    /// By a child, since the way there and back by a preference of the caller's own costs two more switches of threads, and
    /// would have the caller's actor run on these threads too.
    func run<Value: Sendable>(
        _ work: @escaping @Sendable () throws(ImageError) -> Value
    ) async throws(ImageError) -> Value {
        let outcome = await withTaskGroup(of: Result<Value, ImageError>.self) { group in
            group.addTask(executorPreference: self) { Self.outcome(of: work) }
            return await group.next() ?? .failure(.cancelled)
        }
        return try outcome.get()
    }

    private static func outcome<Value: Sendable>(
        of work: @Sendable () throws(ImageError) -> Value
    ) -> Result<Value, ImageError> {
        // It may have been cancelled while it waited for a thread.
        if Task.isCancelled { return .failure(.cancelled) }
        do throws(ImageError) { return .success(try work()) } catch { return .failure(error) }
    }
}
