#if os(Linux)
import TernConcurrency

/// The owner of `HandshakeTurns`.
protocol HandshakeTurnsOwner: AnyObject {
    /// Called when the handshake of an exchange may run, also before `HandshakeTurns.enter(_:)` returns.
    func handshakeMayStart(_ exchange: HTTPExchange)
}

/// The exchanges of a session that ask for another protocol, each of which waits until no other one with the same
/// server is in its handshake (RFC 6455 §4.1). `HandshakeQueue` decides. Confined to the thread of the pool's loop.
///
/// A handshake that takes long holds no other one up for longer than its turn, because anyone can point a name at the
/// address of another server and let its handshakes hang.
///
/// The time limits of an exchange run while it waits, as in the queue for a connection.
final class HandshakeTurns {
    /// The addresses of a name, from a thread of the resolver.
    private struct Answer: Sendable {
        let exchange: UInt64
        let addresses: [SocketAddress]
    }

    private let context: LoopContext
    /// The length of a turn in nanoseconds.
    private let turnLength: UInt64
    private weak var owner: (any HandshakeTurnsOwner)?
    private var queue = HandshakeQueue()
    /// The exchanges that wait for their turn or for the addresses of their server.
    private var waiting: [UInt64: HTTPExchange] = [:]
    private var lookUps: [UInt64: (number: UInt64, lookUp: LookUp)] = [:]
    /// The exchanges whose handshakes run, by their connections.
    private var running: [ConnectionPool.ConnectionID: UInt64] = [:]
    /// The ends of the turns, in their order. Entries of handshakes that have ended are removed when their time comes.
    private var turns = FIFO<(exchange: UInt64, end: UInt64)>()
    private let turnTimer = LoopTimer()

    init(context: LoopContext, turnLength: UInt64, owner: any HandshakeTurnsOwner) {
        self.context = context
        self.turnLength = turnLength
        self.owner = owner
        turnTimer.setHandler(self)
    }

    /// Cancels the timer. Called when all connections are closed.
    func close() { context.cancel(turnTimer) }

    /// Lets an exchange wait for its turn.
    func enter(_ exchange: HTTPExchange) {
        waiting[exchange.id] = exchange
        let destination = exchange.destination
        if destination.unixSocketPath != nil || destination.proxy != nil {
            // The proxy resolves the name, so that each name is a server of its own.
            return line(up: exchange.id, for: [.name(destination.name)])
        }
        if let known = destination.addresses ?? Resolver.shared.cached(destination.host, port: destination.port) {
            return line(up: exchange.id, at: known)
        }
        lookUp(destination, for: exchange)
    }

    /// Removes an exchange that is cancelled, that failed, or whose connection was lost before it started.
    func leave(_ exchange: UInt64) {
        waiting[exchange] = nil
        if let (number, lookUp) = lookUps.removeValue(forKey: exchange) {
            lookUp.cancel()
            context.cancelAnswer(number)
        }
        for next in queue.leave(exchange) { start(next) }
    }

    /// Notes the connection on which a handshake runs.
    func started(_ exchange: UInt64, on connection: ConnectionPool.ConnectionID) {
        running[connection] = exchange
        turns.append((exchange, context.now &+ turnLength))
        if turns.count == 1 { scheduleTurnTimer() }
    }

    /// Ends the handshake on a connection, which was switched, has had another response, or is closed.
    func ended(on connection: ConnectionPool.ConnectionID) {
        guard !running.isEmpty, let exchange = running.removeValue(forKey: connection) else { return }
        leave(exchange)
        if running.isEmpty { scheduleTurnTimer() }
    }

    private func scheduleTurnTimer() {
        // Without a handshake, the loop is not woken.
        if running.isEmpty { turns = FIFO() }
        guard let first = turns.first else { return context.cancel(turnTimer) }
        context.schedule(turnTimer, at: first.end)
    }

    private func lookUp(_ destination: Destination, for exchange: HTTPExchange) {
        // The time for the look-up is a part of that for connecting.
        exchange.startsConnecting()
        let (loop, id, number) = (context.loop, exchange.id, context.expectAnswer(self))
        let lookUp = Resolver.shared.lookUp(destination.host, port: destination.port) { result in
            // The connection looks the name up again, and reports the failure.
            loop.post(answer: Answer(exchange: id, addresses: (try? result.get()) ?? []), to: number)
        }
        lookUps[id] = (number, lookUp)
    }

    private func line(up exchange: UInt64, at addresses: [SocketAddress]) {
        line(up: exchange, for: Set(addresses.map { .address($0) }))
    }

    private func line(up exchange: UInt64, for keys: Set<HandshakeQueue.Key>) {
        if queue.enter(exchange, for: keys) { start(exchange) } else { waiting[exchange]?.stopsConnecting() }
    }

    private func start(_ exchange: UInt64) {
        guard let exchange = waiting.removeValue(forKey: exchange) else { return }
        owner?.handshakeMayStart(exchange)
    }
}

extension HandshakeTurns: TimerHandler {
    func timerFired(_ timer: LoopTimer) {
        while let first = turns.first, first.end <= context.now {
            _ = turns.popFirst()
            // Ends the turn; the handshake goes on.
            for next in queue.leave(first.exchange) { start(next) }
        }
        scheduleTurnTimer()
    }
}

extension HandshakeTurns: AnswerHandler {
    func receive(answer: any Sendable) {
        guard let answer = answer as? Answer, lookUps.removeValue(forKey: answer.exchange) != nil else { return }
        line(up: answer.exchange, at: answer.addresses)
    }
}
#endif
