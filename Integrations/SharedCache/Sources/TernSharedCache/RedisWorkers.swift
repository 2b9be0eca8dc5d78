import CTernRedis
import Dispatch
import Synchronization

/// The threads of a store, on which its calls block, with a connection each. They start when they are needed, and end
/// with the store.
final class RedisWorkers: Sendable {
    /// An operation that waits for a thread.
    private struct Job: Sendable {
        /// The time at which it is given up if no thread has begun with it.
        let deadline: ContinuousClock.Instant
        /// Performs the operation. Returns a function that resumes the caller, whose next operation may begin then.
        let perform: @Sendable (RedisConnection) throws(RedisStoreError) -> @Sendable () -> Void
        let fail: @Sendable (RedisStoreError) -> Void
    }

    private struct State {
        var jobs: [Job] = []
        var threads = 0
        var idle = 0
        var isStopped = false
        var breaker: CircuitBreaker
    }

    private let configuration: RedisStore.Configuration
    private let state: Mutex<State>
    private let semaphore = DispatchSemaphore(value: 0)

    init(_ configuration: RedisStore.Configuration) {
        self.configuration = configuration
        let breaker = CircuitBreaker(failureLimit: configuration.failureLimit, pause: configuration.pause)
        state = Mutex(State(breaker: breaker))
    }

    /// Whether operations are refused at present.
    var isPaused: Bool { state.withLock { $0.breaker.isOpen(at: .now) } }

    /// Performs an operation on one of the threads.
    func run<Value: Sendable>(
        _ operation: @escaping @Sendable (RedisConnection) throws(RedisStoreError) -> Value
    ) async throws(RedisStoreError) -> Value {
        let result: Result<Value, RedisStoreError> = await withCheckedContinuation { continuation in
            let job = Job(
                deadline: .now + configuration.connectTimeout + configuration.operationTimeout * 4,
                perform: { connection throws(RedisStoreError) in
                    let value = try operation(connection)
                    return { continuation.resume(returning: .success(value)) }
                },
                fail: { continuation.resume(returning: .failure($0)) })
            if let error = submit(job) { job.fail(error) }
        }
        return try result.get()
    }

    /// Ends the threads. Operations that wait fail.
    func stop() {
        let (jobs, threads) = state.withLock { state in
            defer { state.jobs = [] }
            state.isStopped = true
            return (state.jobs, state.threads)
        }
        for job in jobs { job.fail(Self.stopped) }
        for _ in 0..<threads { semaphore.signal() }
    }

    private static let stopped = RedisStoreError(.unreachable, "the store was released")
    private static let paused = RedisStoreError(.paused, "the last operations failed")

    /// Queues a job. Returns the reason if it is refused.
    private func submit(_ job: Job) -> RedisStoreError? {
        let (failure, mustStart) = state.withLock { state -> (RedisStoreError?, Bool) in
            if state.isStopped { return (Self.stopped, false) }
            if state.breaker.isOpen(at: .now) { return (Self.paused, false) }
            guard state.jobs.count < configuration.queueLimit else {
                return (RedisStoreError(.busy, "\(state.jobs.count) operations wait"), false)
            }
            state.jobs.append(job)
            let mustStart = state.jobs.count > state.idle && state.threads < max(1, configuration.connectionLimit)
            if mustStart { state.threads += 1 }
            return (nil, mustStart)
        }
        if failure == nil { semaphore.signal() }
        if mustStart { startThread() }
        return failure
    }

    private func startThread() {
        let argument = unsafe Unmanaged.passRetained(self)
        let code = unsafe ctern_redis_start_thread(
            { argument in
                guard let argument = unsafe argument else { return }
                unsafe Unmanaged<RedisWorkers>.fromOpaque(argument).takeRetainedValue().work()
            }, argument.toOpaque())
        guard code != 0 else { return }
        unsafe argument.release()
        // Another thread may take the jobs. Without any, they fail.
        let jobs = state.withLock { state -> [Job] in
            state.threads -= 1
            guard state.threads == 0 else { return [] }
            defer { state.jobs = [] }
            return state.jobs
        }
        for job in jobs { job.fail(RedisStoreError(.noResources, "no thread can be created (error \(code))")) }
    }

    // MARK: A thread

    private func work() {
        var connection: RedisConnection?
        while true {
            state.withLock { $0.idle += 1 }
            semaphore.wait()
            let (job, isStopped) = state.withLock { state -> (Job?, Bool) in
                state.idle -= 1
                return (state.jobs.isEmpty ? nil : state.jobs.removeFirst(), state.isStopped)
            }
            if let job { perform(job, on: &connection) }
            if isStopped { return }
        }
    }

    private func perform(_ job: Job, on connection: inout RedisConnection?) {
        let now = ContinuousClock.now
        guard now < job.deadline else { return job.fail(RedisStoreError(.timedOut, "no connection was free in time")) }
        guard state.withLock({ $0.breaker.mayBegin(at: now) }) else { return job.fail(Self.paused) }
        var isReused = connection != nil
        while true {
            do throws(RedisStoreError) {
                let current: RedisConnection
                if let connection { current = connection } else { current = try RedisConnection(configuration) }
                connection = current
                let complete = try job.perform(current)
                state.withLock { $0.breaker.succeed() }
                return complete()
            } catch {
                if error.endsConnection { connection = nil }
                // The server closed an idle connection, as after a restart: each operation can be sent twice.
                if isReused, error.kind == .unreachable {
                    isReused = false
                    continue
                }
                state.withLock { state in
                    if error.endsConnection { state.breaker.fail(at: .now) } else { state.breaker.succeed() }
                }
                return job.fail(error)
            }
        }
    }
}
