import Synchronization
import Tern
import TernConcurrency

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The running part of a server. Its threads hold this object and not `LoopbackServer`, so that releasing the server
/// stops them.
final class LoopbackCore: Sendable {
    typealias Failure = LoopbackServer.Failure

    /// The part of a connection that `stop()` needs; the rest belongs to the connection's thread.
    final class Link: Sendable {
        let socket: OwnedDescriptor
        let index: Int
        let isIdle = Atomic<Bool>(false)
        let thread = Atomic<UInt>(0)

        init(socket: OwnedDescriptor, index: Int) {
            self.socket = socket
            self.index = index
        }
    }

    struct State {
        var links: [Int: Link] = [:]
        var isStopping = false
        /// The number of running threads: one for the listener, and one for each connection.
        var threads = 0
        var log: LoopbackLog
        var waiters = Waiters<@Sendable (LoopbackServer.Counts) -> Bool>()
    }

    let listener: LoopbackListener
    let isIPv6: Bool
    let counters = LoopbackCounters()
    let logs: Bool
    private let connectionLimit: Int
    private let handler: LoopbackServer.Handler
    let state: Lock<State>
    let hasWaiters = Atomic<Bool>(false)
    private let stopSignal: WakeupPipe
    private let endSignal: WakeupPipe

    init(
        _ listener: LoopbackListener, isIPv6: Bool, logLimit: Int, connectionLimit: Int,
        handler: @escaping LoopbackServer.Handler
    ) throws(Failure) {
        self.listener = listener
        self.connectionLimit = connectionLimit
        self.isIPv6 = isIPv6
        self.handler = handler
        logs = logLimit > 0
        state = Lock(State(log: LoopbackLog(limit: max(0, logLimit))))
        stopSignal = try WakeupPipe()
        endSignal = try WakeupPipe()
    }

    func start() throws(Failure) {
        state.withLock { $0.threads = 1 }
        try ServerThread.run { [self] in
            acceptUntilStopped()
            threadEnded()
        }
    }

    private func acceptUntilStopped() {
        while true {
            do {
                let seen = try System.wait(
                    [(listener.socket.number, Int32(POLLIN)), (stopSignal.descriptor, 0)], milliseconds: -1)
                if seen[1] != 0 { break }
                while let socket = try listener.accept() { adopt(socket) }
            } catch {
                // The process probably has no free descriptors. Clients wait in the queue until some are free again.
                guard let seen = try? System.wait([(stopSignal.descriptor, 0)], milliseconds: 20), seen == [0] else {
                    break  // `try?`: a `poll` that cannot wait for the signal ends the listener
                }
            }
        }
        listener.socket.close()
    }

    private func adopt(_ socket: OwnedDescriptor) {
        let index = counters.accepted.wrappingAdd(1, ordering: .sequentiallyConsistent).oldValue
        let link = Link(socket: socket, index: index)
        let isWelcome = state.withLock { state in
            guard !state.isStopping, state.links.count < connectionLimit else { return false }
            state.links[index] = link
            state.threads += 1
            return true
        }
        guard isWelcome else { return socket.close() }
        counters.open.wrappingAdd(1, ordering: .sequentiallyConsistent)
        countsChanged()
        do {
            try ServerThread.run { [self] in
                link.thread.store(ServerThread.current, ordering: .sequentiallyConsistent)
                LoopbackConnection(link, core: self).serve(handler)
                connectionEnded(link)
            }
        } catch {
            connectionEnded(link)
        }
    }

    private func connectionEnded(_ link: Link) {
        link.socket.close()
        state.withLock { _ = $0.links.removeValue(forKey: link.index) }
        counters.open.wrappingSubtract(1, ordering: .sequentiallyConsistent)
        countsChanged()
        threadEnded()
    }

    private func threadEnded() {
        let isLast = state.withLock { state in
            state.threads -= 1
            return state.isStopping && state.threads == 0
        }
        if isLast { endSignal.signal() }
    }

    /// Ends all connections and waits for the threads, except when a handler calls it.
    ///
    /// - Returns: Whether this was the first call.
    func stop() -> Bool {
        let (links, threads, isFirst) = state.withLock { state in
            defer { state.isStopping = true }
            return (Array(state.links.values), state.threads, !state.isStopping)
        }
        stopSignal.signal()
        for link in links { link.socket.endBothWays() }
        let here = ServerThread.current
        if links.contains(where: { $0.thread.load(ordering: .sequentiallyConsistent) == here }) { return isFirst }
        if threads == 0 {
            listener.socket.close()
            return isFirst
        }
        // `try?`: a failure only skips the wait. The limit is for handlers that block for reasons of their own.
        _ = try? System.wait([(endSignal.descriptor, 0)], milliseconds: 5_000)
        return isFirst
    }

    func closeIdleConnections() {
        let links = state.withLock { Array($0.links.values) }
        for link in links where link.isIdle.load(ordering: .sequentiallyConsistent) { link.socket.endBothWays() }
    }
}

/// The log, the counts, and the callers that wait for counts.
extension LoopbackCore {
    var requests: [LoopbackServer.LoggedRequest] { state.withLock { $0.log.requests } }

    func clearRequests() { state.withLock { $0.log.clear() } }

    /// Logs and counts a request. Returns its serial number in the log, and its number among all requests.
    func log(_ request: LoopbackServer.Request) -> (serial: Int, number: Int) {
        let entry = LoopbackServer.LoggedRequest(
            method: request.method, target: request.target, bodySize: 0, connectionIndex: request.connectionIndex,
            requestIndex: request.requestIndex)
        let serial = logs ? state.withLock { $0.log.append(entry) } : 0
        let number = counters.received.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue
        countsChanged()
        return (serial, number)
    }

    func setBodySize(_ size: Int, of serial: Int) {
        if logs { state.withLock { $0.log.setBodySize(size, of: serial) } }
    }

    /// Resumes the callers whose counts are reached. A waiter sets the flag before it reads the counts, and this method
    /// reads the flag after they changed. Both accesses are sequentially consistent, so that one of the two sees the
    /// other.
    func countsChanged() {
        guard hasWaiters.load(ordering: .sequentiallyConsistent) else { return }
        let counts = counters.snapshot
        let served = state.withLock { state in
            let served = state.waiters.take { $0(counts) }
            if state.waiters.isEmpty { hasWaiters.store(false, ordering: .sequentiallyConsistent) }
            return served
        }
        for waiter in served { waiter.continuation.resume(returning: true) }
    }

    func wait(
        until condition: @escaping @Sendable (LoopbackServer.Counts) -> Bool
    ) async throws(CancellationError) {
        let id = state.withLock { $0.waiters.nextID() }
        try await Waiters<@Sendable (LoopbackServer.Counts) -> Bool>.suspend { continuation in
            let outcome = state.withLock { state -> Bool? in
                if Task.isCancelled { return false }
                hasWaiters.store(true, ordering: .sequentiallyConsistent)
                if condition(counters.snapshot) { return true }
                state.waiters.add(id, condition: condition, continuation: continuation)
                return nil
            }
            if let outcome { continuation.resume(returning: outcome) }
        } cancel: {
            self.state.withLock { $0.waiters.remove(id) }
        }
    }
}

/// Starts detached threads, because handlers block and the cooperative pool must not.
enum ServerThread {
    /// Reserves address space, not memory: pages are allocated as the stack grows. Handlers encode JSON and compute
    /// hashes here.
    private static let stackSize = 1 << 20

    static func run(_ body: @escaping @Sendable () -> Void) throws(LoopbackServer.Failure) {
        let code = SystemThread.start(stackSize: stackSize, body)
        if code != 0 { throw LoopbackServer.Failure("no thread could be started", code: code) }
    }

    /// Identifies the calling thread, so that `stop()` detects a call from one of the server's threads.
    static var current: UInt {
        #if canImport(Glibc)
        UInt(pthread_self())
        #else
        unsafe UInt(bitPattern: pthread_self())
        #endif
    }
}
