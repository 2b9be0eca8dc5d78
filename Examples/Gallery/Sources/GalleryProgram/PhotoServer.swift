import TernImages
import TernTesting

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Serves photos that are made when they are first asked for, and what Tern's demo server does.
///
/// | Route | Answer |
/// |---|---|
/// | /photos/N.png, /photos/N.jpg | the photo of a number; `?width=` pixels, 352 by default; `?held` waits for `release()` |
/// | /bytes/N?rate= | so many bytes, so many a second |
final class PhotoServer: Sendable {
    private let server: LoopbackServer
    private let gate = LoopbackServer.Gate()
    private let archive = PhotoArchive()

    init() throws {
        server = try LoopbackServer { [gate, archive] exchange in
            let request = exchange.request
            guard let address = PhotoAddress(path: request.path) else { return try LoopbackServer.answerDemo(exchange) }
            if request.query.contains(where: { $0.name == "held" }) { try exchange.wait(for: gate) }
            let width = request.query("width").flatMap { Int($0) } ?? PhotoArchive.usualWidth
            let bytes = try archive.bytes(of: address, width: width)
            try exchange.respond(headers: [("Content-Type", address.format.rawValue)], body: bytes)
        }
    }

    var baseURL: URL { server.baseURL }

    /// Where a photo is.
    func url(_ address: PhotoAddress, query: String? = nil) -> URL {
        server.url(address.path + (query.map { "?" + $0 } ?? ""))
    }

    /// How many requests have come, and how many are answered.
    var counts: LoopbackServer.Counts { server.counts }

    /// Lets what is held go.
    func release() { gate.open() }

    /// Makes a photo ahead, so that its making takes no time later.
    func make(_ address: PhotoAddress, width: Int) throws { _ = try archive.bytes(of: address, width: width) }

    func stop() { server.stop() }
}
