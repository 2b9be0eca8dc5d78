#if os(Linux)
import TernConcurrency
@testable import TernEngine

/// A request of a test, and its outcome.
final class TestCall: Sendable {
    struct Outcome: Sendable {
        var head: ReceivedHead?
        var body: [UInt8] = []
        var trailers: [UInt8] = []
        var error: EngineError?
        var isDeadConnection = false
        var isReused = false

        var status: Int? { head?.status }
    }

    let method: String
    let fields: [(name: String, value: String)]
    let body: RequestBody
    let bytes: [UInt8]
    let trailers: [UInt8]
    let urgency: UInt8?
    fileprivate let finish: AsyncStream<Outcome>.Continuation
    private let outcomes: AsyncStream<Outcome>

    init(
        _ method: String = "GET", fields: [(name: String, value: String)] = [], body: RequestBody = .none,
        bytes: String = "", trailers: String = "", urgency: UInt8? = nil
    ) {
        self.method = method
        self.fields = fields
        self.body = body
        self.bytes = Array(bytes.utf8)
        self.trailers = Array(trailers.utf8)
        self.urgency = urgency
        (outcomes, finish) = AsyncStream.makeStream(of: Outcome.self)
    }

    /// Waits for the end of the exchange.
    func outcome() async -> Outcome {
        for await outcome in outcomes { return outcome }
        return Outcome(error: EngineError(.cancelled, "the test was cancelled"))
    }
}

/// The exchanges of a test with one server, on the loop of the process. Ends with `close()`.
struct TestClient {
    private let client: UInt64

    init(_ server: FrameServer, connections: Int = 8, liveness: HTTP2Liveness.Limits = .init()) {
        // The loop is set up before its first use.
        _ = EventLoop.shared.problem()
        let address = server.address
        client = EventLoop.shared.open { context, client in
            TestPool(
                FrameServer.destination(at: address), context: context, client: client, connections: connections,
                liveness: liveness)
        }
    }

    /// Starts an exchange.
    @discardableResult
    func start(_ call: TestCall) -> TestCall {
        EventLoop.shared.post(to: client, operation: 0, object: call)
        return call
    }

    func cancel(_ call: TestCall) { EventLoop.shared.post(to: client, operation: 1, object: call) }

    /// Changes the urgency of an exchange.
    func prioritize(_ call: TestCall, _ urgency: UInt8) {
        EventLoop.shared.post(to: client, operation: 2 + UInt64(urgency), object: call)
    }

    func close() { EventLoop.shared.close(client) }
}

/// The pool of a test. Confined to the loop's thread.
private final class TestPool: LoopClient {
    private let destination: Destination
    private let context: LoopContext
    private let client: UInt64
    private let pool: ExchangePool
    private var handlers: [ObjectIdentifier: CallHandler] = [:]

    init(
        _ destination: Destination, context: LoopContext, client: UInt64, connections: Int,
        liveness: HTTP2Liveness.Limits
    ) {
        self.destination = destination
        self.context = context
        self.client = client
        var settings = ExchangePool.Settings(
            connectionsPerOrigin: connections, connections: connections, idleLifetime: .max, isNewestFirst: false,
            authorizeProxy: { _, _ in { _, _ in nil } })
        settings.connection.liveness = liveness
        pool = ExchangePool(settings, context: context)
    }

    func receive(operation: UInt64, object: any AnyObject & Sendable) {
        guard let call = object as? TestCall else { return }
        let key = ObjectIdentifier(call)
        switch operation {
        case 0:
            let handler = CallHandler(call, to: destination) { [unowned self] in handlers[key] = nil }
            handlers[key] = handler
            if let exchange = handler.exchange { pool.submit(exchange) }
        case 1:
            if let exchange = handlers[key]?.exchange { pool.cancel(exchange) }
            handlers[key] = nil
        default:
            guard let exchange = handlers[key]?.exchange else { return }
            exchange.urgency = UInt8(operation - 2)
            if !exchange.prioritizeOnConnection() { pool.prioritize(exchange) }
        }
    }

    func close() {
        for handler in handlers.values { handler.exchange.map { pool.cancel($0) } }
        pool.close()
        context.remove(client)
    }
}

private final class CallHandler: ExchangeHandler {
    private let call: TestCall
    private var outcome = TestCall.Outcome()
    private var offset = 0
    private let didEnd: () -> Void
    private(set) var exchange: HTTPExchange?

    init(_ call: TestCall, to destination: Destination, didEnd: @escaping () -> Void) {
        self.call = call
        self.didEnd = didEnd
        var fields = RequestFields()
        // Only fields that are valid in themselves are tested here.
        for field in call.fields { try? fields.append(name: field.name, value: field.value) }
        exchange = HTTPExchange(
            to: destination, method: call.method, path: "/", fields: fields, body: call.body,
            limits: HeadLimits(bytes: 64 << 10), priority: 0, urgency: call.urgency, needsFreshConnection: false,
            handler: self)
    }

    func didStartConnecting() {}
    func didStopConnecting() {}
    func didConnect(_ connection: ConnectionInfo) { outcome.isReused = connection.isReused }
    func didSend(_ count: Int) {}
    func didReceiveBytes(_ count: Int) {}
    func didReceive(interim head: ReceivedHead) {}
    func didReceive(_ head: ReceivedHead) { outcome.head = head }

    func didReceive(body bytes: UnsafeRawBufferPointer) -> Bool {
        unsafe outcome.body.append(contentsOf: bytes)
        return true
    }

    func didReceive(trailers: [UInt8]) { outcome.trailers = trailers }

    func readBody(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        let rest = call.bytes[offset...].prefix(buffer.count)
        if rest.isEmpty { return .end }
        unsafe buffer.copyBytes(from: rest)
        offset += rest.count
        return .bytes(rest.count)
    }

    func requestTrailers() -> [UInt8] { call.trailers }

    func didEnd(_ error: EngineError?, isDeadConnection: Bool) {
        outcome.error = error
        outcome.isDeadConnection = isDeadConnection
        call.finish.yield(outcome)
        didEnd()
    }
}
#endif
