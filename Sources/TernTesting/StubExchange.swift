import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One attempt that a stub plays: the body is read, the answer asked for, and its steps are handed on, with a stop
/// wherever the session wants one.
final class StubExchange: Sendable {
    /// Bytes of a piece of the body, as the wire engine hands them on.
    private static let pieceSize = 256 << 10

    private struct State {
        var gate = StubGate()
        var outcome = Gathered()
        /// Who plays. Owned here, cancelled by `control(.cancel)`, released at the end.
        var player: Task<Void, Never>?
    }

    private let transfer: Transfer
    private let clock: any Clock<Duration>
    private let log: @Sendable (StubTransport.Call) -> StubTransport.Call
    private let respond: StubTransport.Respond
    private let ended: @Sendable () -> Void
    private let state = Lock(State())

    init(
        _ transfer: Transfer, clock: any Clock<Duration>,
        log: @escaping @Sendable (StubTransport.Call) -> StubTransport.Call, respond: @escaping StubTransport.Respond,
        ended: @escaping @Sendable () -> Void
    ) {
        self.transfer = transfer
        self.clock = clock
        self.log = log
        self.respond = respond
        self.ended = ended
    }

    // MARK: The session's commands. They may come under a lock of the session: nothing here calls back into it.

    func begin() {
        // A Swift task, so that closures may wait; held by `state`, cancelled by `control`.
        let player = Task { await play() }
        state.withLock { if !$0.gate.isEnded { $0.player = player } }
    }

    func control(_ command: TransferCommand) {
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
            let body = try await readBody()
            let answer = try await respond(log(StubTransport.Call(transfer.order, body: body)))
            if answer.delay > .zero { try await sleep(answer.delay) }
            try await pass(.running)
            try await deliver(answer)
            finish(nil)
        } catch let failure as TransferFailure {
            finish(failure)
        } catch let failure as StubTransport.Failure {
            finish(TransferFailure(failure))
        } catch {
            finish(TransferFailure(.connectionFailed, "the stub's closure threw: \(error)", underlying: error))
        }
    }

    private func readBody() async throws -> Data {
        try await pass(.running)
        switch transfer.order.source {
        case .none:
            return Data()
        case .bytes(let data):
            noteSent(Int64(data.count), of: Int64(data.count))
            return data
        case .pipe(let pipe, let length):
            return try await drain(pipe, length)
        }
    }

    private func drain(_ pipe: UploadPipe, _ length: Int64?) async throws -> Data {
        var body = Data()
        var piece = [UInt8](repeating: 0, count: Self.pieceSize)
        while true {
            try await pass(.running)
            let (read, producer) = unsafe piece.withUnsafeMutableBytes { unsafe pipe.read(into: $0) }
            unsafe producer?.resume()
            switch read {
            case .bytes(let count):
                body.append(contentsOf: piece[..<count])
                noteSent(Int64(body.count), of: length)
            case .wait: try await pass(.bodyReady)
            case .end: return body
            case .failed(let failure): throw failure
            }
        }
    }

    private func deliver(_ answer: StubTransport.Answer) async throws {
        let order = transfer.order
        let head = ResponseHead(
            status: answer.status, version: .http11, target: order.target, headers: answer.headers)
        state.withLock { state in
            state.outcome.head = head
            state.outcome.metrics.httpVersion = .http11
        }
        let hasBody = order.method != .head && answer.status != 204 && answer.status != 304
        let length = hasBody ? head.contentLength : nil
        noteReceived(0, of: length)
        if order.announcesHead || order.isAnswer(head) { unsafe transfer.receive(head)?.resume() }
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
            throw TransferFailure(.truncatedBody, "the body ended after \(received) of \(length) bytes")
        }
    }

    private func deliver(_ data: Data, of length: Int64?) async throws {
        var rest = data[...]
        while !rest.isEmpty {
            try await pass(.running)
            let piece = Data(rest.prefix(Self.pieceSize))
            rest = rest.dropFirst(piece.count)
            let received = state.withLock { state in
                state.gate.expectsDemand()
                state.outcome.metrics.decodedBodyBytes += Int64(piece.count)
                state.outcome.metrics.receivedBytes = state.outcome.metrics.decodedBodyBytes
                return state.outcome.metrics.decodedBodyBytes
            }
            switch transfer.order.delivery {
            case .collected(let limit):
                guard received <= limit else {
                    throw TransferFailure.bodyTooLarge(limit: limit)
                }
                state.withLock { $0.outcome.body.append(piece) }
                noteReceived(received, of: length)
            case .streamed:
                noteReceived(received, of: length)
                let (wake, isFull) = unsafe transfer.receive(piece)
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
            throw TransferFailure.cancelled
        }
    }

    /// Waits until the exchange may go on.
    /// - Throws: `.cancelled` once it has ended.
    private func pass(_ condition: StubGate.Condition) async throws(TransferFailure) {
        while true {
            switch state.withLock({ $0.gate.pass(condition) }) {
            case .pass: return
            case .ended: throw .cancelled
            case .wait(let waiter): await waiter.wait()
            }
        }
    }

    private func noteSent(_ sent: Int64, of total: Int64?) {
        state.withLock { $0.outcome.metrics.sentBytes = sent }
        transfer.meter.store(sent: sent, of: total, received: 0, of: nil)
    }

    private func noteReceived(_ received: Int64, of total: Int64?) {
        let sent = state.withLock { $0.outcome.metrics.sentBytes }
        var sentTotal: Int64?
        switch transfer.order.source {
        case .none: break
        case .bytes(let data): sentTotal = Int64(data.count)
        case .pipe(_, let length): sentTotal = length
        }
        transfer.meter.store(sent: sent, of: sentTotal, received: received, of: total)
    }

    /// The one end: whoever comes first decides it.
    private func finish(_ failure: TransferFailure?) {
        let end = state.withLock { state -> (outcome: TransferOutcome, waiter: Waiter<Void>?)? in
            guard !state.gate.isEnded else { return nil }
            let waiter = state.gate.end()
            state.player = nil
            defer { state.outcome = Gathered() }
            return (state.outcome.end(failure), waiter)
        }
        guard let end else { return }
        if case .pipe(let pipe, _) = transfer.order.source { pipe.close() }
        ended()
        unsafe transfer.complete(end.outcome)?.resume()
        end.waiter?.resume()
    }
}

/// What the attempt has come to so far.
private struct Gathered {
    var head: ResponseHead?
    var body = Data()
    var metrics = TaskMetrics()
    var trailers: Headers = [:]

    func end(_ failure: TransferFailure?) -> TransferOutcome {
        TransferOutcome(head: head, body: body, failure: failure, metrics: metrics, trailers: trailers)
    }
}

extension TransferFailure {
    fileprivate init(_ failure: StubTransport.Failure) {
        self.init(failure.kind, failure.reason)
        isDeadPooledConnection = failure.isDeadPooledConnection
    }
}
