#if os(Linux) && !TERN_URLSESSION
import TernConcurrency
import Foundation
import Glibc
import Tern
import TernTesting
import Testing

/// nginx on two free ports of the loopback interface, plain and TLS with HTTP/2, with a folder of its own and a
/// certificate for 127.0.0.1 by an authority of its own. It ends with `stop()`, with its last reference, and with this
/// process.
final class Nginx: Sendable {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private struct Ports {
        let plain: Int
        let secure: Int
    }

    let folder: URL
    private let upstream: Int?
    private let ports: Ports
    private let child = Lock<Child?>(nil)

    /// `upstream` is the port of a `LoopbackServer` that answers requests for `/via/`.
    init(upstream: Int? = nil) async throws {
        self.upstream = upstream
        folder = FileManager.default.temporaryDirectory.appending(path: "tern-nginx-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: folder.appending(path: "files"), withIntermediateDirectories: true)
        try TestAuthority.make(in: folder)
        // Another process can take a port after it was found free and before nginx takes it.
        var failure: any Error = Failure(description: "nginx was not started")
        for _ in 0..<3 {
            let ports = try Ports(plain: LoopbackPort.free(), secure: LoopbackPort.free())
            do {
                let child = try await Self.start(ports, upstream, in: folder)
                self.ports = ports
                self.child.withLock { $0 = child }
                return
            } catch { failure = error }
        }
        // A leftover does no harm: the folder is in the system's temporary one.
        try? FileManager.default.removeItem(at: folder)
        throw failure
    }

    deinit { stop() }

    /// Ends nginx and its connections, and removes the folder.
    func stop() {
        child.withLock { $0 = nil }
        // A leftover does no harm: the folder is in the system's temporary one.
        try? FileManager.default.removeItem(at: folder)
    }

    /// Ends nginx, and starts another one on the same ports.
    func restart() async throws {
        child.withLock { $0 = nil }
        let successor = try await Self.start(ports, upstream, in: folder)
        child.withLock { $0 = successor }
    }

    // MARK: Addresses

    /// A client of the plain port, with a session of its own.
    func plainClient(_ change: (inout Session.Configuration) -> Void = { _ in }) throws -> Client {
        try Client(baseURL: "http://127.0.0.1:\(ports.plain)", session: Session(configuration: .test(change)))
    }

    /// A client of the TLS port that trusts the authority, with a session of its own.
    func secureClient(
        host: String = "127.0.0.1", _ change: (inout Session.Configuration) -> Void = { _ in }
    ) throws -> Client {
        let configuration = Session.Configuration.test {
            $0.authorities = .file(authorityFile)
            change(&$0)
        }
        return try Client(baseURL: "https://\(host):\(ports.secure)", session: Session(configuration: configuration))
    }

    var plainPort: Int { ports.plain }
    var securePort: Int { ports.secure }

    /// The certificate of the private authority, in PEM form.
    var authorityFile: String { folder.appending(path: "ca.pem").path }

    /// Makes a file for `files/` and `packed/`; the same file is compressed below `packed/`.
    func makeFile(_ name: String, _ bytes: some Collection<UInt8>) throws {
        try Data(bytes).write(to: folder.appending(path: "files/\(name)"))
    }

    /// Makes a file of zeros that takes no space on the disk.
    func makeSparseFile(_ name: String, size: Int) throws {
        try makeFile(name, [])
        guard unsafe truncate(folder.appending(path: "files/\(name)").path, size) == 0 else {
            throw Failure(description: "truncate: errno \(errno)")
        }
    }

    /// Returns the method, target, protocol and status of every request that has ended, in order.
    func accessLog() throws -> [String] {
        try String(contentsOf: folder.appending(path: "access.log"), encoding: .utf8)
            .split(separator: "\n").map(String.init)
    }

    // MARK: Starting

    private static func start(_ ports: Ports, _ upstream: Int?, in folder: URL) async throws -> Child {
        try Self.configuration(
            plain: ports.plain, secure: ports.secure, upstream: upstream, hasWorkers: false, folder.path
        )
        .write(to: folder.appending(path: "nginx.conf"), atomically: true, encoding: .utf8)
        // A file for each start: it must not contain the output of an earlier process.
        let output = folder.appending(path: "output-\(UUID().uuidString)").path
        let child = try Child(
            ["nginx", "-p", folder.path, "-e", "stderr", "-c", folder.path + "/nginx.conf"], output: output)
        // The last line of the start appears once nginx listens.
        return try await Child.find(in: output, within: 30) { said in
            if said.contains("[emerg]") || said.contains("not found") {
                throw Failure(description: "nginx does not start: \(said)")
            }
            return LoopbackPort.accepts(ports.plain) && LoopbackPort.accepts(ports.secure) ? child : nil
        }
    }
}
#endif
