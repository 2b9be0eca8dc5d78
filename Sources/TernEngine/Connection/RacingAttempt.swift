#if os(Linux)
import TernConcurrency

/// Opens one connection to a destination, over an alternative of its server or over TCP (`HTTP3Race`). Confined to the
/// loop's thread.
final class RacingAttempt {
    let id: ConnectionPool.ConnectionID
    let destination: Destination
    private let alternative: AlternativeService
    private let context: LoopContext
    private unowned let owner: LoopConnections
    /// Whether other connections to the destination are open, so that none is needed until an exchange waits for it.
    private let isBeside: Bool
    private var race: HTTP3Race
    private lazy var http3 = HTTP3Attempt(
        id, to: destination, at: alternative, context: context, connections: owner, owner: self)
    private var tcp: ConnectAttempt?
    private let authorize: ProxyTunnel.Authorize
    private lazy var timer = LoopTimer(self)
    private var carrier: HTTP3Carrier?
    private var stream: (ByteStream, ConnectionInfo.Opening)?
    private var errors: (http3: EngineError?, tcp: EngineError?)
    private var hasEnded = false

    init(
        _ id: ConnectionPool.ConnectionID, to destination: Destination, at alternative: AlternativeService,
        isBeside: Bool, context: LoopContext, authorize: @escaping ProxyTunnel.Authorize, owner: LoopConnections
    ) {
        self.id = id
        self.destination = destination
        self.alternative = alternative
        self.isBeside = isBeside
        self.context = context
        self.authorize = authorize
        self.owner = owner
        race = HTTP3Race(isOnOtherHost: alternative.host != nil)
    }

    /// Starts the race. The owner can be called before this method returns.
    func start() {
        // The look-up of the same name would hold TCP up as well.
        if alternative.host != nil { startTimer() }
        http3.start()
    }

    /// Tells that an exchange waits for the connection from now on.
    func becameNeeded() {
        if isNeeded { perform(race.becameNeeded()) }
    }

    /// Ends the race without a call to its owner.
    func cancel() {
        hasEnded = true
        context.cancel(timer)
        http3.cancel()
        tcp?.cancel()
        carrier?.close()
        stream?.0.close()
        (carrier, stream) = (nil, nil)
    }

    private func startTimer() { context.schedule(timer, at: context.now + owner.settings.http3HeadStart) }

    /// While the caller's code decides about the certificates of the alternative, it is not asked about others.
    private var isNeeded: Bool { !http3.isReviewing && (!isBeside || owner.isClaimed(id)) }

    private func perform(_ actions: [HTTP3Race.Action]) {
        for action in actions where !hasEnded { perform(action) }
    }

    private func perform(_ action: HTTP3Race.Action) {
        switch action {
        case .startTCP:
            let attempt = ConnectAttempt(
                id, to: destination, context: context, resumption: owner.settings.resumption, authorize: authorize,
                owner: self)
            tcp = attempt
            attempt.start()
        case .closeTCP: tcp?.cancel()
        case .closeHTTP3: http3.cancel()
        case .wait: startTimer()
        case .rememberFailure: owner.settings.alternatives.failed(alternative, of: destination, now: context.now)
        case .forgetFailures: owner.settings.alternatives.succeeded(alternative, of: destination)
        case .won(let winner): finish(winner)
        case .fail(let loser):
            let error = loser == .tcp ? errors.tcp : errors.http3
            cancel()
            owner.race(self, didFail: error ?? EngineError(.connectionFailed, "\(destination.name) was not reached"))
        }
    }

    private func finish(_ winner: HTTP3Race.Winner) {
        hasEnded = true
        context.cancel(timer)
        if winner == .http3, let carrier {
            self.carrier = nil
            owner.race(self, didConnect: carrier)
        } else if let tcp, let (stream, opening) = stream {
            self.stream = nil
            owner.race(self, didConnect: tcp, over: stream, opening: opening)
        }
    }
}

extension RacingAttempt: HTTP3AttemptOwner, ConnectAttemptOwner, TimerHandler {
    func attemptStartsHandshakes(_ attempt: HTTP3Attempt) {
        if alternative.host == nil { startTimer() }
    }

    func attempt(_ attempt: HTTP3Attempt, didConnect carrier: HTTP3Carrier) {
        self.carrier = carrier
        perform(race.http3Connected())
    }

    func attempt(_ attempt: HTTP3Attempt, didFail error: EngineError) {
        errors.http3 = error
        perform(race.http3Failed(isNeeded: isNeeded))
    }

    func attempt(_ attempt: ConnectAttempt, didConnect stream: ByteStream, opening: ConnectionInfo.Opening) {
        self.stream = (stream, opening)
        perform(race.tcpConnected())
    }

    func attempt(_ attempt: ConnectAttempt, didFail error: EngineError) {
        errors.tcp = error
        perform(race.tcpFailed())
    }

    func timerFired(_ timer: LoopTimer) { perform(race.headStartEnded(isNeeded: isNeeded)) }
}
#endif
