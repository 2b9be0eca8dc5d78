import BenchSupport
import Foundation
import Synchronization
import Tern
import TernHTTPCache

/// Measures one store of the HTTP cache against one kind of request: `bench-http-cache STORE TASK URL CONNECTIONS
/// REQUESTS FOLDER`. Prints one line of JSON.
///
/// - STORE: `none`, `memory` or `disk`.
/// - TASK: `hit` requests one URL again and again, and `miss` a new one each time; `download` saves a large file, and
///   then the same from the store; `inspect` opens a store that `miss` has filled, and explains and removes entries.
@main
enum HTTPCacheBenchmark {
    static func main() async throws {
        let words = CommandLine.arguments.dropFirst()
        guard words.count == 6, let connections = Int(words[4]), let requests = Int(words[5]) else {
            print("usage: bench-http-cache STORE TASK URL CONNECTIONS REQUESTS FOLDER")
            return
        }
        let folder = URL(filePath: words[6])
        let run = Run(
            store: words[1], url: words[3], connections: connections, requests: requests, folder: folder)
        switch words[2] {
        case "download": try await run.download()
        case "inspect": try await run.inspect()
        default: try await run.requests(areNew: words[2] == "miss")
        }
    }
}

/// One run.
struct Run: Sendable {
    let store: String
    let url: String
    let connections: Int
    let requests: Int
    let folder: URL

    private func cache() -> HTTPCache? {
        var configuration = HTTPCache.Configuration()
        switch store {
        case "memory": return .memory(configuration)
        case "disk":
            configuration.byteLimit = 4 << 30
            configuration.entryByteLimit = 2 << 30
            return .disk(folder: folder, configuration)
        default: return nil
        }
    }

    private func session(_ cache: HTTPCache?) -> Session {
        var configuration = Session.Configuration()
        configuration.proxies = .none
        configuration.cache = cache
        return Session(configuration: configuration)
    }

    /// Requests one URL, or a new one each time.
    func requests(areNew: Bool) async throws {
        let cache = cache()
        let session = session(cache)
        let round = Counter()
        func work(_ count: Int) async throws {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<connections {
                    group.addTask {
                        for _ in 0..<count / connections {
                            let address = areNew ? "\(url)?\(round.next())" : url
                            _ = try await session.response(for: Request(.get, address))
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
        try await work(max(connections, requests / 10))
        let before = Sample.now()
        try await work(requests)
        report(before, count: requests / connections * connections)
        await cache?.flush()
    }

    /// Downloads a large file, and then again from the store.
    func download() async throws {
        let cache = cache()
        let client = try Client(baseURL: String(url.dropLast("/large".count)), session: session(cache))
        let file = folder.deletingLastPathComponent().appending(path: "bench-download")
        for _ in 0..<requests {
            let before = Sample.now()
            _ = try await client.download("large", to: file).value
            report(before, count: 1)
            await cache?.flush()
        }
    }

    /// Opens a store that is filled, and explains and removes single entries.
    func inspect() async throws {
        let before = Sample.now()
        guard let cache = cache() else { return }
        try await cache.open()
        let opened = Sample.now()
        let session = session(cache)
        for number in 1...100 { _ = try await cache.explain(Request(.get, "\(url)?\(number)"), of: session) }
        let explained = Sample.now()
        for number in 1...100 { try await cache.remove("\(url)?\(number)", of: session) }
        let removed = Sample.now()
        print(
            """
            {"open_ms":\((opened.wall - before.wall) * 1e3),"explain_ms":\((explained.wall - opened.wall) * 10),\
            "remove_ms":\((removed.wall - explained.wall) * 10)}
            """)
    }

    private func report(_ before: Sample, count: Int) {
        let after = Sample.now()
        let (seconds, cpu) = (after.wall - before.wall, after.cpu - before.cpu)
        print(
            """
            {"rps":\(Double(count) / seconds),"cpu_us":\(cpu * 1e6 / Double(count)),"seconds":\(seconds),\
            "rss_mib":\(peakResidentMiB())}
            """)
    }
}

/// Counts from 1.
private final class Counter: Sendable {
    private let value = Atomic(0)

    func next() -> Int { value.wrappingAdd(1, ordering: .relaxed).newValue }
}
