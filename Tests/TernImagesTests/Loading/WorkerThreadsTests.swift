import Testing

@testable import TernImages

#if canImport(Glibc)
import Glibc

@Suite(.timeLimit(.minutes(1)))
struct WorkerThreadsTests {
    /// The first job may come from any thread: those of libdispatch have another priority than the process.
    @Test func workersRunFiveNiceStepsBelowTheProcess() async {
        // The thread of the starter is five steps below the process already.
        let (starter, workers) = (WorkerThreads(count: 1), WorkerThreads(count: 1))
        let steps = await withCheckedContinuation { continuation in
            starter.run {
                workers.run { continuation.resume(returning: stepsBelowTheProcess()) }
            }
        }
        starter.end()
        workers.end()
        #expect(steps == min(5, 19 - niceness(of: getpid())))
    }
}

private func stepsBelowTheProcess() -> Int32 { niceness(of: 0) - niceness(of: getpid()) }

/// 0 is the calling thread, and the process is its main thread.
private func niceness(of thread: pid_t) -> Int32 {
    getpriority(__priority_which_t(PRIO_PROCESS.rawValue), id_t(thread))
}
#endif
