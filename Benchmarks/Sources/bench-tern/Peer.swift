import BenchShapes
import BenchSupport
import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Tern through its public API, with its defaults but for the connection limit and the authority.
///
/// `get --connections 1 --warm-up 0`, built with `--static-swift-stdlib`, is the run whose instructions are counted.
///
/// A class, so that a worker's request copies nothing.
@main
final class Peer: Sendable {
    static func main() async {
        guard let options = Options(Array(CommandLine.arguments.dropFirst())) else {
            complain(Options.usage)
            exit(64)
        }
        do {
            if let loops = options.loops { try Session.setEventLoopCount(loops) }
        } catch {
            complain("bench-tern: \(error)")
            exit(64)
        }
        let sessions = (0..<options.sessions).map { _ in Session(configuration: Self.configuration(options)) }
        // The workers take turns over the sessions, and those of a session over the origins.
        var peers: [Peer] = []
        for origin in 0..<options.origins {
            for session in sessions {
                guard let peer = Peer(options, session: session, origin: origin) else {
                    complain(Options.usage)
                    exit(64)
                }
                peers.append(peer)
            }
        }
        do {
            try await peers[0].check(options)
        } catch {
            complain("bench-tern: \(error)")
            exit(1)
        }
        let benchmark = Benchmark(client: "tern", options: options) { worker in
            options.usesExecutor ? sessions[worker % sessions.count].executor : nil
        }
        let errors = await benchmark.run { [peers] scenario, _, worker in
            try await peers[worker % peers.count].perform(scenario)
        }
        exit(errors == 0 ? 0 : 1)
    }

    private static func configuration(_ options: Options) -> Session.Configuration {
        var configuration = Session.Configuration()
        if options.scenario != .h2 {
            configuration.maximumConnectionsPerHost = options.connections
            configuration.maximumConnections = max(configuration.maximumConnections, options.connections)
        }
        if let caFile = options.caFile { configuration.authorities = .file(caFile) }
        Additions(options.additions).add(to: &configuration, url: options.url)
        return configuration
    }

    let client: Client
    let scenario: Scenario
    let path: String
    let warmUpPath: String
    let file: URL
    let watches: Bool
    let makesHandles: Bool
    /// The number of values that a typed call decodes, and the size of their JSON.
    let count: Int
    let size: Int
    /// The values that are posted.
    let page: [Repository]

    init?(_ options: Options, session: Session, origin: Int) {
        guard let (base, path) = split(options.url), var address = URLComponents(string: base) else { return nil }
        address.port = address.port.map { $0 + origin }
        guard let baseURL = address.url else { return nil }
        client = Client(baseURL: baseURL, session: session)
        scenario = options.scenario
        self.path = path
        warmUpPath = options.warmUpURL.flatMap(split)?.path ?? path
        file = URL(filePath: options.file)
        watches = options.watches
        makesHandles = options.additions.contains(Additions.handle)
        count = options.expected?.count ?? 0
        size = options.size ?? 0
        do {
            page = scenario == .post ? try JSONCoding().decode([Repository].self, from: Data(contentsOf: file)) : []
        } catch {
            complain("bench-tern: \(error)")
            return nil
        }
    }

    func perform(_ scenario: Scenario) async throws -> Int {
        let path = scenario == self.scenario ? path : warmUpPath
        if watches { return try await performWatched(scenario, path) }
        if makesHandles { return try await client.task(.get, path).value.count }
        switch scenario {
        case .get, .https, .h2, .body64k:
            return try await client.get(path).count
        case .downloadFile:
            return fileSize(try await client.download(path, to: file).value.path)
        case .downloadStream:
            var count = 0
            for try await chunk in client.stream(path).chunks { count += chunk.count }
            return count
        case .upload:
            let answer = try await client.upload(path, method: .put, file: file).value
            return Int(String(decoding: answer, as: UTF8.self)) ?? 0
        case .user, .page, .post:
            return try await performTyped(scenario)
        }
    }

    /// The same, with somebody who follows the progress from the start to the end.
    private func performWatched(_ scenario: Scenario, _ path: String) async throws -> Int {
        switch scenario {
        case .get, .https, .h2, .body64k:
            let task = client.task(.get, path, startsImmediately: false)
            async let seen = Self.last(of: task.progress)
            task.resume()
            let count = try await task.value.count
            return await seen == Int64(count) ? count : -1
        case .downloadFile:
            let task = client.download(path, to: file, startsImmediately: false)
            async let seen = Self.last(of: task.progress)
            task.resume()
            let count = fileSize(try await task.value.path)
            return await seen == Int64(count) ? count : -1
        case .downloadStream:
            let stream = client.stream(path)
            async let seen = Self.last(of: stream.task.progress)
            var count = 0
            for try await chunk in stream.chunks { count += chunk.count }
            return await seen == Int64(count) ? count : -1
        case .upload:
            let task = client.upload(path, method: .put, file: file, startsImmediately: false)
            async let seen = Self.last(of: task.uploadProgress)
            task.resume()
            let count = Int(String(decoding: try await task.value, as: UTF8.self)) ?? 0
            return await seen == Int64(count) ? count : -1
        case .user, .page, .post:
            throw UnsupportedScenario()
        }
    }

    private static func last(of progress: AsyncStream<Session.Progress>) async -> Int64 {
        var bytes: Int64 = 0
        for await value in progress { bytes = value.completedBytes }
        return bytes
    }
}

/// Scheme and authority, and the path after them.
private func split(_ url: String) -> (base: String, path: String)? {
    let parts = url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count >= 3 else { return nil }
    return (parts[..<3].joined(separator: "/"), "/" + (parts.count > 3 ? parts[3] : ""))
}
