#if os(Linux)
import Dispatch
import TernConcurrency

/// The owner of a preparation.
protocol ConnectPreparationOwner: AnyObject {
    func preparation(_ preparation: ConnectPreparation, didFind addresses: ConnectPreparation.Addresses)
    func preparation(_ preparation: ConnectPreparation, didFail error: EngineError)
}

/// Looks up the names of a destination and loads its authorities, on other threads, before the first socket is opened.
/// Confined to the loop's thread.
///
/// It ends with one call to its owner, or with `cancel()`.
final class ConnectPreparation {
    /// The addresses that a destination needs.
    struct Addresses {
        /// The addresses of the peer: the server, its proxy or a Unix socket.
        var peer: [SocketAddress] = []
        /// The address of the server behind a proxy that does not resolve names.
        var server: SocketAddress?
    }

    /// A question to another thread.
    private enum Question {
        case peer, server, trust
    }

    /// A question whose answer has not arrived.
    private struct Expected {
        let number: UInt64
        let question: Question
    }

    /// The answer of another thread.
    private struct Answer: Sendable {
        enum Content: Sendable {
            case addresses(Result<[SocketAddress], EngineError>)
            case trust(EngineError?)
        }

        let question: Question
        let content: Content
    }

    private let destination: Destination
    /// The place of the server in place of its host and port; nil for those.
    private let alternative: AlternativeService?
    private let context: LoopContext
    private weak var owner: (any ConnectPreparationOwner)?
    private var found = Addresses()
    private var expected: [Expected] = []
    private var lookUps: [LookUp] = []

    init(
        _ destination: Destination, at alternative: AlternativeService? = nil, context: LoopContext,
        owner: any ConnectPreparationOwner
    ) {
        self.destination = destination
        self.alternative = alternative
        self.context = context
        self.owner = owner
    }

    /// Starts the look-ups. If nothing has to be waited for, the owner is called before this method returns.
    func start() {
        if let path = destination.unixSocketPath {
            do {
                found.peer = [try SocketAddress.unix(path: path)]
            } catch {
                return fail(error)
            }
        } else if let proxy = destination.proxy {
            lookUp(proxy.host, port: proxy.port, for: .peer)
            if proxy.needsLocalNames { findServer() }
        } else if let addresses = destination.addresses {
            found.peer = alternative.map { place in addresses.map { $0.with(port: place.port) } } ?? addresses
        } else {
            lookUp(
                alternative?.host ?? destination.host, port: alternative?.port ?? destination.port, for: .peer)
        }
        prepare([destination.trust, destination.proxyTrust].compactMap(\.self).filter { !$0.isPrepared })
        endIfDone()
    }

    /// Ends the preparation without a call to its owner.
    func cancel() {
        for lookUp in lookUps { lookUp.cancel() }
        lookUps = []
        for answer in expected { context.cancelAnswer(answer.number) }
        expected = []
    }

    private func fail(_ error: EngineError) {
        cancel()
        owner?.preparation(self, didFail: error)
    }

    private func endIfDone() {
        if expected.isEmpty { owner?.preparation(self, didFind: found) }
    }

    // MARK: Questions

    private func findServer() {
        if let addresses = destination.addresses {
            take(addresses, for: .server)
        } else {
            lookUp(destination.host, port: destination.port, for: .server)
        }
    }

    private func lookUp(_ name: String, port: UInt16, for question: Question) {
        if let known = Resolver.shared.cached(name, port: port) { return take(known, for: question) }
        let number = expect(question)
        let loop = context.loop
        lookUps.append(
            Resolver.shared.lookUp(name, port: port) { result in
                loop.post(answer: Answer(question: question, content: .addresses(result)), to: number)
            })
    }

    /// Loads the authorities of policies, which takes milliseconds.
    private func prepare(_ policies: [TLSPolicy]) {
        if policies.isEmpty { return }
        let number = expect(.trust)
        let loop = context.loop
        DispatchQueue.global().async {
            let error = policies.lazy.compactMap { $0.prepare() }.first
            loop.post(answer: Answer(question: .trust, content: .trust(error)), to: number)
        }
    }

    private func expect(_ question: Question) -> UInt64 {
        let number = context.expectAnswer(self)
        expected.append(Expected(number: number, question: question))
        return number
    }

    // MARK: Answers

    private func take(_ addresses: [SocketAddress], for question: Question) {
        guard question == .server else {
            found.peer = addresses
            return
        }
        // Few proxies reach IPv6 addresses, and SOCKS 4 has no form for them.
        found.server = addresses.first { $0.family == .ipv4 } ?? addresses.first
    }

    /// Returns the failure of a look-up. The name of a proxy is not that of the request.
    private func failure(_ error: EngineError, of question: Question) -> EngineError {
        guard let proxy = destination.proxy, question == .peer, error.kind == .dns else { return error }
        return proxy.failure(to: destination.name, error.reason)
    }
}

extension ConnectPreparation: AnswerHandler {
    func receive(answer: any Sendable) {
        guard let answer = answer as? Answer else { return }
        if let index = expected.firstIndex(where: { $0.question == answer.question }) { expected.remove(at: index) }
        switch answer.content {
        case .addresses(.success(let addresses)): take(addresses, for: answer.question)
        case .addresses(.failure(let error)): return fail(failure(error, of: answer.question))
        case .trust(let error?): return fail(error)
        case .trust(nil): break
        }
        endIfDone()
    }
}
#endif
