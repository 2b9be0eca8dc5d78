import Tern
import TernTesting
import TernViewModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A site of real sockets, and a web view that loads from it with a session of its own.
@MainActor
final class WebWire {
    nonisolated static let shiftJIS = "text/html; charset=Shift_JIS"
    /// `日本語`.
    nonisolated static let japanese: [UInt8] = [0x93, 0xFA, 0x96, 0x7B, 0x8C, 0xEA]

    /// Opened when the first half of a halved page is on its way, and by the test, to let the other half go.
    let (half, rest) = (LoopbackServer.Gate(), LoopbackServer.Gate())
    /// Opened when the client has ended the connection of a page that was never sent to its end.
    let left = LoopbackServer.Gate()
    let server: LoopbackServer
    let session = Session()
    let view: WebView

    init() throws {
        let gates = (half, rest, left)
        server = try LoopbackServer { exchange in try Self.answer(exchange, gates.0, gates.1, gates.2) }
        view = WebView(session: session)
    }

    func request(_ path: String, _ method: Request.Method = .get, body: Request.Body = .none) throws -> Request {
        try Request(method, server.url(path).absoluteString, body: body)
    }

    func load(_ path: String, _ options: WebOptions = WebOptions()) async throws -> WebContent {
        try await view.load(try request(path), options: options).value
    }

    /// How a load failed; nil when it did not.
    func failure(_ load: WebLoad) async -> NetworkError? {
        do throws(NetworkError) {
            _ = try await load.value
            return nil
        } catch {
            return error
        }
    }

    /// The lines of the server's log, as `GET /path`.
    var lines: [String] { server.requests.map { "\($0.method) \($0.target)" } }

    private nonisolated static func answer(
        _ exchange: LoopbackServer.Exchange, _ half: LoopbackServer.Gate, _ rest: LoopbackServer.Gate,
        _ left: LoopbackServer.Gate
    ) throws {
        let html = [("Content-Type", "text/html; charset=utf-8")]
        let page = japanese + Array("<p>page</p>".utf8)
        switch exchange.request.path {
        case "/echo", "/other/echo":
            let body = String(decoding: try exchange.readBody(), as: UTF8.self)
            let fields = ["X-Token", "Content-Type", "Content-Length"].map { exchange.request[$0] ?? "-" }
            try exchange.respond(text: ([exchange.request.method] + fields + [body]).joined(separator: "|"))
        case "/moved": try exchange.respond(status: 302, headers: [("Location", "/deep/er?x=1")])
        case "/deep/er": try exchange.respond(status: 301, headers: [("Location", "final/page#part")])
        case "/form":
            _ = try exchange.drainBody()
            try exchange.respond(status: 303, headers: [("Location", "/thanks")])
        case "/kept":
            _ = try exchange.drainBody()
            try exchange.respond(status: 307, headers: [("Location", "/other/echo")])
        case "/sjis":
            // Each byte is a read of its own: the halves of characters, too.
            try exchange.writeHead(headers: [("Content-Type", shiftJIS), ("Content-Length", String(page.count))])
            try exchange.write(page, inPiecesOf: 1)
        case "/declared":
            let whole = Array("<meta charset='shift_jis'>".utf8) + japanese
            try exchange.respond(headers: [("Content-Type", "text/html")], body: whole)
        case "/torn-text": try exchange.respond(headers: [("Content-Type", shiftJIS)], body: japanese + [0xFF, 0x93])
        case "/halves", "/lost":
            try exchange.writeHead(headers: html + [("Content-Length", "200")])
            try exchange.write(String(repeating: "a", count: 100))
            try exchange.waitUntilReceived()
            half.open()
            try exchange.wait(for: rest)
            if exchange.request.path == "/lost" { return exchange.close() }
            try exchange.write(String(repeating: "b", count: 100))
        case "/chunks":
            try exchange.writeChunkedHead(headers: html)
            for _ in 0..<4 {
                try exchange.writeChunk([UInt8](repeating: 0x61, count: 25))
                try exchange.waitUntilReceived()
            }
            try exchange.endChunks()
        case "/endless":
            try exchange.writeHead(headers: html + [("Content-Length", "200")])
            try exchange.write(String(repeating: "a", count: 100))
            try exchange.waitUntilReceived()
            half.open()
            defer { left.open() }
            try exchange.waitForClientToClose()
        case "/missing": try exchange.respond(status: 404, headers: html, text: "nothing here")
        default: try exchange.respond(headers: html, text: exchange.request.target)
        }
    }
}
