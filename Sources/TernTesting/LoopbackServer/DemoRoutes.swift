#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension LoopbackServer {
    /// A server with ready-made routes, for demonstrations and quick tests:
    ///
    /// | Route | Answer |
    /// |---|---|
    /// | GET /json, /users/N | `{"id":1,"languages":["Swift","C"],"name":"Ada"}` |
    /// | GET /users | three of those |
    /// | POST, PUT, PATCH, DELETE /echo | the request's body, with its content type |
    /// | GET, HEAD /bytes/N | a `Pattern` of N bytes, with ranges and entity tag; `?rate=` bytes per second, `?seed=` |
    /// | POST, PUT /upload | reads the body, says `{"bytes":N}`; `?rate=` bytes per second |
    /// | /status/N | that status |
    /// | GET /slow | a line each 100 ms, ten times; `?count=`, `?interval=` milliseconds |
    /// | GET /stall | a head, and nothing more until the client closes |
    /// | GET /lines/N | N lines, `line 0` first, in chunks |
    /// | GET /events/N | N server-sent events with the IDs 1 to N; each connection ends after at most 100 of them, then a 204 |
    /// | /headers | the request's header fields as JSON, in order |
    ///
    /// Everything else is a 404 with a JSON body.
    public static func demo(on address: Address = .ipv4, port: Int = 0) throws(Failure) -> LoopbackServer {
        try LoopbackServer(on: address, port: port) { try answerDemo($0) }
    }

    /// Answers a request like `demo(on:port:)` does. Use it in handlers that add routes of their own.
    public static func answerDemo(_ exchange: Exchange) throws {
        let request = exchange.request
        let path = request.path.split(separator: "/").map(String.init)
        let number = path.count == 2 ? Int(path[1]).flatMap { $0 < 0 ? nil : $0 } : nil
        exchange.throttle(bytesPerSecond: request.query("rate").flatMap { Int($0) })
        switch (request.method, path.first ?? "", number) {
        case ("GET", "json", nil), ("HEAD", "json", nil): try exchange.respond(json: DemoUser(id: 1))
        case ("GET", "users", nil) where path.count == 1: try exchange.respond(json: (1...3).map(DemoUser.init))
        case ("GET", "users", let id?): try exchange.respond(json: DemoUser(id: id))
        case ("POST", "echo", _), ("PUT", "echo", _), ("PATCH", "echo", _), ("DELETE", "echo", _):
            let type = request["Content-Type"] ?? "application/octet-stream"
            try exchange.respond(headers: [("Content-Type", type)], body: try exchange.readBody())
        case ("GET", "bytes", let count?), ("HEAD", "bytes", let count?):
            let seed = request.query("seed").flatMap { Int($0) } ?? 0
            try exchange.serveFile(Pattern(count: count, seed: seed))
        case ("POST", "upload", _), ("PUT", "upload", _):
            try exchange.respond(json: ["bytes": try exchange.drainBody()])
        case (_, "status", let code?) where (200...599).contains(code):
            try exchange.respond(status: code, text: "status \(code)\n")
        case ("GET", "slow", _): try drip(exchange)
        case ("GET", "stall", _):
            try exchange.writeHead(headers: [("Content-Length", "1000000")])
            try exchange.waitForClientToClose()
        case ("GET", "lines", let count?): try lines(count, exchange)
        case ("GET", "events", let count?): try events(count, exchange)
        case (_, "headers", nil):
            try exchange.respond(json: request.headers.map { DemoField(name: $0.name, value: $0.value) })
        default:
            try exchange.respond(status: 404, json: ["error": "not found", "path": request.path])
        }
    }

    private static func drip(_ exchange: Exchange) throws {
        let count = exchange.request.query("count").flatMap { Int($0) } ?? 10
        let interval = exchange.request.query("interval").flatMap { Int($0) } ?? 100
        try exchange.writeChunkedHead(headers: [("Content-Type", "text/plain; charset=utf-8")])
        for index in 0..<max(0, count) {
            try exchange.writeChunk(Array("drop \(index)\n".utf8))
            try exchange.pause(for: .milliseconds(interval))
        }
        try exchange.endChunks()
    }

    private static func events(_ count: Int, _ exchange: Exchange) throws {
        let start = (exchange.request["Last-Event-ID"].flatMap { Int($0) } ?? 0).clamped(to: 0...count)
        guard start < count else { return try exchange.respond(status: 204) }
        try exchange.writeEvents([.retry(milliseconds: 100)])
        for id in (start + 1)...min(start + 100, count) {
            try exchange.writeEvents([.event("event \(id)", id: "\(id)")])
        }
        // The connection breaks without the end of its response.
        exchange.close()
    }

    private static func lines(_ count: Int, _ exchange: Exchange) throws {
        try exchange.writeChunkedHead(headers: [("Content-Type", "text/plain; charset=utf-8")])
        var chunk: [UInt8] = []
        for index in 0..<count {
            chunk.append(contentsOf: "line \(index)\n".utf8)
            if chunk.count >= 16 << 10 {
                try exchange.writeChunk(chunk)
                chunk.removeAll(keepingCapacity: true)
            }
        }
        try exchange.writeChunk(chunk)
        try exchange.endChunks()
    }
}

extension Int {
    fileprivate func clamped(to range: ClosedRange<Int>) -> Int {
        Swift.min(Swift.max(self, range.lowerBound), range.upperBound)
    }
}

private struct DemoUser: Encodable {
    let id: Int
    let name = "Ada"
    let languages = ["Swift", "C"]
}

private struct DemoField: Encodable {
    let name: String
    let value: String
}
