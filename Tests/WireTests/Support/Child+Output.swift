#if os(Linux) && !TERN_URLSESSION
import Dispatch
import Foundation
import Glibc

extension Child {
    /// Searches the file that a program writes to, now and each time the program has written more.
    ///
    /// - Returns: The value found. If none is there in time, the function throws an error with the output of the
    /// program.
    static func find<Found>(
        in output: String, within seconds: Int32, _ look: (String) throws -> Found?
    ) async throws -> Found {
        let watch = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
        defer { close(watch) }
        guard watch >= 0, unsafe inotify_add_watch(watch, output, UInt32(IN_MODIFY)) >= 0 else {
            throw Failure(description: "\(output) cannot be watched: errno \(errno)")
        }
        while true {
            let said = try String(contentsOfFile: output, encoding: .utf8)
            if let found = try look(said) { return found }
            guard await isChanged(watch, within: seconds) else { throw Failure(description: "not in time: \(said)") }
        }
    }

    /// Waits for the next change on a thread that may block, and takes all changes that have come.
    private static func isChanged(_ watch: Int32, within seconds: Int32) async -> Bool {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                var descriptor = pollfd(fd: watch, events: Int16(POLLIN), revents: 0)
                let isChanged = unsafe poll(&descriptor, 1, seconds * 1_000) == 1
                var events = [UInt8](repeating: 0, count: 4_096)
                _ = unsafe read(watch, &events, events.count)
                continuation.resume(returning: isChanged)
            }
        }
    }
}
#endif
