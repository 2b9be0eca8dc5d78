import AsyncHTTPClient
import BenchSupport
import NIOCore
import NIOHTTP1
import NIOSSL
import _NIOFileSystem

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// async-http-client as its documentation recommends it: `execute` with async/await, a connection limit that fits
/// the load, and its default event loop group (one thread a core).
@main
struct Peer {
    static func main() async {
        guard let options = Options(Array(CommandLine.arguments.dropFirst())) else {
            complain(Options.usage)
            exit(64)
        }
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = options.connections
        // By default it calls a tracer that does nothing, which costs a quarter of the CPU time of a small request.
        configuration.tracing.tracer = nil
        if let caFile = options.caFile {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.trustRoots = .file(caFile)
            configuration.tlsConfiguration = tls
        }
        let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        let peer = Peer(client: client, file: options.file)
        let errors = await Benchmark(client: "ahc", options: options).run { scenario, url, _ in
            try await peer.perform(scenario, url)
        }
        do { try await client.shutdown() } catch { complain("bench-ahc: \(error)") }
        exit(errors == 0 ? 0 : 1)
    }

    let client: HTTPClient
    let file: String

    func perform(_ scenario: Scenario, _ url: String) async throws -> Int {
        switch scenario {
        case .get, .https, .h2, .body64k:
            let response = try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(60))
            try check(response.status.code)
            return try await response.body.collect(upTo: 1 << 20).readableBytes
        case .downloadFile:
            return try await download(url)
        case .downloadStream:
            let response = try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(60))
            try check(response.status.code)
            var count = 0
            for try await chunk in response.body { count += chunk.readableBytes }
            return count
        case .upload:
            return try await upload(url)
        case .user, .page, .post:
            throw UnsupportedScenario()
        }
    }

    private func download(_ url: String) async throws -> Int {
        let partial = file + ".partial"
        let delegate = try FileDownloadDelegate(path: partial)
        let progress = try await client.execute(
            request: HTTPClient.Request(url: url), delegate: delegate, deadline: .now() + .seconds(60)
        ).get()
        try check(progress.head.status.code)
        guard unsafe rename(partial, file) == 0 else { throw Unexpected(status: 0) }
        return progress.receivedBytes
    }

    private func upload(_ url: String) async throws -> Int {
        let body = try await FileSystem.shared.withFileHandle(forReadingAt: FilePath(file)) { handle in
            let size = try await handle.info().size
            var request = HTTPClientRequest(url: url)
            request.method = .PUT
            request.body = .stream(handle.readChunks(chunkLength: .kibibytes(256)), length: .known(size))
            let response = try await client.execute(request, timeout: .seconds(60))
            try check(response.status.code)
            return try await response.body.collect(upTo: 1 << 20)
        }
        return Int(String(buffer: body)) ?? 0
    }

    private func check(_ status: UInt) throws {
        guard status == 200 else { throw Unexpected(status: status) }
    }
}

/// A status other than 200.
struct Unexpected: Error {
    var status: UInt
}
