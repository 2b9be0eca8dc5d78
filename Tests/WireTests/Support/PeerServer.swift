#if os(Linux) && !TERN_URLSESSION
import Foundation
import Glibc
import Tern
import TernConcurrency
import TernEngine
import TernTesting

/// A server of another author on free ports of 127.0.0.1, with a folder and an authority of its own. It ends with
/// `stop()`, with its last reference, and with this process.
///
/// Every server has these paths:
/// - `/files/small` is "hello", `/files/big` has 1 MiB and `/files/large` 24 MiB of patterns.
/// - `/packed/text.txt` is a text that the server compresses.
///
/// These are answered by a `LoopbackServer` behind the server, or by the program itself if it is an application server:
/// - `/via/echo` sends the body of the request back.
/// - `/via/chunked` has the bytes of `/files/big`, without a length.
/// - `/via/empty` has status 204.
/// - `/via/alternative` sends the `Alt-Used` field of the request back.
/// - `/via/early` ends after a part of its length.
/// - `/via/together` is answered once 100 requests for it have arrived.
final class PeerServer: Sendable {
    /// The programs, alone and in front of each other.
    enum Kind: String, Sendable, CaseIterable {
        case nginx, apache, caddy, hypercorn, nghttpd
        case haproxyAndNginx = "haproxy before nginx"
        case haproxyAndApache = "haproxy before apache"

        /// The programs that must be installed.
        var programs: [String] {
            switch self {
            case .nginx, .caddy, .nghttpd: [rawValue, "openssl"]
            case .apache: ["apache2", "openssl"]
            case .hypercorn: ["openssl"]
            case .haproxyAndNginx: ["haproxy", "nginx", "openssl"]
            case .haproxyAndApache: ["haproxy", "apache2", "openssl"]
            }
        }

        /// Whether the tests with this server run.
        var isExpected: Bool {
            Programs.areExpected(programs) && (self != .hypercorn || Venv.isExpected)
        }

        /// Whether the server has a port for plain HTTP, speaks HTTP/1.1, compresses, and has the paths below `/via`.
        /// nghttpd speaks HTTP/2 over TLS, sends files and sends bodies back.
        var isComplete: Bool { self != .nghttpd }

        /// Whether the server passes on 100 streams of one connection at once. Apache passes on few of them, and more
        /// after each response.
        var isConcurrent: Bool { isComplete && self != .apache }

        /// The signal after which the program answers the requests that it has, and ends; nil if it has none.
        var gracefulSignal: String? {
            switch self {
            case .nginx: "QUIT"
            // The signal of `apachectl graceful`: new processes serve new connections.
            case .apache: "USR1"
            case .haproxyAndNginx, .haproxyAndApache: "USR1"
            case .caddy: "TERM"
            // hypercorn can end its connection between the last byte of a stream and the end of the stream, which is a
            // truncated response (RFC 9113 §8.1).
            case .nghttpd, .hypercorn: nil
            }
        }
    }

    /// A way to reach a server.
    enum Access: String, Sendable, CaseIterable {
        case plain = "http"
        case secure = "https with HTTP/1.1"
        case http2 = "https with HTTP/2"
        case http3 = "https with HTTP/3"

        var version: HTTPVersion {
            switch self {
            case .plain, .secure: .http11
            case .http2: .http2
            case .http3: .http3
            }
        }
    }

    /// An alternative over HTTP/3 that caddy names in place of itself.
    enum Offer: Sendable {
        /// The port of another server.
        case port(Int)
        /// A port of the same program, which answers every request with 421.
        case misdirected(Int)
    }

    /// Whether caddy and the libraries of HTTP/3 are installed.
    static let hasHTTP3 = Kind.caddy.isExpected && HTTP3Session.obstacle == nil

    static let big = LoopbackServer.Pattern(count: 1 << 20, seed: 11)
    static let large = LoopbackServer.Pattern(count: 24 << 20, seed: 12)
    static let text = String(repeating: "hello, compressed world; ", count: 4_000)

    let kind: Kind
    let folder: URL
    let upstream: PeerUpstream
    let ports: Ports
    /// The server behind this one.
    private let backend: PeerServer?
    private let child = Lock<Child?>(nil)
    /// The file to which the program writes, anew with each start.
    private let output = Lock("")

    struct Ports: Sendable {
        let plain: Int
        let secure: Int
    }

    private let offer: Offer?

    init(_ kind: Kind, offer: Offer? = nil) async throws {
        self.kind = kind
        self.offer = offer
        upstream = try PeerUpstream()
        ports = try Ports(plain: LoopbackPort.free(), secure: LoopbackPort.free())
        folder = FileManager.default.temporaryDirectory.appending(path: "tern-peer-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: folder.appending(path: "files"), withIntermediateDirectories: true)
        switch kind {
        case .haproxyAndNginx: backend = try await PeerServer(.nginx)
        case .haproxyAndApache: backend = try await PeerServer(.apache)
        default: backend = nil
        }
        try TestAuthority.make(in: folder)
        try write(Array("hello".utf8), "small")
        try write(Self.big.bytes(), "big")
        try write(Self.large.bytes(), "large")
        try write(Array(Self.text.utf8), "text.txt")
        try await start()
    }

    deinit { stop() }

    /// Ends the program and its connections, and removes the folder.
    func stop() {
        child.withLock { $0 = nil }
        backend?.stop()
        upstream.server.stop()
        // A leftover does no harm: the folder is in the system's temporary one.
        try? FileManager.default.removeItem(at: folder)
    }

    /// Ends the program, and starts it again on the same ports.
    func restart() async throws {
        child.withLock { $0 = nil }
        guard await LoopbackPort.wait(openPorts, areOpen: false) else {
            throw Child.Failure(description: "\(kind.rawValue) does not end")
        }
        try await start()
    }

    /// Asks the program to answer the requests that it has, and to end.
    func endGracefully() {
        guard let signal = kind.gracefulSignal else { return }
        child.withLock { $0?.signal(signal) }
    }

    /// Ends the program, and returns the text that it has written, with its exit status.
    func end() -> String {
        child.withLock { $0 = nil }
        // Without the file, nothing was written.
        return (try? String(contentsOfFile: output.withLock { $0 }, encoding: .utf8)) ?? ""
    }

    /// The number of requests with this method and path that have arrived behind the server.
    func count(_ method: String, _ target: String) -> Int {
        let requests = backend?.upstream.server.requests ?? upstream.server.requests
        return requests.count { $0.method == method && $0.target == target }
    }

    /// The number of responses that the program has cut off because it closed its own connection to the server behind
    /// it.
    ///
    /// caddy 2.6.2 does so over HTTP/1.1 when the server behind it answers as soon as it has the last byte of a body of
    /// known length. The transport of Go reads such a body once more for its end. Meanwhile the server of Go closes the
    /// body, because the response has begun. The failed read closes the connection behind caddy (golang/go#40747), in
    /// 10 of 1,500 attempts of a plain client, and in none if the server behind waits for 20 ms or the body is chunked.
    var cutOffResponses: Int {
        guard kind == .caddy else { return 0 }
        // Without the file, nothing was written.
        let said = (try? String(contentsOfFile: output.withLock { $0 }, encoding: .utf8)) ?? ""
        return said.split(separator: "\n").count { line in
            line.contains("aborting with incomplete response") && line.contains("use of closed network connection")
        }
    }

    /// A client with a session of its own, which trusts the authority.
    func client(
        _ access: Access, _ change: (inout Session.Configuration) -> Void = { _ in }
    ) throws -> Client {
        let configuration = Session.Configuration.test {
            $0.authorities = .file(folder.appending(path: "ca.pem").path)
            $0.allowsHTTP2 = access == .http2
            $0.http3 = access == .http3 ? .always : .never
            change(&$0)
        }
        let origin = access == .plain ? "http://127.0.0.1:\(ports.plain)" : "https://127.0.0.1:\(ports.secure)"
        return try Client(baseURL: origin, session: Session(configuration: configuration))
    }

    /// The ways in which the server can be reached.
    var accesses: [Access] {
        guard kind.isComplete else { return [.http2] }
        return [.plain, .secure, .http2] + (kind == .caddy && Self.hasHTTP3 ? [.http3] : [])
    }

    private var openPorts: [Int] { kind.isComplete ? [ports.plain, ports.secure] : [ports.secure] }

    private func write(_ bytes: [UInt8], _ name: String) throws {
        try Data(bytes).write(to: folder.appending(path: "files/\(name)"))
    }

    private func start() async throws {
        let backendPort = backend?.ports.plain ?? upstream.server.port
        let arguments = try PeerConfiguration(
            kind: kind, folder: folder.path, ports: ports, behind: backendPort, offer: offer
        ).write()
        let output = folder.appending(path: "output-\(UUID().uuidString)").path
        let child = try Child(arguments, output: output)
        guard await LoopbackPort.wait(openPorts) else {
            let said = try String(contentsOfFile: output, encoding: .utf8)
            throw Child.Failure(description: "\(kind.rawValue) does not start: \(said)")
        }
        self.child.withLock { $0 = child }
        self.output.withLock { $0 = output }
    }
}

/// The `LoopbackServer` that answers the paths below `/via` of the other servers.
final class PeerUpstream: Sendable {
    let server: LoopbackServer

    init() throws {
        let gate = LoopbackServer.Gate()
        let arrived = Counter()
        server = try LoopbackServer { exchange in
            switch exchange.request.path {
            case "/echo":
                try exchange.respond(headers: [("Content-Type", "text/plain")], body: exchange.readBody())
            case "/chunked":
                try exchange.writeChunkedHead()
                for start in stride(from: 0, to: PeerServer.big.count, by: 60_000) {
                    let end = min(start + 60_000, PeerServer.big.count)
                    try exchange.writeChunk(PeerServer.big.bytes(in: start..<end))
                }
                try exchange.endChunks()
            case "/alternative": try exchange.respond(text: exchange.request["Alt-Used"] ?? "none")
            case "/empty": try exchange.respond(status: 204)
            case "/early":
                try exchange.writeHead(headers: [("Content-Length", "\(PeerServer.big.count)")])
                try exchange.streamPattern(PeerServer.big, in: 0..<PeerServer.big.count / 2)
                exchange.close()
            case "/together":
                if arrived.increase() >= 100 { gate.open() }
                try exchange.wait(for: gate)
                try exchange.respond(text: "together")
            default: try exchange.respond(text: exchange.request.target)
            }
        }
    }
}
#endif
