#if os(Linux)
/// The sender of one request, which receives its response. Confined to the loop's thread.
///
/// The engine calls the functions in this order: `didConnect`, then any number of `readBody`, `didSend`,
/// `didReceiveBytes` and `didReceive(interim:)`, then `didReceive(_:)` for the head, the body and the trailers, and
/// `didEnd` at last.
package protocol ExchangeHandler: AnyObject {
    /// Called when the engine opens a connection for the exchange, or the exchange waits for one that is being opened.
    /// The time limit for connecting starts.
    func didStartConnecting()
    /// Called when the exchange waits in the queue again, because another one took the connection.
    func didStopConnecting()
    /// Called when the exchange waits in the queue, because no connection is free. `didStartConnecting` or `didConnect`
    /// follows.
    func didStartWaiting()
    /// Called when a connection is about to carry the request, before any byte of it is sent.
    func didConnect(_ connection: ConnectionInfo)
    /// Called when this number of bytes was sent, with the framing.
    func didSend(_ count: Int)
    /// Called when this number of bytes of the response was received, before they are parsed. Over TLS, the decrypted
    /// bytes count.
    func didReceiveBytes(_ count: Int)
    /// Called for each interim response (1xx except 101).
    func didReceive(interim head: ReceivedHead)
    /// Called for the head of the response.
    func didReceive(_ head: ReceivedHead)
    /// Called for each piece of the body. The bytes are valid during the call only. Returns false to end the exchange
    /// for a reason that the handler knows.
    ///
    /// A handler that wants no more for now calls `HTTPExchange.set(isReading:isSending:)`. Bytes that were read
    /// already can still follow.
    func didReceive(body bytes: UnsafeRawBufferPointer) -> Bool
    /// Returns memory for the next bytes of a body with a stated length, which saves a copy; nil to receive them with
    /// `didReceive(body:)`. `didReceiveInPlace(_:)` follows at once.
    func bodyBuffer() -> UnsafeMutableRawBufferPointer?
    /// Called when this number of bytes of the body is in the memory that `bodyBuffer()` returned, from its beginning;
    /// 0 when none had arrived. The memory is not used afterwards.
    func didReceiveInPlace(_ count: Int)
    /// Called when bytes of a body with a stated length may have arrived on a connection without TLS. Returns true if
    /// the handler takes bytes out of the socket itself, without waiting on this thread: it has stopped the reading,
    /// takes `missing` bytes at most, and calls `HTTPExchange.didMoveBytes(_:code:)` before it reads on.
    func borrow(_ socket: Int32, missing: Int64) -> Bool
    /// Called for the trailers after the body: their lines, each with CRLF.
    func didReceive(trailers: [UInt8])
    /// Called when the server has ended its side of a stream that carries another protocol (RFC 8441). This side goes
    /// on sending.
    func didEndReceiving()
    /// Copies the next bytes of the request's body.
    func readBody(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead
    /// Returns whether the body ends with the bytes that `readBody(into:)` returned last, and no trailers follow. Then
    /// the body is not read again. False if that is not known yet.
    func hasReadWholeBody() -> Bool
    /// Returns the next bytes of the request's body if they lie in a file, in memory, so that the system can send them
    /// without a copy; nil to read them with `readBody(into:)`. At most `limit` bytes. `didSendFile(_:)` follows.
    func fileOfBody(upTo limit: Int) -> BodyFile?
    /// Called when this number of bytes of the file was sent, instead of a copy of them.
    func didSendFile(_ count: Int)
    /// Returns the field lines of the request's trailers, each with CRLF, as `RequestFields.trailerLines()` gives them;
    /// empty for none. Called once, after `BodyRead.end` of a body of unknown length.
    func requestTrailers() -> [UInt8]
    /// Called after the head of a 101 response to an exchange with `HTTPExchange.upgrade`. The connection belongs to
    /// the handler, which sets `UpgradedConnection.handler` now and closes the connection at last. `didEnd` follows at
    /// once.
    func didUpgrade(_ connection: UpgradedConnection)
    /// Called once, at the end of the exchange.
    ///
    /// - Parameters:
    ///   - error: The reason of a failure; nil after a whole response.
    ///   - isDeadConnection: Whether a pooled connection ended before any byte of the response arrived.
    func didEnd(_ error: EngineError?, isDeadConnection: Bool)
}

extension ExchangeHandler {
    package func didStartWaiting() {}

    /// Returns nil: the handler copies the bytes.
    package func bodyBuffer() -> UnsafeMutableRawBufferPointer? { nil }

    package func didReceiveInPlace(_ count: Int) {}

    /// Returns false: the engine reads the bytes.
    package func borrow(_ socket: Int32, missing: Int64) -> Bool { false }

    /// Returns false: the next call of `readBody(into:)` tells.
    package func hasReadWholeBody() -> Bool { false }

    /// Returns nil: the body is copied.
    package func fileOfBody(upTo limit: Int) -> BodyFile? { nil }

    package func didSendFile(_ count: Int) {}

    /// Does nothing.
    package func didEndReceiving() {}

    /// Closes the connection.
    package func didUpgrade(_ connection: UpgradedConnection) { connection.close() }

    /// Returns no trailers.
    package func requestTrailers() -> [UInt8] { [] }
}

/// One request, and the state of its exchange. Confined to the loop's thread.
package final class HTTPExchange {
    /// The number of the exchange in its pool.
    var id: UInt64 = 0
    package let destination: Destination
    package let method: String
    /// A text that ends with the path and the query, and the offset at which they begin; over a proxy without a tunnel,
    /// 0. To cut the URL of a request would cost one more string.
    let url: String
    let pathStart: Int
    /// The path and the query; over a proxy without a tunnel, the whole URL.
    package var path: String {
        pathStart == 0 ? url : String(Substring(url.utf8.dropFirst(pathStart)))
    }
    package var fields: RequestFields { sharedFields.fields }
    let sharedFields: RequestFields.Shared
    package let body: RequestBody
    package let limits: HeadLimits
    /// The position among the exchanges that wait for a connection; higher values go first.
    package var priority: Int {
        get { variables.priority }
        set { variables.priority = newValue }
    }
    /// The urgency that the server is told over HTTP/2, from 0 (first) to 7 (RFC 9218 §4.1); nil for the default.
    package var urgency: UInt8? {
        get { variables.urgency }
        set { variables.urgency = newValue }
    }
    /// Whether the exchange must not use a pooled connection.
    package let needsFreshConnection: Bool
    /// The time in nanoseconds for which the body of a request with Expect waits for 100 (RFC 9110 §10.1.1).
    package var continueWait: UInt64 {
        get { variables.continueWait }
        set { variables.continueWait = newValue }
    }
    /// The protocol that the request asks the server to switch to, such as `websocket` (RFC 9110 §7.8); nil for none.
    /// Needs a destination without HTTP/2, and a request without a body.
    package var upgrade: String? {
        get { variables.upgrade }
        set { variables.upgrade = newValue }
    }
    /// Whether there is such a protocol. Known without a copy of its name.
    var hasUpgrade: Bool { variables.upgrade != nil }
    /// The destination of ordinary exchanges with the same server. One of its connections over HTTP/2 carries an
    /// exchange with `upgrade` on a stream if the server allows that (RFC 8441). Nil for none.
    package var sharedDestination: Destination? {
        get { variables.sharedDestination }
        set { variables.sharedDestination = newValue }
    }
    /// Whether the response lasts long, such as a stream of events. Over HTTP/1, its connection does not count for the
    /// limits of the others.
    package var isLive: Bool {
        get { variables.isLive }
        set { variables.isLive = newValue }
    }
    /// Whether extended CONNECT on a stream asks for the protocol of `upgrade`. The handler then receives a status of
    /// 200 to 299 in place of 101, and the bytes of the protocol are the bodies of both directions.
    package internal(set) var usesExtendedConnect: Bool {
        get { variables.usesExtendedConnect }
        set { variables.usesExtendedConnect = newValue }
    }
    /// The largest number of bytes of a body over HTTP/1 that are read before the handler can stop the reading.
    package var readLimit: Int {
        get { variables.readLimit }
        set { variables.readLimit = max(1, newValue) }
    }
    /// Whether the length of the body is sent as Content-Length over HTTP/2 and HTTP/3, which do not need it.
    package var statesLength: Bool {
        get { variables.statesLength }
        set { variables.statesLength = newValue }
    }
    /// The values of the properties above. Private, because each access to a variable property of a class that other
    /// modules can see is checked at run time.
    private struct Variables {
        var readLimit = Int.max
        var priority: Int
        var urgency: UInt8?
        var continueWait: UInt64 = 1_000_000_000
        var upgrade: String?
        var sharedDestination: Destination?
        var usesExtendedConnect = false
        var isLive = false
        var statesLength = true
    }
    private var variables: Variables
    /// Whether a connection has turned out not to take extended CONNECT.
    var refusesExtendedConnect = false
    /// The handler, which owns the exchange.
    package unowned let handler: any ExchangeHandler
    /// The connection that carries the exchange, and its stream over HTTP/2 and HTTP/3.
    var connection: (any ExchangeCarrier)?
    var stream: Int64 = 0
    /// Whether the exchange is the first one on its connection.
    var isFirstOnConnection = false
    /// Whether the connection took the exchange when it opened, so that it never waited.
    var startsAtOpening = false
    /// Whether the time limit for connecting runs.
    var isConnecting = false
    /// The number of new connections that could not be used before anything was sent on them.
    var newConnectionsLost = 0
    /// The number of times that no descriptor was free for the exchange.
    var descriptorsLacked = 0
    /// Whether the receiver wants bytes.
    var isReading = true
    /// Whether the body of the request may be sent.
    var isSending = true

    /// Creates an exchange.
    ///
    /// - Parameters:
    ///   - path: The path and the query after the first `pathStart` bytes; over a proxy without a tunnel, the whole
    ///     URL.
    package init(
        to destination: Destination, method: String, path: String, pathStart: Int = 0, fields: RequestFields.Shared,
        body: RequestBody,
        limits: HeadLimits, priority: Int, urgency: UInt8? = nil, needsFreshConnection: Bool,
        handler: any ExchangeHandler
    ) {
        self.destination = destination
        self.method = method
        url = path
        self.pathStart = pathStart
        sharedFields = fields
        self.body = body
        self.limits = limits
        variables = Variables(priority: priority, urgency: urgency)
        self.needsFreshConnection = needsFreshConnection
        self.handler = handler
    }

    /// The destination whose connections the exchange uses.
    var route: Destination { usesExtendedConnect ? sharedDestination ?? destination : destination }

    /// Whether a connection carries the request, or has begun to.
    package var isConnected: Bool { connection != nil }

    func startsConnecting() {
        guard !isConnecting else { return }
        isConnecting = true
        handler.didStartConnecting()
    }

    func stopsConnecting() {
        guard isConnecting else { return }
        isConnecting = false
        handler.didStopConnecting()
    }

    /// Changes the directions in which bytes may move.
    package func set(isReading: Bool, isSending: Bool) {
        let changesReading = self.isReading != isReading
        let startsSending = !self.isSending && isSending
        self.isReading = isReading
        self.isSending = isSending
        if changesReading { connection?.readingChanged(self) }
        if startsSending { connection?.bodyIsReady(self) }
    }

    /// Ends the exchange on its connection, without a call to its handler. Returns false if it has none: it then waits
    /// in its pool.
    package func cancelOnConnection() -> Bool {
        guard let connection else { return false }
        connection.cancel(self)
        return true
    }

    /// Takes account of bytes of the body that the handler has taken out of the socket, after
    /// `ExchangeHandler.borrow(_:missing:)`.
    ///
    /// - Parameters:
    ///   - count: The number of bytes.
    ///   - code: The error number with which the socket has failed; 0 for none.
    package func didMoveBytes(_ count: Int64, code: Int32) { connection?.didMoveBytes(count, code: code) }

    /// Tells the server the changed urgency, over HTTP/2. Returns false if no connection carries the exchange.
    package func prioritizeOnConnection() -> Bool {
        guard let connection else { return false }
        connection.prioritize(self)
        return true
    }

    /// Lets the connection count as one of an exchange that lasts long, because the response has turned out to be one.
    package func becomesLive() {
        guard !isLive else { return }
        isLive = true
        connection?.becomesLive()
    }

    /// Lets the connection take no other exchange, because the peer does not answer.
    package func avoidConnection() { connection?.takeNoMore() }

    /// Continues to read the body of the request, after `BodyRead.wait`.
    package func bodyIsReady() {
        if isSending { connection?.bodyIsReady(self) }
    }
}

/// A connection, as an exchange sees it. Confined to the loop's thread.
protocol ExchangeCarrier: AnyObject {
    func readingChanged(_ exchange: HTTPExchange)
    func bodyIsReady(_ exchange: HTTPExchange)
    /// Ends the exchange on the connection, without calling its handler.
    func cancel(_ exchange: HTTPExchange)
    /// Takes account of bytes of the body that the handler has taken out of the socket.
    func didMoveBytes(_ count: Int64, code: Int32)
    /// Takes no further exchange.
    func takeNoMore()
    /// Tells the server the changed urgency of the exchange.
    func prioritize(_ exchange: HTTPExchange)
    /// Counts as a connection whose exchange lasts long.
    func becomesLive()
}

extension ExchangeCarrier {
    // A connection that carries one exchange at a time is closed with it.
    func takeNoMore() {}

    // A stream that lasts long leaves a connection that several exchanges share to the others.
    func becomesLive() {}

    // The socket of a connection that several exchanges share is not lent.
    func didMoveBytes(_ count: Int64, code: Int32) {}

    // HTTP/1 has no way to say it for a request that is sent.
    func prioritize(_ exchange: HTTPExchange) {}
}
#endif
