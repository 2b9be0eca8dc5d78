#if os(Linux) && !TERN_URLSESSION
import Foundation
import Glibc
import Tern
import TernStreaming
import Testing

/// Many sockets at a time, to a server in a process of its own. `make sockets` opens 1,000.
@Suite(
    "WebSocket: many sockets", .serialized, .enabled(if: Venv.isExpected, Venv.absence), .timeLimit(.minutes(5)))
struct ManySocketsTests {
    private static let program = #"""
        import asyncio, websockets

        async def echo(ws):
            async for message in ws:
                await ws.send(message)

        async def main():
            options = dict(ping_interval=None, compression=None, backlog=512)
            server = await websockets.serve(echo, "127.0.0.1", 0, **options)
            print("port", server.sockets[0].getsockname()[1], "end", flush=True)
            await asyncio.Future()

        asyncio.run(main())
        """#

    /// The resources of the process.
    private struct Usage {
        let descriptors: Int
        let threads: Int
        let memory: Int

        init() throws {
            descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
            threads = try ProcessFacts.threadCount()
            memory = try ProcessFacts.residentSize()
        }
    }

    /// Runs in a process of its own, so that its threads and descriptors are those of the sockets.
    @Test func socketsAreGivenBack() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
            await CheckFailure.report { try await ManySocketsTests.run() }
        }
        let output = String(decoding: result?.standardOutputContent ?? [], as: UTF8.self)
        let numbers = output.split(separator: "\n").filter { $0.hasPrefix("sockets: ") }
        #expect(numbers.count == 2)
        for line in numbers { print(line) }
    }

    private static func run() async throws {
        let count = ProcessInfo.processInfo.environment["TERN_SOCKETS"].flatMap { Int($0) } ?? 200
        var limits = rlimit()
        let kind = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        _ = unsafe getrlimit(kind, &limits)
        limits.rlim_cur = min(limits.rlim_max, max(limits.rlim_cur, UInt(count) + 512))
        guard unsafe setrlimit(kind, &limits) == 0, limits.rlim_cur >= UInt(count) + 100 else {
            throw CheckFailure(description: "the limit of descriptors cannot be raised for \(count) sockets")
        }
        try await inTestFolder { folder in
            try folder.write(program, to: "server.py")
            let output = "\(folder.path)/server.out"
            let child = try Child([Venv.program("python"), "\(folder.path)/server.py"], output: output)
            let port = try await Child.find(in: output, within: 30) { text in
                text.firstMatch(of: /port (\d+) end/).map { String($0.output.1) }
            }
            let session = Session(configuration: .test())
            let url = "ws://127.0.0.1:\(port)/"
            // Loops and threads start with the first sockets.
            try await use(session, url, count: 20) { _ in }
            try await settled(session)
            let before = try Usage()
            let clock = ContinuousClock()
            let start = clock.now
            try await use(session, url, count: count) { sockets in
                let opened = clock.now
                for round in 0..<3 {
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for (index, socket) in sockets.enumerated() {
                            group.addTask {
                                let text = "message \(round) of \(index)"
                                try await socket.send(text)
                                #expect(try await socket.receive() == .text(text))
                            }
                        }
                        try await group.waitForAll()
                    }
                }
                let during = try Usage()
                let memory = (during.memory - before.memory) / count
                print(
                    "sockets: \(count) opened in \(opened - start), 3 round trips of all in \(clock.now - opened), "
                        + "\(memory) bytes each, \(during.descriptors - before.descriptors) descriptors, "
                        + "threads \(before.threads) → \(during.threads)")
                #expect(during.descriptors - before.descriptors == count)
                #expect(during.threads - before.threads <= ProcessInfo.processInfo.activeProcessorCount + 2)
                if !ProcessFacts.isSanitized { #expect(memory < 64 << 10) }
            }
            try await settled(session)
            let after = try Usage()
            print(
                "sockets: after the end \(after.descriptors - before.descriptors) descriptors, threads \(after.threads), "
                    + "\((after.memory - before.memory) >> 10) KiB more")
            #expect(after.descriptors == before.descriptors)
            #expect(after.threads <= before.threads + ProcessInfo.processInfo.activeProcessorCount + 2)
            await session.invalidateAndCancel()
            withExtendedLifetime(child) {}
        }
    }

    /// Opens sockets at once, and closes them after the body.
    private static func use(
        _ session: Session, _ url: String, count: Int, _ body: ([WebSocket]) async throws -> Void
    ) async throws {
        let sockets = try await withThrowingTaskGroup(of: WebSocket.self) { group in
            for _ in 0..<count { group.addTask { try await session.webSocket(url) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        try await body(sockets)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for socket in sockets {
                group.addTask {
                    try await socket.close()
                    #expect(socket.closure?.isClean == true)
                }
            }
            try await group.waitForAll()
        }
    }

    /// Returns when the session has no tasks, and its loop has closed their sockets.
    private static func settled(_ session: Session) async throws {
        while await session.tasks.count > 0 { await Task.yield() }
    }
}
#endif
