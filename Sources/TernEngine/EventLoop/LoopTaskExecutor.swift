#if os(Linux)
/// Runs the tasks that prefer it on a loop's thread, so that a call and its connection need no switch between threads.
package final class LoopTaskExecutor: TaskExecutor {
    private let loop: EventLoop

    init(_ loop: EventLoop) { self.loop = loop }

    package func enqueue(_ job: consuming ExecutorJob) {
        let executor = unsafe asUnownedTaskExecutor()
        let job = UnownedJob(job)
        if loop.postJob(.taskJob(job)) { return }
        loop.setUpAndPost(.taskJob(job)) { unsafe job.runSynchronously(on: executor) }
    }
}
#endif
