#if os(Linux)
import TernConcurrency

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The owner of an attempt to connect over HTTP/3.
protocol HTTP3AttemptOwner: AnyObject {
    /// Called when the addresses are known.
    func attemptStartsHandshakes(_ attempt: HTTP3Attempt)
    func attempt(_ attempt: HTTP3Attempt, didConnect carrier: HTTP3Carrier)
    func attempt(_ attempt: HTTP3Attempt, didFail error: EngineError)
}

/// Opens a connection over HTTP/3 to a destination: names (`ConnectPreparation`) → handshakes with its addresses, the
/// first of which wins → a decision of the caller's code about the certificates, if there is one. Confined to the loop's
/// thread.
///
/// It has no time limit of its own: the exchange that needs the connection has one, and cancels the attempt.
final class HTTP3Attempt {
    let id: ConnectionPool.ConnectionID
    let destination: Destination
    private let context: LoopContext
    /// The place of the server; nil for the host and the port of the origin. The certificates are those of the origin
    /// (RFC 7838 §2.1).
    private let alternative: AlternativeService?
    private weak var connections: LoopConnections?
    private weak var owner: (any HTTP3AttemptOwner)?
    private lazy var preparation = ConnectPreparation(
        destination, at: alternative, context: context, owner: self)
    private var race = HappyEyeballs([])
    private var racers: [Int: HTTP3Carrier] = [:]
    /// The most telling error of all attempts.
    private var error: EngineError?
    private var isRunning = false
    private lazy var timer = LoopTimer(self)
    private var opening = ConnectionInfo.Opening()
    private var winner: HTTP3Carrier?
    /// The review under way, and the number under which its verdict is expected. Owned here, cancelled by `cancel`.
    private var review: (number: UInt64, task: Task<Void, Never>)?

    init(
        _ id: ConnectionPool.ConnectionID, to destination: Destination, at alternative: AlternativeService? = nil,
        context: LoopContext, connections: LoopConnections, owner: any HTTP3AttemptOwner
    ) {
        self.id = id
        self.destination = destination
        self.alternative = alternative
        self.context = context
        self.connections = connections
        self.owner = owner
    }

    /// Whether code of the caller decides about the certificates.
    var isReviewing: Bool { review != nil }

    /// Starts the attempt. The owner can be called before this method returns.
    func start() {
        isRunning = true
        preparation.start()
    }

    /// Ends the attempt without a call to its owner.
    func cancel() {
        isRunning = false
        preparation.cancel()
        context.cancel(timer)
        if let (number, task) = review {
            review = nil
            context.cancelAnswer(number)
            task.cancel()
        }
        let carriers = racers.values
        racers = [:]
        winner = nil
        for carrier in carriers { carrier.close() }
    }

    private func fail(_ error: EngineError) {
        cancel()
        owner?.attempt(self, didFail: error)
    }

    // MARK: The race

    private func proceed() {
        while isRunning {
            switch race.next(now: context.now) {
            case .connect(let index): open(index)
            case .abandon(let index): racers.removeValue(forKey: index)?.close()
            case .wait(let time): return context.schedule(timer, at: time ?? .max)
            case .won(let index): return finish(index)
            case .failed(let error): return fail(self.error ?? error.connectFailure(to: destination.name))
            }
        }
    }

    private func open(_ index: Int) {
        guard let connections, let trust = destination.trust else { return }
        do throws(EngineError) {
            let target = TLSTarget(
                host: destination.host, authority: destination.name, protocols: ["h3"],
                origin: "\(destination.origin) quic \(alternative?.name ?? "")")
            let verifier = try TLSVerifier(policy: trust, target: target)
            let carrier = HTTP3Carrier(
                id, of: destination, at: alternative, to: race.addresses[index], verifier: verifier, attempt: self,
                pool: connections, context: context)
            racers[index] = carrier
            try carrier.open(from: destination.localEndpoint)
        } catch {
            racers.removeValue(forKey: index)?.close()
            note(error)
            race.failed(index, error: SystemError(error.code == 0 ? ECONNABORTED : error.code))
        }
    }

    /// Keeps the first error, unless a later one comes from a server that answered.
    private func note(_ error: EngineError) {
        let tells = error.kind != .connectionFailed && error.kind != .connectionRefused
        if self.error == nil || tells { self.error = error }
    }

    func carrier(_ carrier: HTTP3Carrier, didFail error: EngineError) {
        if carrier === winner { return fail(error) }
        guard let index = racers.first(where: { $0.value === carrier })?.key else { return }
        racers[index] = nil
        note(error)
        race.failed(index, error: SystemError(error.code == 0 ? ECONNABORTED : error.code))
        proceed()
    }

    func carrierDidConnect(_ carrier: HTTP3Carrier) {
        guard let index = racers.first(where: { $0.value === carrier })?.key else { return }
        race.connected(index)
        proceed()
    }

    private func finish(_ index: Int) {
        guard let carrier = racers[index] else { return }
        context.cancel(timer)
        winner = carrier
        opening.tlsEnd = MonotonicClock.nanoseconds()
        // QUIC connects and agrees on keys at once.
        opening.connectEnd = opening.tlsEnd
        opening.remoteAddress = carrier.remote.text
        opening.remotePort = carrier.remote.port
        opening.pinReport = carrier.pinReport
        guard let decide = carrier.review else { return handOver() }
        let (loop, number) = (context.loop, context.expectAnswer(self))
        review = (number, Task { loop.post(answer: await decide(), to: number) })
    }

    private func handOver() {
        guard let winner else { return }
        isRunning = false
        racers = [:]
        self.winner = nil
        winner.becomesPooled(opening)
        owner?.attempt(self, didConnect: winner)
    }
}

extension HTTP3Attempt: ConnectPreparationOwner, TimerHandler, AnswerHandler {
    func preparation(_ preparation: ConnectPreparation, didFind addresses: ConnectPreparation.Addresses) {
        opening.nameLookupEnd = context.now
        race = HappyEyeballs(addresses.peer)
        owner?.attemptStartsHandshakes(self)
        proceed()
    }

    func preparation(_ preparation: ConnectPreparation, didFail error: EngineError) { fail(error) }

    func timerFired(_ timer: LoopTimer) { proceed() }

    func receive(answer: any Sendable) {
        guard winner != nil, let verdict = answer as? TLSVerdict else { return }
        review = nil
        switch verdict {
        case .refused(let reason):
            let text = "the trust policy's own decision refused \(destination.name): \(reason)"
            return fail(EngineError(.untrustedServer, text))
        case .reported(let report): opening.pinReport = report
        case .accepted: break
        }
        handOver()
    }
}
#endif
