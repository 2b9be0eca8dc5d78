#if os(Linux)
import Synchronization
import TernConcurrency

/// The room for connections that the pools of one session share, each of which lives on a loop of its own. Used on any
/// thread; `RoomLedger` decides.
package final class SharedRoom: Sendable {
    package typealias Message = RoomLedger.Message.Content

    fileprivate let ledger: Lock<RoomLedger>
    /// Whether a pool waits for room. Known to the others without the lock.
    private let isWanted = Atomic<Bool>(false)
    private let connectionsPerOrigin: Int
    /// Brings a message to the pool on a loop.
    private let send: @Sendable (_ message: Message, _ loop: Int) -> Void

    /// Creates the room for a session.
    ///
    /// - Parameters:
    ///   - loops: The number of loops, from 2.
    ///   - connectionsPerOrigin: The limit of connections to one origin, at least `loops`.
    ///   - connections: The limit of connections to all origins, at least `loops`.
    package init(
        loops: Int, connectionsPerOrigin: Int, connections: Int,
        send: @escaping @Sendable (_ message: Message, _ loop: Int) -> Void
    ) {
        ledger = Lock(RoomLedger(loops: loops, limitPerOrigin: connectionsPerOrigin, limit: connections))
        self.connectionsPerOrigin = connectionsPerOrigin / loops
        self.send = send
    }

    /// Returns the room as the pool on a loop sees it.
    package func part(of loop: Int) -> Part { Part(room: self, loop: loop) }

    /// Changes the ledger, and sends the messages that follow. Returns those to the pool on `loop` itself.
    private func change(of loop: Int, _ body: (inout RoomLedger) -> [RoomLedger.Message]) -> [Message] {
        let messages = ledger.withLock { ledger in
            let messages = body(&ledger)
            isWanted.store(!ledger.needs.isEmpty, ordering: .relaxed)
            return messages
        }
        var own: [Message] = []
        for message in messages {
            if message.loop == loop { own.append(message.content) } else { send(message.content, message.loop) }
        }
        return own
    }

    /// The room as the pool on one loop sees it.
    package struct Part: Sendable {
        fileprivate let room: SharedRoom
        fileprivate let loop: Int

        /// The number of connections to one origin that the pool has if all pools need them.
        var connectionsPerOrigin: Int { room.connectionsPerOrigin }

        /// Whether a pool waits for room.
        var isWanted: Bool { room.isWanted.load(ordering: .relaxed) }

        /// Asks for the room of one connection. Returns the messages to the pool itself that follow.
        func ask(_ origin: String, hasIdleOfOrigin: Bool, hasIdle: Bool) -> [Message] {
            room.change(of: loop) {
                $0.ask(
                    RoomLedger.Need(origin: origin, loop: loop), hasIdleOfOrigin: hasIdleOfOrigin, hasIdle: hasIdle)
            }
        }

        func stopAsking(_ origin: String) {
            _ = room.change(of: loop) { ledger in
                ledger.stopAsking(RoomLedger.Need(origin: origin, loop: loop))
                return []
            }
        }

        /// Gives the room of connections back. Returns the messages to the pool itself that follow.
        func giveBack(_ origin: String, count: Int) -> [Message] {
            room.change(of: loop) { $0.giveBack(RoomLedger.Need(origin: origin, loop: loop), count: count) }
        }

        /// Returns the message to the pool itself, which is busy and has served many exchanges while others wait.
        func turn(richest: (_ except: String) -> String?) -> [Message] {
            room.change(of: loop) { ledger in ledger.turn(of: loop, richest: richest).map { [$0] } ?? [] }
        }

        /// Returns whether other pools have connections to an origin.
        func isUsedElsewhere(_ origin: String) -> Bool {
            room.ledger.withLock { $0.isUsedElsewhere(RoomLedger.Need(origin: origin, loop: loop)) }
        }

        /// Gives all room back, because the pool ends.
        func leave() { _ = room.change(of: loop) { $0.leave(loop) } }

        /// Returns messages to the pool, which has idle connections, because others wait for room.
        func requests() -> [Message] { room.change(of: loop) { $0.requests(to: loop) } }
    }
}
#endif
