#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernEngine

/// A server over HTTP/3 of aioquic, whose paths say what it does wrong (`Tests/AioQUIC/peer.py`). It ends with its last
/// reference, and with this process.
final class AioQUICPeer: Sendable {
    /// Whether the tests with this server run.
    static let isExpected = Venv.isExpected && Programs.areExpected(["openssl"]) && HTTP3Session.obstacle == nil

    let folder: URL
    let port: Int
    private let child: Child
    private let output: String

    /// - Parameters:
    ///   - options: Words such as `--lost=50`.
    ///   - certificates: The number of certificates that the server shows.
    init(_ options: String..., certificates: Int = 1) async throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "tern-aioquic-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try TestAuthority.make(in: folder)
        let file = folder.appending(path: "server.pem")
        var chain = try Data(contentsOf: file)
        for _ in 1..<certificates { chain += try Data(contentsOf: folder.appending(path: "ca.pem")) }
        try chain.write(to: file)
        let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "AioQUIC/peer.py").path
        output = folder.appending(path: "said").path
        child = try Child(
            [
                Venv.program("python"), "-B", script, folder.appending(path: "server.pem").path,
                folder.appending(path: "server.key").path,
            ] + options, output: output)
        port = try await Child.find(in: output, within: 30) { said in
            said.firstMatch(of: /port (\d+)/).flatMap { Int($0.output.1) }
        }
    }

    deinit {
        // A leftover does no harm: the folder is in the system's temporary one.
        try? FileManager.default.removeItem(at: folder)
    }

    var url: String { "https://127.0.0.1:\(port)" }

    /// A client over HTTP/3 alone, with a session of its own.
    func client(_ change: (inout Session.Configuration) -> Void = { _ in }) throws -> Client {
        let configuration = Session.Configuration.test {
            $0.authorities = .file(folder.appending(path: "ca.pem").path)
            $0.http3 = .always
            change(&$0)
        }
        return try Client(baseURL: url, session: Session(configuration: configuration))
    }

    /// The lines that the server has written so far.
    func lines() throws -> [String] {
        try String(contentsOfFile: output, encoding: .utf8).split(separator: "\n").map(String.init)
    }

    /// The number of requests with a method and a path that the server has begun to read.
    func count(_ method: String, _ path: String) throws -> Int {
        try lines().count { $0 == "request \(method) \(path)" }
    }

    /// The number of connections that the server has accepted.
    func connections() throws -> Int { try lines().count { $0 == "connection" } }

    /// Waits until the server has written a line with a prefix.
    func wait(for prefix: String) async throws {
        try await Child.find(in: output, within: 20) { said in
            said.split(separator: "\n").contains { $0.hasPrefix(prefix) } ? () : nil
        }
    }

    /// The bytes of `/body/COUNT`.
    static func pattern(_ count: Int) -> [UInt8] { (0..<count).map { UInt8($0 % 251) } }
}
#endif
