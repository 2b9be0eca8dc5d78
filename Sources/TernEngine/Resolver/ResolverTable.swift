/// The state of a resolver: the names that wait for a thread, those that are being resolved, the waiters of each, and
/// the answers that are kept.
///
/// A name is resolved once at a time, whatever number of waiters it has. Answers are kept for a time; failures are not
/// kept. The table decides on threads too: one starts when a name waits and none is idle, up to the limit.
struct ResolverTable<Waiter> {
    /// The action that a new waiter requires.
    enum Admission: Equatable {
        /// An answer is kept. The waiter is not in the table.
        case answer([SocketAddress])
        /// The name is in progress, or all threads are busy.
        case wait
        case wakeThread
        case startThread
    }

    /// The next action of a thread.
    enum Next: Equatable {
        case resolve(String)
        case wait
        case end
    }

    private struct Job {
        /// By their numbers, which grow in the order of arrival.
        var waiters: [UInt64: Waiter]
        /// A Boolean value that indicates whether a thread resolves the name.
        var isRunning = false
    }

    private struct Answer {
        var addresses: [SocketAddress]
        var expiry: UInt64
    }

    let threadLimit: Int
    /// The number of nanoseconds for which an answer is kept.
    let lifetime: UInt64
    let answerLimit: Int
    private var jobs: [String: Job] = [:]
    /// The names that wait for a thread, oldest first. A name without a job was cancelled and is passed over, and so is
    /// a second entry of a name, which was cancelled and came again.
    private var queue: [String] = []
    private var queueStart = 0
    private var answers: [String: Answer] = [:]
    private(set) var threads = 0
    /// The number of threads that wait for a name and have not been woken.
    private(set) var idleThreads = 0

    init(threadLimit: Int, lifetime: UInt64, answerLimit: Int) {
        self.threadLimit = threadLimit
        self.lifetime = lifetime
        self.answerLimit = answerLimit
    }

    /// The number of names that wait or are being resolved.
    var namesInProgress: Int { jobs.count }
    var answerCount: Int { answers.count }

    /// Returns the answer that is kept for a name.
    func answer(for name: String, now: UInt64) -> [SocketAddress]? {
        guard let answer = answers[name], now < answer.expiry else { return nil }
        return answer.addresses
    }

    /// Adds a waiter.
    ///
    /// - Parameter number: The number of the waiter, higher than those of earlier waiters.
    mutating func add(_ waiter: Waiter, number: UInt64, name: String, now: UInt64) -> Admission {
        if let addresses = answer(for: name, now: now) { return .answer(addresses) }
        if jobs[name] != nil {
            jobs[name]?.waiters[number] = waiter
            return .wait
        }
        jobs[name] = Job(waiters: [number: waiter])
        queue.append(name)
        if idleThreads > 0 {
            idleThreads -= 1
            return .wakeThread
        }
        guard threads < threadLimit else { return .wait }
        threads += 1
        return .startThread
    }

    /// Removes a waiter that was cancelled. A name that no one waits for is not resolved, unless a thread has begun.
    mutating func remove(number: UInt64, name: String) {
        jobs[name]?.waiters[number] = nil
        guard let job = jobs[name], job.waiters.isEmpty, !job.isRunning else { return }
        jobs[name] = nil
        // Names that were cancelled must not fill the queue while all threads are busy.
        guard queue.count > 2 * jobs.count + 64 else { return }
        var isKnown: Set<String> = []
        queue = queue[queueStart...].filter { jobs[$0]?.isRunning == false && isKnown.insert($0).inserted }
        queueStart = 0
    }

    /// Returns the next action of a thread that runs. `mayEnd`: its idle timeout has passed.
    mutating func next(mayEnd: Bool = false) -> Next {
        while queueStart < queue.count {
            let name = queue[queueStart]
            queueStart += 1
            if queueStart == queue.count || queueStart >= 64 {
                queue.removeSubrange(..<queueStart)
                queueStart = 0
            }
            guard jobs[name]?.isRunning == false else { continue }
            jobs[name]?.isRunning = true
            return .resolve(name)
        }
        if mayEnd {
            threads -= 1
            return .end
        }
        idleThreads += 1
        return .wait
    }

    /// Returns the next action of a thread whose idle timeout has passed. It waits once more if a thread has been woken
    /// meanwhile, because that can be this one.
    mutating func nextAfterTimeout() -> Next {
        guard idleThreads > 0 else { return .wait }
        idleThreads -= 1
        return next(mayEnd: true)
    }

    /// Ends the resolution of a name and returns its waiters in the order of their arrival. An empty list of addresses
    /// is not kept.
    mutating func finish(_ name: String, addresses: [SocketAddress], now: UInt64) -> [Waiter] {
        if !addresses.isEmpty { keep(addresses, name: name, now: now) }
        return removeJob(name)
    }

    /// Takes back a thread that could not be started. Returns the waiters of all names that wait for a thread, if there
    /// is no other thread.
    mutating func threadFailed() -> [Waiter] {
        threads -= 1
        guard threads == 0 else { return [] }
        let names = queue[queueStart...]
        queue = []
        queueStart = 0
        return names.flatMap { removeJob($0) }
    }

    private mutating func removeJob(_ name: String) -> [Waiter] {
        let waiters = jobs.removeValue(forKey: name)?.waiters ?? [:]
        return waiters.sorted { $0.key < $1.key }.map(\.value)
    }

    private mutating func keep(_ addresses: [SocketAddress], name: String, now: UInt64) {
        if answers[name] == nil, answers.count >= answerLimit {
            answers = answers.filter { now < $0.value.expiry }
            if answers.count >= answerLimit, let oldest = answers.min(by: { $0.value.expiry < $1.value.expiry }) {
                answers[oldest.key] = nil
            }
        }
        let (expiry, overflow) = now.addingReportingOverflow(lifetime)
        answers[name] = Answer(addresses: addresses, expiry: overflow ? .max : expiry)
    }
}
