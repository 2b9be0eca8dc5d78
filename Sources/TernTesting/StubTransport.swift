import Synchronization
public import Tern
import TernConcurrency

/// Answers a session's requests without a server: by a closure or a table, with scripted chunks, delays and failures.
///
/// ```swift
/// let stub = StubTransport([
///     "GET /users/1": .text(#"{"id":1,"name":"Ada"}"#, contentType: "application/json"),
///     "DELETE /users/1": .status(204),
/// ])
/// let client = try Client(baseURL: "https://api.example.com", session: Session(stub: stub))
/// let user: User = try await client.get("users/1")
/// #expect(stub.calls.map(\.path) == ["/users/1"])
/// ```
///
/// Everything above the wire is the real thing: validation, decoding, retries, progress, back-pressure, pause, cancel.
/// A paused task is sent nothing more, and a slow reader holds the script up. Time limits are the wire's and do not run
/// here: fail with `.idleTimedOut` where a test needs one. Redirects and compressed bodies are passed on as they are.
///
/// Delays pass on the stub's clock; with a `ManualClock` a test decides when. Closures run off every actor, the
/// session's included.
public final class StubTransport: Sendable {
    /// Answers a call. It may wait, and throw: a ``Failure`` fails the attempt with its kind, any other error with
    /// `.connectionFailed` and the error as `underlying`.
    public typealias Respond = @concurrent @Sendable (_ call: Call) async throws -> Answer

    private struct State {
        var calls: [Call] = []
        var live: [UInt64: StubExchange] = [:]
        var watchers = Waiters<Int>()
    }

    private let clock: any Clock<Duration>
    private let respond: Respond
    private let state = Lock(State())

    /// A stub that asks a closure for each answer; delays pass on `clock`.
    public init(clock: any Clock<Duration> = ContinuousClock(), respond: @escaping Respond) {
        self.clock = clock
        self.respond = respond
    }

    /// A stub that looks its answers up by method and path; a call that is not in the table fails with `.unsupported`,
    /// and says so. Delays pass on `clock`.
    public convenience init(_ answers: [Route: Answer], clock: any Clock<Duration> = ContinuousClock()) {
        self.init(clock: clock) { call in
            for route in Route.candidates(for: call) {
                if let answer = answers[route] { return answer }
            }
            throw Failure(.unsupported, "the stub has no answer for \(call.method) \(call.path)")
        }
    }

    /// What was asked so far, in order of arrival: each stands here once its whole body was read.
    public var calls: [Call] { state.withLock { $0.calls } }

    /// Returns once at least `count` calls have come.
    /// - Throws: `CancellationError` when the task is cancelled.
    public func waitForCalls(_ count: Int) async throws(CancellationError) {
        let ticket = state.withLock { $0.watchers.drawTicket() }
        try await Waiters<Int>.suspend { continuation in
            let outcome = state.withLock { state -> Bool? in
                if Task.isCancelled { return false }
                if state.calls.count >= count { return true }
                state.watchers.add(ticket, count, continuation)
                return nil
            }
            if let outcome { continuation.resume(returning: outcome) }
        } cancel: {
            self.state.withLock { $0.watchers.remove(ticket) }
        }
    }

    /// The call as it stands in `calls`.
    func log(_ call: Call) -> Call {
        let (logged, watchers) = state.withLock { state in
            var call = call
            call.index = state.calls.count
            state.calls.append(call)
            let count = state.calls.count
            return (call, state.watchers.take { $0 <= count })
        }
        for watcher in watchers { watcher.continuation.resume(returning: true) }
        return logged
    }
}

extension StubTransport: Transport {
    /// The executor of transports without a loop.
    package var executor: any SerialExecutor { QueueExecutor.shared }

    /// Begins an exchange in a Swift task of its own, which the exchange holds and cancels.
    package func start(_ transfer: Transfer) {
        let exchange = StubExchange(
            transfer, clock: clock, log: { self.log($0) }, respond: respond,
            ended: { self.state.withLock { $0.live[transfer.id] = nil } })
        state.withLock { $0.live[transfer.id] = exchange }
        exchange.begin()
    }

    /// Acts on an exchange that has not ended.
    package func control(_ transfer: Transfer, _ command: TransferCommand) {
        state.withLock { $0.live[transfer.id] }?.control(command)
    }
}

extension Session {
    /// A session whose requests a stub answers: no server, no socket.
    public init(configuration: Configuration = Configuration(), stub: StubTransport) {
        self.init(configuration: configuration, transport: stub)
    }
}

extension StubTransport: CustomReflectable {
    /// An empty mirror. Without it, `dump` would show the requests that were sent.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
