#if os(Linux) && !TERN_URLSESSION
import Foundation
import Testing

/// The Python programs that check Tern, in .build/venv; `make test` installs them.
enum Venv {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: ".build/venv")

    /// Suites that need it are skipped where it is missing. In CI, which makes it, they fail instead.
    static let isExpected =
        ProcessInfo.processInfo.environment["CI"] == "true"
        || FileManager.default.fileExists(atPath: folder.appending(path: ".installed").path)
    static let absence: Comment = "there is no .build/venv; `make test` makes it"

    static func program(_ name: String) -> String { folder.appending(path: "bin/\(name)").path }
}

/// httpbin on a free port of the loopback interface. It ends with its last reference, and with this process.
final class HTTPBin: Sendable {
    private let child: Child
    let url: String

    init(in folder: TestFolder) async throws {
        let output = "\(folder.path)/httpbin.out"
        child = try Child(
            [
                Venv.program("python"), "-m", "gunicorn", "--bind", "127.0.0.1:0", "--worker-class", "gthread",
                "--threads", "8", "--keep-alive", "5", "httpbin:app",
            ], output: output)
        url = try await Child.find(in: output, within: 30) { said in
            guard said.contains("Booting") else { return nil }
            return said.firstMatch(of: /Listening at: (http:\/\/127\.0\.0\.1:\d+)/).map { String($0.output.1) }
        }
    }
}
#endif
