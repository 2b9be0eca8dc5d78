import Foundation
import TernCache
import Testing

@testable import TernSharedCache

/// Servers that send what no Redis server sends.
@Suite("Redis store: hostile servers", .timeLimit(.minutes(2))) struct HostileServerTests {
    private let key = CacheStoreKey(group: "images", name: "abc")

    struct Case: Sendable, CustomTestStringConvertible {
        let reply: String
        var isEndless = false
        /// The kind of the error; nil for a miss.
        let kind: RedisStoreError.Kind?

        var testDescription: String { "\(reply.debugDescription)\(isEndless ? " …" : "")" }
    }

    static let cases = [
        // Arrays, whose elements would take memory before they come.
        Case(reply: "*1000000000\r\n", kind: .malformedReply), Case(reply: "*0\r\n", kind: .malformedReply),
        Case(reply: "*-1\r\n", isEndless: true, kind: .malformedReply),
        // Values beyond the limit, announced or not.
        Case(reply: "$9000000000\r\n", isEndless: true, kind: .malformedReply),
        Case(reply: "$99999999999999999999999\r\n", kind: .malformedReply),
        Case(reply: "+", isEndless: true, kind: .malformedReply),
        // No protocol at all.
        Case(reply: "HTTP/1.1 200 OK\r\n\r\n", kind: .malformedReply), Case(reply: "\0\0\0\0", kind: .malformedReply),
        Case(reply: "$-5\r\n", kind: .malformedReply),
        // Replies of wrong types, and values that this store did not write.
        Case(reply: "+OK\r\n+OK\r\n+OK\r\n+OK\r\n", kind: nil), Case(reply: ":1\r\n:1\r\n:1\r\n:1\r\n", kind: nil),
        Case(reply: "$3\r\nabc\r\n$0\r\n\r\n$3\r\nabc\r\n:5\r\n", kind: nil),
        Case(reply: "-ERR secret\r\n-secret\r\n-\r\n-ERR\r\n", kind: .refused),
        // A reply that never ends.
        Case(reply: "$3\r\nab", kind: .timedOut), Case(reply: "", kind: .timedOut),
    ]

    @Test(arguments: cases) func aFalseReplyIsAMissOrAnError(test: Case) async throws {
        let server = try FalseServer(test.reply, isEndless: test.isEndless)
        var configuration = RedisStore.Configuration(.unixSocket(server.socket))
        configuration.connectTimeout = .seconds(10)
        configuration.operationTimeout = test.kind == .timedOut ? .milliseconds(20) : .seconds(10)
        configuration.valueByteLimit = 100_000
        let store = RedisStore(configuration)
        do {
            let entry = try await store.entry(for: key)
            #expect(entry == nil && test.kind == nil)
        } catch let error as RedisStoreError {
            #expect(error.kind == test.kind)
            #expect(!"\(error)".contains("secret"))
        }
    }
}

/// A process that sends a text to each connection, and then the letter x for ever, or nothing.
private final class FalseServer {
    let socket = "/tmp/tern-false-\(UInt32.random(in: 0 ... .max))"
    private let process = Process()

    private static let program = """
        import socket, sys
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(sys.argv[1])
        listener.listen(8)
        print("ready", flush=True)
        while True:
            peer = listener.accept()[0]
            try:
                peer.recv(65536)
                peer.sendall(bytes.fromhex(sys.argv[2]))
                while sys.argv[3] == "1":
                    peer.sendall(b"x" * 65536)
                while peer.recv(65536):
                    pass
            except OSError:
                pass
            peer.close()
        """

    init(_ reply: String, isEndless: Bool) throws {
        let output = Pipe()
        let digits = reply.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        process.executableURL = URL(filePath: "/usr/bin/python3")
        process.arguments = ["-c", Self.program, socket, digits, isEndless ? "1" : "0"]
        process.standardOutput = output
        try process.run()
        try #require(!output.fileHandleForReading.availableData.isEmpty, "the server does not start")
    }

    deinit {
        // The process inherits a mask that blocks the signal of `terminate()`.
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        // A leftover does no harm.
        try? FileManager.default.removeItem(atPath: socket)
    }
}
