#if os(Linux)
import Synchronization
import TernConcurrency

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Resolves the names of hosts by `getaddrinfo`, on at most eight threads of its own.
///
/// Threads start with the first name and end when none has come for some seconds. Several look-ups of one name share
/// one resolution. Answers are kept for 60 seconds, failures are not kept. Loopback names need no look-up (RFC 6761
/// §6.3).
package final class Resolver: Sendable {
    /// Called once with the addresses in the order of preference (RFC 6724), or with the failure.
    package typealias Completion = @Sendable (Result<[SocketAddress], EngineError>) -> Void
    /// Resolves a name and blocks meanwhile. The addresses have the port 0.
    typealias Function = @Sendable (String) -> Result<[SocketAddress], EngineError>

    /// The resolver of the process.
    package static let shared = Resolver()

    private let table: Lock<ResolverTable<LookUp>>
    /// The number of look-ups so far.
    private let count = Atomic<UInt64>(0)
    private let signal = MonotonicSemaphore()
    private let linger: Duration
    private let now: @Sendable () -> UInt64
    private let resolve: Function

    package convenience init() {
        self.init(linger: .seconds(5), now: MonotonicClock.nanoseconds) { SystemResolver.addresses(of: $0) }
    }

    /// - Parameters:
    ///   - linger: The time for which a thread waits for another name before it ends.
    ///   - now: The time in nanoseconds, by which answers expire.
    ///   - resolve: The function that the threads call.
    init(linger: Duration, now: @escaping @Sendable () -> UInt64, resolve: @escaping Function) {
        table = Lock(ResolverTable(threadLimit: 8, lifetime: 60_000_000_000, answerLimit: 512))
        self.linger = linger
        self.now = now
        self.resolve = resolve
    }

    /// The number of threads that run.
    var threads: Int { table.withLock { $0.threads } }

    /// Returns the addresses of a name without a look-up: those of an address literal, of a loopback name, or of an
    /// answer that is kept. Returns nil if a look-up is needed.
    package func cached(_ name: String, port: UInt16) -> [SocketAddress]? {
        if let addresses = Self.fixedAddresses(of: name, port: port) { return addresses }
        let time = now()
        return table.withLock { $0.answer(for: name, now: time) }?.map { $0.with(port: port) }
    }

    /// Starts a look-up. Cancelling it never waits.
    ///
    /// The completion is called exactly once unless the look-up is cancelled before, on a thread of the resolver and
    /// without a lock. It is called before this method returns if no look-up is needed or no thread can be started.
    ///
    /// - Parameters:
    ///   - name: The name in its canonical form: names of different forms are different names here.
    ///   - port: The port of the addresses.
    package func lookUp(_ name: String, port: UInt16, completion: @escaping Completion) -> LookUp {
        let number = count.wrappingAdd(1, ordering: .relaxed).newValue
        let lookUp = LookUp(number, name: name, port: port, resolver: self, completion: completion)
        if let addresses = Self.fixedAddresses(of: name, port: port) {
            lookUp.complete(.success(addresses))
            return lookUp
        }
        let time = now()
        switch table.withLock({ $0.add(lookUp, number: number, name: name, now: time) }) {
        case .answer(let addresses): lookUp.complete(.success(addresses))
        case .wait: break
        case .wakeThread: signal.signal()
        case .startThread: startThread()
        }
        return lookUp
    }

    fileprivate func remove(_ lookUp: LookUp) {
        table.withLock { $0.remove(number: lookUp.number, name: lookUp.name) }
    }

    /// Returns the addresses of a literal or a loopback name; nil for other names.
    private static func fixedAddresses(of name: String, port: UInt16) -> [SocketAddress]? {
        if let address = SocketAddress(numeric: name, port: port) { return [address] }
        let label = name.utf8.last == UInt8(ascii: ".") ? name.dropLast() : name[...]
        let end = label.utf8.suffix(10).map { 0x41...0x5A ~= $0 ? $0 | 0x20 : $0 }
        guard end.suffix(9).elementsEqual("localhost".utf8), end.count == 9 || end[0] == UInt8(ascii: ".") else {
            return nil
        }
        return [.ipv6(high: 0, low: 1, scope: 0, port: port), .ipv4(0x7F00_0001, port: port)]
    }

    // MARK: - Threads

    /// Blocks SIGPIPE in the calling thread, which ends with the resolver's work. The C library writes to a name server
    /// over TCP without a flag against it, so that a server that ends the connection would end the process.
    private static func blockPipeSignal() {
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe sigaddset(&signals, SIGPIPE)
        unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    private func startThread() {
        let retained = unsafe Unmanaged.passRetained(self)
        var thread = pthread_t()
        let code = unsafe pthread_create(
            &thread, nil,
            { argument in
                if let argument = unsafe argument {
                    unsafe Unmanaged<Resolver>.fromOpaque(argument).takeRetainedValue().work()
                }
                return nil
            }, retained.toOpaque())
        if code == 0 {
            pthread_detach(thread)
            return
        }
        unsafe retained.release()
        let error = SystemError(code)
        for lookUp in table.withLock({ $0.threadFailed() }) {
            let reason = "the name '\(lookUp.name)' was not resolved, because no thread could be started"
            lookUp.complete(.failure(EngineError(.connectionFailed, "\(reason): \(error.text)", code: code)))
        }
    }

    private func work() {
        Self.blockPipeSignal()
        var next = table.withLock { $0.next() }
        while true {
            switch next {
            case .resolve(let name):
                let result = resolve(name)
                let time = now()
                let addresses = (try? result.get()) ?? []  // The waiters get the error itself.
                for lookUp in table.withLock({ $0.finish(name, addresses: addresses, now: time) }) {
                    lookUp.complete(result)
                }
                next = table.withLock { $0.next() }
            case .wait:
                let hasSignal = signal.wait(for: linger)
                next = table.withLock { hasSignal ? $0.next() : $0.nextAfterTimeout() }
            case .end:
                return
            }
        }
    }
}

/// A look-up of a name by a `Resolver`.
package final class LookUp: Sendable {
    fileprivate let number: UInt64
    fileprivate let name: String
    private let port: UInt16
    private let resolver: Resolver
    private let completion: Lock<Resolver.Completion?>

    fileprivate init(
        _ number: UInt64, name: String, port: UInt16, resolver: Resolver, completion: @escaping Resolver.Completion
    ) {
        self.number = number
        self.name = name
        self.port = port
        self.resolver = resolver
        self.completion = Lock(completion)
    }

    /// Cancels the look-up without waiting. Its completion is not called any more, unless a thread is calling it at
    /// this moment.
    package func cancel() {
        if takeCompletion() != nil { resolver.remove(self) }
    }

    fileprivate func complete(_ result: Result<[SocketAddress], EngineError>) {
        guard let completion = takeCompletion() else { return }
        completion(result.map { $0.map { $0.with(port: port) } })
    }

    private func takeCompletion() -> Resolver.Completion? {
        completion.withLock { completion in
            defer { completion = nil }
            return completion
        }
    }
}
#endif
