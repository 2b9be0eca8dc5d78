import Synchronization
import Tern
import TernTesting

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Serves the pages on this machine, and records the requests.
final class WebSite: Sendable {
    /// One request that the server received.
    struct Visit: Sendable {
        let method: String
        let target: String
        let userAgent: String
        let referrer: String?

        var line: String { "\(method) \(target)" }
        /// Whether Tern sent the request, by its user agent.
        var isByTern: Bool { userAgent.contains("Tern/") && !userAgent.contains("WebKit") }
    }

    private final class Record: Sendable {
        let visits = Mutex<[Visit]>([])
        /// Releases the slow page.
        let slow = LoopbackServer.Gate()
        let hasServedSlow = LoopbackServer.Gate()
    }

    private let record = Record()
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer { [record] exchange in
            let request = exchange.request
            let visit = Visit(
                method: request.method, target: request.target, userAgent: request["User-Agent"] ?? "",
                referrer: request["Referer"])
            record.visits.withLock { $0.append(visit) }
            try Self.answer(exchange, record)
        }
    }

    func stop() { server.stop() }
    func url(_ path: String) -> String { server.url(path).absoluteString }
    var visits: [Visit] { record.visits.withLock { $0 } }
    /// The requests without the image, which WebKit requests at any time.
    var pages: [Visit] { visits.filter { $0.target != "/deep/dot.gif" } }
    /// A summary for the output of a failed check.
    var summary: String { pages.map { "\($0.line) by \($0.userAgent)" }.joined(separator: "; ") }
    func forgetVisits() { record.visits.withLock { $0 = [] } }

    func letSlowGo() async throws {
        record.slow.open()
        try await record.hasServedSlow.wait()
    }

    // MARK: The pages

    private static let html = [("Content-Type", "text/html; charset=utf-8")]

    private static func answer(_ exchange: LoopbackServer.Exchange, _ record: Record) throws {
        switch exchange.request.path {
        case "/": try exchange.respond(headers: html, text: welcome)
        case "/start": try exchange.respond(status: 302, headers: [("Location", "/deep/japanese")])
        case "/deep/japanese":
            try exchange.respond(headers: [("Content-Type", "text/html; charset=Shift_JIS")], body: japanese)
        case "/deep/dot.gif": try exchange.respond(headers: [("Content-Type", "image/gif")], body: dot)
        case "/slow":
            try exchange.wait(for: record.slow)
            defer { record.hasServedSlow.open() }
            try exchange.respond(headers: html, text: "<p>slow")
        case "/posted":
            let body = String(decoding: try exchange.readBody(), as: UTF8.self)
            try exchange.respond(headers: html, text: "<p>\(exchange.request.method) \(body)")
        case "/long":
            try exchange.respond(headers: html, text: "<p>long<p style='height: 5000px'><p id='end'>end")
        case "/missing": try exchange.respond(status: 404, headers: html, text: "not shown")
        case let path:
            let query = exchange.request.query("q").map { " for \($0)" } ?? ""
            try exchange.respond(headers: html, text: "<title>\(path)</title><p>page \(path)\(query)")
        }
    }

    private static let welcome = """
        <title>Tern web</title>
        <style>body { font: 16px/1.5 sans-serif; margin: 3em auto; max-width: 36em }</style>
        <h1>Pages through Tern</h1>
        <p>WebKit shows this page, and Tern has loaded it: each link below is a request of Tern, with a bar for its progress.
        <ul>
        <li><a href="/start">A redirect to a page in Shift_JIS</a>, with a link, a picture and two forms
        <li><a href="/long#end">The end of a long page</a>
        <li><a href="/missing">A page that is not there</a>: the error is shown in place of it
        </ul>
        <form action="/found">A form: <input name="q" value="tern"> <button>Find</button></form>
        <p><code>make gallery-web URL=https://…</code> opens another page.
        """

    /// 日本語の頁, with a link 次, an image with a relative URL, and two forms; in Shift_JIS, byte by byte.
    private static let japanese: [UInt8] =
        Array("<p id='text'>".utf8) + [0x93, 0xFA, 0x96, 0x7B, 0x8C, 0xEA, 0x82, 0xCC, 0x95, 0xC5]
        + Array("</p><a id='next' href='next'>".utf8) + [0x8E, 0x9F]
        + Array(
            """
            </a> <a id='part' href='#below'>below</a> <img id='dot' src='dot.gif'>
            <form id='get' action='found'><input name='q' value='tern'></form>
            <form id='post' action='/posted' method='post'><input name='q' value='tern'></form>
            <p id='below'>below
            """.utf8)

    /// An image of one pixel.
    private static let dot: [UInt8] = [
        0x47, 0x49, 0x46, 0x38, 0x39, 0x61, 1, 0, 1, 0, 0x80, 0, 0, 0xFF, 0, 0, 0, 0, 0,
        0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0, 0x3B,
    ]
}
