import Foundation
import Synchronization
import Tern
import TernCache
import TernHTTPCache
import TernImages
import TernTesting
import Testing

@testable import TernSharedCache

/// Several servers of a fleet share what they fetched.
@Suite("Shared cache: a fleet", .timeLimit(.minutes(5))) struct FleetTests {
    /// - Parameter isPatient: Whether no limit of time passes on a busy machine.
    private func level(_ server: RedisServer, isPatient: Bool = false) -> SecondLevelCache {
        var own = RedisStore.Configuration(.unixSocket(server.socket))
        own.password = RedisServer.password
        own.pause = .milliseconds(20)
        if isPatient { own.operationTimeout = .seconds(10) }
        var level = SecondLevelCache(RedisStore(own))
        if isPatient { (level.timeLimit, level.waitLimit) = (.seconds(60), .seconds(60)) }
        return level
    }

    /// Returns once the server answers.
    private func answers(_ level: SecondLevelCache) async throws {
        let key = CacheStoreKey(group: "test", name: "test")
        while true {
            do {
                return try await level.store.insert(Data(), for: key, lifetime: .seconds(1))
            } catch is RedisStoreError {
                // Another attempt follows; the time limit of the suite ends this.
                await Task.yield()
            }
        }
    }

    @Test func twoProcessesFetch1000OriginalsOnce() async throws {
        guard let redis = try await RedisServer.start() else { return }
        try await answers(level(redis))
        let server = try LoopbackServer { exchange in
            let number = exchange.request.path.dropFirst().prefix { $0.isNumber }
            try exchange.respond(
                headers: [("Cache-Control", "max-age=3600")],
                text: "original \(number) " + String(repeating: "x", count: (Int(number) ?? 0) * 10))
        }
        defer { server.stop() }
        // Both in the same order, so that they ask for each at the same time.
        let arguments = [redis.socket, RedisServer.password, "\(server.url)", "1000", "0"]
        let children = try (0..<2).map { _ in try Child(arguments) }
        for child in children { #expect(await child.line() == "ready") }
        for child in children { child.begin() }
        for child in children { #expect(await child.line() == "1000") }
        #expect(server.counts.requestsReceived == 1_000)
    }

    @Test func aServerThatIsKilledAndRestartedUnderLoadFailsNoLoad() async throws {
        guard let redis = try await RedisServer.start() else { return }
        try await answers(level(redis))
        let server = try LoopbackServer { exchange in
            let text = "original \(exchange.request.path)"
            try exchange.respond(headers: [("Cache-Control", "max-age=3600")], text: text)
        }
        defer { server.stop() }
        let pipelines = (0..<2).map { _ in
            var configuration = ImagePipeline.Configuration()
            configuration.session = Session()
            configuration.disk = .none
            configuration.secondLevel = level(redis)
            return ImagePipeline(configuration: configuration)
        }
        let load = Load()
        let url = server.url
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<8 {
                group.addTask {
                    var number = 0
                    while !load.isDone.load(ordering: .relaxed) {
                        // Two workers share each original.
                        let request = ImageRequest(url.appending(path: "\(worker / 2)-\(number)"))
                        let data = try await pipelines[worker % 2].data(for: request)
                        #expect(data == Data("original /\(worker / 2)-\(number)".utf8))
                        number += 1
                        load.count.add(1, ordering: .relaxed)
                    }
                }
            }
            group.addTask {
                func wait(for count: Int) async {
                    let target = load.count.load(ordering: .relaxed) + count
                    while load.count.load(ordering: .relaxed) < target { await Task.yield() }
                }
                for _ in 0..<3 {
                    await wait(for: 200)
                    redis.kill()
                    await wait(for: 200)
                    try redis.restart()
                    await wait(for: 200)
                    redis.setStopped(true)
                    await wait(for: 40)
                    redis.setStopped(false)
                }
                load.isDone.store(true, ordering: .relaxed)
            }
            try await group.waitForAll()
        }
        // It is used again.
        try await answers(level(redis))
        let last = ImageRequest(url.appending(path: "last"))
        while true {
            _ = try await pipelines[0].data(for: last)
            try await pipelines[0].flush()
            let count = server.counts.requestsReceived
            _ = try await pipelines[1].data(for: last)
            if server.counts.requestsReceived == count { break }
        }
    }

    @Test func serversShareResponsesUntilTheirUserLogsOut() async throws {
        guard let redis = try await RedisServer.start() else { return }
        try await answers(level(redis))
        let server = try LoopbackServer { exchange in
            try exchange.respond(
                headers: [("Cache-Control", "max-age=3600, private")],
                text: "\(exchange.number) " + String(repeating: "text ", count: 10_000))
        }
        defer { server.stop() }
        func client(_ user: String) -> (Client, HTTPCache) {
            var settings = HTTPCache.Configuration()
            settings.secondLevel = level(redis, isPatient: true)
            let cache = HTTPCache.memory(settings)
            var configuration = Session.Configuration()
            configuration.cache = cache
            configuration.partition = user
            return (Client(baseURL: server.url, session: Session(configuration: configuration)), cache)
        }
        func number(_ client: Client) async throws -> Substring {
            let text: String = try await client.get("a")
            return text.prefix { $0 != " " }
        }
        let (first, cache) = client("ada")
        #expect(try await number(first) == "1")
        await cache.flush()
        #expect(try await number(client("ada").0) == "1")
        #expect(try await number(client("bob").0) == "2")
        try await cache.clear(partition: "ada")
        #expect(try await number(client("ada").0) == "3")
    }
}

/// The loads of a test.
private final class Load: Sendable {
    let isDone = Atomic<Bool>(false)
    let count = Atomic<Int>(0)
}

/// A process of `SharedCacheChild`.
private final class Child {
    private let process = Process()
    private let (input, output) = (Pipe(), Pipe())
    private var rest = Data()

    init(_ arguments: [String]) throws {
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        process.executableURL = URL(filePath: program).deletingLastPathComponent().appending(path: "SharedCacheChild")
        process.arguments = arguments
        (process.standardInput, process.standardOutput) = (input, output)
        try process.run()
    }

    deinit {
        // The process inherits a mask that blocks the signal of `terminate()`.
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
    }

    func begin() { input.fileHandleForWriting.write(Data("\n".utf8)) }

    /// Returns the next line of the output; nil at its end.
    func line() async -> String? {
        while true {
            if let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                defer { rest = Data(rest[(end + 1)...]) }
                return String(decoding: rest[..<end], as: UTF8.self)
            }
            let handle = output.fileHandleForReading
            // A thread of its own waits.
            let data = await withCheckedContinuation { (continuation: CheckedContinuation<Data, Never>) in
                Thread.detachNewThread { continuation.resume(returning: handle.availableData) }
            }
            if data.isEmpty { return nil }
            rest += data
        }
    }
}
