#if os(Linux) && !TERN_URLSESSION
import Glibc

/// A program that ends with this process, however this process ends: a shell runs the program, and ends it as soon as
/// its own input is closed.
final class Child: Sendable {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private let process: pid_t
    private let input: Int32

    /// Starts a program, whose output goes to the file at `output`.
    init(_ arguments: [String], output: String) throws(Failure) {
        var ends: [Int32] = [0, 0]
        // A pair of sockets is made close-on-exec in one step: no other child may hold the input of this one open.
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard unsafe socketpair(AF_UNIX, kind, 0, &ends) == 0 else {
            throw Failure(description: "no pair of sockets: errno \(errno)")
        }
        defer { close(ends[0]) }
        // Programs such as Apache have processes of their own: the whole group ends.
        let script = """
            setsid "$@" & child=$!
            while read -r signal; do kill -s $signal $child; done
            kill -9 -$child || kill -9 $child
            wait $child
            echo "ended with status $?"
            """
        do {
            process = try Self.spawn(["/bin/sh", "-c", script, "sh"] + arguments, input: ends[0], output: output)
            input = ends[1]
        } catch {
            close(ends[1])
            throw error
        }
    }

    /// Ends the program, and returns when it has exited.
    deinit {
        close(input)
        _ = Self.end(of: process)
    }

    /// Sends a signal to the program: a name without `SIG`.
    func signal(_ name: String) {
        let line = Array("\(name)\n".utf8)
        _ = unsafe send(input, line, line.count, Int32(MSG_NOSIGNAL))
    }

    /// Runs a script to its end in the shell, and throws an error with the script if its status is not 0.
    static func run(_ script: String, output: String) throws(Failure) {
        let null = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
        defer { close(null) }
        let status = end(of: try spawn(["/bin/sh", "-ec", script], input: null, output: output))
        guard status == 0 else { throw Failure(description: "status \(status) of: \(script)") }
    }

    private static func end(of process: pid_t) -> Int32 {
        var status: Int32 = 0
        while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status
    }

    private static func spawn(_ arguments: [String], input: Int32, output: String) throws(Failure) -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_adddup2(&actions, input, 0)
        unsafe posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        unsafe posix_spawn_file_actions_adddup2(&actions, 1, 2)
        // The threads of this process block signals that a shell waits for.
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        unsafe sigemptyset(&none)
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        let path = "PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
        let words: [UnsafeMutablePointer<CChar>?] = unsafe arguments.map { unsafe strdup($0) } + [nil]
        let variables: [UnsafeMutablePointer<CChar>?] = unsafe [strdup(path), nil]
        defer {
            for index in unsafe words.indices { unsafe free(words[index]) }
            unsafe free(variables[0])
        }
        var process: pid_t = 0
        let result = unsafe posix_spawn(&process, arguments[0], &actions, &attributes, words, variables)
        guard result == 0 else { throw Failure(description: "\(arguments[0]) does not start: errno \(result)") }
        return process
    }
}
#endif
