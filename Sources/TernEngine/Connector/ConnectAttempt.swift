#if os(Linux)
import TernConcurrency

/// The owner of an attempt to connect.
protocol ConnectAttemptOwner: AnyObject {
    func attempt(_ attempt: ConnectAttempt, didConnect stream: ByteStream, opening: ConnectionInfo.Opening)
    func attempt(_ attempt: ConnectAttempt, didFail error: EngineError)
}

/// Opens a connection to a destination: names (`ConnectPreparation`) → sockets (`SocketRace`) → TLS with the proxy →
/// handshake with the proxy → TLS → a decision of the caller's code about the certificates, if there is one. Confined
/// to the loop's thread.
///
/// It has no time limit of its own: the exchange that needs the connection has one, and cancels the attempt.
final class ConnectAttempt {
    private enum Step {
        /// Names are looked up, authorities are loaded, and sockets connect.
        case connecting
        case proxyTLS
        case proxy
        case tls
        /// Code of the caller decides about the server's certificates. The socket is not watched.
        case reviewing
        case ended
    }

    let id: ConnectionPool.ConnectionID
    let destination: Destination
    private let context: LoopContext
    private let authorize: ProxyTunnel.Authorize
    private let resumption: TLSResumption
    private weak var owner: (any ConnectAttemptOwner)?
    private var step = Step.connecting
    private var opening = ConnectionInfo.Opening()
    private lazy var preparation = ConnectPreparation(destination, context: context, owner: self)
    private lazy var race = SocketRace(from: destination.localEndpoint, context: context, owner: self)
    private var addresses = ConnectPreparation.Addresses()
    /// The connection to the peer, until it is handed over.
    private var stream: ByteStream?
    /// The session with the proxy during its handshake, and afterwards as the transport of that with the server.
    private var proxyTLS: TLSSession?
    private var tls: TLSSession?
    private var proxy: ProxyHandshake?
    /// Bytes for the proxy that the socket has not taken yet.
    private var output: [UInt8] = []
    private var outputOffset = 0
    /// The review under way, and the number under which its verdict is expected. Owned here, cancelled by `cancel`.
    private var review: (number: UInt64, task: Task<Void, Never>)?

    init(
        _ id: ConnectionPool.ConnectionID, to destination: Destination, context: LoopContext,
        resumption: TLSResumption, authorize: @escaping ProxyTunnel.Authorize, owner: any ConnectAttemptOwner
    ) {
        self.id = id
        self.destination = destination
        self.context = context
        self.resumption = resumption
        self.authorize = authorize
        self.owner = owner
    }

    /// Starts the attempt. The owner can be called before this method returns.
    func start() { preparation.start() }

    /// Ends the attempt without a call to its owner.
    func cancel() {
        step = .ended
        preparation.cancel()
        race.cancel()
        if let (number, task) = review {
            review = nil
            context.cancelAnswer(number)
            task.cancel()
        }
        closeStream()
    }

    private func fail(_ error: EngineError) {
        cancel()
        owner?.attempt(self, didFail: error)
    }

    private func closeStream() {
        stream?.close()
        (stream, tls, proxyTLS) = (nil, nil, nil)
    }

    /// The peer of the socket, for errors.
    private var peerName: String {
        if let path = destination.unixSocketPath { return "the Unix socket \(path)" }
        return destination.proxy.map { "the proxy \($0.name)" } ?? destination.name
    }

    /// Hands the connection over to the owner.
    private func finish() {
        guard let stream else { return }
        step = .ended
        (self.stream, tls, proxyTLS) = (nil, nil, nil)
        owner?.attempt(self, didConnect: stream, opening: opening)
    }
}

extension ConnectAttempt: ConnectPreparationOwner, SocketRaceOwner {
    func preparation(_ preparation: ConnectPreparation, didFind addresses: ConnectPreparation.Addresses) {
        self.addresses = addresses
        opening.nameLookupEnd = context.now
        race.start(to: addresses.peer)
    }

    func preparation(_ preparation: ConnectPreparation, didFail error: EngineError) { fail(error) }

    func race(_ race: SocketRace, didConnect socket: SocketRegistration, to address: SocketAddress) {
        let stream = ByteStream(context, socket, watching: .writable)
        stream.setHandler(self)
        self.stream = stream
        opening.connectEnd = context.now
        if destination.unixSocketPath == nil {
            opening.remoteAddress = address.text
            opening.remotePort = address.port
        }
        beginProxy()
    }

    func race(_ race: SocketRace, didFail error: SystemError) { fail(error.connectFailure(to: peerName)) }
}

extension ConnectAttempt: SocketHandler {
    func socketIsReady(_ events: SocketEvents) {
        switch step {
        case .proxyTLS: continueProxyTLS()
        case .proxy: continueProxy()
        case .tls: continueTLS()
        case .connecting, .reviewing, .ended: return
        }
    }
}

// MARK: The proxy

extension ConnectAttempt {
    private func beginProxy() {
        guard let address = destination.proxy, let stream else { return beginTLS() }
        guard let trust = destination.proxyTrust else { return greetProxy() }
        do {
            let target = TLSTarget(
                host: address.host, authority: "the proxy \(address.name)", protocols: ["http/1.1"],
                origin: "proxy://\(address.name)")
            proxyTLS = try TLSSession(
                policy: trust, target: target, descriptor: stream.descriptor, resumption: resumption)
        } catch {
            return fail(error)
        }
        step = .proxyTLS
        continueProxyTLS()
    }

    private func continueProxyTLS() {
        switch proxyTLS?.handshake() {
        case .done:
            stream?.secure(with: proxyTLS)
            greetProxy()
        case .wantsRead: stream?.watch(.readable, self)
        case .wantsWrite: stream?.watch(.writable, self)
        case .failed(let error): fail(error)
        case nil: return
        }
    }

    /// Starts the handshake with the proxy, unless the proxy receives requests whole.
    private func greetProxy() {
        guard let address = destination.proxy, !destination.isForwarded else { return beginTLS() }
        step = .proxy
        var handshake =
            proxy
            ?? ProxyHandshake(
                address, host: destination.host, port: destination.port, address: addresses.server,
                authorize: authorize)
        let action = handshake.start()
        proxy = handshake
        perform(action)
    }

    private func perform(_ action: ProxyAction) {
        switch action {
        case .send(let bytes):
            output = bytes
            outputOffset = 0
            continueProxy()
        case .needsInput: stream?.watch(.readable, self)
        case .reconnect: reconnect()
        case .established: beginTLS()
        case .failed(let error): fail(error)
        }
    }

    /// Connects to the proxy again, after it answered a request for a tunnel and closed the connection.
    private func reconnect() {
        closeStream()
        step = .connecting
        race.start(to: addresses.peer)
    }

    private func continueProxy() {
        guard sendOutput(), let stream, var handshake = proxy else { return }
        stream.watch(.readable, self)
        let action: ProxyAction
        switch unsafe stream.read(into: context.receiveBuffer) {
        case .bytes(let count):
            action = unsafe handshake.receive(UnsafeRawBufferPointer(rebasing: context.receiveBuffer[..<count]))
        case .wouldBlock: return
        case .end, .failed: action = handshake.end()
        }
        proxy = handshake
        perform(action)
    }

    /// Returns whether everything is sent.
    private func sendOutput() -> Bool {
        guard let stream else { return false }
        while outputOffset < output.count {
            let result = unsafe output.withUnsafeBytes { bytes in
                unsafe stream.write(UnsafeRawBufferPointer(rebasing: bytes[outputOffset...]))
            }
            switch result {
            case .bytes(let count): outputOffset += count
            case .wouldBlock:
                stream.watch(.writable, self)
                return false
            // The proxy can have answered before it closed the connection. Reading tells the reason.
            case .failed: outputOffset = output.count
            }
        }
        output = []
        outputOffset = 0
        return true
    }
}

// MARK: TLS with the server

extension ConnectAttempt {
    private func beginTLS() {
        guard let trust = destination.trust, let stream else { return finish() }
        do {
            let target = TLSTarget(
                host: destination.host, authority: destination.name,
                protocols: destination.allowsHTTP2 ? ["h2", "http/1.1"] : ["http/1.1"],
                origin: "\(destination.origin) \(destination.proxy?.name ?? "")")
            if let proxyTLS {
                tls = try TLSSession(policy: trust, target: target, outer: proxyTLS, resumption: resumption)
            } else {
                tls = try TLSSession(
                    policy: trust, target: target, descriptor: stream.descriptor, resumption: resumption)
            }
        } catch {
            return fail(error)
        }
        step = .tls
        continueTLS()
    }

    private func continueTLS() {
        switch tls?.handshake() {
        case .done:
            // A handshake can take a whole turn, whose time is that of its beginning.
            opening.tlsEnd = MonotonicClock.nanoseconds()
            opening.pinReport = tls?.pinReport
            stream?.secure(with: tls)
            beginReview()
        case .wantsRead: stream?.watch(.readable, self)
        case .wantsWrite: stream?.watch(.writable, self)
        case .failed(let error): fail(error)
        case nil: return
        }
    }
}

// MARK: The review of certificates by the caller

extension ConnectAttempt: AnswerHandler {
    /// Begins the review of the server, whose handshake is done, or finishes if the policy has none.
    private func beginReview() {
        guard let decide = tls?.review else { return finish() }
        step = .reviewing
        // Bytes from the server wait in the socket meanwhile, and so does the end of the connection.
        stream?.watch([], self)
        let (loop, number) = (context.loop, context.expectAnswer(self))
        review = (number, Task { loop.post(answer: await decide(), to: number) })
    }

    func receive(answer: any Sendable) {
        guard case .reviewing = step, let verdict = answer as? TLSVerdict else { return }
        review = nil
        switch verdict {
        case .refused(let reason):
            let text = "the trust policy's own decision refused \(destination.name): \(reason)"
            return fail(EngineError(.untrustedServer, text))
        case .reported(let report): opening.pinReport = report
        case .accepted: break
        }
        finish()
    }
}
#endif
