import BenchSupport
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// URLSession: FoundationNetworking on Linux, the system's elsewhere.
@main
struct Peer {
    static func main() async {
        guard let options = Options(Array(CommandLine.arguments.dropFirst())) else {
            complain(Options.usage)
            exit(64)
        }
        // FoundationNetworking has neither a trust delegate nor an option for `--cacert`: the runner shows it the
        // private authority in place of the system's.
        let configuration = URLSessionConfiguration.default
        configuration.httpMaximumConnectionsPerHost = options.connections
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.urlCache = nil
        configuration.httpCookieStorage = nil
        let discard = DiscardDelegate()
        let peer = Peer(
            session: URLSession(configuration: configuration),
            streaming: URLSession(configuration: configuration, delegate: discard, delegateQueue: nil),
            discard: discard, file: URL(fileURLWithPath: options.file))
        let errors = await Benchmark(client: "urlsession", options: options).run { scenario, text, _ in
            guard let url = URL(string: text) else { throw URLError(.badURL) }
            return try await peer.perform(scenario, url)
        }
        exit(errors == 0 ? 0 : 1)
    }

    let session: URLSession
    let streaming: URLSession
    let discard: DiscardDelegate
    let file: URL

    func perform(_ scenario: Scenario, _ url: URL) async throws -> Int {
        switch scenario {
        case .get, .https, .h2, .body64k:
            let (data, response) = try await session.data(from: url)
            try check(response)
            return data.count
        case .downloadFile:
            let (temporary, response) = try await session.download(from: url)
            try check(response)
            if FileManager.default.fileExists(atPath: file.path) { try FileManager.default.removeItem(at: file) }
            try FileManager.default.moveItem(at: temporary, to: file)
            return fileSize(file.path)
        case .downloadStream:
            return try await discard.count(streaming.dataTask(with: url))
        case .upload:
            var request = URLRequest(url: url)
            request.httpMethod = "PUT"
            let (data, response) = try await session.upload(for: request, fromFile: file)
            try check(response)
            return Int(String(decoding: data, as: UTF8.self)) ?? 0
        case .user, .page, .post:
            throw UnsupportedScenario()
        }
    }

    private func check(_ response: URLResponse) throws {
        guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw URLError(.badServerResponse) }
    }
}
