#if os(Linux)
import Dispatch
import TernConcurrency

/// The owner of an attempt to connect.
protocol ConnectAttemptOwner: AnyObject {
    func attempt(_ attempt: ConnectAttempt, didConnect stream: ByteStream, info: ConnectionInfo)
    func attempt(_ attempt: ConnectAttempt, didFail error: EngineError)
}

/// Opens a connection to a destination: names → sockets → TLS with the proxy → handshake with the proxy → TLS. Confined
/// to the loop's thread.
///
/// It has no time limit of its own: the exchange that needs the connection has one, and cancels the attempt.
final class ConnectAttempt {
    private enum Step {
        /// Names are looked up, and authorities are loaded.
        case preparing
        /// Sockets are connecting.
        case racing
        case proxyTLS
        case proxy
        case tls
        case ended
    }

    /// A question to another thread, whose answer must arrive before the first socket is opened.
    private enum Question {
        case peer, server, trust
    }

    let id: ConnectionPool.ConnectionID
    let destination: Destination
    private let context: LoopContext
    private let authorize: ProxyTunnel.Authorize
    private let resumption: TLSResumption
    private weak var owner: (any ConnectAttemptOwner)?
    private var step = Step.preparing
    private var info = ConnectionInfo()
    private var answers: [Answer] = []
    private var lookUps: [LookUp] = []
    private var addresses: [SocketAddress] = []
    /// The address of the server behind a proxy that does not resolve names.
    private var serverAddress: SocketAddress?
    private var race = HappyEyeballs([])
    private var racers: [Racer] = []
    private lazy var timer = LoopTimer(self)
    /// The socket that has won the race, until it is handed over.
    private var socket: SocketPlace?
    private var events = SocketEvents.writable
    private var proxyTLS: TLSSession?
    private var tls: TLSSession?
    private var proxy: ProxyHandshake?
    private var output: [UInt8] = []
    private var outputOffset = 0

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

    /// Ends the attempt without a call to its owner.
    func cancel() {
        step = .ended
        for lookUp in lookUps { lookUp.cancel() }
        lookUps = []
        for answer in answers { context.cancelAnswer(answer.number) }
        answers = []
        context.cancel(timer)
        for racer in racers { racer.close(context) }
        racers = []
        tls?.close()
        (tls, proxyTLS) = (nil, nil)
        if let socket {
            context.forget(socket)
            Socket.close(socket.descriptor)
        }
        socket = nil
    }

    private func fail(_ error: EngineError) {
        cancel()
        owner?.attempt(self, didFail: error)
    }

    /// The peer of the socket, for errors.
    private var peerName: String {
        if let path = destination.unixSocketPath { return "the Unix socket \(path)" }
        return destination.proxy.map { "the proxy \($0.name)" } ?? destination.name
    }
}

// MARK: Names and authorities

extension ConnectAttempt: AnswerHandler {
    /// An answer that is expected from another thread.
    private struct Answer {
        let number: UInt64
        let question: Question
    }

    /// The answer of another thread.
    private enum Content: Sendable {
        case addresses(Result<[SocketAddress], EngineError>)
        case trust(EngineError?)
    }

    private struct Numbered: Sendable {
        let question: Question
        let content: Content
    }

    func start() {
        if let path = destination.unixSocketPath {
            do {
                addresses = [try SocketAddress.unix(path: path)]
            } catch {
                return fail(error)
            }
        } else if let proxy = destination.proxy {
            lookUp(proxy.host, port: proxy.port, for: .peer)
            // A proxy for which names are resolved here gets the first address.
            if proxy.needsLocalNames {
                if let addresses = destination.addresses {
                    take(addresses, for: .server)
                } else {
                    lookUp(destination.host, port: destination.port, for: .server)
                }
            }
        } else if let addresses = destination.addresses {
            self.addresses = addresses
        } else {
            lookUp(destination.host, port: destination.port, for: .peer)
        }
        prepare([destination.trust, destination.proxyTrust].compactMap(\.self).filter { !$0.isPrepared })
        raceIfPrepared()
    }

    private func lookUp(_ name: String, port: UInt16, for question: Question) {
        if let known = Resolver.shared.cached(name, port: port) { return take(known, for: question) }
        let number = expect(question)
        let loop = context.loop
        lookUps.append(
            Resolver.shared.lookUp(name, port: port) { result in
                loop.post(answer: Numbered(question: question, content: .addresses(result)), to: number)
            })
    }

    /// Loads the authorities of policies, which takes milliseconds.
    private func prepare(_ policies: [TLSPolicy]) {
        if policies.isEmpty { return }
        let number = expect(.trust)
        let loop = context.loop
        DispatchQueue.global().async {
            let error = policies.lazy.compactMap { $0.prepare() }.first
            loop.post(answer: Numbered(question: .trust, content: .trust(error)), to: number)
        }
    }

    private func expect(_ question: Question) -> UInt64 {
        let number = context.expectAnswer(self)
        answers.append(Answer(number: number, question: question))
        return number
    }

    func receive(answer: any Sendable) {
        guard let answer = answer as? Numbered else { return }
        if let index = answers.firstIndex(where: { $0.question == answer.question }) { answers.remove(at: index) }
        switch answer.content {
        case .addresses(.success(let addresses)): take(addresses, for: answer.question)
        case .addresses(.failure(let error)): return fail(failure(error, of: answer.question))
        case .trust(let error?): return fail(error)
        case .trust(nil): break
        }
        raceIfPrepared()
    }

    private func take(_ addresses: [SocketAddress], for question: Question) {
        guard question == .server else {
            self.addresses = addresses
            return
        }
        // Few proxies reach IPv6 addresses, and SOCKS 4 has no form for them.
        serverAddress = addresses.first { $0.family == .ipv4 } ?? addresses.first
    }

    /// Returns the failure of a look-up. The name of a proxy is not that of the request.
    private func failure(_ error: EngineError, of question: Question) -> EngineError {
        guard let proxy = destination.proxy, question == .peer, error.kind == .dns else { return error }
        return proxy.failure(to: destination.name, error.reason)
    }

    private func raceIfPrepared() {
        guard case .preparing = step, answers.isEmpty else { return }
        step = .racing
        info.nameLookupEnd = context.now
        race = HappyEyeballs(addresses)
        continueRace()
    }
}

// MARK: Sockets

extension ConnectAttempt: TimerHandler {
    /// A socket of the race.
    private final class Racer: SocketHandler {
        let index: Int
        let address: SocketAddress
        unowned let attempt: ConnectAttempt
        var socket: SocketPlace?

        init(_ index: Int, _ address: SocketAddress, of attempt: ConnectAttempt) {
            self.index = index
            self.address = address
            self.attempt = attempt
        }

        func socketIsReady(_ events: SocketEvents) { attempt.isReady(self) }

        func close(_ context: LoopContext) {
            guard let socket else { return }
            self.socket = nil
            context.forget(socket)
            Socket.close(socket.descriptor)
        }
    }

    func timerFired(_ timer: LoopTimer) { continueRace() }

    private func continueRace() {
        while case .racing = step {
            switch race.next(now: context.now) {
            case .connect(let index): open(index)
            case .abandon(let index): racers.first { $0.index == index }?.close(context)
            case .wait(let time): return context.schedule(timer, at: time ?? .max)
            case .won(let index): finishRace(index)
            case .failed(let error): return fail(error.connectFailure(to: peerName))
            }
        }
    }

    private func open(_ index: Int) {
        let address = race.addresses[index]
        do throws(SystemError) {
            let descriptor = try Socket.open(for: address)
            let attempt: Socket.Attempt
            do throws(SystemError) {
                try Socket.bind(descriptor, to: destination.localEndpoint, for: address)
                attempt = Socket.connect(descriptor, to: address)
                if case .failed(let error) = attempt { throw error }
            } catch {
                Socket.close(descriptor)
                throw error
            }
            let racer = Racer(index, address, of: self)
            guard let place = context.watch(descriptor, for: .writable, handler: racer) else {
                let error = SystemError.last
                Socket.close(descriptor)
                throw error
            }
            racer.socket = place
            racers.append(racer)
            if attempt == .connected { race.connected(index) }
        } catch {
            race.failed(index, error: error)
        }
    }

    private func isReady(_ racer: Racer) {
        guard let socket = racer.socket else { return }
        switch Socket.finishConnecting(socket.descriptor, to: racer.address) {
        case .pending: return
        case .connected: race.connected(racer.index)
        case .failed(let error):
            racer.close(context)
            race.failed(racer.index, error: error)
        }
        continueRace()
    }

    private func finishRace(_ index: Int) {
        context.cancel(timer)
        guard let winner = racers.first(where: { $0.index == index }), let socket = winner.socket else { return }
        winner.socket = nil
        racers = []
        self.socket = socket
        context.change(socket, handler: self)
        info.connectEnd = context.now
        if destination.unixSocketPath == nil {
            info.remoteAddress = winner.address.text
            info.remotePort = winner.address.port
        }
        beginProxy()
    }
}

// MARK: Handshakes

extension ConnectAttempt: SocketHandler {
    func socketIsReady(_ events: SocketEvents) {
        switch step {
        case .proxyTLS: continueProxyTLS()
        case .proxy: continueProxy()
        case .tls: continueTLS()
        case .preparing, .racing, .ended: return
        }
    }

    private func watch(_ wanted: SocketEvents) {
        guard wanted != events, let socket else { return }
        events = wanted
        context.change(socket, to: wanted)
    }

    private func beginProxy() {
        guard let address = destination.proxy, let socket else { return beginTLS() }
        guard let trust = destination.proxyTrust else { return greetProxy() }
        do {
            let target = TLSTarget(
                host: address.host, authority: "the proxy \(address.name)", protocols: ["http/1.1"],
                origin: "proxy://\(address.name)")
            proxyTLS = try TLSSession(
                policy: trust, target: target, descriptor: socket.descriptor, resumption: resumption)
        } catch {
            return fail(error)
        }
        step = .proxyTLS
        continueProxyTLS()
    }

    private func continueProxyTLS() {
        switch proxyTLS?.handshake() {
        case .done: greetProxy()
        case .wantsRead: watch(.readable)
        case .wantsWrite: watch(.writable)
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
                address, host: destination.host, port: destination.port, address: serverAddress, authorize: authorize)
        let action = handshake.start()
        proxy = handshake
        perform(action)
    }

    private func perform(_ first: ProxyAction) {
        switch first {
        case .send(let bytes):
            output = bytes
            outputOffset = 0
            continueProxy()
        case .needsInput: watch(.readable)
        case .reconnect: reconnect()
        case .established: beginTLS()
        case .failed(let error): fail(error)
        }
    }

    /// Connects to the proxy again, after it answered a request for a tunnel and closed the connection.
    private func reconnect() {
        proxyTLS?.close()
        proxyTLS = nil
        if let socket {
            context.forget(socket)
            Socket.close(socket.descriptor)
        }
        socket = nil
        events = .writable
        step = .racing
        race = HappyEyeballs(addresses)
        continueRace()
    }

    private func continueProxy() {
        guard sendOutput() else { return }
        watch(.readable)
        let reading: ByteStream.Reading
        if let proxyTLS {
            reading =
                switch unsafe proxyTLS.read(into: context.receiveBuffer) {
                case .bytes(let count): .bytes(count)
                case .wouldBlock, .wantsWrite: .wouldBlock
                case .end(let isClean): .end(isClean: isClean)
                case .failed(let error): .failed(error)
                }
        } else {
            guard let socket else { return }
            reading =
                switch unsafe Socket.receive(socket.descriptor, into: context.receiveBuffer) {
                case .bytes(let count): .bytes(count)
                case .wouldBlock: .wouldBlock
                case .end: .end(isClean: true)
                case .failed(let error): .failed(error.connectFailure(to: peerName))
                }
        }
        guard var handshake = proxy else { return }
        switch reading {
        case .bytes(let count):
            let action = unsafe handshake.receive(UnsafeRawBufferPointer(rebasing: context.receiveBuffer[..<count]))
            proxy = handshake
            perform(action)
        case .wouldBlock: return
        case .end, .failed:
            let action = handshake.end()
            proxy = handshake
            perform(action)
        }
    }

    /// Returns whether everything is sent.
    private func sendOutput() -> Bool {
        while outputOffset < output.count {
            let result = unsafe output.withUnsafeBytes { bytes in
                unsafe write(UnsafeRawBufferPointer(rebasing: bytes[outputOffset...]))
            }
            switch result {
            case .bytes(let count): outputOffset += count
            case .wouldBlock:
                watch(.writable)
                return false
            // Reading tells why.
            case .failed: outputOffset = output.count
            }
        }
        output = []
        outputOffset = 0
        return true
    }

    private func write(_ bytes: UnsafeRawBufferPointer) -> ByteStream.Writing {
        if let proxyTLS {
            return switch unsafe proxyTLS.write(bytes) {
            case .bytes(let count): .bytes(count)
            case .wouldBlock: .wouldBlock
            case .failed(let error): .failed(error)
            }
        }
        guard let socket else { return .wouldBlock }
        return switch unsafe Socket.send(socket.descriptor, from: bytes) {
        case .bytes(let count): .bytes(count)
        case .wouldBlock, .end: .wouldBlock
        case .failed(let error): .failed(error.connectFailure(to: peerName))
        }
    }

    private func beginTLS() {
        guard let trust = destination.trust, let socket else { return hand(over: nil) }
        do {
            let target = TLSTarget(
                host: destination.host, authority: destination.name,
                protocols: destination.allowsHTTP2 ? ["h2", "http/1.1"] : ["http/1.1"],
                origin: "\(destination.origin) \(destination.proxy?.name ?? "")")
            if let proxyTLS {
                tls = try TLSSession(policy: trust, target: target, outer: proxyTLS, resumption: resumption)
            } else {
                tls = try TLSSession(
                    policy: trust, target: target, descriptor: socket.descriptor, resumption: resumption)
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
            info.tlsEnd = MonotonicClock.nanoseconds()
            info.pinReport = tls?.pinReport
            hand(over: tls)
        case .wantsRead: watch(.readable)
        case .wantsWrite: watch(.writable)
        case .failed(let error): fail(error)
        case nil: return
        }
    }

    /// Hands the connection over to the owner.
    private func hand(over session: TLSSession?) {
        guard let socket else { return }
        step = .ended
        self.socket = nil
        let stream = ByteStream(context, socket, watching: events, tls: session ?? proxyTLS)
        (tls, proxyTLS) = (nil, nil)
        owner?.attempt(self, didConnect: stream, info: info)
    }
}
#endif
