#if os(Linux)
import CTernTestTLS
import Glibc
import TernEngine
import Testing

/// A client's session within another one, as through an HTTPS proxy: the outer server passes on what it decrypts.
@safe private final class Tunnel {
    let outer: TestConnection
    let inner: TLSSession
    private let innerServer: OpaquePointer
    private let settings: TestServer
    private let proxySocket: Int32
    private let serverSocket: Int32

    init(
        outer options: TLSOptions, inner innerOptions: TLSOptions, outerServer: TestServer,
        innerServer server: TestServer
    ) throws {
        outer = try TestConnection(TLSPolicy(options), outerServer)
        #expect(outer.handshake() == .done)
        let (first, second) = try TestConnection.sockets()
        proxySocket = first
        serverSocket = second
        settings = server
        let target = TLSTarget(host: "inner", authority: "inner:443", protocols: [], origin: "https://inner")
        inner = try TLSSession(policy: TLSPolicy(innerOptions), target: target, outer: outer.client)
        guard let created = unsafe tern_test_server_create(server.settings, second) else {
            throw TestIdentity.CreationFailed()
        }
        unsafe innerServer = created
    }

    deinit {
        unsafe tern_test_server_free(innerServer)
        close(proxySocket)
        close(serverSocket)
    }

    /// Passes on the bytes that wait in the proxy.
    func relay() {
        while true {
            let part = outer.serverRead()
            guard part.result > 0 else { break }
            #expect(unsafe send(proxySocket, part.bytes, part.bytes.count, Int32(MSG_NOSIGNAL)) == part.bytes.count)
        }
        var buffer: [UInt8] = Array(repeating: 0, count: 1 << 14)
        while true {
            let count = unsafe recv(proxySocket, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            #expect(outer.serverWrite(Array(buffer[..<count])) == count)
        }
    }

    func handshake() -> TLSHandshakeResult {
        var server: Int32 = 0
        for _ in 0..<100 {
            let result = inner.handshake()
            relay()
            if server == 0 { server = unsafe tern_test_server_handshake(innerServer) }
            relay()
            if result.error != nil || result == .done && server != 0 { return result }
        }
        return .wantsRead
    }

    func serverRead() -> [UInt8] {
        var buffer: [UInt8] = Array(repeating: 0, count: 1 << 14)
        let length = buffer.count
        let count = unsafe buffer.withUnsafeMutableBufferPointer {
            unsafe tern_test_server_read(innerServer, $0.baseAddress, length)
        }
        return Array(buffer.prefix(max(0, count)))
    }

    func serverWrite(_ bytes: [UInt8]) -> Int {
        unsafe bytes.withUnsafeBufferPointer { unsafe tern_test_server_write(innerServer, $0.baseAddress, $0.count) }
    }

    func closeServer() { unsafe tern_test_server_close(innerServer) }

    func read() -> (bytes: [UInt8], last: TLSReadResult) {
        var bytes: [UInt8] = []
        var buffer: [UInt8] = Array(repeating: 0, count: 1 << 14)
        while true {
            let result = unsafe buffer.withUnsafeMutableBytes { unsafe inner.read(into: $0) }
            guard case .bytes(let count) = result else { return (bytes, result) }
            bytes += buffer[..<count]
        }
    }
}

@Suite struct TLSInTLSTests {
    private let root: TestIdentity
    private let other: TestIdentity
    private let outerServer: TestServer
    private let innerServer: TestServer

    init() throws {
        root = try TestIdentity.authority()
        other = try TestIdentity.authority("other")
        outerServer = try TestServer(TestIdentity(issuer: root))
        innerServer = try TestServer(TestIdentity(names: "DNS:inner", issuer: other))
    }

    @Test func eachSessionHasItsOwnAnchors() throws {
        let tunnel = try Tunnel(
            outer: .only(root), inner: .only(other), outerServer: outerServer, innerServer: innerServer)
        #expect(tunnel.handshake() == .done)
        let sent = Array(repeating: UInt8(3), count: 20_000)
        #expect(unsafe sent.withUnsafeBytes { unsafe tunnel.inner.write($0) } == .bytes(20_000))
        tunnel.relay()
        #expect(tunnel.serverRead() + tunnel.serverRead() == sent)
        #expect(tunnel.serverWrite(Array("world".utf8)) == 5)
        tunnel.closeServer()
        tunnel.relay()
        let end = tunnel.read()
        #expect(end.bytes == Array("world".utf8) && end.last == .end(isClean: true))
        let refused = try Tunnel(
            outer: .only(root), inner: .only(root), outerServer: outerServer, innerServer: innerServer
        ).handshake()
        #expect(refused.error?.kind == .untrustedServer)
    }

    @Test func theEndOfTheOuterSessionTruncatesTheInnerOne() throws {
        let tunnel = try Tunnel(
            outer: .only(root), inner: .only(other), outerServer: outerServer, innerServer: innerServer)
        #expect(tunnel.handshake() == .done)
        #expect(tunnel.read().last == .wouldBlock)
        tunnel.outer.closeServer()
        #expect(tunnel.read().last == .end(isClean: false))
    }

    @Test func closingEndsBothSessions() throws {
        let tunnel = try Tunnel(
            outer: .only(root), inner: .only(other), outerServer: outerServer, innerServer: innerServer)
        #expect(tunnel.handshake() == .done)
        tunnel.inner.close()
        tunnel.relay()
        #expect(tunnel.outer.serverRead().result == -2)
    }

    @Test func writingIntoALostTunnelIsAnError() throws {
        let tunnel = try Tunnel(
            outer: .only(root), inner: .only(other), outerServer: outerServer, innerServer: innerServer)
        #expect(tunnel.handshake() == .done)
        tunnel.outer.closeServerSocket()
        let result = unsafe [1, 2, 3].withUnsafeBytes { unsafe tunnel.inner.write($0) }
        guard case .failed(let error) = result else { return #expect(Bool(false)) }
        #expect(error.kind == .connectionLost && error.code == EPIPE)
    }
}
#endif
