#if os(Linux) && !TERN_URLSESSION
import Foundation
import Glibc
import TernTesting
import Testing

@testable import EngineChild

/// A server that ends connections while the system sends a file does not end the process by SIGPIPE.
///
/// Another number of uploads: `TERN_SIGNAL_UPLOADS`.
@Suite("Uploads: signals", .serialized, .timeLimit(.minutes(30)))
struct UploadSignalTests {
    private static let uploads =
        ProcessInfo.processInfo.environment["TERN_SIGNAL_UPLOADS"].flatMap { Int($0) } ?? 2_000

    @Test func aServerThatAnswersEarlyAndClosesDoesNotEndTheProcess() async throws {
        let server = try LoopbackServer { exchange in
            // The amount that the server takes decides at which call of the client the end arrives.
            for _ in 0..<Int.random(in: 0..<40) { _ = try exchange.readChunk(upTo: 64 << 10) }
            try exchange.respond(status: 413, headers: [("Connection", "close")], text: "too much")
            // A reset after the end is EPIPE for the client, with the signal; without the end it is ECONNRESET.
            exchange.close()
            exchange.reset()
        }
        try await inTestFolder { folder in
            try folder.write([UInt8](repeating: 7, count: 12 << 20), to: "file")
            let arguments = ["upload", server.url.absoluteString, folder.url("file").path, "\(Self.uploads)"]
            let status = try Self.run(arguments)
            #expect(status & 0x7F == 0, "a signal ended the process: \(status & 0x7F)")
            #expect(status >> 8 & 0xFF == 0)
            #expect(server.counts.requestsReceived >= Self.uploads)
        }
    }

    /// Runs an `EngineChild` to its end, and returns its status as `waitpid` reports it.
    private static func run(_ arguments: [String]) throws -> Int32 {
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let path = program[..<(program.lastIndex(of: "/") ?? program.startIndex)] + "/EngineChild"
        let words: [UnsafeMutablePointer<CChar>?] =
            unsafe ([String(path)] + arguments).map { unsafe strdup($0) } + [nil]
        defer { for index in unsafe words.indices { unsafe free(words[index]) } }
        var process: pid_t = 0
        let code = unsafe posix_spawn(&process, String(path), nil, nil, words, environ)
        try #require(code == 0, "the child does not start: errno \(code)")
        var status: Int32 = 0
        while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status
    }
}
#endif
