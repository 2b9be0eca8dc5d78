import Testing

@testable import TernEngine

@Suite struct ProxyTunnelTests {
    private static let plain = ProxyAddress(.http, host: "proxy.example", port: 3_128)
    private static let secret = ProxyAddress(
        .http, host: "proxy.example", port: 3_128, user: "Aladdin", password: "open sesame")
    private static let request = "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n"

    private func driven(
        _ proxy: ProxyAddress = plain, host: String = "a.example",
        authorize: @escaping ProxyTunnel.Authorize = { _, _ in nil }
    ) -> DrivenHandshake {
        DrivenHandshake(ProxyHandshake(proxy, host: host, port: 443, authorize: authorize))
    }

    private func failure(_ reason: String) -> ProxyAction {
        let text = "the proxy proxy.example:3128 made no connection to a.example:443: \(reason)"
        return .failed(EngineError(.proxy, text))
    }

    // MARK: - Requests

    @Test func theRequestNamesTheServerTwice() {
        #expect(driven().sentText == Self.request + "\r\n")
    }

    @Test func anAddressOfVersion6HasBracketsAndNoScope() {
        let text = driven(host: "fe80::1%eth0").sentText
        #expect(text == "CONNECT [fe80::1]:443 HTTP/1.1\r\nHost: [fe80::1]:443\r\n\r\n")
    }

    @Test(
        arguments: [
            ("Aladdin", "open sesame", "QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), ("", "", "Og=="), ("a", "b", "YTpi"),
            ("a", "bc", "YTpiYw=="), ("é", "ü", "w6k6w7w="), ("a", nil, "YTo="), (nil, "b", "OmI="),
        ] as [(String?, String?, String)])
    func credentialsAreSentAtOnce(user: String?, password: String?, base64: String) {
        let proxy = ProxyAddress(.https, host: "p", port: 1, user: user, password: password)
        #expect(driven(proxy).sentText == Self.request + "Proxy-Authorization: Basic \(base64)\r\n\r\n")
    }

    @Test func aUserNameWithAColonWaitsForAChallenge() {
        let proxy = ProxyAddress(.http, host: "p", port: 1, user: "a:b", password: "c")
        #expect(driven(proxy).sentText == Self.request + "\r\n")
    }

    @Test(arguments: ["a\nb", "a\r\nX: y", "a\0", "\u{7F}", "\t"])
    func credentialsWithControlCharactersAreRefused(text: String) {
        for kind in [ProxyAddress.Kind.http, .https, .socks4, .socks4a, .socks5, .socks5WithLocalNames] {
            for proxy in [
                ProxyAddress(kind, host: "p", port: 1, user: text, password: "x"),
                ProxyAddress(kind, host: "p", port: 1, user: "x", password: text),
            ] {
                let driven = driven(proxy)
                #expect(driven.error?.kind == .invalidRequest)
                #expect(driven.sent.isEmpty)
            }
        }
    }

    @Test(arguments: ["a b", "a\r\nb", "a/b", "u@b", "a?b", "a#b", "é", "a\\b"])
    func aHostThatCannotStandInARequestIsRefused(host: String) {
        let driven = driven(host: host)
        #expect(driven.error?.kind == .invalidRequest)
        #expect(driven.sent.isEmpty)
    }

    // MARK: - Answers

    private static let accepted = [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.0 200 Connection established\r\n\r\n",
        "HTTP/1.1 200\r\n\r\n",
        "HTTP/1.1 200 \r\n\r\n",
        "HTTP/1.1 299 \u{FF}\r\nServer: x\r\nEmpty:\r\n\r\n",
        "HTTP/1.1 204 No Content\nVia: y\n\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: none\r\nTransfer-Encoding: x, y\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\tagain\r\n\r\n",
    ]

    @Test(arguments: accepted)
    func aSuccessEstablishesTheTunnelAtEachSplit(answer: String) {
        let bytes = Array(answer.utf8)
        for split in bytes.indices {
            var driven = driven()
            driven.receive(bytes, splitAt: split)
            #expect(driven.action == .established)
        }
        var driven = driven()
        driven.receiveSingly(bytes)
        #expect(driven.action == .established)
    }

    private static let status = "its answer is not HTTP/1.1 (RFC 9112 §4)"
    private static let field = "a line of its answer is not a name, a colon and a value (RFC 9112 §5.1)"
    private static let control = "its answer has a control character (RFC 9110 §5.5)"
    private static let refused: [(String, String)] = [
        ("HTTP/1.1 403 Forbidden\r\n\r\n", "it answered with status 403"),
        ("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\n", "it answered with status 502"),
        ("HTTP/1.1 302 Found\r\nLocation: https://evil.example/\r\n\r\n", "it answered with status 302"),
        ("HTTP/1.1 101 Switching\r\n\r\n", "it answered with status 101"),
        ("HTTP/1.1 407 Who\r\n\r\n", "it answered with status 407 without a challenge (RFC 9110 §15.5.8)"),
        ("HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic\r\n\r\n", "it answered with status 407"),
        ("HTTP/2 200 OK\r\n\r\n", status), ("HTTP/1.2 200 OK\r\n\r\n", status), ("http/1.1 200 OK\r\n\r\n", status),
        ("HTTP/1.1 20 OK\r\n\r\n", status), ("HTTP/1.1 2000 OK\r\n\r\n", status), ("HTTP/1.1 099 OK\r\n\r\n", status),
        ("HTTP/1.1  200 OK\r\n\r\n", status), ("HTTP/1.1\t200 OK\r\n\r\n", status), (" HTTP/1.1 200\r\n\r\n", status),
        ("SSH-2.0-OpenSSH\r\n\r\n", status), ("\r\n", status), ("\n", status),
        ("\u{16}\u{3}\u{3}", status), ("HTTP/2", status), ("HTTPS", status),
        ("HTTP/1.1 200 OK\r\nA : b\r\n\r\n", field), ("HTTP/1.1 200 OK\r\n: b\r\n\r\n", field),
        ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", field), ("HTTP/1.1 200 OK\r\nA(: b\r\n\r\n", field),
        ("HTTP/1.1 200 OK\r\n A: b\r\n\r\n", "its first field begins with a blank (RFC 9112 §2.2)"),
        ("HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n", control), ("HTTP/1.1 200 OK\rB: c\r\n\r\n", control),
        ("HTTP/1.1 200 OK\r\nA: b\r\r\n\r\n", control), ("HTTP/1.1 200 O\u{1B}K\r\n\r\n", control),
        ("HTTP/1.1 407 X\r\nContent-Length: -1\r\n\r\n", "its Content-Length is not a number (RFC 9112 §6.3)"),
        ("HTTP/1.1 407 X\r\nContent-Length:\r\n\r\n", "its Content-Length is not a number (RFC 9112 §6.3)"),
        ("HTTP/1.1 407 X\r\nContent-Length: 1, 2\r\n\r\n", "its Content-Length is not one number (RFC 9112 §6.3)"),
        (
            "HTTP/1.1 407 X\r\nContent-Length: 9999999999999999999\r\n\r\n",
            "its Content-Length is not a number (RFC 9112 §6.3)"
        ),
        (
            String(repeating: "HTTP/1.1 100 Continue\r\n\r\n", count: 11),
            "it sent more than 10 interim responses"
        ),
    ]

    @Test(arguments: refused)
    func otherAnswersAreRefusedAtEachSplit(answer: String, reason: String) {
        let bytes = Array(answer.utf8)
        for split in bytes.indices {
            var driven = driven()
            driven.receive(bytes, splitAt: split)
            #expect(driven.action == failure(reason), "split at \(split)")
        }
    }

    @Test func anEndlessHeadIsRefusedAfter64KiB() {
        for unit in ["x", "A: b\r\n", "\t"] {
            var driven = driven()
            driven.receive(Array(("HTTP/1.1 200 OK\r\nA: b" + String(repeating: unit, count: 65_536)).utf8))
            #expect(driven.action == failure("its answer is larger than 64 KiB"))
        }
    }

    @Test func bytesAfterASuccessAreRefused() {
        var driven = driven()
        driven.receive(Array("HTTP/1.1 200 OK\r\n\r\nx".utf8))
        #expect(driven.action == failure("it sent bytes before the client used the tunnel"))
    }

    @Test func anEndWithinTheAnswerIsAFailure() {
        var silent = driven()
        silent.end()
        #expect(silent.action == failure("it closed the connection without an answer"))
        var cut = driven()
        cut.receive(Array("HTTP/1.1 20".utf8))
        cut.end()
        #expect(cut.action == failure("it closed the connection within its answer"))
        cut.end()
        #expect(cut.action == failure("it closed the connection within its answer"))
    }

    // MARK: - Challenges

    /// Answers each challenge with its number and its text.
    private static let echo: ProxyTunnel.Authorize = { challenges, attempt in
        "Digest \(attempt) " + challenges.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "|")
    }

    @Test(arguments: [0, 1, 5, 1_000])
    func aChallengeIsAnsweredOnTheSameConnectionAfterItsBody(length: Int) {
        let answer = """
            HTTP/1.1 407 Who\r\nproxy-authenticate: Digest nonce=1\r\nProxy-Authenticate:  Basic \r
            Content-Length: \(length), \(length)\r\n\r\n
            """
        let bytes = Array((answer + String(repeating: "b", count: length)).utf8)
        let expected =
            Self.request + "\r\n" + Self.request + "Proxy-Authorization: Digest 0 Digest nonce=1|Basic\r\n\r\n"
        for split in bytes.indices {
            var driven = driven(authorize: Self.echo)
            driven.receive(bytes, splitAt: split)
            #expect(driven.sentText == expected, "split at \(split)")
            driven.receive(Array("HTTP/1.1 200 OK\r\n\r\n".utf8))
            #expect(driven.action == .established)
        }
    }

    @Test(arguments: [
        "HTTP/1.1 407 X\r\nProxy-Authenticate: D\r\nContent-Length: 0\r\nConnection: x, Close\r\n\r\n",
        "HTTP/1.1 407 X\r\nProxy-Authenticate: D\r\nContent-Length: 0\r\nProxy-Connection: close\r\n\r\n",
        "HTTP/1.0 407 X\r\nProxy-Authenticate: D\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 407 X\r\nProxy-Authenticate: D\r\n\r\n",
        "HTTP/1.1 407 X\r\nProxy-Authenticate: D\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 407 X\r\nProxy-Authenticate: D\r\nContent-Length: 65537\r\n\r\n",
        "HTTP/1.1 407 X\r\nProxy-Authenticate: D\r\nContent-Length: 1\r\n\r\nxy",
    ])
    func aChallengeWithoutAReusableConnectionIsAnsweredOnANewOne(answer: String) {
        var driven = driven(authorize: Self.echo)
        driven.receive(Array(answer.utf8))
        #expect(driven.action == .reconnect)
        driven.restart()
        #expect(driven.sentText.hasSuffix(Self.request + "Proxy-Authorization: Digest 0 D\r\n\r\n"))
        driven.receive(Array("HTTP/1.1 200 OK\r\n\r\n".utf8))
        #expect(driven.action == .established)
    }

    private static let challenge = Array("HTTP/1.1 407 X\r\nProxy-Authenticate: D\r\nContent-Length: 0\r\n\r\n".utf8)

    @Test func aThirdChallengeIsNotAnswered() {
        var driven = driven(authorize: Self.echo)
        driven.receive(Self.challenge)
        driven.receive(Self.challenge)
        #expect(driven.isOpen)
        driven.receive(Self.challenge)
        #expect(driven.action == failure("it answered with status 407"))
        #expect(driven.sentText.contains("Digest 1 D"))
    }

    @Test func refusedCredentialsAreNotSentTwice() {
        var driven = driven(Self.secret) { _, _ in "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==" }
        driven.receive(Self.challenge)
        #expect(driven.action == failure("it answered with status 407"))
    }

    @Test func anAnswerWithAControlCharacterIsNotSent() {
        var driven = driven { _, _ in "Digest \r\nX: y" }
        driven.receive(Self.challenge)
        #expect(driven.action == failure("the answer to its challenge contains a control character"))
    }

    @Test func aConnectionThatEndsAfterAChallengeIsReplaced() {
        var driven = driven(authorize: Self.echo)
        driven.receive(Self.challenge)
        driven.end()
        #expect(driven.action == .reconnect)
        driven.restart()
        driven.end()
        #expect(driven.action == failure("it closed the connection without an answer"))
    }

    @Test func aConnectionThatEndsWithinAChallengesBodyIsReplaced() {
        var driven = driven(authorize: Self.echo)
        driven.receive(Array("HTTP/1.1 407 X\r\nProxy-Authenticate: D\r\nContent-Length: 9\r\n\r\nabc".utf8))
        driven.end()
        #expect(driven.action == .reconnect)
    }

    // MARK: - Untrusted bytes and secrets

    @Test(arguments: 0..<300 as Range<UInt64>)
    func changedAnswersEndTheSameAtEachSplit(seed: UInt64) {
        var random = ConnectRandom(state: seed)
        let samples = Self.accepted + Self.refused.map(\.0)
        var bytes = Array((samples.randomElement(using: &random) ?? "").utf8)
        for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
            let place = Int.random(in: bytes.indices, using: &random)
            switch Int.random(in: 0..<3, using: &random) {
            case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
            case 1: bytes.remove(at: place)
            default: bytes.insert([13, 10, 32, 58, 0].randomElement(using: &random) ?? 0, at: place)
            }
        }
        // Bytes after the end of the head depend on the time of their arrival.
        var whole = driven(Self.secret)
        whole.receiveSingly(bytes)
        for split in bytes.indices {
            var other = driven(Self.secret)
            other.receive(bytes, splitAt: split)
            if whole.action == .established, other.action != .established { continue }
            #expect(other == whole)
        }
        #expect(whole.error.map { !$0.reason.contains("Aladdin") && !$0.reason.contains("sesame") } ?? true)
    }

    @Test func noDescriptionShowsCredentials() {
        let proxy = Self.secret
        var dumped = ""
        dump(proxy, to: &dumped)
        for text in ["\(proxy)", String(reflecting: proxy), dumped, "\([proxy])", "\(Optional(proxy) as Any)"] {
            #expect(!text.contains("Aladdin"))
            #expect(!text.contains("sesame"))
        }
        dump(driven(proxy).handshake, to: &dumped)
        #expect(!dumped.contains("Basic"))
        #expect("\(proxy)" == "proxy proxy.example:3128")
        #expect(ProxyAddress(.socks5, host: "::1", port: 1).name == "[::1]:1")
    }
}
