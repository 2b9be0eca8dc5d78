#if os(Linux)
import Foundation
import Tern
import TernEngine

/// The answers of proxies.
extension FuzzTarget {
    static let proxies = [
        FuzzTarget(
            name: "socks", seeds: { _ in SOCKSFuzzing.seeds },
            run: { input, choice in try SOCKSFuzzing.check(Array(input), choice) }),
        FuzzTarget(
            name: "connect", seeds: { _ in TunnelFuzzing.seeds.map { Array($0.utf8) } }, tokens: TunnelFuzzing.tokens,
            run: { input, choice in try TunnelFuzzing.check(Array(input), choice) }),
    ]
}

/// Checks the handshakes of SOCKS against plain readings of the answers.
private enum SOCKSFuzzing {
    static let seeds: [[UInt8]] = [
        [5, 0, 5, 0, 0, 1, 127, 0, 0, 1, 0, 80], [5, 2, 1, 0, 5, 0, 0, 3, 5, 0x61, 0x2E, 0x62, 0x2E, 0x63, 1, 187],
        [5, 0, 5, 0, 0, 4] + [UInt8](repeating: 0, count: 18), [5, 2, 1, 1], [5, 0xFF], [5, 0, 5, 5, 0, 1],
        [5, 0, 5, 0, 0, 3, 0, 0, 80], [5, 0, 5, 0, 0, 3, 255] + [UInt8](repeating: 0x61, count: 257),
        [0, 90, 0, 80, 127, 0, 0, 1], [0, 91, 0, 0, 0, 0, 0, 0], [0, 92], [0, 93], [0, 90, 0, 0, 0, 0, 0, 1, 2],
    ]
    private static let hosts = [
        "a.example", "192.0.2.1", "2001:db8::1", "fe80::1%1", String(repeating: "a", count: 253),
    ]

    static func check(_ input: [UInt8], _ choice: UInt64) throws -> String {
        var numbers = Numbers(state: choice)
        let kinds: [ProxyAddress.Kind] = [.socks5, .socks5WithLocalNames, .socks4, .socks4a]
        let kind = kinds[numbers.below(4)]
        let hasCredentials = numbers.below(2) == 0
        let proxy = ProxyAddress(
            kind, host: "proxy", port: 1_080, user: hasCredentials ? "ada" : nil,
            password: hasCredentials && kind != .socks4 ? "secret" : nil)
        let address =
            proxy.needsLocalNames ? [UInt32(0x7F00_0001)].map { SocketAddress.ipv4($0, port: 80) }.first : nil
        let host = hosts[numbers.below(hosts.count)]
        let handshake = ProxyHandshake(proxy, host: host, port: 80, address: address) { _, _ in nil }
        var first = handshake
        let greeting = first.start()
        guard case .send = greeting else {
            guard case .failed(let error) = greeting else { throw Failure("it begins with \(greeting)") }
            return "rejected \(error.reason.prefix(60))"
        }
        let isFive = kind == .socks5 || kind == .socks5WithLocalNames
        let plain = isFive ? readFive(input, hasCredentials) : readFour(input)
        for pieces in Pieces.splits(of: input.count, choice) {
            let end = try run(first, input, pieces: align(pieces, isFive, hasCredentials, input.count))
            try require(end == plain, "\(end) in pieces to \(pieces) in place of \(plain)")
        }
        // An answer to a message that has not been sent makes no connection.
        let whole = try run(first, input, pieces: [input.count])
        if isFive, input.count > 2, plain != .failed {
            try require(whole == .failed, "\(whole) after an answer to no message")
        } else {
            try require(whole == plain, "\(whole) in place of \(plain)")
        }
        return (plain == .failed ? "rejected " : "") + "\(plain) \(kind) \(hasCredentials) \(try reason(first, input))"
    }

    private enum End { case open, established, failed }

    /// Adds the ends of the proxy's messages to the pieces.
    private static func align(_ pieces: [Int], _ isFive: Bool, _ hasCredentials: Bool, _ count: Int) -> [Int] {
        guard isFive else { return pieces }
        return (pieces + [2, 4].filter { $0 < count }).sorted()
    }

    private static func run(_ handshake: ProxyHandshake, _ input: [UInt8], pieces: [Int]) throws -> End {
        var handshake = handshake
        var action = ProxyAction.needsInput
        var start = 0
        for end in pieces where end > start {
            let piece = Array(input[start..<end])
            action = unsafe piece.withUnsafeBytes { unsafe handshake.receive($0) }
            if case .send(let bytes) = action {
                try require(!bytes.isEmpty && bytes.count <= 520, "a message of \(bytes)")
            }
            start = end
        }
        switch action {
        case .established:
            let ending = handshake.end()
            guard case .failed = ending else { throw Failure("the end of the connection is \(ending)") }
            return .established
        case .failed(let error):
            try require(error.kind == .proxy && !error.reason.contains("secret"), "\(error)")
            try require(handshake.end() == action, "another failure at the end")
            return .failed
        case .needsInput, .send:
            guard case .failed = handshake.end() else { throw Failure("the end of the connection is no failure") }
            return .open
        case .reconnect: throw Failure("a SOCKS proxy is connected to again")
        }
    }

    private static func reason(_ handshake: ProxyHandshake, _ input: [UInt8]) throws -> String {
        var handshake = handshake
        for byte in input {
            let action = unsafe [byte].withUnsafeBytes { unsafe handshake.receive($0) }
            if case .failed(let error) = action { return String(error.reason.filter { !$0.isNumber }.suffix(50)) }
        }
        return ""
    }

    /// Reads the answers of a SOCKS 5 proxy (RFC 1928 §3 and §6, RFC 1929 §2).
    private static func readFive(_ input: [UInt8], _ hasCredentials: Bool) -> End {
        var rest = input[...]
        func fits(_ expected: [UInt8?]) -> Bool {
            zip(rest, expected).allSatisfy { byte, expected in expected.map { $0 == byte } ?? true }
        }
        let isAuthenticated = hasCredentials && input.count > 1 && input[1] == 2
        guard fits([5, isAuthenticated ? 2 : 0]) else { return .failed }
        rest = rest.dropFirst(2)
        if isAuthenticated {
            guard fits([1, 0]) else { return .failed }
            rest = rest.dropFirst(2)
        }
        guard fits([5, 0]) else { return .failed }
        let address = rest.dropFirst(3)
        guard let type = address.first else { return .open }
        guard [1, 3, 4].contains(type) else { return .failed }
        let name = address.dropFirst().first
        let length = type == 1 ? 10 : type == 4 ? 22 : name.map { 7 + Int($0) } ?? .max
        return rest.count < length ? .open : rest.count == length ? .established : .failed
    }

    private static func readFour(_ input: [UInt8]) -> End {
        guard zip(input, [0, 90]).allSatisfy({ $0 == $1 }) else { return .failed }
        return input.count < 8 ? .open : input.count == 8 ? .established : .failed
    }
}

/// Checks that a tunnel is made after a whole answer of 2xx only, and that each request is one CONNECT.
private enum TunnelFuzzing {
    /// Stands between the answers to two requests. No answer can contain it.
    private static let separator: UInt8 = 0x1E
    static let seeds = [
        "HTTP/1.1 200 Connection established\r\n\r\n", "HTTP/1.0 200 OK\r\nProxy-Agent: x\r\n\r\n",
        "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Digest realm=\"a\", nonce=\"b\", qop=\"auth\"\r\n"
            + "Proxy-Authenticate: Basic realm=\"a, b\"\r\nContent-Length: 9\r\n\r\nForbidden\u{1E}HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 407 Again\r\nProxy-Authenticate: Digest realm=\"a\"\r\nConnection: close\r\n\r\nx\u{1E}"
            + "HTTP/1.1 407 Again\r\nProxy-Authenticate: Digest stale=true,\r\n nonce=\"c\"\r\nContent-Length: 0\r\n\r\n\u{1E}"
            + "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 407 x\r\nproxy-authenticate: NTLM\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n\u{1E}HTTP/1.1 204\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\nContent-Length: 5\n\n", "HTTP/1.1 502 Bad Gateway\r\n\r\n<html>",
        "HTTP/1.1 407 x\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 200 OK\r\n\r\nSSH-2.0-OpenSSH\r\n",
        "HTTP/1.1 407 x\r\nProxy-Authenticate: Basic\r\nContent-Length: 2\r\n\r\na\u{1E}\u{1E}HTTP/1.1 200 OK\r\n\r\n",
    ]
    static let tokens = [
        "\r", "\n", "\r\n", "\r\n\r\n", " ", "\t", ":", ",", "\0", "\u{1E}", "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 407 x\r\n",
        "200", "299", "300", "407", "101", "100", "Proxy-Authenticate: Digest x\r\n", "Proxy-Authenticate:\r\n",
        "Content-Length: 1\r\n", "Content-Length: 2, 2\r\n", "Content-Length: 999999999999999999\r\n",
        "Content-Length: -1\r\n", "Transfer-Encoding: chunked\r\n", "Connection: close\r\n",
        "Proxy-Connection: Close\r\n",
        "\r\n ", "HTTP/1.1 100 x\r\n\r\n", "HTTP/1.0 ",
    ]

    static func check(_ input: [UInt8], _ choice: UInt64) throws -> String {
        let answers = input.split(separator: separator, omittingEmptySubsequences: false).map(Array.init)
        let whole = try run(answers, choice) { [$0.count] }
        for seed in [choice, choice &+ 1] {
            let other = try run(answers, choice) { Pieces.splits(of: $0.count, seed)[0] }
            try require(other == whole, "in pieces: \(other), whole: \(whole)")
        }
        let bytes = try run(answers, choice) { Array(0...$0.count) }
        try require(bytes == whole, "in bytes: \(bytes), whole: \(whole)")
        if case .established = whole.action { try checkTunnel(answers[whole.requests - 1]) }
        return whole.outcome
    }

    private struct Result: Equatable {
        var action: ProxyAction
        var requests: Int

        var outcome: String {
            switch action {
            case .established: "established \(requests)"
            case .failed(let error): "rejected \(error.reason.filter { !$0.isNumber }), \(requests)"
            default: "rejected: open \(requests)"
            }
        }
    }

    private static func run(
        _ answers: [[UInt8]], _ choice: UInt64, pieces: ([UInt8]) -> [Int]
    ) throws -> Result {
        var numbers = Numbers(state: choice)
        let hasCredentials = numbers.below(2) == 0
        let proxy = ProxyAddress(
            .http, host: "proxy", port: 3_128, user: hasCredentials ? "ada" : nil,
            password: hasCredentials ? "secret" : nil)
        let kind = numbers.below(4)
        var tunnel = ProxyTunnel(proxy, host: numbers.below(2) == 0 ? "a.example" : "2001:db8::1", port: 443) {
            all, attempt in
            // An answer to a challenge repeats parts of it.
            let parts = String(decoding: Array(all.joined(separator: [0x2C])), as: UTF8.self)
            return kind == 0 ? nil : kind == 1 ? "Basic YTpi" : "Digest \(parts), nc=\(attempt)"
        }
        var requests = 0
        var action = tunnel.start()
        for answer in answers {
            guard case .send(let request) = action else { break }
            requests += 1
            try require(requests <= 4, "\(requests) requests for a tunnel")
            try check(request)
            action = feed(&tunnel, answer, pieces(answer))
            if action == .needsInput { action = tunnel.end() }
            if action == .reconnect { action = tunnel.start() }
        }
        if case .established = action {
            guard case .failed = tunnel.end() else { throw Failure("the end of the tunnel is no failure") }
        }
        // The text of an error has nothing that the proxy sent, and no credentials.
        if case .failed(let error) = action {
            try require(error.kind == .proxy || error.kind == .invalidRequest, "\(error)")
            try require(!error.reason.contains("secret"), "\(error)")
        }
        if case .send = action { action = .needsInput }
        return Result(action: action, requests: requests)
    }

    /// Hands over an answer in pieces. Bytes behind its end are those of a proxy that sends more than it states.
    private static func feed(_ tunnel: inout ProxyTunnel, _ answer: [UInt8], _ pieces: [Int]) -> ProxyAction {
        var action = ProxyAction.needsInput
        var start = 0
        for end in pieces where end > start {
            // The bytes after the answer are not answers to the next request: the connection is replaced.
            if case .send = action { return .reconnect }
            if action == .reconnect { return action }
            let piece = Array(answer[start..<end])
            action = unsafe piece.withUnsafeBytes { unsafe tunnel.receive($0) }
            start = end
        }
        return action
    }

    /// Checks that bytes are one request for a tunnel.
    private static func check(_ request: [UInt8]) throws {
        let message = try PlainRequest(request)
        try require(message.method == "CONNECT" && !message.target.contains("/"), "\(message.method) \(message.target)")
        try require(message.values("Host") == [message.target], "Host is not the target")
        try require(message.fields.count == 1 + message.values("Proxy-Authorization").count, "\(message.fields)")
        try require(message.values("Proxy-Authorization").count < 2, "two answers to challenges")
    }

    /// Checks that the parser of responses reads the answer before a tunnel in the same way, if it accepts it.
    private static func checkTunnel(_ answer: [UInt8]) throws {
        var request = HTTP1Parser.Request(limits: HeadLimits(bytes: 128 << 10))
        request.isConnect = true
        var parser = HTTP1Parser()
        parser.begin(request)
        var position = 0
        unsafe try answer.withUnsafeBytes { bytes in
            while true {
                switch unsafe parser.next(bytes, from: &position) {
                case .interim: continue
                case .head(let head): try require(200..<300 ~= head.status, "a tunnel after \(head.status)")
                case .upgraded: return try require(position == answer.count, "a tunnel with bytes before its use")
                case .failure: return
                case .needsInput: throw Failure("a tunnel before the end of the head")
                default: throw Failure("a tunnel after a body")
                }
            }
        }
    }
}
#endif
