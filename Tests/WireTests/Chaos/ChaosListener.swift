#if os(Linux) && !TERN_URLSESSION
import CTernTestTLS
import Foundation
import Glibc
import TernConcurrency

/// A listener of TLS on 127.0.0.1, whose connections have a thread each.
final class ChaosListener: Sendable {
    struct CreationFailed: Error {}

    private struct State {
        var descriptors: Set<Int32> = []
        var accepted = 0
        var isStopped = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    let port: Int
    /// The certificate of the authority in PEM form.
    let authority: Data
    let ledger: ChaosLedger
    private let descriptor: Int32
    /// The addresses of the settings of TLS 1.2 and 1.3, which live as long as the listener.
    private let contexts: [UInt]
    private let state = Lock(State())
    private let ended = DispatchSemaphore(value: 0)

    /// The number of connections so far.
    var acceptedCount: Int { state.withLock { $0.accepted } }

    /// - Parameters:
    ///   - protocolName: The protocol that the server chooses in the handshake.
    ///   - serve: Serves a connection on its thread.
    init(_ protocolName: String, ledger: ChaosLedger, serve: @escaping @Sendable (ChaosSocket) -> Void) throws {
        self.ledger = ledger
        (contexts, authority) = try Self.makeContexts(protocolName)
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = descriptor
        let isReady = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe bind(listener, pointer, length) == 0 && listen(listener, 1_024) == 0
                    && getsockname(listener, pointer, &length) == 0
            }
        }
        guard isReady else { throw CreationFailed() }
        port = Int(UInt16(bigEndian: address.sin_port))
        Thread.detachNewThread { self.accept(serve) }
    }

    private static func makeContexts(_ protocolName: String) throws -> ([UInt], Data) {
        let day = 86_400
        let root = unsafe tern_test_identity_create(nil, "root", "", 1, -day, day)
        let leaf = unsafe tern_test_identity_create(root, "server", "IP:127.0.0.1", 0, -day, day)
        defer {
            unsafe tern_test_identity_free(root)
            unsafe tern_test_identity_free(leaf)
        }
        var count = 0
        guard let root = unsafe root, let leaf = unsafe leaf, let pem = unsafe tern_test_certificate_pem(root, &count)
        else { throw CreationFailed() }
        defer { unsafe free(pem) }
        let contexts = try [Int32(12), 13].map { version in
            var options = unsafe tern_test_options()
            unsafe options.identity = leaf
            unsafe options.version = version
            let created = unsafe protocolName.withCString { name in
                unsafe options.`protocol` = name
                return unsafe tern_test_settings_create(options)
            }
            guard let created = unsafe created else { throw CreationFailed() }
            return UInt(bitPattern: created)
        }
        return (contexts, unsafe Data(bytes: pem, count: count))
    }

    deinit {
        for context in contexts { unsafe tern_test_settings_free(OpaquePointer(bitPattern: context)) }
    }

    private func accept(_ serve: @escaping @Sendable (ChaosSocket) -> Void) {
        while true {
            let client = Glibc.accept(descriptor, nil, nil)
            if client < 0 {
                if errno == EINTR || errno == ECONNABORTED { continue }
                break
            }
            _ = fcntl(client, F_SETFD, FD_CLOEXEC)
            _ = fcntl(client, F_SETFL, O_NONBLOCK)
            var isOn: Int32 = 1
            let size = socklen_t(MemoryLayout<Int32>.size)
            _ = unsafe setsockopt(client, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, size)
            let index = state.withLock { state in
                state.descriptors.insert(client)
                state.accepted += 1
                return state.accepted - 1
            }
            Thread.detachNewThread { self.start(client, index: index, serve) }
        }
        Glibc.close(descriptor)
        ended.signal()
    }

    private func start(_ client: Int32, index: Int, _ serve: (ChaosSocket) -> Void) {
        guard let context = unsafe OpaquePointer(bitPattern: contexts[index % contexts.count]),
            let socket = unsafe ChaosSocket(client, index: index, context: context, listener: self)
        else { return close(client) }
        serve(socket)
    }

    /// Closes the descriptor of a connection.
    func close(_ client: Int32) {
        let waiters = state.withLock { state in
            state.descriptors.remove(client)
            Glibc.close(client)
            return Self.takeWaiters(&state)
        }
        for waiter in waiters { waiter.resume() }
    }

    private static func takeWaiters(_ state: inout State) -> [CheckedContinuation<Void, Never>] {
        guard state.descriptors.isEmpty || state.isStopped else { return [] }
        defer { state.waiters = [] }
        return state.waiters
    }

    /// Returns when no connection is open, or after `stop()`.
    func waitUntilIdle() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                let waiters = state.withLock { state in
                    state.waiters.append(waiter)
                    return Self.takeWaiters(&state)
                }
                for waiter in waiters { waiter.resume() }
            }
        } onCancel: {
            stop()
        }
    }

    /// Ends the listener and all connections. The listener is closed at return.
    func stop() {
        let (isFirst, waiters) = state.withLock { state in
            let isFirst = !state.isStopped
            state.isStopped = true
            for client in state.descriptors { _ = shutdown(client, Int32(SHUT_RDWR)) }
            return (isFirst, Self.takeWaiters(&state))
        }
        for waiter in waiters { waiter.resume() }
        if isFirst {
            _ = shutdown(descriptor, Int32(SHUT_RDWR))
            ended.wait()
        }
    }
}
#endif
