import Tern
import TernTesting
import TernViewModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A web view that records its calls.
@MainActor
final class WebView: WebContentViewModel {
    enum Event: Sendable, Equatable {
        case start(String)
        case show(String)
        case finish(String)
        case fail(String, NetworkError.Kind)
        case cancel(String)
    }

    let log: Log<Event>
    let bindings = ViewBindings()
    private(set) var contents: [WebContent] = []
    private(set) var progress: [Session.Progress] = []
    var whenShown: (@MainActor (WebView) -> Void)?
    var decision: WebNavigation.Decision?

    init(_ log: Log<Event> = Log(), session: Session? = nil) {
        self.log = log
        webSession = session
    }

    /// The last content as text in its encoding.
    var text: String? {
        guard let content = contents.last else { return nil }
        return String(decoding: content.data, as: UTF8.self)
    }

    func showContent(_ content: WebContent) {
        contents.append(content)
        log.append(.show(content.baseURL?.path() ?? ""))
        whenShown?(self)
    }

    func showLoadingProgress(_ progress: Session.Progress) { self.progress.append(progress) }

    func didStartLoading(_ load: WebLoad) { log.append(.start(path(load))) }
    func didFinishLoading(_ load: WebLoad) { log.append(.finish(path(load))) }
    func didFailLoading(_ load: WebLoad, _ error: NetworkError) { log.append(.fail(path(load), error.kind)) }
    func didCancelLoading(_ load: WebLoad) { log.append(.cancel(path(load))) }
    func decide(_ navigation: WebNavigation) -> WebNavigation.Decision? { decision }

    private func path(_ load: WebLoad) -> String { load.request.url?.path() ?? "" }
}

/// A site of pages, some of which wait on a clock.
struct Site {
    let clock = ManualClock()
    let stub: StubTransport
    let session: Session

    init() {
        stub = StubTransport(clock: clock) { call in
            let html = "text/html; charset=utf-8"
            switch call.path {
            case "/slow": return .text("slow", contentType: html).delayed(by: .seconds(1))
            case "/moved": return .status(302, headers: ["Location": "/final/page"])
            case "/form": return .status(303, headers: ["Location": "/thanks"])
            case "/echo":
                let headers = call.headers["X-Token"] ?? ""
                return .text("\(call.method) \(headers) \(call.text)", contentType: "text/plain; charset=utf-8")
            case "/sjis": return .data(Data([0x93, 0xFA, 0x96, 0x7B]), contentType: "text/html; charset=Shift_JIS")
            case "/torn": return .data(Data([0x61, 0xFF]), contentType: html)
            case "/nocharset": return .data(Data("é".utf8), contentType: "text/html")
            case "/unknown": return .data(Data("é".utf8), contentType: "text/html; charset=x-nonsense")
            case "/marked": return .data(Data([0xEF, 0xBB, 0xBF, 0x61]), contentType: "text/html; charset=Shift_JIS")
            case "/bare": return .data(Data("bare".utf8), contentType: nil)
            case "/missing": return .status(404)
            default: return .text(call.path, contentType: html)
            }
        }
        session = Session(stub: stub)
    }

    func request(_ path: String) throws -> Request { try Request(.get, "https://a.example\(path)") }
}

/// A site with real sockets, and a web view that loads from it with its own session.
@MainActor
final class WebWire {
    nonisolated static let shiftJIS = "text/html; charset=Shift_JIS"
    /// The bytes of `日本語` in Shift_JIS.
    nonisolated static let japanese: [UInt8] = [0x93, 0xFA, 0x96, 0x7B, 0x8C, 0xEA]

    /// The gates of a page in two halves: the server opens the first after the first half, and the test opens the
    /// second to release the rest.
    let (half, rest) = (LoopbackServer.Gate(), LoopbackServer.Gate())
    /// Opened when the client has closed the connection of an incomplete page.
    let left = LoopbackServer.Gate()
    let server: LoopbackServer
    let session = Session()
    let view: WebView

    init() throws {
        let gates = (half, rest, left)
        server = try LoopbackServer { exchange in try Self.answer(exchange, half: gates.0, rest: gates.1, left: gates.2)
        }
        view = WebView(session: session)
    }

    func request(_ path: String, _ method: Request.Method = .get, body: Request.Body = .none) throws -> Request {
        try Request(method, server.url(path).absoluteString, body: body)
    }

    func load(_ path: String, _ options: WebOptions = WebOptions()) async throws -> WebContent {
        try await view.load(try request(path), options: options).value
    }

    /// Returns the error of a load; nil for a success.
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
        _ exchange: LoopbackServer.Exchange, half: LoopbackServer.Gate, rest: LoopbackServer.Gate,
        left: LoopbackServer.Gate
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
            // Each byte is a read of its own, so that characters are split as well.
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
