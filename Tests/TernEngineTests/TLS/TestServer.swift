#if os(Linux)
import CTernTestTLS
import Glibc
import TernEngine

/// A server of TLS within the test, which connections share.
@safe final class TestServer {
    let settings: OpaquePointer

    init(
        _ identity: TestIdentity, intermediate: TestIdentity? = nil, clientAuthority: TestIdentity? = nil,
        version: Int32 = 0, choosing protocolName: String? = nil, forcesProtocol: Bool = false, staple: [UInt8] = []
    ) throws {
        var options = unsafe tern_test_options()
        unsafe options.identity = identity.pointer
        unsafe options.intermediate = intermediate?.pointer
        unsafe options.client_authority = clientAuthority?.pointer
        unsafe options.version = version
        unsafe options.forces_protocol = forcesProtocol ? 1 : 0
        let name = protocolName.map { Array($0.utf8CString) }
        let created = unsafe staple.withUnsafeBufferPointer { bytes in
            unsafe options.staple = bytes.baseAddress
            unsafe options.staple_count = bytes.count
            guard let name else { return unsafe tern_test_settings_create(options) }
            return unsafe name.withUnsafeBufferPointer { name in
                unsafe options.`protocol` = name.baseAddress
                return unsafe tern_test_settings_create(options)
            }
        }
        guard let created = unsafe created else { throw TestIdentity.CreationFailed() }
        unsafe settings = created
    }

    deinit { unsafe tern_test_settings_free(settings) }
}

/// A client and a server at the two ends of a pair of sockets, in one thread.
@safe final class TestConnection {
    let client: TLSSession
    let server: OpaquePointer
    private let testServer: TestServer
    private(set) var clientSocket: Int32
    private(set) var serverSocket: Int32
    /// The result of the server's handshake: 1 for success, -1 for a failure.
    private(set) var serverState: Int32 = 0

    init(
        _ policy: TLSPolicy, _ testServer: TestServer, host: String = "localhost", protocols: [String] = [],
        origin: String = "https://localhost:443", resumption: TLSResumption? = nil
    ) throws {
        let (first, second) = try Self.sockets()
        clientSocket = first
        serverSocket = second
        self.testServer = testServer
        let target = TLSTarget(host: host, authority: "\(host):443", protocols: protocols, origin: origin)
        do {
            client = try TLSSession(policy: policy, target: target, descriptor: first, resumption: resumption)
            guard let server = unsafe tern_test_server_create(testServer.settings, second) else {
                throw TestIdentity.CreationFailed()
            }
            unsafe self.server = server
        } catch {
            Glibc.close(first)
            Glibc.close(second)
            throw error
        }
    }

    deinit {
        unsafe tern_test_server_free(server)
        closeServerSocket()
        Glibc.close(clientSocket)
    }

    /// Returns a pair of non-blocking sockets.
    static func sockets() throws -> (Int32, Int32) {
        var pair: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        guard unsafe socketpair(AF_UNIX, kind, 0, &pair) == 0 else { throw TestIdentity.CreationFailed() }
        return (pair[0], pair[1])
    }

    /// Continues both handshakes until the client's has a result and the server waits.
    func handshake() -> TLSHandshakeResult {
        for _ in 0..<100 {
            let result = client.handshake()
            if serverState == 0 { serverState = unsafe tern_test_server_handshake(server) }
            switch result {
            case .done where serverState != 0: return .done
            case .failed: return result
            case .done, .wantsRead, .wantsWrite: continue
            }
        }
        return .wantsRead
    }

    /// Reads until the client has this number of bytes, or another result.
    func read(_ count: Int = 1 << 16) -> (bytes: [UInt8], last: TLSReadResult) {
        var bytes: [UInt8] = []
        var buffer: [UInt8] = Array(repeating: 0, count: count)
        while bytes.count < count {
            let room = count - bytes.count
            let result = unsafe buffer.withUnsafeMutableBytes { unsafe client.read(into: .init(rebasing: $0[..<room])) }
            guard case .bytes(let read) = result else { return (bytes, result) }
            bytes += buffer[..<read]
        }
        return (bytes, .bytes(count))
    }

    func write(_ bytes: some Collection<UInt8>) -> TLSWriteResult {
        unsafe Array(bytes).withUnsafeBytes { unsafe client.write($0) }
    }

    /// Writes all bytes from the server, which must fit into the socket's buffer.
    func serverWrite(_ bytes: [UInt8]) -> Int {
        unsafe bytes.withUnsafeBufferPointer { unsafe tern_test_server_write(server, $0.baseAddress, $0.count) }
    }

    func serverRead(_ count: Int = 1 << 16) -> (bytes: [UInt8], result: Int) {
        var buffer: [UInt8] = Array(repeating: 0, count: count)
        let result = unsafe buffer.withUnsafeMutableBufferPointer {
            unsafe tern_test_server_read(server, $0.baseAddress, count)
        }
        return (Array(buffer.prefix(max(0, result))), result)
    }

    /// Sends the first record of a session ticket, and keeps the others.
    func serverSendsTicketInPart() -> Bool {
        unsafe tern_test_server_hold_output(server, Int(TERN_TEST_RECORD_SIZE))
        return unsafe tern_test_server_send_large_ticket(server) == 1
    }

    /// Sends what the server has kept.
    func serverSendsRest() -> Bool { unsafe tern_test_server_release_output(server) == 1 }

    func closeServer() { unsafe tern_test_server_close(server) }

    func closeServerSocket() {
        guard serverSocket >= 0 else { return }
        Glibc.close(serverSocket)
        serverSocket = -1
    }

    /// The name that the client asked the server for; nil for none.
    var requestedName: String? {
        guard let name = unsafe tern_test_server_name(server) else { return nil }
        return unsafe String(cString: name)
    }

    var serverHasClient: Bool { unsafe tern_test_server_has_client(server) == 1 }
    func updateServerKeys() -> Bool { unsafe tern_test_server_update_keys(server) == 1 }

    func requestClientKeys() -> Bool { unsafe tern_test_server_request_keys(server) == 1 }

    /// Fills the client's socket with bytes that are not TLS, so that it takes no more until the server's side is
    /// emptied.
    func fillClientSocket() {
        let bytes = [UInt8](repeating: 0, count: 4_096)
        while unsafe send(clientSocket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) > 0 {}
        while unsafe send(clientSocket, bytes, 1, Int32(MSG_NOSIGNAL)) > 0 {}
    }

    /// Takes all bytes that the client has sent.
    func emptyServerSocket() {
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        while unsafe recv(serverSocket, &bytes, bytes.count, 0) > 0 {}
    }
}

extension TLSHandshakeResult {
    /// The error of a failed handshake; nil for another result.
    var error: EngineError? {
        if case .failed(let error) = self { error } else { nil }
    }
}
#endif
