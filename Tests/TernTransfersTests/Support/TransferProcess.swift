#if os(Linux)
import Foundation
import Glibc
import Testing

/// A running program that a test can kill.
final class TransferProcess {
    enum End {
        case killed
        case exited(Int32)
    }

    private let process: pid_t
    private var hasEnded = false

    /// Starts a `DownloadCrashChild`.
    convenience init(_ arguments: [String]) throws {
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let folder = program[..<(program.lastIndex(of: "/") ?? program.startIndex)]
        try self.init(program: folder + "/DownloadCrashChild", arguments)
    }

    init(program path: String, _ arguments: [String]) throws {
        let words: [UnsafeMutablePointer<CChar>?] =
            unsafe ([path] + arguments).map { unsafe strdup($0) } + [nil]
        defer { for index in unsafe words.indices { unsafe free(words[index]) } }
        var child: pid_t = 0
        let code = unsafe posix_spawn(&child, path, nil, nil, words, environ)
        try #require(code == 0, "the child does not start: errno \(code)")
        process = child
    }

    /// Leaves no process behind, not even an ended one: Swift Testing looks at one ended child at a time, so that an
    /// exit test would wait forever behind one that nobody waits for.
    deinit {
        kill()
        if !hasEnded { _ = status() }
    }

    func kill() { if !hasEnded { _ = Glibc.kill(process, SIGKILL) } }

    /// Waits until the process ends.
    func end() throws -> End {
        let status = status()
        if status & 0x7F == SIGKILL { return .killed }
        try #require(status & 0x7F == 0, "the child crashed, status \(status)")
        return .exited(status >> 8 & 0xFF)
    }

    private func status() -> Int32 {
        var status: Int32 = 0
        while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
        hasEnded = true
        return status
    }
}
#endif
