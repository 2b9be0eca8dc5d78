import Foundation
import Synchronization
import Testing

/// A Redis server of one test, with a password, a Unix socket and a port of loopback. It ends with this object.
final class RedisServer: Sendable {
    static let password = "the-password-of-the-test"

    let folder: URL
    let port: Int
    private let process = Mutex<Process?>(nil)

    var socket: String { folder.appending(path: "s").path(percentEncoded: false) }

    /// Nil, with a message, if the machine has no server. In CI that is an error.
    static func start(_ arguments: [String] = []) throws -> RedisServer? {
        let paths = ["redis-server", "valkey-server"].map { "/usr/bin/\($0)" }
        guard let program = paths.first(where: { FileManager.default.isExecutableFile(atPath: $0) }) else {
            if ProcessInfo.processInfo.environment["CI"] == "true" {
                Issue.record("redis-server is not installed: scripts/set-up integrations")
            } else {
                print("skipped: redis-server is not installed")
            }
            return nil
        }
        let server = try RedisServer(program, arguments)
        try server.run()
        return server
    }

    private let program: String
    private let arguments: [String]

    private init(_ program: String, _ arguments: [String]) throws {
        self.program = program
        self.arguments = arguments
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

extension Optional {
    fileprivate mutating func take() -> Wrapped? {
        defer { self = nil }
        return self
    }
}
