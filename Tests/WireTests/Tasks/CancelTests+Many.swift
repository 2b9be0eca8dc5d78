import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if os(Linux) && !TERN_URLSESSION
/// Checks the resources of the process after a great many tasks: each test waits until the process is quiet.
@Suite("After very many tasks", .serialized)
struct ManyTasksTests {
    private static let isSoak = environment("TERN_SOAK") == 1
    /// The number of cancellations: the value of the environment, or that of `make soak`, or a quarter of it.
    private static let cancellations = environment("TERN_CANCELLATIONS") ?? (isSoak ? 60_000 : 15_000)

    private static func environment(_ name: String) -> Int? {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
    }

    private func openDescriptors() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }

    private func residentBytes() throws -> Int {
        let status = try String(contentsOf: URL(filePath: "/proc/self/status"), encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") })
        let number = line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) }
        return try #require(number) << 10
    }

    /// Cancels tasks at every moment and in every way: each ends once, and no resource is kept.
    @Test(.timeLimit(.minutes(3)))
    func mixedCancellationsLeaveNothing() async throws {
        try await withServer { exchange in
            switch exchange.request.path {
            case "/json": try exchange.respond(json: [1])
            case "/post":
                try exchange.drainBody()
                try exchange.respond(text: "ok")
            default:
                // The client of this response goes away sooner or later.
                try exchange.writeHead(headers: [("Content-Length", "100000")])
                try exchange.write([UInt8](repeating: 1, count: 1_000))
                try exchange.waitForClientToClose()
            }
        } test: { server, _ in
            try await Self.cancelMany(server)
            // The session is released: each descriptor of the client is a connection of the server.
            try await server.wait { $0.openConnections == 0 }
        }
    }

    private static func cancelMany(_ server: LoopbackServer) async throws {
        let client = Client(baseURL: server.url, session: Session(configuration: .test()))
        let workers = 32
        let endings = await withTaskGroup(of: [Session.TaskState: Int].self) { group in
            for worker in 0..<workers {
                group.addTask {
                    var endings: [Session.TaskState: Int] = [:]
                    for round in 0..<(cancellations / workers) {
                        endings[await cancelOne(client, worker &* 7_919 &+ round), default: 0] += 1
                    }
                    return endings
                }
            }
            return await group.reduce(into: [:]) { $0.merge($1, uniquingKeysWith: +) }
        }
        #expect(endings.values.reduce(0, +) == cancellations / workers * workers)
        #expect(endings[.cancelled, default: 0] > cancellations / 4)
        #expect(endings[.failed] == nil)
        await client.session.drained()
        #expect(await client.session.tasks.count == 0)
        #expect(try await client.get("json", as: [Int].self) == [1])
        await client.session.finishTasksAndInvalidate()
    }

    private static func cancelOne(_ client: Client, _ number: Int) async -> Session.TaskState {
        let path = number % 8 == 3 ? "stall" : "json"
        switch number % 5 {
        case 0:  // A handle, cancelled after some time.
            let task = client.task(.get, path)
            for _ in 0..<(number / 5 % 11) { await Task.yield() }
            task.cancel()
            return await ending { () throws(NetworkError) in _ = try await task.value }
        case 1:  // A call, its Swift task cancelled.
            let call = Task { await ending { () throws(NetworkError) in _ = try await client.get(path) } }
            for _ in 0..<(number / 5 % 11) { await Task.yield() }
            call.cancel()
            return await call.value
        case 2:  // Before the start, or right after a pause.
            let task = client.task(.get, path, startsImmediately: false)
            if number % 2 == 0 {
                task.resume()
                task.pause()
            }
            task.cancel()
            return await ending { () throws(NetworkError) in _ = try await task.value }
        case 3:  // With a body.
            let task = client.task(.post, "post", body: .data(Data(count: 10_000)))
            for _ in 0..<(number / 5 % 13) { await Task.yield() }
            task.cancel()
            return await ending { () throws(NetworkError) in _ = try await task.value }
        default:  // A stream, dropped or cancelled.
            let stream = client.stream(path)
            if number % 2 == 0 { _ = try? await stream.response }  // Only its end matters.
            stream.task.cancel()
            return await stream.task.states.collected().last ?? .failed
        }
    }

    private static func ending(_ work: () async throws(NetworkError) -> Void) async -> Session.TaskState {
        do {
            try await work()
            return .completed
        } catch {
            return error.isCancelled ? .cancelled : .failed
        }
    }

    /// Runs alone in its process: `TERN_SOAK=1 swift test -c release -Xswiftc -enable-testing --filter ManyTasksTests`.
    @Test(.enabled(if: isSoak), .timeLimit(.minutes(10)))
    func aHundredThousandRequestsTakeNoMoreMemoryThanTenThousand() async throws {
        try await withServer { exchange in
            try exchange.respond(json: [1])
        } test: { server, client in
            func run(_ count: Int) async throws {
                try await withThrowingTaskGroup { group in
                    for _ in 0..<32 {
                        group.addTask {
                            for _ in 0..<(count / 32) { _ = try await client.get("json", as: [Int].self) }
                        }
                    }
                    try await group.waitForAll()
                }
            }
            try await run(10_000)
            let (memory, descriptors) = (try residentBytes(), try openDescriptors())
            try await run(90_000)
            let (memoryAfter, descriptorsAfter) = (try residentBytes(), try openDescriptors())
            print(
                "resident after 10,000: \(memory >> 10) KiB, after 100,000: \(memoryAfter >> 10) KiB;",
                "descriptors \(descriptors), \(descriptorsAfter)")
            #expect(memoryAfter <= memory + 2 << 20)
            #expect(descriptorsAfter == descriptors)
        }
    }

    /// Runs alone in its process, too.
    @Test(.enabled(if: isSoak), .timeLimit(.minutes(10)))
    func cancellationsLeaveNoDescriptor() async throws {
        let before = try openDescriptors()
        try await mixedCancellationsLeaveNothing()
        // The server closes its descriptor when the client closes.
        var after = try openDescriptors()
        for _ in 0..<100_000 where after > before {
            await Task.yield()
            after = try openDescriptors()
        }
        print("descriptors before \(before), after \(after); resident \(try residentBytes() >> 10) KiB")
        // The first request creates the two descriptors of the loop.
        #expect(after <= before + 2)
    }
}
#endif
