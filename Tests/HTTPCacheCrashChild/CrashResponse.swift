import TernTesting

/// The response to a request of the crash test, which its path and version determine.
struct CrashResponse {
    let path: String
    let version: Int

    static func path(_ target: String) -> String { String(target.drop { $0 == "/" }) }

    /// The number of bytes of the body: beside the head, in a file, and written while it arrives.
    var count: Int { [40, 5_000, 12_000, 40_000, 300_000, 700_000][abs(version &* 31 &+ path.utf8.count) % 6] }

    var pattern: LoopbackServer.Pattern { LoopbackServer.Pattern(count: count, seed: seed) }

    private var seed: Int { path.utf8.reduce(version) { ($0 &* 31 &+ Int($1)) & 0xFFFF } }

    /// Sends the response. A request for validation is confirmed for each second version.
    func send(to exchange: LoopbackServer.Exchange) throws {
        if version % 2 == 0, let tag = exchange.request["If-None-Match"], let old = Int(tag.filter(\.isNumber)) {
            let headers = [("ETag", tag), ("Cache-Control", "max-age=600"), ("X-Confirmed", "\(version)")]
            try exchange.respond(status: 304, headers: headers + [("X-Version", "\(old)")])
            return
        }
        try exchange.writeHead(headers: [
            ("ETag", "\"\(version)\""), ("Cache-Control", "max-age=600"), ("X-Version", "\(version)"),
            ("Content-Length", "\(count)"),
        ])
        try exchange.streamPattern(pattern)
    }
}
