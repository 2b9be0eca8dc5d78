#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernTesting
import Testing

/// Checks hostile servers: each attack ends in an error that names the problem, and costs little memory.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct HostileTests {
    /// Endless zeros in one gzip stream: 13 bytes expand to 2,064.
    enum Bomb {
        /// The header of gzip; a block of fixed codes with one zero, and the first copy of it.
        static let start: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3] + bits("010" + "00110000" + copy)
        /// Eight copies of 258 zeros each.
        static let more: [UInt8] = bits(String(repeating: copy, count: 8))

        /// The code 285 for the length 258, and the code 0 for the distance 1.
        private static let copy = "1100010100000"

        private static func bits(_ text: String) -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: (text.count + 7) / 8)
            for (index, bit) in text.enumerated() where bit == "1" { bytes[index / 8] |= 1 << UInt8(index % 8) }
            return bytes
        }

        /// Sends up to ten gibibytes, and ends when the client disconnects.
        static func serve(_ exchange: LoopbackServer.Exchange, coding: String = "gzip") throws {
            try exchange.writeHead(headers: [("Content-Encoding", coding), ("Connection", "close")])
            try exchange.write(start)
            let piece = Array([[UInt8]](repeating: more, count: 4_096).joined())
            for _ in 0..<1_270 { try exchange.write(piece) }
            exchange.close()
        }
    }

    /// Answers each path with its attack, and ends when the client disconnects.
    private static let attack: LoopbackServer.Handler = { exchange in
        let line = "X-Endless: " + String(repeating: "x", count: 1_000) + "\r\n"
        func forever(_ start: String, _ piece: String) throws {
            try exchange.write(start)
            let pieces = Array(String(repeating: piece, count: 64).utf8)
            while true { try exchange.write(pieces) }
        }
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        switch exchange.request.path {
        case "/bomb": try Bomb.serve(exchange)
        case "/nested": try Bomb.serve(exchange, coding: "gzip, gzip, gzip, gzip, gzip, gzip, gzip, gzip")
        case "/fields": try forever("HTTP/1.1 200 OK\r\n", line)
        case "/cookies": try forever("HTTP/1.1 200 OK\r\n", "Set-Cookie: a\(line.count)=b; Path=/\r\n")
        case "/field": try forever("HTTP/1.1 200 OK\r\nX-Endless: ", "x")
        case "/status": try forever("HTTP/1.1 200 ", "x")
        case "/interim": try forever("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        case "/body": try forever("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", "x")
        case "/extension": try forever(chunked + "1;", "x")
        case "/size": try forever(chunked, "0")
        case "/trailers": try forever(chunked + "1\r\nx\r\n0\r\n", line)
        case "/loop": try exchange.respond(status: 302, headers: [("Location", "/loop")], text: "")
        case "/growing":
            let target = exchange.request.target
            try exchange.respond(status: 302, headers: [("Location", target + (target.contains("?") ? "x" : "?x"))])
        case "/controls": try exchange.respond(status: 302, headers: [("Location", "/a\u{1}b")], text: "")
        case "/elsewhere": try exchange.respond(status: 302, headers: [("Location", "file:///etc/passwd")], text: "")
        default: try exchange.respond(status: 404, text: "")
        }
    }

    private static func kind(of path: String, _ client: Client) async throws -> NetworkError.Kind {
        let error = try await failure { try await client.get(path) }
        guard error.reason.count < 2_000, !error.reason.isEmpty else {
            throw CheckFailure(description: "no clear reason")
        }
        return error.kind
    }

    @Test(
        arguments: [
            ("bomb", [.tooLarge]), ("nested", [.malformedResponse]), ("fields", [.tooLarge]), ("cookies", [.tooLarge]),
            ("field", [.tooLarge]), ("status", [.tooLarge]), ("interim", [.tooLarge]), ("body", [.tooLarge]),
            ("extension", [.idleTimedOut, .malformedResponse, .tooLarge]), ("size", [.malformedResponse]),
            ("trailers", [.tooLarge, .malformedResponse]), ("loop", [.redirectLoop]), ("growing", [.tooManyRedirects]),
            ("controls", [.redirect, .malformedResponse]), ("elsewhere", [.redirect]),
        ] as [(String, [NetworkError.Kind])])
    func eachAttackEndsInAClearError(path: String, kinds: [NetworkError.Kind]) async throws {
        let configuration = Session.Configuration.test {
            $0.maximumBodySize = 16 << 20
            // Dropped bytes do not count as progress; all other attacks end by themselves, however slow the machine is.
            if path == "extension" { $0.timeouts.idle = .seconds(2) }
        }
        try await withServer(configuration: configuration, Self.attack) { _, client in
            let kind = try await Self.kind(of: path, client)
            #expect(kinds.contains(kind), "\(kind)")
        }
    }

    @Test(.disabled(if: ProcessFacts.isSanitized, ProcessFacts.sanitized))
    func allAttacksTogetherHoldLittleMemory() async {
        await #expect(processExitsWith: .success) {
            let configuration = Session.Configuration.test { $0.maximumBodySize = 16 << 20 }
            try await withServer(configuration: configuration, HostileTests.attack) { _, client in
                _ = try await HostileTests.kind(of: "loop", client)
                try MemoryTests.forgetPeak()
                let before = try ProcessFacts.residentSize()
                for path in ["bomb", "nested", "fields", "cookies", "field", "interim", "body", "trailers", "growing"] {
                    _ = try await HostileTests.kind(of: path, client)
                }
                // With the default limits, ten gibibytes of zeros are read as they arrive.
                do {
                    for try await _ in client.stream("bomb").chunks {}
                    throw CheckFailure(description: "the bomb was taken")
                } catch let error as NetworkError {
                    guard error.kind == .tooLarge else { throw CheckFailure(description: "\(error)") }
                }
                let peak = try MemoryTests.peakSize() - before
                guard peak < 64 << 20 else { throw CheckFailure(description: "\(peak >> 10) KiB above the start") }
            }
        }
    }

    // MARK: Values from strangers in a request

    @Test(arguments: ["a\r\nX-Injected: 1", "a\nX-Injected: 1", "a\r", "\0", "a\u{1}"])
    func requestValuesCannotAddHeaders(text: String) async throws {
        try await withServer { exchange in
            let isInjected = exchange.request["X-Injected"] != nil
            try exchange.respond(text: isInjected ? "injected" : "clean")
        } test: { server, client in
            let header = try await failure { try await client.get("a", headers: ["X-Name": text]) }
            #expect(header.kind == .invalidRequest)
            let name = try await failure { try await client.get("a", headers: [text: "x"]) }
            #expect(name.kind == .invalidRequest)
            let path = try await failure { try await client.get(text) }
            #expect(path.kind == .invalidRequest)
            let method = try await failure { try await client.send(Request.Method(text), "a") }
            #expect(method.kind == .invalidRequest)
            // Values are encoded where an encoding exists.
            let query: Request.Query = ["q": text]
            let answer = try await client.get("a", query: query, as: String.self)
            #expect(answer == "clean")
            var form = MultipartForm()
            form.append(Data("x".utf8), named: text, filename: text, contentType: text.filter { $0 == "a" } + "/b")
            let posted = try await client.post("a", body: .multipart(form), as: String.self)
            #expect(posted == "clean")
            let credentials = Request.Body.data(Data(), contentType: text)
            let type = try await failure { try await client.post("a", body: credentials) }
            #expect(type.kind == .invalidRequest)
            #expect(server.requests.count == 2)
        }
    }
}
#endif
