import Synchronization
import Tern

/// The sessions that carry the calls of a transport: one, or one for each of several addresses.
final class Channels: Sendable {
    private let sessions: [Session]
    private let rotation: Mutex<AddressRotation>
    private let start = ContinuousClock.now

    init(_ sessions: [Session], delays: ClosedRange<Duration>) {
        self.sessions = sessions
        rotation = Mutex(AddressRotation(count: sessions.count, delays: delays))
    }

    private var now: Duration { start.duration(to: .now) }

    /// Returns the session of the next call, and its place.
    func next() -> (session: Session, place: Int) {
        if sessions.count == 1 { return (sessions[0], 0) }
        let place = rotation.withLock { $0.next(at: now) }
        return (sessions[place], place)
    }

    /// Notes that no connection could be made. Returns whether another address is left.
    func failed(at place: Int) -> Bool {
        sessions.count > 1 && rotation.withLock { $0.failed(at: place, now: now) }
    }

    /// Notes a response.
    func succeeded(at place: Int) {
        if sessions.count > 1 { rotation.withLock { $0.succeeded(at: place) } }
    }

    /// Opens the connections of the first calls. `try?`: a call that follows reports why none can be opened.
    func preconnect(to url: String) {
        for session in sessions { try? session.preconnect(to: url) }
    }

    /// The number of open connections.
    var openConnectionCount: Int {
        get async {
            var count = 0
            for session in sessions {
                for open in await session.openConnections { count += open.activeCount + open.idleCount }
            }
            return count
        }
    }

    /// Returns when all connections are closed.
    func close() async {
        for session in sessions { await session.finishTasksAndInvalidate() }
    }
}
