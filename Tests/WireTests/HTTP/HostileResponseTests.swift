#if os(Linux) && !TERN_URLSESSION
import Foundation
import Synchronization
import Tern
import TernTesting
import Testing

/// Checks servers that attack with time, with nested compression, and with text that Tern sends back to them.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct HostileResponseTests {
    /// Endless zeros by gzip within gzip: 15 bytes expand to 2,064 of the inner stream, and those to 327,675 zeros.
    private enum NestedBomb {
        static let start: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3] + bits(begun + copies(begun.count % 8))
        static let more: [UInt8] = bits(copies(8))

        /// A block of fixed codes, which begins with the literal bytes of the inner stream.
        private static let begun = "010" + (HostileTests.Bomb.start + HostileTests.Bomb.more).map(literal).joined()

        private static func literal(_ byte: UInt8) -> String {
            let (code, length) = byte < 144 ? (0b0011_0000 + Int(byte), 8) : (0b1_1001_0000 + Int(byte) - 144, 9)
            let text = String(code, radix: 2)
            return String(repeating: "0", count: length - text.count) + text
        }

        /// Copies of 258 bytes from 13 bytes before, of 15 bits each: eight of them end at a byte boundary.
        private static func copies(_ count: Int) -> String { String(repeating: "110001010011100", count: count) }

        private static func bits(_ text: String) -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: (text.utf8.count + 7) / 8)
            for (index, bit) in text.utf8.enumerated() where bit == UInt8(ascii: "1") {
                bytes[index / 8] |= 1 << UInt8(index % 8)
            }
            return bytes
        }

        /// Sends ten gibibytes in half a megabyte.
        static func serve(_ exchange: LoopbackServer.Exchange, headers: LoopbackServer.Fields) throws {
            try exchange.writeHead(headers: headers)
            try exchange.write(start + Array([[UInt8]](repeating: more, count: 33_000).joined()))
            exchange.close()
        }
    }

    private static let attack: LoopbackServer.Handler = { exchange in
        func drip(_ text: String) throws {
            while true {
                try exchange.write(text)
                try exchange.pause(for: .milliseconds(40))
            }
        }
        switch exchange.request.path {
        case "/double": try NestedBomb.serve(exchange, headers: [("Content-Encoding", "gzip, gzip")])
        case "/twice":
            try NestedBomb.serve(exchange, headers: [("Content-Encoding", "gzip"), ("Content-Encoding", "x-gzip")])
        // The coding of the transfer, which the limit of decompression does not cover.
        case "/transfer":
            try NestedBomb.serve(exchange, headers: [("Transfer-Encoding", "gzip"), ("Content-Encoding", "gzip")])
        case "/bomb": try HostileTests.Bomb.serve(exchange)
        case "/deflate":
            try exchange.writeHead(headers: [("Content-Encoding", "deflate"), ("Connection", "close")])
            let head: [UInt8] = [0x78, 0x9C]
            try exchange.write(head + HostileTests.Bomb.start[10...])
            let piece = Array([[UInt8]](repeating: HostileTests.Bomb.more, count: 4_096).joined())
            for _ in 0..<1_270 { try exchange.write(piece) }
            exchange.close()
        case "/body":
            try exchange.write("HTTP/1.1 200 OK\r\n\r\n")
            let piece = [UInt8](repeating: 120, count: 64 << 10)
            while true { try exchange.write(piece) }
        case "/silent": try exchange.waitForClientToClose()
        case "/status": try drip("H")
        case "/field":
            try exchange.write("HTTP/1.1 200 OK\r\nX-Slow: ")
            try drip("x")
        case "/fields":
            try exchange.write("HTTP/1.1 200 OK\r\n")
            try drip("X: x\r\n")
        case "/interim": try drip("HTTP/1.1 103 Early Hints\r\n\r\n")
        default: try exchange.respond(text: "here")
        }
    }

    // MARK: Time

    /// The bytes of a head do not count as a response: neither a slow nor a silent server holds a task.
    @Test(arguments: ["silent", "status", "field", "fields", "interim"])
    func aHeadThatNeverEndsIsTimedOut(path: String) async throws {
        let configuration = Session.Configuration.test {
            $0.timeouts = Timeouts(idle: .milliseconds(300), total: .seconds(1))
        }
        try await withServer(configuration: configuration, Self.attack) { _, client in
            let error = try await failure { try await client.get(path) }
            let kinds: [NetworkError.Kind] = [.idleTimedOut, .totalTimedOut, .malformedResponse]
            #expect(kinds.contains(error.kind), "\(error)")
            #expect(!error.reason.isEmpty)
            // The session still works, and this request has the usual time limits.
            var request = try client.request(.get, "else")
            request.timeouts = Timeouts()
            let answer = try await client.session.response(for: request, decode: .string)
            #expect(answer.value == "here")
        }
    }

    /// A body that is streamed or written to a file can have any size; the total limit ends it.
    @Test func endlessBodyEndsAtTheTotalTimeout() async throws {
        let configuration = Session.Configuration.test { $0.timeouts.total = .milliseconds(300) }
        try await withServer(configuration: configuration, Self.attack) { _, client in
            let streamed = try await failure { for try await _ in client.stream("body").chunks {} }
            #expect(streamed.kind == .totalTimedOut)
            try await inTestFolder { folder in
                let task = client.download("body", to: folder.url("file"))
                let written = try await failure { try await task.value }
                #expect(written.kind == .totalTimedOut)
                #expect(try folder.names.isEmpty)
            }
        }
    }

    /// A server that marks every nonce as stale would cause endless requests for the password without a limit.
    @Test(arguments: ["Digest realm=\"a\", nonce=\"%\", qop=\"auth\", stale=true", "Basic realm=\"%\""])
    func endlessChallengesEndWithAnError(challenge: String) async throws {
        try await withServer { exchange in
            let nonce = "\(exchange.request.connectionIndex)-\(exchange.request.requestIndex)"
            let field = challenge.replacing("%", with: nonce)
            try exchange.respond(status: 401, headers: [("WWW-Authenticate", field)], text: "no")
        } test: { server, client in
            var request = try client.request(.get, "a")
            request.credentials = Generous()
            let error = try await failure { [request] in try await client.response(for: request) }
            #expect(error.status == 401 && server.counts.requestsReceived < 12)
        }
    }

    private struct Generous: CredentialProvider {
        @concurrent func credential(
            for challenge: AuthenticationChallenge, of request: Request
        ) async throws -> Credential? { .user("ada", password: "\(challenge.previousFailures)") }
    }

    // MARK: Limits of the head

    @Test(arguments: [(1_000, true), (1_001, false)])
    func fieldsOfAHeadAreLimited(count: Int, isTaken: Bool) async throws {
        let fields = String(repeating: "A: b\r\n", count: count - 1)
        try await withScript("HTTP/1.1 200 OK\r\n\(fields)Content-Length: 2\r\n\r\nok") { _, client in
            if isTaken {
                let response = try await client.response(for: client.request(.get, ""))
                #expect(response.headers.count == count)
            } else {
                let error = try await failure { try await client.get("") }
                #expect(error.kind == .tooLarge && error.reason.contains("more than 1000 fields"))
            }
        }
    }

    @Test func trailersCountAsFields() async throws {
        let trailers = String(repeating: "A: b\r\n", count: 1_000)
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n"
        try await withScript("\(head)\(trailers)\r\n") { _, client in
            let error = try await failure { try await client.get("") }
            #expect(error.kind == .tooLarge && error.reason.contains("more than 1000 fields"))
        }
    }

    @Test(arguments: [(100, true), (101, false)])
    func interimResponsesAreLimited(count: Int, isTaken: Bool) async throws {
        let interims = String(repeating: "HTTP/1.1 102 Processing\r\n\r\n", count: count)
        try await withScript("\(interims)HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") { _, client in
            if isTaken {
                #expect(try await client.get("", as: String.self) == "ok")
            } else {
                let error = try await failure { try await client.get("") }
                #expect(error.kind == .tooLarge && error.reason.contains("more than 100 interim responses"))
            }
        }
    }

    // MARK: Quotations of the response

    /// Scripts whose bytes the text of the error quotes.
    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\u{1B}[2J\r\n", "\u{1B}[31mred\r\n\r\n",
        "HTTP/1.1 \u{1B}[31m200 OK\r\n\r\n", "HTTP/\u{1B}[31m9.9 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Encoding: \u{1B}[31m\u{202E}\r\nContent-Length: 1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nContent-Type: \u{1B}]0;x\u{7}\u{9B}/json\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 302 Found\r\nLocation: ht\u{1B}[31mtp:/a\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\u{1B}[31m: a\r\nContent-Length: x\u{1B}[31m\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n\u{1B}[31m\u{7}\n\r\"",
    ])
    func errorsQuoteNoControlCharacters(script: String) async throws {
        let entries = Entries()
        let configuration = Session.Configuration.test {
            $0.interceptors = [LoggingInterceptor(.headers) { entries.add($0) }]
        }
        try await withScript(script, configuration: configuration) { _, client in
            let error = try await failure { try await client.get("", as: [String].self) }
            for text in ["\(error)", error.reason, error.localizedDescription] + entries.all {
                // An entry has a line of its own for each field.
                let isClean = text.unicodeScalars.allSatisfy { scalar in
                    scalar == "\n" || !(scalar.properties.generalCategory == .control || scalar.value == 0x202E)
                }
                #expect(isClean, "\(text.debugDescription)")
            }
            #expect(!"\(error)".contains("\n"))
        }
    }

    private final class Entries: Sendable {
        private let entries = Mutex<[String]>([])
        var all: [String] { entries.withLock { $0 } }
        func add(_ entry: String) { entries.withLock { $0.append(entry) } }
    }

    // MARK: Memory

    @Test(arguments: ["double", "twice", "transfer", "deflate"])
    func nestedBombsEndInAClearError(path: String) async throws {
        // Codings of the content are removed within the limits. That of a transfer is not asked for.
        let kind = path == "transfer" ? NetworkError.Kind.malformedResponse : .tooLarge
        try await withServer(configuration: .test { $0.maximumBodySize = 16 << 20 }, Self.attack) { _, client in
            let collected = try await failure { try await client.get(path) }
            #expect(collected.kind == kind, "\(collected)")
            let streamed = try await failure { for try await _ in client.stream(path).chunks {} }
            #expect(streamed.kind == kind, "\(streamed)")
        }
    }

    @Test(.disabled(if: ProcessFacts.isSanitized, ProcessFacts.sanitized))
    func pausedReadersHoldLittleOfABomb() async {
        await #expect(processExitsWith: .success) {
            await CheckFailure.report { try await HostileResponseTests.pauseReaders() }
        }
    }

    /// Takes one chunk of each stream, and then waits for the time of many small requests before the next.
    private static func pauseReaders() async throws {
        try await withServer(attack) { server, client in
            let other = try Client(baseURL: server.url.absoluteString, session: Session(configuration: .test()))
            for _ in 0..<50 { try await other.get("else") }
            try MemoryTests.forgetPeak()
            let before = try ProcessFacts.residentSize()
            for path in ["double", "twice", "transfer", "deflate", "bomb", "body"] {
                do {
                    try await readFour(path, client) {
                        for _ in 0..<200 { try await other.get("else") }
                    }
                } catch let error as NetworkError {
                    guard [.tooLarge, .malformedResponse].contains(error.kind) else { throw error }
                }
                let peak = try MemoryTests.peakSize() - before
                guard peak < 64 << 20 else {
                    throw CheckFailure(description: "\(path): \(peak >> 10) KiB above the start")
                }
            }
        }
    }

    private static func readFour(_ path: String, _ client: Client, pause: () async throws -> Void) async throws {
        var chunks = 0
        for try await _ in client.stream(path).chunks {
            chunks += 1
            try await pause()
            if chunks == 4 { return }
        }
    }

    // MARK: Values that are sent back

    /// Raw lines of a head from a server that attempts to add text to the next request.
    @Test(arguments: [
        "Location: /a\rX-Injected: 1", "Location: /a\0X-Injected: 1", "Location: /a\u{B}X-Injected: 1",
        "Location: /a%0d%0aX-Injected:%201", "Location: //127.0.0.1:%/a\r\n X-Injected: 1",
        "Location: /a HTTP/1.1\tX-Injected: 1",
    ])
    func redirectCannotInjectIntoTheNextRequest(line: String) async throws {
        try await withServer { exchange in
            if exchange.request.path == "/start" {
                let text = line.replacing("%/", with: "\(exchange.request["Host"]?.split(separator: ":").last ?? "")/")
                return try exchange.write("HTTP/1.1 302 Found\r\n\(text)\r\nContent-Length: 0\r\n\r\n")
            }
            try exchange.respond(text: Self.isClean(exchange.request) ? "clean" : "injected")
        } test: { _, client in
            do {
                let answer = try await client.get("start", as: String.self)
                #expect(answer == "clean")
            } catch let error as NetworkError {
                let kinds: [NetworkError.Kind] = [.redirect, .malformedResponse]
                #expect(kinds.contains(error.kind), "\(error)")
            }
        }
    }

    @Test(arguments: ["a=b\rX-Injected: 1", "a=b\0X-Injected: 1", "a\u{1}=b", "a=\u{7F}", "a=b; Path=/\rX-Injected: 1"])
    func cookieCannotInjectIntoTheNextRequest(cookie: String) async throws {
        try await withServer { exchange in
            if exchange.request.path == "/start" {
                return try exchange.write(
                    "HTTP/1.1 200 OK\r\nSet-Cookie: \(cookie)\r\nSet-Cookie: good=1\r\nContent-Length: 0\r\n\r\n")
            }
            try exchange.respond(text: Self.isClean(exchange.request) ? "clean" : "injected")
        } test: { _, client in
            do {
                _ = try await client.get("start")
            } catch let error as NetworkError {
                #expect(error.kind == .malformedResponse, "\(error)")
            }
            let answer = try await client.get("next", as: String.self)
            #expect(answer == "clean")
        }
    }

    /// Returns whether the text has no field of that name, and no control character except line ends.
    private static func isClean(_ request: LoopbackServer.Request) -> Bool {
        let head = request.rawHead
        let lines = head.count(where: { $0 == 10 })
        return request["X-Injected"] == nil && head.count(where: { $0 == 13 }) == lines
            && !head.contains(where: { $0 < 32 && $0 != 10 && $0 != 13 || $0 == 127 })
    }

    /// Neither the jar nor the field that carries the cookies grows without bound, however many are set.
    @Test func numberOfCookiesIsBounded() async throws {
        let store = CookieStore()
        try await withServer(configuration: .test { $0.cookies = .store(store) }) { exchange in
            if exchange.request.path.hasPrefix("/set") {
                let fields: LoopbackServer.Fields = (0..<900).map {
                    ("Set-Cookie", "\(exchange.request.path.dropFirst(4))-\($0)=1; Path=/")
                }
                return try exchange.respond(headers: fields)
            }
            try exchange.respond(text: "\(exchange.request["Cookie"]?.utf8.count ?? 0)")
        } test: { _, client in
            for round in 0..<12 { _ = try await client.get("set\(round)") }
            let size = try await client.get("next", as: String.self)
            #expect(store.cookies.count <= 180 && store.cookies.count > 10)
            #expect((Int(size) ?? .max) < 16 << 10)
        }
    }
}
#endif
