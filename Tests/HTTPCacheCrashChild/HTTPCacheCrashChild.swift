import Tern
import TernHTTPCache
import TernTesting

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The process that the crash test of the HTTP cache kills. It fills and updates a cache in a folder by requests to a
/// server of its own, until it is killed from outside.
///
///     HTTPCacheCrashChild FOLDER JOURNAL SEED PORT
///
/// The server listens at the port if it can, so that a later process finds the entries of an earlier one. Each line of
/// the journal is one `write` to a file, so that it survives the kill like the cache's own writes: `B URL version`
/// before a request, and after it `A URL version` if the trace says that the response is stored, otherwise `N URL 0`.
@main
struct HTTPCacheCrashChild {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 5, let seed = Int(arguments[3]), let port = Int(arguments[4]) else { exit(2) }
        let journal = unsafe open(arguments[2], O_WRONLY | O_CREAT | O_APPEND, 0o600)
        guard journal >= 0 else { exit(3) }
        let handler: LoopbackServer.Handler = { exchange in
            guard let version = exchange.request["X-Version"].flatMap({ Int($0) }) else { return }
            let path = CrashResponse.path(exchange.request.target)
            try CrashResponse(path: path, version: version).send(to: exchange)
        }
        let server: LoopbackServer
        do {
            server = try LoopbackServer(port: port, requestLogLimit: 0, handler: handler)
        } catch {
            server = try LoopbackServer(requestLogLimit: 0, handler: handler)
        }
        var configuration = Session.Configuration()
        configuration.proxies = .none
        // Cookies in memory would belong to this process alone.
        configuration.partition = "user"
        configuration.cache = .disk(folder: URL(filePath: arguments[1]))
        let client = Client(baseURL: server.url, session: Session(configuration: configuration))
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<4 {
                group.addTask {
                    do {
                        try await work(with: client, number: number, journal: journal, seed: seed)
                    } catch {
                        print("\(error)")
                        exit(4)
                    }
                }
            }
        }
    }

    private static func work(with client: Client, number: Int, journal: Int32, seed: Int) async throws {
        var version = seed * 1_000_000
        while true {
            version += 1
            let path = "\(number)-\(version &* 7 % 12)"
            if version % 4 == 0 {
                // Its response is written while that to the next request of the same path arrives.
                var earlier = try client.request(.get, path, headers: ["X-Version": "\(version)"])
                record(in: journal, "B \(earlier.urlString) \(version)")
                earlier.cache = .reload
                _ = try await client.session.response(for: earlier)
                version += 1
            }
            var request = try client.request(.get, path, headers: ["X-Version": "\(version)"])
            record(in: journal, "B \(request.urlString) \(version)")
            // A reload replaces the response; a validation confirms some and replaces others.
            request.cache = version % 3 == 0 && version % 4 != 1 ? .revalidate : .reload
            // A response that is collected is stored as a whole, and one that is read in pieces while it arrives.
            let head: ResponseHead
            if version % 5 < 2 {
                let stream = client.session.stream(request)
                for try await _ in stream.chunks {}
                head = try await stream.response
            } else {
                head = try await client.session.response(for: request).head
            }
            guard let stored = head.headers["X-Version"] else { exit(5) }
            while head.cacheTrace?.storing == "arriving" { await Task.yield() }
            let isStored = head.cacheTrace?.isStored == true
            record(in: journal, isStored ? "A \(request.urlString) \(stored)" : "N \(request.urlString) 0")
        }
    }

    private static func record(in journal: Int32, _ text: String) {
        let line = text + "\n"
        _ = unsafe write(journal, line, line.utf8.count)
    }
}
