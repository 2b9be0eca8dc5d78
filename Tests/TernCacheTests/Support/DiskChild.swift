#if os(Linux)
import Glibc
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A process that changes a cache until it is killed. `DiskCrashChild` documents its arguments.
final class DiskChild {
    private let process: pid_t
    private var hasEnded = false

    init(_ arguments: [String]) throws {
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let path = program[..<(program.lastIndex(of: "/") ?? program.startIndex)] + "/DiskCrashChild"
        let words: [UnsafeMutablePointer<CChar>?] =
            unsafe ([String(path)] + arguments).map { unsafe strdup($0) } + [nil]
        defer { for index in unsafe words.indices { unsafe free(words[index]) } }
        var child: pid_t = 0
        let code = unsafe posix_spawn(&child, String(path), nil, nil, words, environ)
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

    /// Waits until the process ends by a kill, the only way in which it ends.
    func ended() throws {
        let status = status()
        try #require(status & 0x7F == SIGKILL, "the child ended by itself, status \(status)")
    }

    private func status() -> Int32 {
        var status: Int32 = 0
        while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
        hasEnded = true
        return status
    }
}
#endif
