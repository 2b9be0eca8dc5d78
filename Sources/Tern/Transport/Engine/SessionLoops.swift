#if os(Linux)
import Synchronization
import TernConcurrency
import TernEngine

/// The loops of a session that uses several, and its clients there. Used on any thread.
final class SessionLoops: Sendable {
    /// The number of connections to one origin, and to all, that a session must allow for each of its loops. With
    /// fewer, loops would wait for each other's connections more often than they help, and one of eight could not be
    /// left to urgent requests.
    private static let connectionsPerLoop = 8

    /// The clients that are open, by loop.
    private final class Clients: Sendable {
        let loops: [EventLoop]
        private let numbers: Lock<[UInt64?]>

        init(_ loops: [EventLoop]) {
            self.loops = loops
            numbers = Lock(Array(repeating: nil, count: loops.count))
        }

        /// Sends a message to the client on a loop, which is opened if it is the first use.
        func post(
            _ operation: UInt64, _ object: any AnyObject & Sendable, to loop: Int, orOpen open: (EventLoop) -> UInt64
        ) {
            let number = numbers.withLock { numbers in
                if let number = numbers[loop] { return number }
                let number = open(loops[loop])
                numbers[loop] = number
                return number
            }
            loops[loop].post(to: number, operation: operation, object: object)
        }

        /// Sends a message to the client on a loop, if there is one.
        func post(_ operation: UInt64, _ object: any AnyObject & Sendable, to loop: Int) {
            guard let number = numbers.withLock({ $0[loop] }) else { return }
            loops[loop].post(to: number, operation: operation, object: object)
        }

        /// The loops on which there is a client.
        var open: [Int] { numbers.withLock { numbers in numbers.indices.filter { numbers[$0] != nil } } }

        func close() {
            for loop in open { numbers.withLock { $0[loop] }.map { loops[loop].close($0) } }
        }
    }

    private let clients: Clients
    private let places: Lock<OriginPlaces>
    private let room: SharedRoom
    private let settings: ConnectionSettings

    /// Returns nil for a session that uses one loop, because there is no other, or because it allows few connections.
    init?(_ loops: [EventLoop], _ settings: ConnectionSettings) {
        let count = min(
            loops.count, settings.maximumConnectionsPerHost / Self.connectionsPerLoop,
            settings.maximumConnections / Self.connectionsPerLoop)
        guard count > 1 else { return nil }
        self.settings = settings
        let clients = Clients(Array(loops.prefix(count)))
        self.clients = clients
        let isTest = EventLoops.areSpreadForTests
        places = Lock(
            OriginPlaces(
                loops: count, attemptsAtHome: isTest ? 1 : OriginPlaces.attemptsAtHome, spreadsHomes: isTest))
        room = SharedRoom(
            loops: count, connectionsPerOrigin: settings.maximumConnectionsPerHost,
            connections: settings.maximumConnections
        ) { message, loop in
            clients.post(0, PoolOrder(.room(message)), to: loop)
        }
    }

    /// Closes the clients, which end with their last attempts.
    func close() { clients.close() }

    /// The loops on which the session has been.
    var open: [Int] { clients.open }

    /// Chooses the loop of an attempt, and starts it there.
    func start(_ attempt: Attempt, operation: UInt64) {
        let place = place(for: attempt)
        let bits = place.loop | (place.isHome ? 0 : Self.awayBit)
        attempt.place.store(place.origin << Self.loopBits | bits, ordering: .relaxed)
        post(operation, attempt, to: place.loop)
    }

    /// Opens connections on the session's own loop, which is the home of most origins.
    func preconnect(_ order: PoolOrder) { post(0, order, to: 0) }

    /// Sends a message to the client on a loop, which is opened if it is the first use.
    private func post(_ operation: UInt64, _ object: any AnyObject & Sendable, to number: Int) {
        clients.post(operation, object, to: number) { loop in
            loop.open { [settings, room] context, client in
                LoopSession(
                    settings, context: context, client: client,
                    sharing: LoopSharing(loops: self, room: room.part(of: number)))
            }
        }
    }

    func control(_ attempt: Attempt, operation: UInt64) {
        clients.post(operation, attempt, to: Self.place(of: attempt).loop)
    }

    /// Sends an order to the pool on a loop. A loop that is not set up has no connections, and keeps its messages: the
    /// order ends here then.
    func post(_ content: PoolOrder.Content, to loop: Int) {
        let order = PoolOrder(content)
        if clients.loops[loop].isRunning { clients.post(0, order, to: loop) }
    }

    private static let loopBits = 8
    private static let awayBit = 1 << (loopBits - 1)

    /// Returns whether an attempt is at the home of its origin.
    static func isAtHome(_ attempt: Attempt) -> Bool { attempt.place.load(ordering: .relaxed) & awayBit == 0 }

    private static func place(of attempt: Attempt) -> OriginPlaces.Place {
        let number = attempt.place.load(ordering: .relaxed)
        return OriginPlaces.Place(
            loop: number & (awayBit - 1), origin: number >> loopBits, isHome: isAtHome(attempt))
    }

    private func place(for attempt: Attempt) -> OriginPlaces.Place {
        let target = attempt.request.target
        var binding = OriginPlaces.Binding.none
        if attempt.request.isLive { binding = .origin }
        if attempt.request.upgrade != nil || attempt.request.unixSocketPath != nil { binding = .session }
        let mayShare = target.isSecure ? settings.allowsHTTP2 : settings.usesHTTP2WithoutTLS
        return places.withLock { places in
            places.place(target.origin, mayShare: mayShare, binding: binding) { clients.loops[$0].problem() == nil }
        }
    }

    func ended(_ attempt: Attempt) { places.withLock { $0.ended(Self.place(of: attempt)) } }

    func learn(_ streams: Int, of origin: String) { places.withLock { $0.learn(streams, of: origin) } }
}

/// The parts that a session's objects on several loops share.
struct LoopSharing: Sendable {
    let loops: SessionLoops
    let room: SharedRoom.Part
}
#endif
