#if os(Linux)
import Glibc
import Testing

@testable import TernEngine

/// The loop in a forked process, which has the memory of its parent but not the thread of the loop.
@Suite(.timeLimit(.minutes(1))) struct ForkTests {
    private typealias Fork = @convention(c) () -> pid_t

    /// Runs work in a forked process. Returns the status of its end, as `waitpid` gives it; nil if it cannot be forked.
    ///
    /// The work must not wait for another thread. A process that hangs nevertheless is ended by SIGALRM.
    private func forked(writingTo output: Int32 = STDERR_FILENO, _ work: () -> Void) -> Int32? {
        // Swift does not import fork.
        guard let symbol = unsafe dlsym(nil, "fork") else { return nil }
        let fork = unsafe unsafeBitCast(symbol, to: Fork.self)
        let child = fork()
        guard child >= 0 else { return nil }
        if child == 0 {
            alarm(20)
            // No trace of the end that a test expects.
            signal(SIGABRT, SIG_DFL)
            _ = dup2(output, STDERR_FILENO)
            work()
            _exit(0)
        }
        var status: Int32 = 0
        while unsafe waitpid(child, &status, 0) < 0 { guard errno == EINTR else { return nil } }
        return status
    }

    @Test func aJobEndsAForkedProcessWithAMessage() throws {
        let loop = EventLoop.shared
        #expect(loop.problem() == nil)
        var ends: [Int32] = [-1, -1]
        try #require(unsafe pipe(&ends) == 0)
        defer { close(ends[0]) }
        let status = forked(writingTo: ends[1]) { _ = loop.postJob(.close(0)) }
        close(ends[1])
        // The number of the signal that ended the process.
        #expect(try #require(status) & 0x7F == SIGABRT)
        var text = [UInt8](repeating: 0, count: 1_024)
        let count = unsafe read(ends[0], &text, text.count)
        #expect(String(decoding: text[..<max(0, count)], as: UTF8.self).contains("start another program with exec"))
    }

    @Test func aForkedProcessHasNoLoop() throws {
        let loop = EventLoop.shared
        #expect(loop.problem() == nil)
        let status = try #require(
            forked {
                // Messages are dropped, such as that of a session that is released.
                loop.close(0)
                _exit(loop.problem() == nil ? 1 : 2)
            })
        #expect(status == 2 << 8)
        // The parent is not changed.
        #expect(loop.problem() == nil)
    }
}
#endif
