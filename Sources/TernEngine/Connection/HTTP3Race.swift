/// Decides a race for one connection between an alternative over HTTP/3 and TCP.
///
/// HTTP/3 starts. TCP starts after a head start of 200 ms, or at once when HTTP/3 fails, but only for an exchange that
/// needs the connection. The first that is verified wins, and the other is closed. While TCP can be had, an alternative
/// that fails is no error. It counts as failed when TCP has connected: without a network, both fail.
///
/// Pure: the caller performs the actions in their order, and reports each event.
struct HTTP3Race {
    enum Action: Equatable {
        case startTCP
        case closeTCP
        case closeHTTP3
        /// Report the end of the head start once more after its time.
        case wait
        /// The alternative is not used for a time.
        case rememberFailure
        case forgetFailures
        case won(Winner)
        /// Ends the race with the error of this way.
        case fail(Winner)
    }

    enum Winner: Equatable { case http3, tcp }

    private enum State { case waiting, running, failed }

    /// Whether the error of HTTP/3 lets TCP start at once. The server chooses another host, and must not learn from the
    /// time of a connection whether it answers.
    private let startsEarly: Bool
    private var http3 = State.running
    private var tcp = State.waiting
    /// Whether the head start has ended.
    private var isDue = false

    init(isOnOtherHost: Bool) { startsEarly = !isOnOtherHost }

    /// - Parameter isNeeded: Whether an exchange needs the connection now.
    mutating func headStartEnded(isNeeded: Bool) -> [Action] {
        switch tcp {
        case .running: return []
        // The time that HTTP/3 has after a failure of TCP.
        case .failed: return isNeeded ? [.closeHTTP3, .fail(.tcp)] : [.wait]
        case .waiting:
            isDue = true
            if isNeeded { return startTCP() }
            return http3 == .failed ? [.rememberFailure, .fail(.http3)] : []
        }
    }

    mutating func becameNeeded() -> [Action] { isDue && tcp == .waiting ? startTCP() : [] }

    private mutating func startTCP() -> [Action] {
        tcp = .running
        return [.startTCP]
    }

    mutating func http3Failed(isNeeded: Bool) -> [Action] {
        http3 = .failed
        switch tcp {
        case .running: return []
        case .failed: return [.fail(.tcp)]
        case .waiting:
            guard startsEarly || isDue else { return [] }
            // Other connections serve the exchanges meanwhile: the network is there.
            return isNeeded ? startTCP() : [.rememberFailure, .fail(.http3)]
        }
    }

    mutating func tcpFailed() -> [Action] {
        tcp = .failed
        return http3 == .failed ? [.fail(.tcp)] : [.wait]
    }

    mutating func http3Connected() -> [Action] {
        (tcp == .running ? [.closeTCP] : []) + [.forgetFailures, .won(.http3)]
    }

    mutating func tcpConnected() -> [Action] {
        (http3 == .running ? [.closeHTTP3] : []) + [.rememberFailure, .won(.tcp)]
    }
}
