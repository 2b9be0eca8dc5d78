import Synchronization
import Tern
import TernConcurrency

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The running part of a server. Its threads hold this object and not `LoopbackServer`, so that dropping the latter
/// stops them.
final class LoopbackCore: Sendable {
    typealias Failure = LoopbackServer.Failure

    /// What `stop()` must know of one connection; the rest belongs to the connection's thread.
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
        /// Threads that have not ended: one for the listener, one per connection.
        var threads = 0
        var log: LoopbackLog
        var waiters = Waiters<@Sendable (LoopbackServer.Counts) -> Bool>()
    }

    let listener: LoopbackListener
    let isIPv6: Bool
    let counters = LoopbackCounters()
    let logs: Bool
    private let handler: LoopbackServer.Handler
    let state: Lock<State>
    let hasWaiters = Atomic<Bool>(false)
    private let stopBell: Bell
    private let endBell: Bell

    init(
        _ listener: LoopbackListener, isIPv6: Bool, logLimit: Int, handler: @escaping LoopbackServer.Handler
    ) throws(Failure) {
        self.listener = listener
        self.isIPv6 = isIPv6
        self.handler = handler
        logs = logLimit > 0
        state = Lock(State(log: LoopbackLog(limit: max(0, logLimit))))
        stopBell = try Bell()
        endBell = try Bell()
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
                    [(listener.socket.number, Int32(POLLIN)), (stopBell.descriptor, 0)], milliseconds: -1)
                if seen[1] != 0 { break }
                while let socket = try listener.accept() { adopt(socket) }
            } catch {
                // Out of descriptors, most likely: clients wait in the queue until some are free again.
                guard let seen = try? System.wait([(stopBell.descriptor, 0)], milliseconds: 20), seen == [0] else {
                    break  // `try?`: a `poll` that cannot even wait for the bell ends the listener
                }
            }
        }
        listener.socket.close()
    }

    private func adopt(_ socket: OwnedDescriptor) {
        let index = counters.accepted.wrappingAdd(1, ordering: .sequentiallyConsistent).oldValue
        let link = Link(socket: socket, index: index)
        let isWelcome = state.withLock { state in
            guard !state.isStopping else { return false }
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
        if isLast { endBell.ring() }
    }

    /// Ends everything and waits for the threads, but not for itself when a handler calls it.
    /// - Returns: whether this was the first call.
    func stop() -> Bool {
        let (links, threads, isFirst) = state.withLock { state in
            defer { state.isStopping = true }
            return (Array(state.links.values), state.threads, !state.isStopping)
        }
        stopBell.ring()
        for link in links { link.socket.endBothWays() }
        let here = ServerThread.current
        if links.contains(where: { $0.thread.load(ordering: .sequentiallyConsistent) == here }) { return isFirst }
        if threads == 0 {
            listener.socket.close()
            return isFirst
        }
        // `try?`: not to wait is all that is lost. The bound is for handlers that block on something of their own.
        _ = try? System.wait([(endBell.descriptor, 0)], milliseconds: 5_000)
        return isFirst
    }

    func closeIdleConnections() {
        let links = state.withLock { Array($0.links.values) }
        for link in links where link.isIdle.load(ordering: .sequentiallyConsistent) { link.socket.endBothWays() }
    }
}
