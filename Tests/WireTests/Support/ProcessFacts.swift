#if os(Linux) && !TERN_URLSESSION
import Foundation
import Glibc
import Testing

/// Facts that the kernel provides about this process and its threads.
enum ProcessFacts {
    struct Unknown: Error {}

    /// Whether a sanitizer is built in, which uses memory and time of its own.
    static let isSanitized = unsafe dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil
    static let sanitized: Comment = "a sanitizer is built in, which holds memory and takes time of its own"

    /// Returns the number of bytes of memory that the process holds (VmRSS).
    static func residentSize() throws -> Int { try 1_024 * number("VmRSS", in: "/proc/self/status") }

    static func threadCount() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count
    }

    /// Returns the number of open sockets.
    static func socketCount() throws -> Int { try count(of: "socket:") }

    /// Returns the number of open descriptors of a kind, such as "pipe:".
    static func count(of kind: String) throws -> Int {
        let manager = FileManager.default
        return try manager.contentsOfDirectory(atPath: "/proc/self/fd").count {
            // The descriptor of the folder's own listing is closed in the meantime.
            (try? manager.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)"))?.hasPrefix(kind) == true
        }
    }

    /// Returns how often each thread with this name has slept so far, by thread number.
    static func sleeps(ofThreadsNamed name: String) throws -> [String: Int] {
        var sleeps: [String: Int] = [:]
        for id in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task") {
            // A thread that has ended in the meantime has no files.
            let comm = try? String(contentsOfFile: "/proc/self/task/\(id)/comm", encoding: .utf8)
            guard comm == "\(name)\n" else { continue }
            sleeps[id] = try number("voluntary_ctxt_switches", in: "/proc/self/task/\(id)/status")
        }
        return sleeps
    }

    private static func number(_ field: String, in file: String) throws -> Int {
        let lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n")
        guard let line = lines.first(where: { $0.hasPrefix("\(field):") }),
            let number = line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Int($0) })
        else { throw Unknown() }
        return number
    }
}

/// The failure of a test in a process of its own.
struct CheckFailure: Error, CustomStringConvertible {
    let description: String

    /// Runs the body of an exit test. An error becomes an issue of the test instead of an exit without a text.
    static func report(_ body: () async throws -> Void) async {
        do {
            try await body()
        } catch {
            Issue.record(error)
        }
    }
}
#endif
