import TernConcurrency

/// The state of a resolver: the names that wait for a thread, those that are being resolved, the waiters of each, and
/// the answers that are kept.
///
/// A name is resolved once at a time, whatever number of waiters it has. Answers are kept for a time; failures are not
/// kept. The table decides on threads too: one starts when a name waits and none is idle, up to the limit.
///
/// The names of one domain, by their last two labels, have at most half of the threads, and domains go round: one
/// domain whose servers do not answer leaves half of the threads to others.
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
        /// Whether a thread resolves the name.
        var isRunning = false
    }

    private struct Domain {
        /// The names that wait for a thread, oldest first. A name without a job was cancelled and is passed over, and
        /// so is a second entry of a name, which was cancelled and came again.
        var names = FIFO<String>()
        var running = 0
        /// Whether the domain is in `readyDomains`.
        var isQueued = false
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
    private var domains: [Substring: Domain] = [:]
    /// The domains with names that wait and may have a thread, in their order.
    private var readyDomains = FIFO<Substring>()
    /// The number of entries in the queues of all domains.
    private var queued = 0
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
        let domain = Self.domain(of: name)
        domains[domain, default: Domain()].names.append(name)
        queued += 1
        // Otherwise, the name waits until another look-up of its domain ends.
        guard enqueueIfReady(domain) else { return .wait }
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
        if queued > 2 * jobs.count + 64 { removeCancelledNames() }
    }

    private mutating func removeCancelledNames() {
        queued = 0
        for (key, domain) in domains {
            var isKnown: Set<String> = []
            var kept = domain
            kept.names.removeAll { !(jobs[$0]?.isRunning == false && isKnown.insert($0).inserted) }
            queued += kept.names.count
            domains[key] = kept.names.isEmpty && kept.running == 0 && !kept.isQueued ? nil : kept
        }
    }

    /// Returns the part of a name that others have in common with it.
    private static func domain(of name: String) -> Substring {
        let dots = name.utf8.indices.reversed().lazy.filter { name.utf8[$0] == UInt8(ascii: ".") }
        return dots.dropFirst().first.map { name[name.utf8.index(after: $0)...] } ?? name[...]
    }

    /// Queues a domain if it has names and may have another thread. Returns whether it is queued.
    @discardableResult
    private mutating func enqueueIfReady(_ key: Substring) -> Bool {
        guard var domain = domains[key] else { return false }
        if domain.isQueued { return true }
        guard !domain.names.isEmpty, domain.running < max(1, threadLimit / 2) else {
            if domain.names.isEmpty, domain.running == 0 { domains[key] = nil }
            return false
        }
        domain.isQueued = true
        domains[key] = domain
        readyDomains.append(key)
        return true
    }

    /// Returns the next action of a thread that runs. `mayEnd`: its idle timeout has passed.
    mutating func next(mayEnd: Bool = false) -> Next {
        while let key = readyDomains.popFirst() {
            domains[key]?.isQueued = false
            while let name = domains[key]?.names.popFirst() {
                queued -= 1
                guard jobs[name]?.isRunning == false else { continue }
                jobs[name]?.isRunning = true
                domains[key]?.running += 1
                enqueueIfReady(key)
                return .resolve(name)
            }
            enqueueIfReady(key)
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
        let domain = Self.domain(of: name)
        domains[domain]?.running -= 1
        enqueueIfReady(domain)
        return removeJob(name)
    }

    /// Takes back a thread that could not be started. Returns the waiters of all names that wait for a thread, if there
    /// is no other thread.
    mutating func threadFailed() -> [Waiter] {
        threads -= 1
        guard threads == 0 else { return [] }
        var waiters: [UInt64: Waiter] = [:]
        for key in domains.keys {
            while let name = domains[key]?.names.popFirst() {
                // A number belongs to one waiter.
                waiters.merge(jobs.removeValue(forKey: name)?.waiters ?? [:]) { first, _ in first }
            }
        }
        (domains, readyDomains, queued) = ([:], FIFO(), 0)
        return waiters.sorted { $0.key < $1.key }.map(\.value)
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
