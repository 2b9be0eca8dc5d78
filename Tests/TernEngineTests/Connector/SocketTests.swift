#if os(Linux)
import Testing

@testable import TernEngine

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

private func disconnect(_ descriptor: Int32, _ address: UnsafePointer<sockaddr>) -> Int32 {
    unsafe connect(descriptor, address, socklen_t(MemoryLayout<sockaddr>.size))
}

// Inside `Listener`, `accept` is its own method.
private func acceptNext(_ descriptor: Int32) -> Int32 { accept(descriptor, nil, nil) }

/// A listener on loopback or on a Unix socket. Closed by `deinit`.
private final class Listener {
    let descriptor: Int32
    let address: SocketAddress

    init(_ address: SocketAddress) throws {
        descriptor = try Socket.open(for: address)
        let listener = descriptor
        try #require(unsafe address.withSystemAddress { unsafe bind(listener, $0, $1) } == 0)
        try #require(listen(listener, 8) == 0)
        self.address = try #require(Socket.local(of: listener))
    }

    convenience init(_ text: String = "127.0.0.1") throws {
        try self.init(#require(SocketAddress(numeric: text, port: 0)))
    }

    deinit { Socket.close(descriptor) }

    /// Accepts a connection that waits or comes.
    func accept() throws -> Int32 {
        try wait(for: Int16(POLLIN), on: descriptor)
        let accepted = acceptNext(descriptor)
        try #require(accepted >= 0)
        return accepted
    }
}

/// Owns nothing.
private final class Marker {}

/// Waits at most ten seconds for events on a socket.
private func wait(for events: Int16, on descriptor: Int32) throws {
    var entry = pollfd(fd: descriptor, events: events, revents: 0)
    try #require(unsafe poll(&entry, 1, 10_000) == 1)
}

/// Two ends of a connection. Closed by `deinit`.
private final class Connection {
    let client: Int32
    let server: Int32

    init(_ text: String = "127.0.0.1") throws {
        let listener = try Listener(text)
        client = try Socket.open(for: listener.address)
        var attempt = Socket.connect(client, to: listener.address)
        if attempt == .pending {
            try wait(for: Int16(POLLOUT), on: client)
            attempt = Socket.finishConnecting(client, to: listener.address)
        }
        try #require(attempt == .connected)
        server = try listener.accept()
    }

    deinit {
        Socket.close(client)
        Socket.close(server)
    }
}

private func send(_ bytes: [UInt8], on descriptor: Int32) -> Socket.Transfer {
    unsafe bytes.withUnsafeBytes { unsafe Socket.send(descriptor, from: $0) }
}

/// Receives a number of bytes, waiting for them.
private func receive(_ count: Int, on descriptor: Int32) throws -> [UInt8] {
    var received: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while received.count < count {
        try wait(for: Int16(POLLIN), on: descriptor)
        let result = unsafe buffer.withUnsafeMutableBytes { unsafe Socket.receive(descriptor, into: $0) }
        guard case .bytes(let number) = result else { return received }
        received += buffer[..<number]
    }
    return received
}

/// Receives into a buffer of one byte.
private func receiveByte(on descriptor: Int32) -> Socket.Transfer {
    var byte: UInt8 = 0
    return unsafe withUnsafeMutableBytes(of: &byte) { unsafe Socket.receive(descriptor, into: $0) }
}

private func option(_ name: Int32, level: Int32, of descriptor: Int32) -> Int32 {
    var value: Int32 = -1
    var length = socklen_t(MemoryLayout<Int32>.size)
    unsafe getsockopt(descriptor, level, name, &value, &length)
    return value
}

/// Runs a function with SIGPIPE blocked, and returns whether the signal is pending in this thread afterwards.
private func pendingAfter<Result>(_ body: () -> Result) -> (isPending: Bool, result: Result) {
    var (pipe, before, pending) = (sigset_t(), sigset_t(), sigset_t())
    unsafe sigemptyset(&pipe)
    unsafe sigaddset(&pipe, SIGPIPE)
    unsafe pthread_sigmask(SIG_BLOCK, &pipe, &before)
    let result = body()
    unsafe sigpending(&pending)
    let isPending = unsafe sigismember(&pending, SIGPIPE) == 1
    var none = timespec()
    if isPending { _ = unsafe sigtimedwait(&pipe, nil, &none) }
    unsafe pthread_sigmask(SIG_SETMASK, &before, nil)
    return (isPending, result)
}

/// A thread that ends a connection by a reset once its peer cannot send more: the number of bytes that wait no longer
/// grows.
private final class ResettingThread {
    private var thread = pthread_t()

    init(_ socket: Int32) throws {
        let argument = unsafe UnsafeMutableRawPointer(bitPattern: Int(socket) + 1)
        let code = unsafe pthread_create(
            &thread, nil,
            { argument in
                let socket = Int32(truncatingIfNeeded: Int(bitPattern: argument) - 1)
                var (last, count): (Int32, Int32) = (-1, 0)
                while count == 0 || count != last {
                    last = count
                    usleep(20_000)
                    _ = unsafe ioctl(socket, UInt(FIONREAD), &count)
                }
                // Connecting to no address resets the connection, and keeps the descriptor.
                var address = sockaddr()
                address.sa_family = sa_family_t(AF_UNSPEC)
                _ = unsafe disconnect(socket, &address)
                return nil
            }, unsafe argument)
        try #require(code == 0)
    }

    func join() { pthread_join(thread, nil) }
}

@Suite(.timeLimit(.minutes(1))) struct SocketTests {
    @Test func socketsAreNonBlockingAndHaveTheirOptions() throws {
        let address = try #require(SocketAddress(numeric: "127.0.0.1", port: 1))
        let socket = try Socket.open(for: address)
        defer { Socket.close(socket) }
        #expect(fcntl(socket, F_GETFL) & O_NONBLOCK != 0)
        #expect(fcntl(socket, F_GETFD) & FD_CLOEXEC != 0)
        #expect(option(TCP_NODELAY, level: Int32(IPPROTO_TCP), of: socket) == 1)
        #expect(option(SO_KEEPALIVE, level: SOL_SOCKET, of: socket) == 1)
        #expect(option(TCP_KEEPIDLE, level: Int32(IPPROTO_TCP), of: socket) == 60)
    }

    @Test(arguments: ["127.0.0.1", "::1"])
    func bytesTravelInBothDirections(text: String) throws {
        if text == "::1", (try? Listener(text)) == nil { return }  // A machine without IPv6.
        let connection = try Connection(text)
        #expect(send([1, 2, 3], on: connection.client) == .bytes(3))
        #expect(try receive(3, on: connection.server) == [1, 2, 3])
        #expect(send([4], on: connection.server) == .bytes(1))
        #expect(try receive(1, on: connection.client) == [4])
        let peer = Socket.peer(of: connection.client)
        #expect(peer?.text == text)
        #expect(peer == Socket.local(of: connection.server))
        #expect(Socket.local(of: connection.client) == Socket.peer(of: connection.server))
    }

    @Test func twoBuffersAreSentInOneCall() throws {
        let connection = try Connection()
        for (first, second) in [([1, 2], [3]), ([], [4]), ([5], [])] as [([UInt8], [UInt8])] {
            let result = unsafe first.withUnsafeBytes { head in
                unsafe second.withUnsafeBytes { unsafe Socket.send(connection.client, from: head, and: $0) }
            }
            #expect(result == .bytes(first.count + second.count))
            #expect(try receive(first.count + second.count, on: connection.server) == first + second)
        }
    }

    @Test func withoutBytesReceivingWouldBlock() throws {
        let connection = try Connection()
        #expect(receiveByte(on: connection.client) == .wouldBlock)
    }

    @Test func theProbesOfASocketAreSet() throws {
        let connection = try Connection()
        Socket.probe(connection.client, .frequent)
        #expect(option(TCP_KEEPIDLE, level: Int32(IPPROTO_TCP), of: connection.client) == 5)
        #expect(option(TCP_KEEPINTVL, level: Int32(IPPROTO_TCP), of: connection.client) == 3)
        #expect(option(TCP_KEEPCNT, level: Int32(IPPROTO_TCP), of: connection.client) == 4)
        Socket.probe(connection.client, .seldom)
        #expect(option(TCP_KEEPIDLE, level: Int32(IPPROTO_TCP), of: connection.client) == 60)
    }

    @Test func thePathOfASocketIsKnown() throws {
        let connection = try Connection()
        let path = try #require(Socket.path(of: connection.client))
        #expect(path.retransmissions == 0 && path.unansweredProbes == 0)
        #expect(path.silence < 60_000_000_000)
        #expect(Socket.path(of: -1) == nil)
    }

    @Test func aFullSocketTakesNoMoreBytes() throws {
        let connection = try Connection()
        let bytes = [UInt8](repeating: 7, count: 1 << 20)
        var result = send(bytes, on: connection.client)
        for _ in 0..<1_000 where result != .wouldBlock { result = send(bytes, on: connection.client) }
        #expect(result == .wouldBlock)
    }

    @Test func inputIsSeenWithoutBeingRead() throws {
        let connection = try Connection()
        #expect(!Socket.hasInput(connection.client))
        _ = send([9], on: connection.server)
        try wait(for: Int16(POLLIN), on: connection.client)
        #expect(Socket.hasInput(connection.client))
        #expect(try receive(1, on: connection.client) == [9])
        #expect(!Socket.hasInput(connection.client))
        Socket.endSending(connection.server)
        try wait(for: Int16(POLLIN), on: connection.client)
        #expect(Socket.hasInput(connection.client))
        #expect(receiveByte(on: connection.client) == .end)
    }

    @Test func sendingToAClosedPeerFailsWithoutASignal() throws {
        let address = try SocketAddress.unix(path: "/tmp/tern-engine-\(getpid())-peer")
        unsafe unlink(address.text)
        let listener = try Listener(address)
        defer { unsafe unlink(address.text) }
        let client = try Socket.open(for: address)
        defer { Socket.close(client) }
        #expect(Socket.connect(client, to: address) == .connected)
        Socket.close(try listener.accept())
        #expect(send([1], on: client) == .failed(SystemError(EPIPE)))
    }

    @Test func aFileIsSentWithoutACopyAndWithoutASignal() throws {
        let owner = Marker()
        let descriptor = unsafe open("/proc/self/exe", O_RDONLY)
        defer { Socket.close(descriptor) }
        let connection = try Connection()
        let file = BodyFile(descriptor, at: 1, count: 3, owner: owner)
        #expect(Socket.send(connection.client, from: file) == .bytes(3))
        #expect(try receive(3, on: connection.server) == Array("ELF".utf8))
        let past = BodyFile(descriptor, at: 1 << 40, count: 1, owner: owner)
        #expect(Socket.send(connection.client, from: past) == .end)
        Socket.endSending(connection.client)
        #expect(Socket.send(connection.client, from: file) == .failed(SystemError(EPIPE)))
        var pending = sigset_t()
        unsafe sigpending(&pending)
        #expect(unsafe sigismember(&pending, SIGPIPE) == 0)
    }

    /// A file that the peer takes in part before it closes the connection. The system then returns the number of bytes,
    /// and raises the signal as well.
    @Test func aFileThatIsSentInPartRaisesNoSignal() throws {
        let connection = try Connection()
        let path = "/tmp/tern-engine-\(getpid())-file"
        let descriptor = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        defer { Socket.close(descriptor) }
        unsafe unlink(path)
        try #require(ftruncate(descriptor, 64 << 20) == 0)
        let owner = Marker()
        // A reset after the peer's end is EPIPE, which raises the signal.
        Socket.endSending(connection.server)
        try wait(for: Int16(POLLIN), on: connection.client)
        let flags = fcntl(connection.client, F_GETFL)
        try #require(fcntl(connection.client, F_SETFL, flags & ~O_NONBLOCK) == 0)
        // The peer's end closes while the blocking call waits for room.
        let closer = try ResettingThread(connection.server)
        let (isPending, result) = pendingAfter {
            Socket.send(connection.client, from: BodyFile(descriptor, at: 0, count: 64 << 20, owner: owner))
        }
        closer.join()
        guard case .bytes(let count) = result else {
            Issue.record("\(result)")
            return
        }
        #expect(count > 0)
        #expect(!isPending)
    }

    @Test func aSignalThatWasPendingBeforeStaysPending() throws {
        let connection = try Connection()
        let descriptor = unsafe open("/proc/self/exe", O_RDONLY | O_CLOEXEC)
        defer { Socket.close(descriptor) }
        let owner = Marker()
        let (isPending, result) = pendingAfter {
            pthread_kill(pthread_self(), SIGPIPE)
            return Socket.send(connection.client, from: BodyFile(descriptor, at: 0, count: 3, owner: owner))
        }
        #expect(result == .bytes(3))
        #expect(isPending)
    }

    @Test func aPortWithoutAListenerRefuses() throws {
        let address = try Listener().address
        let socket = try Socket.open(for: address)
        defer { Socket.close(socket) }
        var attempt = Socket.connect(socket, to: address)
        if attempt == .pending {
            try wait(for: Int16(POLLOUT), on: socket)
            attempt = Socket.finishConnecting(socket, to: address)
        }
        #expect(attempt == .failed(SystemError(ECONNREFUSED)))
        #expect(SystemError(ECONNREFUSED).connectFailure(to: "a:1").kind == .connectionRefused)
    }

    @Test func aSocketThatIsConnectedToItselfIsRefused() throws {
        // A listener that has closed frees a port, to which the client is bound before it connects.
        let address = try Listener().address
        let socket = try Socket.open(for: address)
        defer { Socket.close(socket) }
        try Socket.bind(socket, to: .address(address), for: address)
        var attempt = Socket.connect(socket, to: address)
        if attempt != .failed(SystemError(ECONNREFUSED)) {
            try wait(for: Int16(POLLOUT), on: socket)
            attempt = Socket.finishConnecting(socket, to: address)
        }
        #expect(attempt == .failed(SystemError(ECONNREFUSED)))
    }

    @Test func aUnixSocketThatDoesNotExistFails() throws {
        let address = try SocketAddress.unix(path: "/tmp/tern-engine-\(getpid())-missing")
        let socket = try Socket.open(for: address)
        defer { Socket.close(socket) }
        #expect(Socket.connect(socket, to: address) == .failed(SystemError(ENOENT)))
    }

    @Test func aSocketIsBoundToALocalAddress() throws {
        let listener = try Listener()
        let local = try #require(SocketAddress(numeric: "127.0.0.2", port: 0))
        let client = try Socket.open(for: listener.address)
        defer { Socket.close(client) }
        try Socket.bind(client, to: .address(local), for: listener.address)
        _ = Socket.connect(client, to: listener.address)
        let server = try listener.accept()
        defer { Socket.close(server) }
        #expect(Socket.peer(of: server)?.text == "127.0.0.2")
    }

    @Test func aSocketIsBoundToAnInterface() throws {
        let listener = try Listener()
        let client = try Socket.open(for: listener.address)
        defer { Socket.close(client) }
        try Socket.bind(client, to: .interface("lo"), for: listener.address)
        _ = Socket.connect(client, to: listener.address)
        Socket.close(try listener.accept())
    }

    @Test func anInterfaceHasItsAddress() throws {
        let remote = try #require(SocketAddress(numeric: "192.0.2.1", port: 1))
        #expect(try Socket.address(ofInterface: "lo", for: remote).text == "127.0.0.1")
        #expect(throws: SystemError(ENODEV)) { try Socket.address(ofInterface: "no-such", for: remote) }
    }

    @Test(arguments: ["", "no-such", String(repeating: "x", count: 100), "l\0o"])
    func aMissingInterfaceIsAnError(name: String) throws {
        let address = try #require(SocketAddress(numeric: "127.0.0.1", port: 1))
        let socket = try Socket.open(for: address)
        defer { Socket.close(socket) }
        #expect(throws: SystemError(ENODEV)) { try Socket.bind(socket, to: .interface(name), for: address) }
    }

    @Test func anEndpointOfAnotherFamilyIsAnError() throws {
        let address = try #require(SocketAddress(numeric: "127.0.0.1", port: 1))
        let local = try #require(SocketAddress(numeric: "::1", port: 0))
        let socket = try Socket.open(for: address)
        defer { Socket.close(socket) }
        #expect(throws: SystemError(EADDRNOTAVAIL)) { try Socket.bind(socket, to: .address(local), for: address) }
    }

    @Test(arguments: [
        (EMFILE, EngineError.Kind.outOfDescriptors), (ENFILE, .outOfDescriptors), (ECONNREFUSED, .connectionRefused),
        (ENETUNREACH, .connectionFailed), (ETIMEDOUT, .connectionFailed),
    ])
    func errorsOfTheSystemBecomeErrorsOfTheEngine(code: Int32, kind: EngineError.Kind) {
        let error = SystemError(code).connectFailure(to: "a.example:443")
        #expect(error.kind == kind)
        #expect(error.code == code)
        #expect(error.reason.contains("a.example:443"))
    }
}
#endif
