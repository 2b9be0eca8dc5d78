#if os(Linux)
import TernConcurrency
import Testing

@testable import TernEngine

/// The entries that exchanges record, for which tests wait.
final class ExchangeLog: Sendable {
    private struct State {
        var entries: [String] = []
        var waiters: [(prefix: String, count: Int, continuation: CheckedContinuation<Void, Never>)] = []
        var outcome = Outcome()
    }

    /// The parts of an exchange that has ended.
    struct Outcome: Sendable {
        var head: ReceivedHead?
        var body: [UInt8] = []
        var trailers: [UInt8] = []
        var error: EngineError?
        var isDeadConnection = false
        var isReused = false

        var status: Int? { head?.status }
    }

    private let state = Lock(State())

    var entries: [String] { state.withLock { $0.entries } }
    var body: [UInt8] { state.withLock { $0.outcome.body } }
    var text: String { String(decoding: body, as: UTF8.self) }
    var error: EngineError? { state.withLock { $0.outcome.error } }

    func add(_ entry: String) {
        let ready = state.withLock { state in
            state.entries.append(entry)
            let entries = state.entries
            let ready = state.waiters.filter { waiter in Self.count(waiter.prefix, in: entries) >= waiter.count }
            state.waiters.removeAll { waiter in Self.count(waiter.prefix, in: entries) >= waiter.count }
            return ready.map(\.continuation)
        }
        for continuation in ready { continuation.resume() }
    }

    /// Changes what is known of the exchange.
    func note(_ change: (inout Outcome) -> Void) { state.withLock { change(&$0.outcome) } }

    func end(_ error: EngineError?) {
        note { $0.error = error }
        add(error.map { "failed \($0.kind)" } ?? "ended")
        add("done")
    }

    private static func count(_ prefix: String, in entries: [String]) -> Int {
        entries.count { $0.hasPrefix(prefix) }
    }

    /// Waits for this number of entries that begin with a text.
    func wait(for prefix: String, count: Int = 1) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if Self.count(prefix, in: state.entries) >= count { return true }
                state.waiters.append((prefix, count, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    /// Waits for the end of the exchange.
    func outcome() async -> Outcome {
        await wait(for: "done")
        return state.withLock { $0.outcome }
    }

    /// Waits for the end of the exchange. Returns the entries, without those for each piece of bytes.
    @discardableResult func waitForEnd() async -> [String] {
        await wait(for: "done")
        return entries.filter { $0 != "bytes" && $0 != "body" && $0 != "done" }
    }
}

/// An exchange of a test. Confined to the loop's thread.
final class TestExchange: ExchangeHandler {
    struct Settings: Sendable {
        var method = "GET"
        var path = "/"
        /// Fields that are valid in themselves.
        var fields: [(name: String, value: String)] = []
        var body = RequestBody.none
        /// The number of bytes of the request's body, each an `x`.
        var bytes = 0
        /// The lines of the request's trailers.
        var trailers = ""
        var urgency: UInt8?
        /// The number of bytes of the response's head.
        var headLimit = 64 << 10
        /// Pauses the reader at the first piece of the body.
        var pauses = false
        /// Called on the loop for each piece of the body, after its entry.
        var atBody: (@Sendable (PoolClient) -> Void)?
        /// The protocol that the request asks for.
        var upgrade: String?
        /// Lets a connection over HTTP/2 carry the new protocol on a stream.
        var sharesStream = false
        /// Delivers the bytes of the new protocol at once.
        var reads = true
        /// The number of bytes of the new protocol after which the log has the entry "all".
        var expected = 0
        /// Called on the loop at the end of the exchange.
        var atEnd: (@Sendable (PoolClient) -> Void)?
    }

    let log: ExchangeLog
    private let settings: Settings
    private unowned let client: PoolClient
    private var missing: Int
    private(set) var exchange: HTTPExchange?
    /// The connection after the switch to another protocol.
    private(set) var upgraded: UpgradedConnection?

    init(_ settings: Settings, to destination: Destination, log: ExchangeLog, client: PoolClient) {
        self.settings = settings
        self.log = log
        self.client = client
        missing = settings.bytes
        var fields = RequestFields()
        for field in settings.fields {
            do { try fields.append(name: field.name, value: field.value) } catch { log.add("\(error)") }
        }
        exchange = HTTPExchange(
            to: destination, method: settings.method, path: settings.path, fields: RequestFields.Shared(fields),
            body: settings.body,
            limits: HeadLimits(bytes: settings.headLimit), priority: 0, urgency: settings.urgency,
            needsFreshConnection: false, handler: self)
        exchange?.upgrade = settings.upgrade
        if settings.sharesStream { exchange?.sharedDestination = destination }
    }

    func didStartConnecting() { log.add("connecting") }
    func didStopConnecting() { log.add("stopped") }
    func didConnect(_ connection: ConnectionInfo) {
        log.note { $0.isReused = connection.isReused }
        log.add("connected \(connection.version) \(connection.isReused ? "reused" : "new")")
    }
    func didSend(_ count: Int) {}
    func didReceiveBytes(_ count: Int) { log.add("bytes") }
    func didReceive(interim head: ReceivedHead) { log.add("interim \(head.status)") }
    func didReceive(_ head: ReceivedHead) {
        log.note { $0.head = head }
        log.add("head \(head.status)")
    }
    func didReceive(body bytes: UnsafeRawBufferPointer) -> Bool {
        log.note { unsafe $0.body += bytes }
        log.add("body")
        if settings.pauses, exchange?.isReading == true, log.entries.count(where: { $0 == "paused" }) == 0 {
            exchange?.set(isReading: false, isSending: true)
            log.add("paused")
        }
        settings.atBody?(client)
        return true
    }
    func didReceive(trailers: [UInt8]) {
        log.note { $0.trailers = trailers }
        log.add("trailers")
    }
    func requestTrailers() -> [UInt8] { Array(settings.trailers.utf8) }
    func readBody(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        let count = min(missing, buffer.count)
        guard count > 0 else { return .end }
        for index in 0..<count { unsafe buffer[index] = 0x78 }
        missing -= count
        return .bytes(count)
    }
    func didEnd(_ error: EngineError?, isDeadConnection: Bool) {
        log.note { $0.isDeadConnection = isDeadConnection }
        if isDeadConnection { log.add("dead connection") }
        log.end(error)
        settings.atEnd?(client)
    }
}

extension TestExchange: UpgradedConnectionHandler {
    func didUpgrade(_ connection: UpgradedConnection) {
        upgraded = connection
        connection.handler = self
        connection.isReading = settings.reads
        log.add("upgraded")
    }

    func didReceive(_ bytes: UnsafeRawBufferPointer) {
        log.note { unsafe $0.body += bytes }
        if settings.pauses, log.entries.count(where: { $0 == "paused" }) == 0 {
            upgraded?.isReading = false
            log.add("paused")
        }
        if log.body.count == settings.expected { log.add("all") }
    }

    func didWriteAll() { log.add("written") }
    func didEndReceiving() { log.add("end of the server") }
    func didClose(_ error: EngineError?) { log.add("closed\(error.map { " \($0.kind)" } ?? "")") }
}
#endif
