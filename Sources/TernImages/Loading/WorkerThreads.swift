import Dispatch
import TernConcurrency

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A fixed number of threads that take jobs from one queue, oldest first, at a lower priority than the program's others.
final class WorkerThreads: Sendable {
    typealias Job = @Sendable () -> Void

    /// The cores that this process may run on.
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

    /// The threads end once what waits is done.
    func end() {
        let started = queue.withLock { queue in
            queue.isEnded = true
            return queue.started
        }
        for _ in 0..<started { signal.signal() }
    }

    private func start() {
        let retained = unsafe Unmanaged.passRetained(self)
        #if canImport(Darwin)
        var thread: pthread_t?
        let code = unsafe pthread_create(
            &thread, nil,
            { argument in
                unsafe Unmanaged<WorkerThreads>.fromOpaque(argument).takeRetainedValue().work()
                return nil
            }, retained.toOpaque())
        if code == 0, let thread = unsafe thread { unsafe pthread_detach(thread) }
        #else
        var thread = pthread_t()
        let code = unsafe pthread_create(
            &thread, nil,
            { argument in
                if let argument = unsafe argument {
                    unsafe Unmanaged<WorkerThreads>.fromOpaque(argument).takeRetainedValue().work()
                }
                return nil
            }, retained.toOpaque())
        if code == 0 { pthread_detach(thread) }
        #endif
        if code != 0 {
            // No thread is to be had now: a queue of the system's does this turn.
            unsafe retained.release()
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

    /// By five steps of nice on Linux, where it is a thread's own; utility on Apple's systems.
    private static func lowerPriority() {
        #if canImport(Darwin)
        pthread_set_qos_class_self_np(QOS_CLASS_UTILITY, 0)
        #elseif canImport(Glibc)
        // Of what the process was given, which may be less than the usual already: that is the main thread's. Not of this
        // thread's, which has it from whoever gave the first job: libdispatch lifts some of its threads by up to four.
        let which = __priority_which_t(PRIO_PROCESS.rawValue)
        setpriority(which, 0, getpriority(which, id_t(getpid())) + 5)
        #endif
    }
}
