import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Plays one attempt for a stub: reads the request body, gets the answer, and performs its steps. It stops wherever the
/// session pauses it.
final class StubExchange: Sendable {
    /// The size of one piece of the body in bytes, the same as in the wire engine.
    private static let pieceSize = 256 << 10

    private struct State {
        var gate = StubGate()
        var outcome = PartialOutcome()
        /// The Swift task that plays the attempt. Owned here, cancelled by `control(.cancel)`, released at the end.
        var player: Task<Void, Never>?
    }

    private let attempt: Attempt
    private let clock: any Clock<Duration>
    private let log: @Sendable (StubTransport.Call) -> StubTransport.Call
    private let respond: StubTransport.Respond
    private let accepted: @Sendable (StubTransport.WebSocket) -> Void
    private let ended: @Sendable () -> Void
    private let state = Lock(State())

    init(
        _ attempt: Attempt, clock: any Clock<Duration>,
        log: @escaping @Sendable (StubTransport.Call) -> StubTransport.Call, respond: @escaping StubTransport.Respond,
        accepted: @escaping @Sendable (StubTransport.WebSocket) -> Void,
        ended: @escaping @Sendable () -> Void
    ) {
        self.attempt = attempt
        self.clock = clock
        self.log = log
        self.respond = respond
        self.accepted = accepted
        self.ended = ended
    }

    // MARK: The session's commands. The session may hold a lock: nothing here calls back into it.

    func begin() {
        // A Swift task, because closures may wait; held by `state`, cancelled by `control`.
        let player = Task { await play() }
        state.withLock { if !$0.gate.isEnded { $0.player = player } }
    }

    func control(_ command: AttemptCommand) {
        if command == .cancel {
            let player = state.withLock { $0.player }
            finish(.cancelled)
            player?.cancel()
        } else {
            state.withLock { $0.gate.apply(command) }?.resume()
        }
    }

    // MARK: The script

    private func play() async {
        do {
            // The source of a request for another protocol is for the time after the handshake.
            let body = attempt.request.upgrade == nil ? try await readBody() : Data()
            let call = log(StubTransport.Call(attempt.request, body: body))
            let answer = try await respond(call)
            if answer.delay > .zero { try await sleep(answer.delay) }
            try await pass(.running)
            if let script = answer.script {
                try await play(script, of: answer, to: call)
            } else {
                try await deliver(answer)
            }
            finish(nil)
        } catch let failure as FailureCause {
            finish(failure)
        } catch let failure as StubTransport.Failure {
            finish(FailureCause(failure))
        } catch {
            finish(FailureCause(.connectionFailed, "the stub's closure threw: \(error)", underlying: error))
        }
    }

    private func readBody() async throws -> Data {
        try await pass(.running)
        switch attempt.request.source {
        case .none:
            return Data()
        case .bytes(let data):
            reportSent(Int64(data.count), of: Int64(data.count))
            return data
        case .pipe(let pipe, let length):
            return try await drain(pipe, length)
        }
    }

    private func drain(_ pipe: UploadPipe, _ length: Int64?) async throws -> Data {
        var body = Data()
        while let piece = try await nextPiece(of: pipe, length) { body.append(contentsOf: piece) }
        return body
    }

    /// Returns the next bytes of a pipe, and counts them as sent; nil after the last ones.
    private func nextPiece(of pipe: UploadPipe, _ length: Int64?) async throws -> ArraySlice<UInt8>? {
        var piece = [UInt8](repeating: 0, count: Self.pieceSize)
        while true {
            try await pass(.running)
            let (read, producer) = unsafe piece.withUnsafeMutableBytes { unsafe pipe.read(into: $0) }
            unsafe producer?.resume()
            switch read {
            case .bytes(let count):
                reportSent(state.withLock { $0.outcome.metrics.sentBytes } + Int64(count), of: length)
                return piece[..<count]
            case .wait: try await pass(.bodyReady)
            case .end: return nil
            case .failed(let failure): throw failure
            }
        }
    }

    private func makeHead(_ answer: StubTransport.Answer) -> ResponseHead {
        let head = ResponseHead(
            status: answer.status, version: answer.version, target: attempt.request.target,
            reason: answer.reasonPhrase, headers: answer.headers)
        state.withLock { state in
            state.outcome.head = head
            state.outcome.metrics.httpVersion = answer.version
            state.outcome.measured = answer.metrics
        }
        return head
    }

    // MARK: WebSocket

    /// Accepts a WebSocket and plays its script to the end.
    private func play(
        _ script: StubTransport.WebSocket.Script, of answer: StubTransport.Answer, to call: StubTransport.Call
    ) async throws {
        guard attempt.request.upgrade?.name == "websocket", let key = call.headers["Sec-WebSocket-Key"] else {
            let reason =
                "the stub answers \(call.method) \(call.path) with a WebSocket, which the call does not ask for"
            throw FailureCause(.unsupported, reason)
        }
        var answer = answer
        if !answer.headers.contains("Sec-WebSocket-Accept") {
            answer.headers["Sec-WebSocket-Accept"] = SHA1.webSocketAccept(for: key)
        }
        let socket = StubTransport.WebSocket(call, on: self)
        accepted(socket)
        unsafe attempt.receive(makeHead(answer))?.resume()
        defer { socket.letGo() }
        try await script(socket)
        try await socket.end()
    }

    /// Returns the next bytes that the client sends on its WebSocket; nil after the last ones.
    func readBytes() async throws -> ArraySlice<UInt8>? {
        guard case .pipe(let pipe, _) = attempt.request.source else { return nil }
        return try await nextPiece(of: pipe, nil)
    }

    /// Sends bytes on the WebSocket.
    func write(_ bytes: [UInt8]) async throws { try await deliver(Data(bytes), of: nil) }

    // MARK: The answer

    private func deliver(_ answer: StubTransport.Answer) async throws {
        let request = attempt.request
        let head = makeHead(answer)
        let hasBody = request.method != .head && answer.status != 204 && answer.status != 304
        let length = hasBody ? head.contentLength : nil
        attempt.expectBody(of: head)
        reportReceived(0, of: length)
        if request.announcesHead || request.streamsBody(of: head) { unsafe attempt.receive(head)?.resume() }
        for step in answer.steps {
            switch step {
            case .wait(let duration): try await sleep(duration)
            case .fail(let failure): throw failure
            case .chunk(let data): if hasBody { try await deliver(data, of: length) }
            }
        }
        try await pass(.running)
        let received = state.withLock { state in
            state.outcome.trailers = answer.trailers
            return state.outcome.metrics.decodedBodyBytes
        }
        if let length, received < length {
            throw FailureCause(.truncatedBody, "the body ended after \(received) of \(length) bytes")
        }
    }

    private func deliver(_ data: Data, of length: Int64?) async throws {
        var rest = data[...]
        while !rest.isEmpty {
            try await pass(.running)
            let piece = Data(rest.prefix(Self.pieceSize))
            rest = rest.dropFirst(piece.count)
            let received = state.withLock { state in
                state.gate.expectDemand()
                state.outcome.metrics.decodedBodyBytes += Int64(piece.count)
                state.outcome.metrics.receivedBytes = state.outcome.metrics.decodedBodyBytes
                return state.outcome.metrics.decodedBodyBytes
            }
            switch attempt.request.delivery {
            case .collected(let limit):
                guard received <= limit else {
                    throw FailureCause.bodyTooLarge(limit: limit)
                }
                state.withLock { $0.outcome.body.append(piece) }
                reportReceived(received, of: length)
            case .streamed:
                reportReceived(received, of: length)
                let (wake, isFull) = unsafe attempt.receive(piece)
                unsafe wake?.resume()
                if isFull { try await pass(.demanded) }
            }
        }
    }

    // MARK: Stops

    private func sleep(_ duration: Duration) async throws {
        do {
            try await clock.sleepWithoutDescriptor(for: duration)
        } catch {
            throw FailureCause.cancelled
        }
    }

    /// Waits until the exchange may continue.
    ///
    /// - Throws: `.cancelled` after the exchange has ended.
    private func pass(_ condition: StubGate.Condition) async throws(FailureCause) {
        while true {
            switch state.withLock({ $0.gate.pass(condition) }) {
            case .pass: return
            case .ended: throw .cancelled
            case .wait(let waiter): await waiter.wait()
            }
        }
    }

    private func reportSent(_ sent: Int64, of total: Int64?) {
        state.withLock { $0.outcome.metrics.sentBytes = sent }
        attempt.publishProgress(sent: sent, of: total, received: 0, of: nil)
    }

    private func reportReceived(_ received: Int64, of total: Int64?) {
        let sent = state.withLock { $0.outcome.metrics.sentBytes }
        var sentTotal: Int64?
        switch attempt.request.source {
        case .none: break
        case .bytes(let data): sentTotal = Int64(data.count)
        case .pipe(_, let length): sentTotal = length
        }
        attempt.publishProgress(sent: sent, of: sentTotal, received: received, of: total)
    }

    /// Ends the exchange. The first call decides the outcome.
    private func finish(_ failure: FailureCause?) {
        let end = state.withLock { state -> (outcome: AttemptOutcome, waiter: Waiter<Void>?)? in
            guard !state.gate.isEnded else { return nil }
            let waiter = state.gate.end()
            state.player = nil
            defer { state.outcome = PartialOutcome() }
            return (state.outcome.end(failure), waiter)
        }
        guard let end else { return }
        if case .pipe(let pipe, _) = attempt.request.source { pipe.close() }
        ended()
        unsafe attempt.complete(end.outcome)?.resume()
        end.waiter?.resume()
    }
}

/// The part of the outcome that is known so far.
private struct PartialOutcome {
    var head: ResponseHead?
    var body = Data()
    var metrics = TaskMetrics()
    /// The measurements of the real server that a recorder has asked.
    var measured: TaskMetrics?
    var trailers: Headers = [:]

    func end(_ failure: FailureCause?) -> AttemptOutcome {
        var metrics = measured ?? metrics
        // The limit on the total time is that of this attempt.
        metrics.activeTime = self.metrics.activeTime
        return AttemptOutcome(head: head, body: body, failure: failure, metrics: metrics, trailers: trailers)
    }
}

extension FailureCause {
    fileprivate convenience init(_ failure: StubTransport.Failure) {
        self.init(failure.kind, failure.reason, isDeadPooledConnection: failure.isDeadPooledConnection)
    }
}

/// Decides when a played exchange waits: for the end of a pause, for a slow reader, or for more of the request body.
/// Pure.
struct StubGate {
    enum Condition {
        case running
        case demanded
        case bodyReady
    }

    enum Step {
        case pass
        case ended
        case wait(Waiter<Void>)
    }

    private(set) var isEnded = false
    private var isPaused = false
    private var isDemanded = false
    private var isBodyReady = false
    private var waiter: Waiter<Void>?

    /// Applies a command and returns the waiter that must check again.
    mutating func apply(_ command: AttemptCommand) -> Waiter<Void>? {
        switch command {
        case .pause: isPaused = true
        case .resume: isPaused = false
        case .demand: isDemanded = true
        case .bodyReady: isBodyReady = true
        case .prioritize, .usePipe, .cancel: return nil
        }
        return takeWaiter()
    }

    /// Clears the demand. Call it before delivery, because the reader's demand may arrive before the exchange waits for
    /// it.
    mutating func expectDemand() { isDemanded = false }

    mutating func end() -> Waiter<Void>? {
        isEnded = true
        return takeWaiter()
    }

    mutating func pass(_ condition: Condition) -> Step {
        if isEnded { return .ended }
        let isOpen =
            switch condition {
            case .running: true
            case .demanded: isDemanded
            case .bodyReady: isBodyReady
            }
        guard isOpen, !isPaused else {
            let waiter = Waiter<Void>()
            self.waiter = waiter
            return .wait(waiter)
        }
        if condition == .bodyReady { isBodyReady = false }
        return .pass
    }

    private mutating func takeWaiter() -> Waiter<Void>? {
        defer { waiter = nil }
        return waiter
    }
}
