#if os(Linux)
package import TernEngine

/// A call of a session to its delegate. Adjoining parts of a body are one event, with the number of its bytes.
package enum HTTP3Event: Equatable {
    case interim(Int64, ReceivedHead)
    case head(Int64, ReceivedHead)
    case body(Int64, Int)
    case trailers(Int64, [UInt8])
    case ended(Int64)
    case endedReceiving(Int64)
    case failed(Int64, EngineError)
    case goAway
}

/// A session and a server in memory, with a time of their own, and a network between them that a test disturbs.
package final class HTTP3Pair: HTTP3SessionDelegate {
    package enum Direction: Sendable { case toServer, toClient }

    private struct Datagram {
        let time: UInt64
        let order: Int
        let direction: Direction
        let bytes: [UInt8]
    }

    /// The time for which a datagram travels, in nanoseconds.
    package static let delay: UInt64 = 1_000_000

    package private(set) var events: [HTTP3Event] = []
    /// The bodies of the responses so far.
    package private(set) var bodies: [Int64: [UInt8]] = [:]
    package private(set) var now: UInt64 = 1_000_000_000
    package private(set) var isResumed = false
    package private(set) var tickets: [[UInt8]] = []
    /// The first error of the session.
    package private(set) var failure: EngineError?
    /// The number of bytes and of datagrams that the client has sent.
    package private(set) var sentBytes = 0
    package private(set) var sentDatagrams = 0
    /// The alert with which the client refuses the certificates; 0 to accept them.
    package var alert: UInt8 = 0
    package private(set) var certificateCount = 0
    /// Returns the delays with which a datagram arrives, one for each copy; none if it is lost.
    package var network: (_ direction: Direction, _ bytes: inout [UInt8]) -> [UInt64] = { _, _ in [HTTP3Pair.delay] }
    /// The port from which the client's datagrams come.
    package var clientPort: UInt16 = 1
    package var onHead: (_ stream: Int64) -> Void = { _ in }
    package var onBody: (_ stream: Int64, _ count: Int) -> Void = { _, _ in }
    /// Returns the next part of a request's body, whose bytes are all 1, within the room for them.
    package var onRead: (_ stream: Int64, _ room: Int) -> HTTP2BodyPart = { _, _ in .wait }

    package private(set) var session: HTTP3Session?
    package private(set) var server: HTTP3TestServer?
    /// The control stream of the server, after `connected`.
    package private(set) var controlStream: Int64?
    private let options: HTTP3TestServer.Options
    private var underWay: [Datagram] = []
    private var count = 0
    private var buffer = [UInt8](repeating: 0, count: HTTP3Session.leastBuffer)

    package init(
        _ options: HTTP3TestServer.Options = HTTP3TestServer.Options(), ticket: [UInt8] = [],
        identity: TLSExportedIdentity? = nil, change: (inout HTTP3Session.Settings) -> Void = { _ in }
    ) throws {
        self.options = options
        var settings = HTTP3Session.Settings(
            local: .ipv4(0x7F00_0001, port: 1), remote: .ipv4(0x7F00_0001, port: 443))
        settings.serverName = "localhost"
        settings.ticket = ticket
        change(&settings)
        session = try HTTP3Session(settings: settings, identity: identity, delegate: self, at: now)
    }

    /// Creates a pair whose handshake is done, and whose server has sent its SETTINGS.
    package static func connected(
        _ options: HTTP3TestServer.Options = HTTP3TestServer.Options(), ticket: [UInt8] = [],
        identity: TLSExportedIdentity? = nil, change: (inout HTTP3Session.Settings) -> Void = { _ in }
    ) throws -> HTTP3Pair {
        let pair = try HTTP3Pair(options, ticket: ticket, identity: identity, change: change)
        pair.run()
        pair.controlStream = pair.server?.openStream()
        if let control = pair.controlStream { pair.server?.write([0, 4, 0], to: control) }
        pair.run()
        return pair
    }

    /// Ends the session, without which the pair is never released.
    package func end(_ error: EngineError = EngineError(.connectionLost, "closed")) {
        session?.connectionClosed(error)
        session = nil
    }

    /// Submits a request; nil if the connection takes none now.
    package func submit(
        _ method: String = "GET", length: Int64? = nil, hasBody: Bool = false, headLimit: Int = 256 << 10
    ) -> Int64? {
        let request = HTTP2Request(
            method: method, scheme: "https", authority: "localhost", path: "/", contentLength: length,
            hasBody: hasBody, headLimits: HeadLimits(bytes: headLimit))
        // `try?`: the caller asks whether there is room.
        return try? session?.submit(request)
    }

    // MARK: The network

    /// Gives the client a datagram at once.
    package func deliver(_ bytes: [UInt8]) {
        let error = unsafe bytes.withUnsafeBytes { unsafe session?.receive($0, ecn: 0, at: now) }
        if failure == nil { failure = error ?? nil }
    }

    /// Takes the datagrams of the client, and drops them. Returns the number of their bytes.
    package func discardOutput() -> Int {
        let before = sentBytes
        _ = clientDatagrams()
        return sentBytes - before
    }

    /// Passes time for the client alone.
    package func passTime(_ time: UInt64) {
        now += time
        if let session, session.deadline <= now { failure = failure ?? session.expire(at: now) }
    }

    private func clientDatagrams() -> [[UInt8]] {
        var datagrams: [[UInt8]] = []
        while let session {
            let batch = unsafe buffer.withUnsafeMutableBytes { unsafe session.takeDatagrams(into: $0, at: now) }
            if failure == nil { failure = session.failure }
            guard batch.count > 0 else { break }
            sentBytes += batch.count
            for start in stride(from: 0, to: batch.count, by: batch.segment) {
                datagrams.append(Array(buffer[start..<min(batch.count, start + batch.segment)]))
            }
        }
        sentDatagrams += datagrams.count
        return datagrams
    }

    private func send(_ direction: Direction, _ bytes: [UInt8]) {
        var bytes = bytes
        for delay in network(direction, &bytes) {
            count += 1
            underWay.append(Datagram(time: now + delay, order: count, direction: direction, bytes: bytes))
        }
    }

    private func flush() {
        for datagram in clientDatagrams() {
            if server == nil {
                server = unsafe datagram.withUnsafeBytes { unsafe HTTP3TestServer(options, for: $0, at: now) }
            }
            send(.toServer, datagram)
        }
        while let datagram = server?.takeDatagram(at: now) { send(.toClient, datagram) }
    }

    /// Delivers the datagrams that have arrived, and does what is due.
    private func arrive() {
        let arrived = underWay.filter { $0.time <= now }.sorted { ($0.time, $0.order) < ($1.time, $1.order) }
        underWay.removeAll { $0.time <= now }
        for datagram in arrived {
            switch datagram.direction {
            case .toServer: server?.receive(datagram.bytes, from: clientPort, at: now)
            case .toClient: deliver(datagram.bytes)
            }
        }
        if let session, session.deadline <= now { failure = failure ?? session.expire(at: now) }
        if let server, server.deadline <= now { server.expire(at: now) }
    }

    /// Passes time from event to event, until nothing is under way or about to be sent.
    package func run() {
        run(until: { false }, patience: 2_000_000)
    }

    /// Passes time from event to event for a time in nanoseconds, until the condition holds.
    package func run(for time: UInt64, until condition: () -> Bool = { false }) {
        let end = now + time
        run(until: { condition() || now >= end }, patience: .max, end: end)
    }

    private func run(until isDone: () -> Bool, patience: UInt64, end: UInt64 = .max) {
        // A defect must not last for ever.
        for _ in 0..<200_000 where session != nil {
            flush()
            if isDone() { return }
            let deadline = min(session?.deadline ?? .max, server?.deadline ?? .max)
            let nextDatagram = underWay.map(\.time).min() ?? .max
            guard nextDatagram != .max || deadline <= now &+ min(patience, .max - now) else { return }
            let next = min(nextDatagram, deadline, end)
            guard next != .max else { return }
            now = max(now + 1_000, next)
            arrive()
        }
    }

    // MARK: Results

    /// The events of one stream.
    package func events(of stream: Int64) -> [HTTP3Event] {
        events.filter { event in
            switch event {
            case .interim(stream, _), .head(stream, _), .body(stream, _), .trailers(stream, _), .ended(stream),
                .endedReceiving(stream), .failed(stream, _):
                true
            default: false
            }
        }
    }

    /// The error of a stream; nil without one.
    package func error(of stream: Int64) -> EngineError? {
        for case .failed(stream, let error) in events { return error }
        return nil
    }

    package func hasEnded(_ stream: Int64) -> Bool { events.contains(.ended(stream)) }

    private func record(_ event: HTTP3Event) {
        if case .body(let stream, let count) = event, case .body(stream, let before) = events.last {
            events[events.count - 1] = .body(stream, before + count)
        } else {
            events.append(event)
        }
    }

    // MARK: HTTP3SessionDelegate

    package func verify(_ certificates: [UnsafeRawBufferPointer], staple: UnsafeRawBufferPointer) -> UInt8 {
        unsafe certificateCount = certificates.count
        return alert
    }

    package func handshakeCompleted(isResumed: Bool) { self.isResumed = isResumed }
    package func ticketReceived(_ ticket: [UInt8]) { tickets.append(ticket) }
    package func keyLogged(_ line: String) {}
    package func streamReceivedInterim(_ stream: Int64, head: ReceivedHead) { record(.interim(stream, head)) }

    package func streamReceivedHead(_ stream: Int64, head: ReceivedHead) {
        record(.head(stream, head))
        onHead(stream)
    }

    package func streamReceivedBody(_ stream: Int64, bytes: UnsafeRawBufferPointer) {
        record(.body(stream, bytes.count))
        unsafe bodies[stream, default: []].append(contentsOf: bytes)
        onBody(stream, bytes.count)
    }

    package func streamReceivedTrailers(_ stream: Int64, lines: [UInt8]) { record(.trailers(stream, lines)) }
    package func streamEnded(_ stream: Int64) { record(.ended(stream)) }
    package func streamEndedReceiving(_ stream: Int64) { record(.endedReceiving(stream)) }
    package func streamFailed(_ stream: Int64, error: EngineError) { record(.failed(stream, error)) }

    package func readBody(_ stream: Int64, into buffer: UnsafeMutableRawBufferPointer) -> HTTP2BodyPart {
        let part = onRead(stream, buffer.count)
        switch part {
        case .bytes(let count), .last(let count): for index in 0..<count { unsafe buffer[index] = 1 }
        default: break
        }
        return part
    }

    package func roomChanged() {}
    package func settingsReceived(allowsExtendedConnect: Bool) {}
    package func goAwayReceived() { record(.goAway) }
}
#endif
