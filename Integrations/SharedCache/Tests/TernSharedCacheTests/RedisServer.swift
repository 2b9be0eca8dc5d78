import Foundation
import Synchronization
import Testing

/// A Redis server of one test, with a password, a Unix socket and a port of loopback. It ends with this object.
final class RedisServer: Sendable {
    static let password = "the-password-of-the-test"

    let folder: URL
    let port: Int
    /// The port that takes TLS; nil without certificates.
    let tlsPort: Int?
    private let process = Mutex<Process?>(nil)

    var socket: String { folder.appending(path: "s").path(percentEncoded: false) }

    /// Returns a server that has its ports and its socket. Nil, with a message, if the machine has no server; in CI
    /// that is an error.
    ///
    /// - Parameter certificates: The folder of `server.pem` and `server.key`, for a server that also speaks TLS.
    static func start(certificates: URL? = nil) async throws -> RedisServer? {
        let paths = ["redis-server", "valkey-server"].map { "/usr/bin/\($0)" }
        guard let program = paths.first(where: { FileManager.default.isExecutableFile(atPath: $0) }) else {
            if ProcessInfo.processInfo.environment["CI"] == "true" {
                Issue.record("redis-server is not installed: scripts/set-up integrations")
            } else {
                print("skipped: redis-server is not installed")
            }
            return nil
        }
        // A server ends at once if another program has one of its ports. The next one has other ports.
        for _ in 0..<10 {
            let server = try RedisServer(program, certificates)
            try server.run()
            if await server.isReady() { return server }
        }
        Issue.record("no server of ten stays: \(program)")
        return nil
    }

    /// Returns true when the server has its socket, which it makes after its ports, or false when its process has
    /// ended.
    private func isReady() async -> Bool {
        while process.withLock({ $0?.isRunning ?? false }) {
            if FileManager.default.fileExists(atPath: socket) { return true }
            await Task.yield()
        }
        return false
    }

    private let program: String
    private let arguments: [String]

    private init(_ program: String, _ certificates: URL?) throws {
        self.program = program
        if let path = certificates?.path(percentEncoded: false) {
            let tlsPort = Int.random(in: 30_000..<32_000)
            self.tlsPort = tlsPort
            arguments = [
                "--tls-port", "\(tlsPort)", "--tls-cert-file", "\(path)/server.pem",
                "--tls-key-file", "\(path)/server.key", "--tls-ca-cert-file", "\(path)/server.pem",
                "--tls-auth-clients", "no",
            ]
        } else {
            (tlsPort, arguments) = (nil, [])
        }
        // The path of a socket is short.
        folder = URL(filePath: "/tmp/tern-redis-\(UInt32.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        port = Int.random(in: 20_000..<30_000)
    }

    deinit {
        kill()
        // A leftover does no harm.
        try? FileManager.default.removeItem(at: folder)
    }

    private func run() throws {
        let own = Process()
        own.executableURL = URL(filePath: program)
        own.arguments =
            [
                "--port", "\(port)", "--bind", "127.0.0.1", "--unixsocket", socket,
                "--requirepass", Self.password, "--dir", folder.path(percentEncoded: false), "--save", "",
                "--appendonly", "no", "--daemonize", "no",
            ] + arguments
        own.standardOutput = FileHandle.nullDevice
        own.standardError = FileHandle.nullDevice
        try own.run()
        process.withLock { $0 = own }
    }

    /// Ends the server without a chance to say goodbye.
    func kill() {
        guard let own = process.withLock({ $0.take() }) else { return }
        Foundation.kill(own.processIdentifier, SIGKILL)
        own.waitUntilExit()
    }

    /// Starts the server again, which has lost all values.
    func restart() throws {
        kill()
        try? FileManager.default.removeItem(atPath: socket)
        try run()
    }

    /// Stops the process, whose sockets stay open, or lets it go on.
    func setStopped(_ isStopped: Bool) {
        process.withLock { process in
            if let process { _ = Foundation.kill(process.processIdentifier, isStopped ? SIGSTOP : SIGCONT) }
        }
    }
}

/// A Redis server that speaks TLS, and stunnel before it, as beside a process of a fleet. Both end with this object.
final class RedisTunnel {
    /// The server, which also takes plain connections.
    let server: RedisServer
    private let folder: URL
    private let process = Process()

    /// The socket on which stunnel takes plain connections.
    var socket: String { folder.appending(path: "tunnel").path(percentEncoded: false) }

    /// Whether stunnel runs.
    var isRunning: Bool { process.isRunning }

    /// Nil, with a message, if the machine has no server or no stunnel. In CI that is an error.
    ///
    /// - Parameter knowsAuthority: False for a tunnel that trusts another authority than that of the server.
    static func start(knowsAuthority: Bool) async throws -> RedisTunnel? {
        let missing = ["stunnel", "openssl"].filter { !FileManager.default.isExecutableFile(atPath: "/usr/bin/\($0)") }
        guard missing.isEmpty else {
            if ProcessInfo.processInfo.environment["CI"] == "true" {
                Issue.record("\(missing) are not installed: scripts/set-up integrations")
            } else {
                print("skipped: \(missing) are not installed")
            }
            return nil
        }
        let folder = URL(filePath: "/tmp/tern-tunnel-\(UInt32.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let path = folder.path(percentEncoded: false)
        for name in ["server", "other"] {
            let openssl = Process()
            openssl.executableURL = URL(filePath: "/usr/bin/openssl")
            openssl.arguments = [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=\(name)", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "\(path)/\(name).key",
                "-out", "\(path)/\(name).pem",
            ]
            openssl.standardError = FileHandle.nullDevice
            try openssl.run()
            openssl.waitUntilExit()
            try #require(openssl.terminationStatus == 0)
        }
        let server = try await RedisServer.start(certificates: folder)
        guard let server, let port = server.tlsPort else { return nil }
        return try RedisTunnel(folder, server, port: port, authority: knowsAuthority ? "server" : "other")
    }

    private init(_ folder: URL, _ server: RedisServer, port: Int, authority: String) throws {
        (self.folder, self.server) = (folder, server)
        // The file of the README.
        let text = """
            foreground = yes
            pid =
            [redis]
            client = yes
            accept = \(folder.path(percentEncoded: false))/tunnel
            connect = 127.0.0.1:\(port)
            CAfile = \(folder.path(percentEncoded: false))/\(authority).pem
            verifyChain = yes
            checkIP = 127.0.0.1

            """
        let file = folder.appending(path: "stunnel.conf")
        try Data(text.utf8).write(to: file)
        process.executableURL = URL(filePath: "/usr/bin/stunnel")
        process.arguments = [file.path(percentEncoded: false)]
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    deinit {
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        // A leftover does no harm.
        try? FileManager.default.removeItem(at: folder)
    }
}

extension Optional {
    fileprivate mutating func take() -> Wrapped? {
        defer { self = nil }
        return self
    }
}
